"""Discovery at a path finds what discovery as a whole finds there."""

import os
from pathlib import Path

import pytest

from memex.setup import open_memex
from memex.sources.registry import ADAPTERS

FILES = (
    "history.jsonl",
    "projects.json",
    "settings.json",
    "projects/-src-app/s1.jsonl",
    "projects/-src-app/history.jsonl",
    "projects/-src-app/notes.txt",
    "projects/-src-app/s1/tool-results/b1.txt",
    "projects/-src-app/s1/subagents/agent-a1.jsonl",
    "projects/-src-app/s1/subagents/agent-a1.meta.json",
    "transcripts/s2.jsonl",
    "sessions/2026/09/01/rollout-2026-09-01T08-00-00-01a0c447-1d30-72e3-8feb-fc777627499d.jsonl",
    "sessions/2026/09/01/rollout-2026-09-01T09-00-00-01a0c447-1d30-72e3-8feb-fc777627499e.jsonl.zst",
    "archived_sessions/rollout-2026-09-01T10-00-00-01a0c447-1d30-72e3-8feb-fc777627499f.jsonl",
    "tmp/app/.project_root",
    "tmp/app/chats/session-2026-09-01T08-00-12345678.jsonl",
    "tmp/app/chats/session-2026-09-01T08-00-87654321.json",
    "tmp/app/logs.json",
)


@pytest.fixture(params=[False, True], ids=["plain", "the root is a link"])
def root(tmp_path: Path, request) -> Path:
    """A folder with the files of every CLI, and links inside it, out of it, to nowhere and in a circle."""
    folder = tmp_path / "real"
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "s9.jsonl").write_text("secret")
    project = folder / "projects" / "-src-app"
    (project / "out.jsonl").symlink_to(tmp_path / "outside" / "s9.jsonl")
    (project / "inside.jsonl").symlink_to(project / "s1.jsonl")
    (project / "dangling.jsonl").symlink_to(project / "nowhere")
    (folder / "projects" / "out").symlink_to(tmp_path / "outside", target_is_directory=True)
    (folder / "projects" / "again").symlink_to(project, target_is_directory=True)
    (folder / "projects" / "loop").symlink_to(folder / "projects", target_is_directory=True)
    os.mkfifo(project / "pipe.jsonl")
    if not request.param:
        return folder
    (tmp_path / "link").symlink_to(folder, target_is_directory=True)
    return tmp_path / "link"


def everything(root: Path) -> list[str]:
    return [str(Path(folder, name)) for folder, folders, files in os.walk(root) for name in (*folders, *files)]


@pytest.mark.parametrize("cli", ADAPTERS)
def test_at_each_path_and_at_each_folder_the_same_is_found_as_in_the_whole(root, cli):
    adapter = ADAPTERS[cli]
    whole = set(adapter.discover(root))
    assert len(whole) >= 3
    for path in everything(root):
        expected = {f for f in whole if f.place == path or f.place.startswith(f"{path}/")}
        assert set(adapter.discover_at(root, [path])) == expected, path
    assert set(adapter.discover_at(root, everything(root))) == whole
    assert set(adapter.discover_at(root, [str(place) for place in adapter.places(root)])) == whole


def test_what_is_reached_through_a_link_is_found_where_it_is(root):
    adapter = ADAPTERS["claude"]
    there = root / "projects" / "-src-app" / "s1.jsonl"
    for link in ("again", "loop/-src-app"):
        found = adapter.discover_at(root, [str(root / "projects" / link / "s1.jsonl")])
        assert [file.place for file in found] == [str(there)]
    assert list(adapter.discover_at(root, [str(root / "projects" / "out" / "s9.jsonl")])) == []


@pytest.mark.parametrize("place", ["projects/-src-app/gone.jsonl", "elsewhere/s1.jsonl", "projectsX/s1.jsonl", ""])
def test_what_is_not_there_or_not_ours_is_not_found(root, place):
    assert list(ADAPTERS["claude"].discover_at(root, [str(root / place)])) == []


def test_files_at_paths_come_by_session_and_not_when_excluded(memex, log, claude_dir, monkeypatch):
    log.prompt("hello").write()
    side = log.path.parent / log.session / "tool-results" / "b1.txt"
    side.parent.mkdir(parents=True)
    side.write_text("output")
    paths = [str(log.path), str(side), str(claude_dir / "projects" / "nothing.jsonl")]
    [batch] = memex.ingest.batches_at(paths)
    assert {session: {f.place for f in files} for session, files in batch.items()} == {
        f"claude:{log.session}": set(paths[:2])
    }
    monkeypatch.setenv("MEMEX_SOURCES_EXCLUDE", '["*/tool-results/*"]')
    [batch] = open_memex().ingest.batches_at(paths)
    assert [f.place for f in batch[f"claude:{log.session}"]] == paths[:1]


def test_a_file_that_is_found_twice_is_kept_once_and_whole(memex, log, claude_dir, monkeypatch):
    for number in range(50):
        log.prompt(f"question {number}").reply("answer " * number)
    log.write()
    monkeypatch.setenv("MEMEX_SOURCES_CLAUDE_EXTRA", f'["{claude_dir.parent}/.cl*"]')
    again = open_memex()
    assert len(list(again.ingest.discover())) == 2
    again.ingest.run(again.ingest.plan())
    [kept] = again.archive.sources()
    assert again.archive.read(kept) == log.lines()
    assert len(kept.chunks) == 1


def test_a_folder_and_a_file_in_it_are_one_file(memex, log):
    log.prompt("hello").write()
    [batch] = memex.ingest.batches_at([str(log.path), str(log.path.parent)])
    assert [file.place for files in batch.values() for file in files] == [str(log.path)]
