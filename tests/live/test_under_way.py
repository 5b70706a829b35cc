"""Which sessions are being written, and until when."""

import os
from datetime import UTC, datetime, timedelta

import pytest

from memex.live.under_way import under_way
from tests.logs import ClaudeLog, talk

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
IDLE = timedelta(minutes=5)


@pytest.mark.parametrize(
    ("record", "file", "left"),
    [
        (timedelta(minutes=-2), timedelta(minutes=-9), timedelta(minutes=3)),
        (timedelta(minutes=-9), timedelta(minutes=-2), timedelta(minutes=3)),
        (timedelta(minutes=-1), timedelta(minutes=-2), timedelta(minutes=4)),
        (timedelta(days=-9), timedelta(days=-9), None),
        (timedelta(minutes=-5), timedelta(minutes=-5), None),
        (timedelta(days=-9), timedelta(days=400), None),
        (timedelta(minutes=2), timedelta(days=-9), timedelta(minutes=7)),
        (timedelta(days=400), timedelta(minutes=-2), timedelta(minutes=3)),
        (timedelta(days=400), timedelta(days=400), None),
    ],
)
def test_the_last_write_counts_be_it_of_a_record_or_of_the_file(memex, claude_dir, record, file, left):
    path = claude_dir / "projects" / "-src-app" / "11111111.jsonl"
    log = talk(ClaudeLog(path, NOW), "Add a flag")
    end = datetime.fromisoformat(log.records[-1]["timestamp"])
    log = talk(ClaudeLog(path, NOW + record - (end - NOW)), "Add a flag")
    log.write()
    os.utime(path, ns=(0, int((NOW + file).timestamp() * 1e9)))
    memex.ingest.run(memex.ingest.plan())
    expected = {} if left is None else {"claude:11111111": NOW + left}
    assert under_way(memex.lake, NOW, IDLE) == expected


def test_an_empty_lake_has_none(memex):
    assert under_way(memex.lake, NOW, IDLE) == {}
