"""kill -9 in the middle of maintenance: the next run ends where an undisturbed one does."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memex.setup import Memex
from memex.store.lake import Lake

pytestmark = pytest.mark.crash
MAINTAIN = [sys.executable, "-m", "memex.cli.main", "maintain", "--force"]
TABLES = ("memories", "edges", "digests", "extractions")


def state(home: Path) -> dict[str, list[dict]]:
    """All rows, without what a clock wrote."""
    lake = Lake(home / "lake")
    clocks = ("created_at", "ingested_at")
    return {
        table: [
            {k: v for k, v in row.items() if k not in clocks}
            for row in sorted(lake.scan(table).to_pylist(), key=lambda row: row["id"])
        ]
        for table in TABLES
    }


def started(home: Path) -> subprocess.Popen[bytes]:
    environ = {**os.environ, "MEMEX_HOME": str(home)}
    return subprocess.Popen(MAINTAIN, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_a_run_after_kills_gives_what_an_undisturbed_run_gives(filled: Memex, tmp_path: Path):
    calm, shaken = tmp_path / "calm", tmp_path / "shaken"
    for home in (calm, shaken):
        shutil.copytree(filled.home, home)
    before = time.monotonic()
    assert started(calm).wait(240) == 0
    whole = time.monotonic() - before
    chance = random.Random(7)
    kills = 0
    for _round in range(8):
        process = started(shaken)
        time.sleep(whole * chance.uniform(0.3, 1.0))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
    assert started(shaken).wait(240) == 0
    assert kills > 0
    assert state(shaken) == state(calm)
    opened = Lake(shaken / "lake").count("journal", "state = 'open'")
    assert opened == 0
