"""Which project a folder belongs to, told by real git repositories, and remembered when they are gone."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.sources.acts import Acts
from memex.sources.project import NO_FOLDER, Projects, Told
from memex.sources.repository import repository_of
from tests.sources.git import git, repository

REMOTE = "https://github.com/acme/rocket.git"
ROCKET = "git:github.com/acme/rocket"


@pytest.fixture
def acts(tmp_path):
    return Acts(tmp_path / "archive")


@pytest.fixture
def projects(acts):
    return Projects(acts)


def project_of(projects, folder):
    projects.learn([str(folder)])
    return projects.of(str(folder))


def later(projects):
    """Another process."""
    return Projects(projects.acts)


def noted(projects):
    return [act["cwd"] for act in projects.acts.read("project")]


class TestRepositories:
    """What a folder belongs to while it is there."""

    def test_repository_without_a_remote_is_its_folder(self, projects, tmp_path):
        top = repository(tmp_path / "src" / "app")
        (top / "docs").mkdir()
        assert project_of(projects, top) == (f"git:{top}", "app")
        assert project_of(projects, top / "docs") == (f"git:{top}", "app")

    def test_clones_of_one_remote_are_one_project(self, projects, tmp_path):
        repository(tmp_path / "old", REMOTE)
        repository(tmp_path / "new" / "copy", "git@github.com:Acme/Rocket")
        assert project_of(projects, tmp_path / "old") == (ROCKET, "rocket")
        assert project_of(projects, tmp_path / "new" / "copy") == (ROCKET, "rocket")

    @pytest.mark.parametrize(
        "url",
        [
            "https://github.com/acme/rocket",
            "https://github.com/acme/rocket/",
            "http://GitHub.com/Acme/Rocket.git",
            "https://someone:s3cret@github.com:443/acme/rocket.git",
            "git@github.com:acme/rocket.git",
            "github.com:acme/rocket",
            "ssh://git@github.com/acme/rocket.git",
            "ssh://git@github.com:22/acme/rocket.git/",
            "git+ssh://git@github.com/acme/rocket",
            "git://github.com/acme%2Frocket.git",
        ],
    )
    def test_one_remote_is_known_however_it_is_written(self, projects, tmp_path, url):
        assert project_of(projects, repository(tmp_path / "app", url))[0] == ROCKET
        assert "s3cret" not in (projects.acts.root / "acts.jsonl").read_text()

    @pytest.mark.parametrize(
        ("url", "expected"),
        [
            ("https://git.example.org/rocket", "git:git.example.org/rocket"),
            ("ssh://me@[::1]:22/~me/rocket.git", "git:::1/~me/rocket"),
            ("https://github.com/acme/火箭.git", "git:github.com/acme/火箭"),
            ("/srv/git/rocket.git", "git:/srv/git/rocket.git"),
            ("file:///srv/git/rocket.git", "git:/srv/git/rocket.git"),
            ("https://[broken", None),
            ("https://github.com/", None),
        ],
    )
    def test_any_remote_gives_an_answer(self, projects, tmp_path, url, expected):
        top = repository(tmp_path / "app", url)
        assert project_of(projects, top)[0] == (expected or f"git:{top}")

    def test_clone_on_the_same_machine_is_what_it_was_cloned_from(self, projects, tmp_path):
        origin = repository(tmp_path / "app")
        git(tmp_path, "clone", "-q", str(origin), "copy")
        git(tmp_path, "clone", "-q", str(tmp_path / "copy"), "copy of copy")
        git(origin, "clone", "-q", "--bare", ".", str(tmp_path / "hub.git"))
        assert project_of(projects, tmp_path / "copy") == (f"git:{origin}", "app")
        assert project_of(projects, tmp_path / "copy of copy") == (f"git:{origin}", "app")
        git(origin, "remote", "add", "origin", REMOTE)
        assert project_of(projects, tmp_path / "hub.git") == (ROCKET, "rocket")

    def test_repository_that_is_its_own_origin_is_itself(self, projects, tmp_path):
        top = repository(tmp_path / "app", ".")
        assert project_of(projects, top)[0] == f"git:{top}"

    def test_origin_counts_before_other_remotes(self, projects, tmp_path):
        top = repository(tmp_path / "app")
        git(top, "remote", "add", "fork", "https://github.com/me/fork")
        assert project_of(projects, top)[0] == "git:github.com/me/fork"
        git(top, "remote", "add", "origin", REMOTE)
        assert project_of(later(projects), repository(tmp_path / "other", REMOTE))[0] == ROCKET
        assert repository_of(top).remote == "github.com/acme/rocket"

    def test_worktree_belongs_to_its_repository(self, projects, tmp_path):
        top = repository(tmp_path / "app")
        git(top, "worktree", "add", "-q", str(tmp_path / "feature"))
        assert project_of(projects, tmp_path / "feature") == (f"git:{top}", "app")

    def test_submodule_is_a_project_of_its_own(self, projects, tmp_path):
        library = repository(tmp_path / "library", "https://github.com/acme/nozzle")
        top = repository(tmp_path / "app", REMOTE)
        git(top, "submodule", "--quiet", "add", str(library), "lib")
        assert project_of(projects, top / "lib")[0] == "git:github.com/acme/nozzle"
        git(top / "lib", "remote", "remove", "origin")
        own, name = project_of(Projects(Acts(tmp_path / "other")), top / "lib")
        assert (own, name) == (f"git:{top}/.git/modules/lib", "lib")

    @pytest.mark.parametrize("layout", ["plain", "bare", "bare beside", "separate", "worktree", "inside", "moved in"])
    def test_place_is_where_git_says(self, tmp_path, layout):
        top = repository(tmp_path / "app", "", *(["--bare"] if layout == "bare" else [])) if layout != "bare" else None
        match layout:
            case "bare":
                top = tmp_path / "app.git"
                git(tmp_path, "init", "-q", "--bare", "app.git")
            case "bare beside":
                git(tmp_path, "clone", "-q", "--bare", str(top), "hub/.bare")
                (tmp_path / "hub" / ".git").write_text("gitdir: ./.bare\n")
                git(tmp_path / "hub", "worktree", "add", "-q", "tree")
                top = tmp_path / "hub" / "tree"
            case "separate":
                git(tmp_path, "clone", "-q", "--separate-git-dir", "elsewhere.git", str(top), "clone")
                top = tmp_path / "clone"
            case "worktree":
                git(top, "worktree", "add", "-q", "../tree")
                top = tmp_path / "tree"
            case "inside":
                top = top / ".git" / "objects"
            case "moved in":
                top = top / "deep" / "er"
                top.mkdir(parents=True)
        common = Path(git(top, "rev-parse", "--path-format=absolute", "--git-common-dir"))
        expected = common.parent if common.name in (".git", ".bare") else common
        assert repository_of(top).place == str(expected)

    def test_nothing_in_a_repository_is_a_project_of_its_own(self, projects, tmp_path):
        (tmp_path / "notes").mkdir()
        assert project_of(projects, tmp_path / "notes") == (f"dir:{tmp_path}/notes", "notes")
        assert noted(projects) == []

    def test_link_is_what_it_leads_to(self, projects, tmp_path):
        top = repository(tmp_path / "app")
        (tmp_path / "link").symlink_to(top)
        (tmp_path / "notes").mkdir()
        (tmp_path / "jottings").symlink_to(tmp_path / "notes")
        assert project_of(projects, tmp_path / "link")[0] == f"git:{top}"
        assert project_of(projects, tmp_path / "jottings")[0] == f"dir:{tmp_path}/notes"
        shutil.rmtree(tmp_path / "notes")
        assert later(projects).of(str(tmp_path / "jottings"))[0] == f"dir:{tmp_path}/notes"

    def test_home_in_git_owns_nothing_but_itself(self, projects, tmp_path):
        home = repository(tmp_path / "user", "https://github.com/me/dotfiles")
        (home / "notes").mkdir()
        top = repository(home / "src" / "app")
        assert project_of(projects, home)[0] == "git:github.com/me/dotfiles"
        assert project_of(projects, home / "notes")[0] == f"dir:{home}/notes"
        assert project_of(projects, top)[0] == f"git:{top}"
        assert projects.of(str(home / "never" / "seen"))[0] == f"dir:{home}/never/seen"

    def test_folder_around_home_in_git_owns_nothing_below(self, projects, tmp_path):
        repository(tmp_path)
        (tmp_path / "notes").mkdir()
        assert project_of(projects, tmp_path / "notes")[0] == f"dir:{tmp_path}/notes"

    def test_temporary_repositories_are_apart(self, projects, tmp_path):
        assert str(tmp_path).startswith(os.path.realpath(os.environ.get("TMPDIR", "/tmp")))
        one, two = repository(tmp_path / "one"), repository(tmp_path / "two")
        assert project_of(projects, one)[0] != project_of(projects, two)[0]
        assert projects.of("/tmp")[0] == "dir:/tmp"

    def test_git_is_not_needed(self, projects, tmp_path, monkeypatch):
        top = repository(tmp_path / "app", REMOTE)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setenv("GIT_DIR", str(repository_of(top).place))
        (tmp_path / "notes").mkdir()
        assert project_of(projects, top)[0] == ROCKET
        assert project_of(projects, tmp_path / "notes")[0] == f"dir:{tmp_path}/notes"


class TestBroken:
    """Folders that cannot tell, or tell nonsense."""

    @pytest.mark.parametrize(
        ("cwd", "expected"),
        [
            ("", NO_FOLDER),
            ("C:\\Users\\me\\app", ("dir:C:\\Users\\me\\app", "app")),
            ("c:\\Users\\me\\app\\", ("dir:C:\\Users\\me\\app", "app")),
            ("C:/Users/me/app", ("dir:C:\\Users\\me\\app", "app")),
            ("\\\\server\\share\\app", ("dir:\\\\server\\share\\app", "app")),
            ("/src/back\\slash", ("dir:/src/back\\slash", "back\\slash")),
            ("/src/app/", ("dir:/src/app", "app")),
            ("app", ("dir:app", "app")),
            ("/", ("dir:/", "/")),
            ("/nul\x00here", ("dir:/nul\x00here", "nul\x00here")),
            ("/" + "long" * 3000, ("dir:/" + "long" * 3000, "long" * 3000)),
            ("/src/火箭", ("dir:/src/火箭", "火箭")),
        ],
    )
    def test_folder_that_is_not_there_is_a_project_of_its_own(self, projects, cwd, expected):
        projects.learn([cwd])
        assert projects.of(cwd) == expected
        assert noted(projects) == []

    @pytest.mark.parametrize("content", [b"", b"garbage", b"gitdir:", b"gitdir: /nowhere", b"\xff\xfe\x00"])
    def test_file_that_leads_nowhere(self, projects, tmp_path, content):
        top = tmp_path / "app"
        top.mkdir()
        (top / ".git").write_bytes(content)
        assert project_of(projects, top)[0] == f"dir:{top}"

    def test_empty_folder_of_git_is_passed_over(self, projects, tmp_path):
        top = repository(tmp_path / "app")
        (top / "sub" / ".git").mkdir(parents=True)
        assert project_of(projects, top / "sub")[0] == f"git:{top}"

    @pytest.mark.parametrize(
        "config", [b"", b"\xff\xfe", b'[remote "origin"', b'[remote "origin"]\n\turl', b"[]\nurl=x"]
    )
    def test_config_that_tells_nothing(self, projects, tmp_path, config):
        top = repository(tmp_path / "app", REMOTE)
        (top / ".git" / "config").write_bytes(config)
        assert project_of(projects, top)[0] == f"git:{top}"

    def test_config_in_odd_spelling(self, projects, tmp_path):
        top = repository(tmp_path / "app")
        odd = f'; a remark\n[REMOTE "origin"]  URL = "{REMOTE}" # here\n\turl = https://example.org/second\n'
        (top / ".git" / "config").write_text(odd)
        assert git(top, "config", "--get-all", "remote.origin.url").splitlines()[0] == REMOTE
        assert project_of(projects, top)[0] == ROCKET

    def test_worktree_of_a_repository_that_was_moved(self, projects, tmp_path):
        top = repository(tmp_path / "app", REMOTE)
        git(top, "worktree", "add", "-q", str(tmp_path / "feature"))
        projects.learn([str(top)])
        top.rename(tmp_path / "moved")
        assert project_of(projects, tmp_path / "feature")[0] == ROCKET


class TestGone:
    """What is remembered of folders that are no longer there."""

    def test_deleted_folder_keeps_its_project(self, projects, tmp_path):
        top = repository(tmp_path / "app", REMOTE)
        projects.learn([str(top), str(top / "docs")])
        shutil.rmtree(top)
        assert project_of(later(projects), top)[0] == ROCKET
        assert project_of(later(projects), top / "docs" / "deep")[0] == ROCKET

    def test_other_machine_knows_it_from_the_acts(self, projects, tmp_path):
        top = repository(tmp_path / "app", REMOTE)
        projects.learn([str(top)])
        shutil.rmtree(top)
        shutil.copytree(projects.acts.root, tmp_path / "elsewhere")
        assert Projects(Acts(tmp_path / "elsewhere")).of(str(top)) == (ROCKET, "rocket")

    def test_folder_that_holds_another_repository_by_now_keeps_its_project(self, projects, tmp_path):
        top = repository(tmp_path / "app", REMOTE)
        projects.learn([str(top)])
        shutil.rmtree(top)
        repository(top, "https://github.com/acme/other")
        assert project_of(later(projects), top)[0] == ROCKET
        (top / "new").mkdir()
        assert project_of(later(projects), top / "new")[0] == "git:github.com/acme/other"

    def test_worktree_that_is_still_listed(self, projects, tmp_path):
        top = repository(tmp_path / "zapp")
        for name in ("feature", "other"):
            git(top, "worktree", "add", "-q", str(tmp_path / name))
            shutil.rmtree(tmp_path / name)
        gone = [str(tmp_path / "feature" / "docs"), str(tmp_path / "other")]
        projects.learn([gone[0], str(top)])
        projects.learn([gone[1]])
        git(top, "worktree", "prune")
        assert [later(projects).of(cwd) for cwd in gone] == [(f"git:{top}", "zapp")] * 2
        assert later(projects).of(str(tmp_path / "feature"))[0] == f"git:{top}"

    def test_worktree_that_was_seen_before(self, projects, tmp_path):
        top = repository(tmp_path / "app")
        git(top, "worktree", "add", "-q", str(tmp_path / "feature"))
        projects.learn([str(tmp_path / "feature")])
        git(top, "worktree", "remove", str(tmp_path / "feature"))
        assert project_of(later(projects), tmp_path / "feature" / "docs")[0] == f"git:{top}"

    def test_worktree_where_its_cli_puts_them(self, projects, tmp_path):
        top = repository(tmp_path / "app", REMOTE)
        projects.learn([str(top)])
        assert project_of(projects, top / ".claude" / "worktrees" / "brave-one" / "docs")[0] == ROCKET
        assert projects.of("/gone/.claude/worktrees/brave-one/x") == ("dir:/gone", "gone")
        assert projects.of("C:\\gone\\.claude\\worktrees\\brave-one") == ("dir:C:\\gone", "gone")

    def test_gone_folder_beside_a_repository_is_no_part_of_it(self, projects, tmp_path):
        top = repository(tmp_path / "app")
        projects.learn([str(top)])
        assert project_of(projects, tmp_path / "app-old")[0] == f"dir:{tmp_path}/app-old"

    def test_folder_that_was_a_repository_once_owns_no_folder_that_is_there(self, projects, tmp_path):
        top = repository(tmp_path / "src")
        projects.learn([str(top)])
        shutil.rmtree(top / ".git")
        (top / "notes").mkdir()
        assert project_of(later(projects), top / "notes")[0] == f"dir:{top}/notes"
        assert later(projects).of(str(top / "notes"))[0] == f"dir:{top}/notes"
        assert project_of(later(projects), top)[0] == f"git:{top}"


class TestLog:
    """What is noted, and how often."""

    def test_each_folder_is_noted_once(self, projects, tmp_path):
        top = repository(tmp_path / "app", REMOTE)
        (top / "docs").mkdir()
        folders = [str(top), str(top / "docs"), str(tmp_path)]
        for one in (projects, projects, later(projects)):
            one.learn(folders)
        assert noted(projects) == folders[:2]

    def test_settled_folder_is_not_looked_at_again(self, projects, tmp_path):
        top = repository(tmp_path / "app", REMOTE)
        projects.learn([str(top)])
        before = projects.acts.state()
        git(top, "remote", "set-url", "origin", "https://github.com/acme/renamed")
        assert project_of(later(projects), top)[0] == ROCKET
        assert projects.acts.state() == before

    def test_folder_that_became_a_repository(self, projects, tmp_path):
        top = tmp_path / "app"
        top.mkdir()
        assert project_of(projects, top)[0] == f"dir:{top}"
        repository(top)
        assert project_of(later(projects), top)[0] == f"git:{top}"
        assert later(projects).canonical(f"dir:{top}") == f"git:{top}"

    def test_repository_that_got_a_remote(self, projects, tmp_path):
        top = repository(tmp_path / "app")
        projects.learn([str(top)])
        git(top, "remote", "add", "origin", REMOTE)
        now = later(projects)
        assert project_of(now, top) == (ROCKET, "rocket")
        assert now.canonical(f"git:{top}") == ROCKET
        before = now.acts.state()
        assert project_of(later(projects), top) == (ROCKET, "rocket")
        assert now.acts.state() == before

    def test_repository_that_was_cloned_anew_from_elsewhere_joins_nothing(self, projects, tmp_path):
        top = repository(tmp_path / "app", REMOTE)
        (top / "docs").mkdir()
        projects.learn([str(top)])
        git(top, "remote", "set-url", "origin", "https://github.com/acme/other")
        assert project_of(projects, top / "docs")[0] == "git:github.com/acme/other"
        assert projects.of(str(top))[0] == ROCKET


class TestMerge:
    """Two projects that are one."""

    def test_merged_project_is_the_other(self, projects):
        projects.merge("dir:/src/old", "dir:/src/new")
        assert projects.of("/src/old") == ("dir:/src/new", "new")
        assert later(projects).of("/src/old") == ("dir:/src/new", "new")
        assert later(projects).canonical("dir:/src/old") == "dir:/src/new"

    def test_merges_follow_each_other(self, projects):
        projects.merge("dir:/a", "dir:/b")
        projects.merge("dir:/b", "dir:/c")
        projects.merge("dir:/c", "dir:/a")
        assert {projects.of(cwd)[0] for cwd in ("/a", "/b", "/c")} == {"dir:/c"}

    def test_merge_outlives_what_is_learned_later(self, projects, tmp_path):
        top = tmp_path / "app"
        top.mkdir()
        projects.merge(f"dir:{top}", "dir:/src/main")
        repository(top)
        assert project_of(later(projects), top)[0] == "dir:/src/main"

    def test_merged_repository_takes_its_remote_along(self, projects, tmp_path):
        top = repository(tmp_path / "app")
        projects.learn([str(top)])
        projects.merge(f"git:{top}", "dir:/src/main")
        git(top, "remote", "add", "origin", REMOTE)
        for _process in range(2):
            assert project_of(later(projects), top)[0] == "dir:/src/main"
        assert len(noted(projects)) == 2
        assert project_of(later(projects), repository(tmp_path / "clone", REMOTE))[0] == "dir:/src/main"

    def test_of_two_machines_with_one_path_the_first_counts(self):
        told = Told()
        for second, name in enumerate(("first", "second")):
            about = {"cwd": "/home/me/app", "id": f"git:h/{name}", "name": name, "remote": f"h/{name}"}
            told.take({"act": "project", "at": f"2026-01-01T00:00:0{second}+00:00", **about})
        assert told.raw("/home/me/app") == "git:h/first"

    def test_rows_tell_what_is_known(self, projects, tmp_path):
        top = repository(tmp_path / "app", REMOTE)
        projects.learn([str(top)])
        projects.merge("dir:/src/old", ROCKET)
        [row] = projects.rows()
        first, last = row.pop("first_seen"), row.pop("last_seen")
        assert first <= last
        assert row == {
            "id": ROCKET,
            "name": "rocket",
            "remote": "github.com/acme/rocket",
            "paths": ["/src/old", str(top)] if str(top) > "/src/old" else [str(top), "/src/old"],
            "aliases": ["dir:/src/old", f"git:{top}"],
        }


FOLDERS = st.sampled_from(["/a", "/a/b", "/c", "/a/.claude/worktrees/x"])
IDS = st.sampled_from(["dir:/a", "dir:/a/b", "dir:/c", "git:/a", "git:h/r", "git:h/s"])
ACT = st.one_of(
    st.fixed_dictionaries({"act": st.just("merge_projects"), "source": IDS, "target": IDS}),
    st.fixed_dictionaries(
        {"act": st.just("project"), "cwd": FOLDERS, "id": IDS.filter(lambda i: i[0] == "d"), "name": st.just("n")}
    ),
    st.fixed_dictionaries(
        {
            "act": st.just("project"),
            "cwd": FOLDERS,
            "id": IDS.filter(lambda i: i[0] == "g"),
            "name": st.just("n"),
            "tree": FOLDERS | st.just(""),
            "place": FOLDERS,
        },
        optional={"remote": st.sampled_from(["", "h/r"])},
    ),
)


@settings(deadline=None, max_examples=300)
@given(acts=st.lists(ACT, max_size=12))
def test_every_project_leads_to_one_that_is_itself(acts):
    told = Told()
    for number, act in enumerate(acts):
        told.take({**act, "at": f"2026-01-01T00:00:{number:02}+00:00"})
        for project_id in ("dir:/a", "dir:/a/b", "dir:/c", "git:/a", "git:h/r", "git:h/s"):
            assert told.canonical(told.canonical(project_id)) == told.canonical(project_id)
        for folder in ("/a", "/a/b", "/a/b/c", "/c"):
            assert told.canonical(f"dir:{folder}") == told.canonical(told.raw(folder))
