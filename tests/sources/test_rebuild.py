"""The archive proved, and L0 made anew from it."""

import shutil

import pytest

from memex.errors import DamagedArchive
from memex.setup import open_memex
from memex.sources.verify import verify
from memex.store.schemas import RAW_TABLES
from tests.conftest import LONG_AGO, ingest
from tests.logs import ClaudeLog, talk


def story(memex):
    return {table: sorted(memex.lake.scan(table).to_pylist(), key=lambda row: row["id"]) for table in RAW_TABLES}


def fork_of(log):
    """A log that begins with the records of another, under a session id of its own."""
    fork = ClaudeLog(log.path.with_name("33333333-0000-4000-8000-000000000003.jsonl"), LONG_AGO)
    fork.records = [{**record, "sessionId": fork.session} for record in log.records]
    return fork


def lived(memex, log):
    """Logs that were forked, grew, were rewritten and deleted, each step read."""
    talk(talk(log, "fix the login"), "and the docs").write()
    ingest(memex)
    fork = fork_of(log)
    talk(fork, "try it in another way").write()
    ingest(memex)
    talk(log, "and the tests").write()
    ingest(memex)
    log.records = [record for number, record in enumerate(log.records) if number not in (4, 5, 6, 7)]
    log.write()
    ingest(memex)
    fork.path.unlink()
    ingest(memex)
    return memex


def test_rebuild_gives_the_same_rows(memex, log):
    before = story(lived(memex, log))
    assert any(row["superseded"] for row in before["messages"])
    report = memex.ingest.rebuild()
    assert report.sessions >= 2
    assert story(memex) == before
    assert memex.ingest.plan().empty


def test_rebuild_needs_neither_logs_nor_lake_nor_checkpoints(memex, log):
    before = story(lived(memex, log))
    shutil.rmtree(log.path.parent)
    shutil.rmtree(memex.home / "lake")
    shutil.rmtree(memex.home / "cache", ignore_errors=True)
    again = open_memex()
    again.ingest.rebuild()
    assert story(again) == before


def test_read_goes_on_after_a_rebuild(memex, log):
    lived(memex, log).ingest.rebuild()
    talk(log, "one more").write()
    assert ingest(memex).talks > 0
    before = story(memex)
    memex.ingest.rebuild()
    assert story(memex) == before


def test_archive_is_proved(memex, log):
    lived(memex, log)
    report = verify(memex.archive, disk=True)
    assert (report.sources, report.generations, report.on_disk) == (2, 3, 1)
    assert (report.damaged, report.differs) == ((), ())
    assert report.bytes == sum(
        len(memex.archive.read(kept, g)) for kept in memex.archive.sources() for g in range(1, kept.generation + 1)
    )


def test_damage_is_found_and_named(memex, log):
    talk(log, "fix the login").write()
    ingest(memex)
    [frames] = memex.archive.root.rglob("*.zst")
    data = bytearray(frames.read_bytes())
    data[len(data) // 2] ^= 1
    frames.write_bytes(data)
    report = verify(memex.archive)
    assert len(report.damaged) == 1 and str(log.path) in report.damaged[0]


def test_lost_frames_are_found(memex, log):
    talk(log, "fix the login").write()
    ingest(memex)
    [frames] = memex.archive.root.rglob("*.zst")
    frames.unlink()
    assert "lost generation 1" in verify(memex.archive).damaged[0]
    with pytest.raises(DamagedArchive):
        memex.archive.read(next(memex.archive.sources()))


def test_damaged_source_stops_no_other(memex, log):
    talk(log, "fix the login").write()
    ingest(memex)
    [frames] = memex.archive.root.rglob("*.zst")
    frames.write_bytes(b"")
    talk(ClaudeLog(log.path.with_name("other.jsonl"), LONG_AGO), "another").write()
    ingest(memex)
    report = memex.ingest.rebuild()
    assert report.sessions == 1 and "damaged" in report.unreadable[0]
    assert [s["title"] for s in memex.lake.scan("sessions").to_pylist()] == ["another"]
