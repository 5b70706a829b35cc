"""A home, backed up and restored on another machine, is the home that it was."""

import shutil

import pytest

from memex.errors import BackupError, NotFound
from memex.sources.verify import verify
from tests.backup.homes import KINDS, again, home_at, log_in, prompts, refresh, story, target, tree, with_vectors
from tests.conftest import SAMPLE
from tests.logs import talk


@pytest.fixture
def here(filled_home, tmp_path):
    """The sample logs, read and summarised, with history rows and vectors."""
    shutil.copytree(filled_home, tmp_path / "here" / "memex")
    memex = home_at(tmp_path / "here", SAMPLE)
    row = memex.lake.scan("session_summaries").to_pylist()[0]
    memex.ingest.merge_projects("dir:/nowhere", "dir:/somewhere")
    with_vectors(memex)
    old = {**row, "id": "old", "fingerprint": "old", "served": False, "replaced_at": row["created_at"]}
    memex.lake.upsert("session_summaries", memex.lake.scan("session_summaries").from_pylist([old]))
    return memex


@pytest.mark.parametrize("kind", KINDS)
def test_restored_home_is_equal(here, tmp_path, kind):
    made = here.backup.run(target(tmp_path, kind))
    assert made.sources == len(list(here.archive.sources())) >= 5
    there = home_at(tmp_path / "there")
    report = there.restore.run(target(tmp_path, kind))
    assert tree(there.archive.root) == tree(here.archive.root)
    assert story(there) == story(here)
    assert verify(there.archive).damaged == ()
    assert report.rows == made.rows
    assert not (there.home / "restoring").exists()
    assert not (there.home / "restore.begun").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_new_the_second_time(here, tmp_path, kind):
    here.backup.run(target(tmp_path, kind))
    there = home_at(tmp_path / "there")
    there.restore.run(target(tmp_path, kind))
    before, files = story(there), tree(there.archive.root)
    assert again(there).restore.run(target(tmp_path, kind)).empty
    assert here.restore.run(target(tmp_path, kind)).empty
    assert (story(there), tree(there.archive.root)) == (before, files)


def test_restored_home_has_nothing_to_summarise(here, tmp_path):
    here.backup.run(tmp_path / "backup")
    there = home_at(tmp_path / "there")
    there.restore.run(tmp_path / "backup")
    assert there.compact.plan().empty
    assert there.ingest.plan().batches == ()


def test_restored_home_goes_on(tmp_path):
    here = home_at(tmp_path / "here")
    log = talk(log_in(tmp_path / "here" / "claude"), "one")
    log.write()
    refresh(here).backup.run(tmp_path / "backup")
    there = home_at(tmp_path / "there", tmp_path / "here" / "claude")
    there.restore.run(tmp_path / "backup")
    talk(log, "two").write()
    refresh(there)
    assert prompts(there) == ["one", "two"]
    assert next(there.archive.sources()).generation == 1


def test_unchanged_home_writes_nothing(here, tmp_path):
    here.backup.run(tmp_path / "backup")
    before = {path: path.stat().st_ino for path in (tmp_path / "backup").rglob("*") if path.name != "manifest.json"}
    assert here.backup.run(tmp_path / "backup").written == 0
    after = {path: path.stat().st_ino for path in (tmp_path / "backup").rglob("*") if path.name != "manifest.json"}
    assert before == after


def test_only_what_is_new_is_written(tmp_path):
    here = home_at(tmp_path / "here")
    log, other = log_in(tmp_path / "here" / "claude"), log_in(tmp_path / "here" / "claude", "2")
    talk(other, "stay").write()
    for number in range(30):
        talk(log, f"talk {number} " + "word " * 300)
    log.write()
    here.ingest.run(here.ingest.plan())
    first = here.backup.run(tmp_path / "backup").written
    talk(log, "one more").write()
    here.ingest.run(here.ingest.plan())
    second = here.backup.run(tmp_path / "backup").written
    assert 0 < second < first / 4
    there = home_at(tmp_path / "there")
    there.restore.run(tmp_path / "backup")
    assert tree(there.archive.root) == tree(here.archive.root)
    assert prompts(there) == prompts(here)


def test_what_a_stopped_backup_left_is_cut_off(tmp_path):
    here = home_at(tmp_path / "here")
    log = talk(log_in(tmp_path / "here" / "claude"), "one")
    log.write()
    refresh(here).backup.run(tmp_path / "backup")
    for path in (tmp_path / "backup" / "archive").rglob("*.*"):
        path.write_bytes(path.read_bytes() + b"left" * 9)
    here.backup.run(tmp_path / "backup")
    assert tree(tmp_path / "backup" / "archive") == tree(here.archive.root)
    for path in (tmp_path / "backup" / "archive").rglob("*.*"):
        path.write_bytes(path.read_bytes() + b"left" * 9)
    talk(log, "two").write()
    refresh(here).backup.run(tmp_path / "backup")
    assert tree(tmp_path / "backup" / "archive") == tree(here.archive.root)


