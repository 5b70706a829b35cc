"""Ingest against its floor and against agentsview, on the same logs in the same run.

    python benchmarks/ingest.py [HOME] [--rounds N] [--agentsview PATH]

HOME holds `.claude` (default: the shared corpus). The floor is `orjson.loads` over every line. Ratios count;
the times are those of this machine at this moment.
"""

import argparse
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from memex.cli.output import print_table
from memex.settings import Settings
from memex.setup import Memex, open_memex

SHARED = Path(os.environ.get("MEMEX_SHARED", "../shared")) / "corpus" / "home"


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", nargs="?", type=Path, default=SHARED)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--agentsview", default=shutil.which("agentsview"))
    given = parser.parse_args()
    logs = sorted((given.home / ".claude").rglob("*.jsonl"))
    megabytes = sum(path.stat().st_size for path in logs) / 1e6
    rows: dict[str, list[tuple[float, int, int]]] = {}
    for _round in range(given.rounds):
        for name, measure in measures(given.home, logs, given.agentsview):
            rows.setdefault(name, []).append(measure())
    floor = statistics.median(seconds for seconds, _s, _m in rows["orjson.loads (floor)"])
    table = []
    for name, found in rows.items():
        seconds = statistics.median(s for s, _sessions, _messages in found)
        _seconds, sessions, messages = found[-1]
        rate = f"{messages / seconds:,.0f}" if messages else "-"
        each = f"{1000 * seconds / sessions:.1f}" if sessions else "-"
        table.append((name, f"{megabytes / seconds:.1f}", rate, each, f"{seconds / floor:.1f}"))
    print(f"{len(logs)} files, {megabytes:.1f} MB, median of {given.rounds} rounds")
    print_table(
        ["", "MB/s", "messages/s", "ms a session", "x floor"],
        table,
        right=["MB/s", "messages/s", "ms a session", "x floor"],
    )


def measures(
    home: Path, logs: list[Path], agentsview: str | None
) -> list[tuple[str, Callable[[], tuple[float, int, int]]]]:
    """List what is measured: each gives seconds, sessions stored, messages and tool calls stored."""
    found: list[tuple[str, Callable[[], tuple[float, int, int]]]] = [
        ("orjson.loads (floor)", lambda: floor_of(logs)),
        ("memex: archive and lake", lambda: ingest(home, index=False)),
        ("memex: and full text", lambda: ingest(home, index=True)),
        ("memex ingest (whole command)", lambda: command(home)),
    ]
    if agentsview:
        found.append(("agentsview sync (whole command)", lambda: rival(home, agentsview)))
    return found


def floor_of(logs: list[Path]) -> tuple[float, int, int]:
    """Decode every line once."""
    lines = [line for path in logs for line in path.read_bytes().split(b"\n") if line]
    started = time.perf_counter()
    for line in lines:
        try:
            orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
    return time.perf_counter() - started, 0, 0


def ingest(home: Path, index: bool) -> tuple[float, int, int]:
    """Read all logs into a new home, in this process."""
    from memex.search.refresh import refresh_raw

    with tempfile.TemporaryDirectory() as folder:
        memex = fresh(home, Path(folder))
        _ = memex.lake
        started = time.perf_counter()
        report = memex.ingest.run(memex.ingest.plan())
        if index:
            refresh_raw(memex.lake, memex.raw_index)
        return time.perf_counter() - started, report.sessions, report.messages + report.tool_calls


def fresh(home: Path, folder: Path) -> Memex:
    """Wire Memex to an empty home."""
    logs = {"claude_config_dir": home / ".claude", "codex": False, "gemini": False}
    return open_memex(Settings.model_validate({"home": folder / "memex", "sources": logs}))


def command(home: Path) -> tuple[float, int, int]:
    """Run the whole command in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, "MEMEX_HOME": f"{folder}/memex", "CLAUDE_CONFIG_DIR": str(home / ".claude")}
        environ |= {"MEMEX_SOURCES_CODEX": "false", "MEMEX_SOURCES_GEMINI": "false"}
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "memex.cli.main", "ingest", "--json"], env=environ, check=True, capture_output=True
        )
        seconds = time.perf_counter() - started
        report = orjson.loads(done.stdout)
        return seconds, report["sessions"], report["messages"] + report["tool_calls"]


def rival(home: Path, program: str) -> tuple[float, int, int]:
    """Run `agentsview sync` on a copy of the logs; it may end in an error, so what it stored is counted."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(home / ".claude", Path(folder) / ".claude")
        subprocess.run(["chmod", "-R", "u+w", folder], check=True)
        environ = {**os.environ, "HOME": folder}
        started = time.perf_counter()
        subprocess.run([program, "sync"], env=environ, check=False, capture_output=True)
        seconds = time.perf_counter() - started
        subprocess.run([program, "daemon", "stop"], env=environ, check=False, capture_output=True)
        with sqlite3.connect(Path(folder) / ".agentsview" / "sessions.db") as database:
            sessions = database.execute("select count(*) from sessions").fetchone()[0]
            messages = database.execute("select count(*) from messages").fetchone()[0]
        return seconds, sessions, messages


if __name__ == "__main__":
    main()
