"""kill -9 at any moment: the next watch goes on, and in the end everything is there once."""

import random
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from memex.settings import Settings
from memex.setup import Memex, open_memex
from memex.store.schemas import RAW_TABLES, SUMMARY_TABLES
from tests.live.watching import Watching, append, until
from tests.logs import ClaudeLog

pytestmark = pytest.mark.crash

TIMES = {"created_at", "replaced_at"}
IDLE = 0.25


class Writer:
    """Appends lines to several logs, in a thread of its own."""

    def __init__(self, logs: list[ClaudeLog], lines: int, seed: int) -> None:
        self._logs, self._lines, self._random = logs, lines, random.Random(seed)
        self.thread = threading.Thread(target=self._write)

    def _write(self) -> None:
        for line in range(self._lines):
            log = self._random.choice(self._logs)
            known = len(log.records)
            match self._random.randrange(6) if known else 0:
                case 0:
                    log.prompt(f"question {line}")
                case 1 | 2:
                    log.call("Bash", {"command": f"run {line}"}, f"output {line}")
                case _:
                    log.reply(f"answer {line}")
            append(log, known)
            time.sleep(0.05)


def content(memex: Memex) -> dict[str, list[dict]]:
    """All rows that count: of L0 every one, of summaries those that are served."""
    found = {}
    for table in (*RAW_TABLES, *SUMMARY_TABLES.values()):
        rows = memex.lake.scan(table, None, None if table in RAW_TABLES else "served").to_pylist()
        rows = [{name: value for name, value in row.items() if name not in TIMES} for row in rows]
        found[table] = sorted(rows, key=lambda row: row["id"])
    return found


def check(memex: Memex, claude_dir, tmp_path, lines: int, kills: int, seed: int) -> None:
    started = datetime.now(UTC) - timedelta(days=1)
    folder = claude_dir / "projects" / "-src-app"
    logs = [ClaudeLog(folder / f"{n}1111111-0000-4000-8000-000000000001.jsonl", started) for n in range(3)]
    generator, writer = random.Random(seed), Writer(logs, lines, seed)
    writer.thread.start()
    for _kill in range(kills):
        watching = Watching()
        time.sleep(generator.uniform(0.3, 7))
        watching.kill()
    writer.thread.join()
    with Watching(MEMEX_COMPACT_IDLE_MINUTES=str(IDLE)) as watching:
        until(lambda: memex.lake.count("session_summaries", "served") == 3, lambda: f"{watching.lines}")
        until(lambda: memex.stale_indexes() == [], lambda: f"{memex.stale_indexes()}: {watching.lines}")
        assert watching.end() == 0
    assert memex.ingest.plan().empty
    assert memex.compact.plan().empty
    for log in logs:
        kept = memex.archive.find("claude", log.path)
        assert kept and memex.archive.read(kept) == log.lines()
    undisturbed = open_memex(Settings.model_validate({"home": tmp_path / "undisturbed"}))
    undisturbed.ingest.run(undisturbed.ingest.plan())
    for batch in undisturbed.compact.plan().batches:
        undisturbed.compact.run(batch)
    assert content(memex) == content(undisturbed)


def test_three_kills(memex, claude_dir, tmp_path):
    check(memex, claude_dir, tmp_path, lines=250, kills=3, seed=1)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_twenty_kills(memex, claude_dir, tmp_path):
    check(memex, claude_dir, tmp_path, lines=2000, kills=20, seed=2)
