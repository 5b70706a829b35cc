"""Projects in the lake: what is learned or merged later holds for what was read before, and after a rebuild."""

import shutil
from datetime import UTC, datetime

import pytest

from memex.errors import NotFound
from memex.forget.target import Target
from memex.search.query import Filters, Query
from memex.search.refresh import refresh_raw, refresh_summaries
from memex.setup import open_memex
from memex.sources.settle import is_settled
from memex.store.lake import Lake
from memex.store.schemas import RAW_TABLES, SCHEMA_VERSION, SUMMARY_TABLES, TABLES, rows_to_arrow
from memex.store.views import find_project, list_projects
from tests.conftest import LONG_AGO
from tests.logs import ClaudeLog, talk
from tests.sources.git import git, repository

REMOTE = "https://github.com/acme/rocket.git"
ROCKET = "git:github.com/acme/rocket"


def log_in(claude_dir, number, cwd):
    path = claude_dir / "projects" / "-src" / f"{number:08}-0000-4000-8000-000000000001.jsonl"
    return talk(ClaudeLog(path, LONG_AGO, str(cwd)), f"fix the login of number {number}")


def refresh(memex):
    memex.ingest.run(memex.ingest.plan())
    for batch in memex.compact.plan().batches:
        memex.compact.run(batch)
    refresh_raw(memex.lake, memex.raw_index)
    refresh_summaries(memex.lake, memex.summary_index)
    return memex


def story(memex):
    tables = (*RAW_TABLES, *SUMMARY_TABLES.values())
    return {table: sorted(memex.lake.scan(table).to_pylist(), key=lambda row: row["id"]) for table in tables}


def projects_in(memex, table):
    return sorted(set(memex.lake.scan(table, ["project_id"])["project_id"].to_pylist()))


def all_projects(memex):
    return {table: projects_in(memex, table) for table in ("sessions", *SUMMARY_TABLES.values())}


def everywhere(*projects):
    return dict.fromkeys(("sessions", *SUMMARY_TABLES.values()), sorted(projects))


def hits(memex, project, level="all"):
    found = memex.search.run(Query("login", filters=Filters(project=project)), level, 50).hits
    return {hit.session_id for hit in found}


@pytest.fixture
def two(memex, claude_dir):
    """Two sessions of two projects."""
    for number, name in ((1, "old"), (2, "new")):
        log_in(claude_dir, number, f"/src/{name}").write()
    return refresh(memex)


def test_rebuild_needs_no_folder(memex, claude_dir, tmp_path):
    top = repository(tmp_path / "app", REMOTE)
    git(top, "worktree", "add", "-q", str(tmp_path / "feature"))
    for number, cwd in enumerate((top, top / "docs", tmp_path / "feature"), 1):
        cwd.mkdir(exist_ok=True)
        log_in(claude_dir, number, cwd).write()
    before = story(refresh(memex))
    assert all_projects(memex) == everywhere(ROCKET)
    shutil.rmtree(top)
    shutil.rmtree(tmp_path / "feature")
    memex.ingest.rebuild()
    assert story(memex) == before
    shutil.rmtree(memex.home / "lake")
    again = open_memex()
    again.ingest.rebuild()
    assert {t: story(again)[t] for t in RAW_TABLES} == {t: before[t] for t in RAW_TABLES}


def test_what_is_learned_later_holds_for_what_was_read_before(memex, claude_dir, tmp_path):
    top, gone = tmp_path / "app", tmp_path / "feature"
    top.mkdir()
    log_in(claude_dir, 1, top).write()
    log_in(claude_dir, 2, gone).write()
    refresh(memex)
    assert all_projects(memex) == everywhere(f"dir:{top}", f"dir:{gone}")
    repository(top, REMOTE)
    git(top, "worktree", "add", "-q", str(gone))
    shutil.rmtree(gone)
    log_in(claude_dir, 3, top).write()
    again = refresh(open_memex())
    assert all_projects(again) == everywhere(ROCKET)
    assert [row["id"] for row in again.lake.scan("projects").to_pylist()] == [ROCKET]
    before = story(again)
    again.ingest.rebuild()
    assert story(again) == before


def test_merge_moves_all_that_is_kept(two):
    for table in ("memories", "edges", "digests"):
        rows = [{"id": name, "project_id": f"dir:/src/{name}"} for name in ("old", "new")]
        two.lake.upsert(table, rows_to_arrow(table, rows))
    counts = {table: two.lake.count(table) for table in TABLES}
    assert two.ingest.merge_projects("dir:/src/old", "dir:/src/new") == 1
    assert all_projects(two) == everywhere("dir:/src/new")
    for table in ("memories", "edges", "digests"):
        assert projects_in(two, table) == ["dir:/src/new"]
    assert {table: two.lake.count(table) for table in TABLES} == {**counts, "projects": 1}
    assert {row["project"] for row in two.lake.scan("sessions").to_pylist()} == {"new"}
    assert two.compact.plan().empty


def test_merged_project_is_found_by_its_new_name_alone(two):
    assert (len(hits(two, "src/old")), len(hits(two, "new"))) == (1, 1)
    two.ingest.merge_projects("dir:/src/old", "dir:/src/new")
    assert two.stale_indexes() == ["raw text", "summaries"]
    refresh_raw(two.lake, two.raw_index)
    refresh_summaries(two.lake, two.summary_index)
    assert (len(hits(two, "src/old")), len(hits(two, "new"))) == (0, 2)
    assert two.stale_indexes() == []


def test_merge_outlives_rebuild_and_holds_for_what_comes(two, claude_dir):
    two.ingest.merge_projects("dir:/src/old", "dir:/src/new")
    before = story(two)
    two.ingest.rebuild()
    assert story(two) == before
    log_in(claude_dir, 3, "/src/old").write()
    assert all_projects(refresh(open_memex())) == everywhere("dir:/src/new")