def test_file_of_the_same_size_and_other_content_is_written(tmp_path):
    here = home_at(tmp_path / "here")
    here.acts.add("merge_projects", source="dir:/a", target="dir:/b")
    here.backup.run(tmp_path / "backup")
    here.acts.overwrite(lambda line: line.replace(b"dir:/a", b"dir:/x"))
    here.backup.run(tmp_path / "backup")
    there = home_at(tmp_path / "there")
    there.restore.run(tmp_path / "backup")
    assert tree(there.archive.root) == tree(here.archive.root)
    assert len(list((tmp_path / "backup" / "archive").iterdir())) == 1


def test_file_is_replaced(here, tmp_path):
    path = tmp_path / "backup.tar.zst"
    here.backup.run(path)
    here.acts.add("merge_projects", source="dir:/a", target="dir:/b")
    here.backup.run(path)
    there = home_at(tmp_path / "there")
    there.restore.run(path)
    assert tree(there.archive.root) == tree(here.archive.root)
    assert [p.name for p in tmp_path.glob("*backup*")] == ["backup.tar.zst"]
    assert path.stat().st_mode & 0o77 == 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_backup_is_not_written_over(memex, tmp_path, kind):
    place = target(tmp_path, kind)
    if kind == "folder":
        place.mkdir()
        (place / "mine.txt").write_text("mine")
    else:
        place.write_text("mine")
    before = tree(tmp_path / "backup") if kind == "folder" else place.read_bytes()
    with pytest.raises(BackupError, match="no backup"):
        memex.backup.run(place)
    with pytest.raises(BackupError, match="no backup"):
        memex.restore.run(place)
    assert before == (tree(tmp_path / "backup") if kind == "folder" else place.read_bytes())


def test_backup_does_not_lie_in_its_home(memex):
    with pytest.raises(BackupError, match="lies in the home"):
        memex.backup.run(memex.home / "backup")


def test_missing_source_is_told(memex, tmp_path):
    with pytest.raises(NotFound):
        memex.restore.run(tmp_path / "nothing")


def test_empty_home(memex, tmp_path):
    assert memex.backup.run(tmp_path / "backup").sources == 0
    there = home_at(tmp_path / "there")
    assert there.restore.run(tmp_path / "backup").empty


def test_home_that_lost_sources_does_not_replace_its_backup(here, tmp_path):
    here.backup.run(tmp_path / "backup")
    before = tree(tmp_path / "backup")
    shutil.rmtree(here.archive.root)
    with pytest.raises(BackupError, match="holds what this home does not"):
        again(here).backup.run(tmp_path / "backup")
    assert tree(tmp_path / "backup") == before
    back = again(here)
    back.restore.run(tmp_path / "backup")
    back.backup.run(tmp_path / "backup")


def test_home_that_lost_summaries_does_not_replace_its_backup(here, tmp_path):
    here.backup.run(tmp_path / "backup")
    rows = story(here)["talk_summaries"]
    shutil.rmtree(here.home / "lake")
    broken = again(here)
    with pytest.raises(BackupError, match="rows of session_summaries"):
        broken.backup.run(tmp_path / "backup")
    broken.restore.run(tmp_path / "backup")
    assert story(broken)["talk_summaries"] == rows


def test_backup_that_lost_files_is_made_whole(here, tmp_path):
    here.backup.run(tmp_path / "backup")
    for number, path in enumerate(sorted(path for path in (tmp_path / "backup").rglob("*.*") if path.is_file())):
        if path.name != "manifest.json":
            path.unlink() if number % 2 else path.write_bytes(b"")
    with_vectors(here)
    here.acts.add("merge_projects", source="dir:/a", target="dir:/b")
    here.backup.run(tmp_path / "backup")
    there = home_at(tmp_path / "there")
    there.restore.run(tmp_path / "backup")
    assert tree(there.archive.root) == tree(here.archive.root)
    assert story(there)["talk_summaries"] == story(here)["talk_summaries"]


def test_another_home_does_not_replace_a_backup(here, tmp_path):
    here.backup.run(tmp_path / "backup")
    with pytest.raises(BackupError, match="holds what this home does not"):
        home_at(tmp_path / "there").backup.run(tmp_path / "backup")


def test_damaged_archive_is_mended(here, tmp_path):
    here.backup.run(tmp_path / "backup")
    frames = next(here.archive.root.rglob("*.zst"))
    data = bytearray(frames.read_bytes())
    data[len(data) // 2] ^= 1
    frames.write_bytes(data)
    assert verify(here.archive).damaged
    assert again(here).restore.run(tmp_path / "backup").changed == 1
    assert verify(here.archive).damaged == ()
