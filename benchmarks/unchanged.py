"""An ingest of unchanged logs against a bare walk with `stat` over the same files, side by side.

    python benchmarks/unchanged.py [HOME] [--rounds N]

HOME holds `.claude`, many files of it (`big_home.py` builds one). Start of the process and imports are apart.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from memex.cli.output import print_table
from memex.settings import Settings
from memex.setup import open_memex


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--memex", type=Path, help="a home that has read these logs; else one is made")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        logs = {"claude_config_dir": given.home / ".claude", "codex": False, "gemini": False}
        memex = open_memex(Settings.model_validate({"home": given.memex or Path(folder) / "memex", "sources": logs}))
        memex.ingest.run(memex.ingest.plan())
        assert memex.ingest.plan().empty
        rows: dict[str, list[float]] = {}
        for _round in range(given.rounds):
            for name, what in (("walk with stat", lambda: walk(given.home)), ("memex: plan", memex.ingest.plan)):
                rows.setdefault(name, []).append(seconds(what))
    floor = statistics.median(rows["walk with stat"])
    table = [
        (name, f"{1000 * statistics.median(t):.0f}", f"{statistics.median(t) / floor:.2f}") for name, t in rows.items()
    ]
    print(f"{walk(given.home)} files, median of {given.rounds} rounds")
    print_table(["", "ms", "x walk"], table, right=["ms", "x walk"])


def seconds(what: Callable[[], object]) -> float:
    """Time one call."""
    started = time.perf_counter()
    what()
    return time.perf_counter() - started


def walk(home: Path) -> int:
    """Ask for the state of every file."""
    files = 0
    for folder, _folders, names in os.walk(home / ".claude"):
        for name in names:
            os.stat(os.path.join(folder, name))  # noqa: PTH116, PTH118 - the barest there is
            files += 1
    return files


if __name__ == "__main__":
    main()