def test_vectors_and_what_is_served_outlive_a_merge(two):
    table = "observations"
    two.lake.set_dimension(table, 2)
    row = two.lake.scan(table, None, "project_id = 'dir:/src/old'").to_pylist()[0]
    row |= {"vector": [1.0, 2.0], "vector_model": "m", "served": False}
    import pyarrow as pa

    two.lake.upsert(table, pa.Table.from_pylist([row], two.lake.dataset(table).schema))
    two.ingest.merge_projects("dir:/src/old", "dir:/src/new")
    [moved] = two.lake.scan(table, None, f"id = '{row['id']}'").to_pylist()
    assert moved == {**row, "project_id": "dir:/src/new"}


def test_merge_that_was_stopped_is_finished_by_the_next_ingest(two, claude_dir):
    two.acts.add("merge_projects", source="dir:/src/old", target="dir:/src/new")
    log_in(claude_dir, 3, "/src/third").write()
    again = refresh(open_memex())
    assert all_projects(again) == everywhere("dir:/src/new", "dir:/src/third")
    assert is_settled(again.lake, again.ingest.projects)


def test_settled_lake_is_not_written(two, claude_dir, tmp_path):
    log_in(claude_dir, 3, repository(tmp_path / "app")).write()
    refresh(two)
    before = {table: two.lake.dataset(table).version for table in TABLES}
    two.ingest.run(two.ingest.plan())
    open_memex().ingest.read([])
    assert {table: two.lake.dataset(table).version for table in TABLES} == before


def test_forgotten_project_leaves_no_trace_in_the_acts(memex, claude_dir, tmp_path):
    for number, name in ((1, "kept"), (2, "secret")):
        log_in(claude_dir, number, repository(tmp_path / name, f"https://example.org/{name}")).write()
    refresh(memex)
    memex.ingest.merge_projects("git:example.org/secret", "git:example.org/kept")
    assert {act["id"] for act in memex.acts.read("project")} == {"git:example.org/kept", "git:example.org/secret"}
    memex.forget.run(Target(project="kept"))
    assert list(memex.acts.read("project", "merge_projects")) == []
    assert memex.lake.count("projects") == 0


def test_forgetting_a_session_keeps_what_others_need(memex, claude_dir, tmp_path):
    top = repository(tmp_path / "app", REMOTE)
    (top / "docs").mkdir()
    logs = [log_in(claude_dir, number, cwd) for number, cwd in enumerate((top, top / "docs"), 1)]
    for log in logs:
        log.write()
    refresh(memex)
    memex.forget.run(Target(session=f"claude:{logs[0].session}"))
    shutil.rmtree(top)
    memex.ingest.rebuild()
    assert projects_in(memex, "sessions") == [ROCKET]


def test_forgotten_text_leaves_remote_and_folder(memex, claude_dir, tmp_path):
    tops = [
        repository(tmp_path / "hush-hush", "https://example.org/one"),
        repository(tmp_path / "app", "https://example.org/hush-hush/app"),
    ]
    for number, top in enumerate(tops):
        log_in(claude_dir, number, top).write()
    refresh(memex)
    memex.forget.run(Target(matching="hush-hush"))
    talk(log_in(claude_dir, 0, tops[0]), "and the docs").write()
    (tops[1] / "docs").mkdir()
    log_in(claude_dir, 2, tops[1] / "docs").write()
    memex.ingest.run(memex.ingest.plan())
    rows = [memex.lake.scan(table).to_pylist() for table in ("sessions", "projects")]
    assert "hush-hush" not in str(rows) + (memex.archive.root / "acts.jsonl").read_text()
    assert len(projects_in(memex, "sessions")) == 2


def test_lake_without_projects_gets_them(two):
    shutil.rmtree(two.home / "lake" / "projects.lance")
    two.lake.set_version(1)
    lake = Lake(two.home / "lake")
    lake.prepare()
    assert (lake.version(), lake.count("projects"), lake.count("sessions")) == (SCHEMA_VERSION, 0, 2)


class TestNames:
    """Projects are named by id, name or folder."""

    def test_every_name_leads_to_it(self, two):
        for name in ("dir:/src/old", "old", "OLD", "/src/old"):
            assert find_project(two.lake, name) == "dir:/src/old"

    @pytest.mark.parametrize("name", ["", "ol", "dir:", "/src"])
    def test_unknown_name_is_refused(self, two, name):
        with pytest.raises(NotFound, match="no project"):
            find_project(two.lake, name)

    def test_refusal_lists_what_may_be_meant(self, two):
        with pytest.raises(NotFound) as caught:
            find_project(two.lake, "ol")
        assert "old (dir:/src/old)" in caught.value.hint

    def test_name_of_two_is_refused_with_both(self, two, claude_dir):
        log_in(claude_dir, 3, "/other/old").write()
        refresh(two)
        with pytest.raises(NotFound, match=r"2 projects.*dir:/other/old.*dir:/src/old|2 projects.*"):
            find_project(two.lake, "old")
        assert find_project(two.lake, "/other/old") == "dir:/other/old"

    def test_projects_are_listed(self, two, claude_dir):
        log = log_in(claude_dir, 3, "/src/old")
        talk(log, "and the docs").write()
        refresh(two)
        assert [(row["name"], row["sessions"], row["talks"], row["folders"]) for row in list_projects(two.lake)] == [
            ("old", 2, 3, ["/src/old"]),
            ("new", 1, 1, ["/src/new"]),
        ]
        assert list_projects(two.lake)[0]["first"] == datetime(2026, 9, 1, 8, 1, tzinfo=UTC)
