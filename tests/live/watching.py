"""A real `memex watch`, and logs that grow under it."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from memex.search.query import Query
from memex.setup import Memex
from tests.logs import ClaudeLog

MEMEX = [sys.executable, "-m", "memex.cli.main"]
PATIENCE = 90.0
"""Seconds until something that should be a matter of two is taken for lost."""


class Watching:
    """A process with what it told so far; use as a context manager. `wrapped` is the command that starts it."""

    def __init__(self, *wrapped: str, **environ: str) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [*wrapped, *MEMEX, "watch"], stderr=subprocess.PIPE, text=True, env={**os.environ, **environ}
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __enter__(self) -> "Watching":
        self.told("watching")
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            self.kill()

    def told(self, words: str) -> None:
        """Wait until it tells something."""
        until(lambda: any(words in line for line in self.lines), lambda: f"{words!r} not in {self.lines}")

    def end(self, with_signal: int = signal.SIGTERM) -> int:
        """Ask it to end, and return its exit code."""
        self.process.send_signal(with_signal)
        code = self.process.wait(PATIENCE)
        self._listener.join(10)
        return code

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        assert self.process.poll() is None, f"it had ended by itself: {self.lines}"
        self.process.kill()
        self.process.wait(30)

    def _listen(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.lines.append(line.rstrip())


def until(
    happened: Callable[[], bool], complaint: Callable[[], str] = lambda: "it did not happen", patience: float = PATIENCE
) -> None:
    """Wait until something is so."""
    end = time.monotonic() + patience
    while not happened():
        assert time.monotonic() < end, complaint()
        time.sleep(0.1)


def append(log: ClaudeLog, since: int) -> None:
    """Write the records of a log from a number on at the end of its file, as the CLI does."""
    log.path.parent.mkdir(parents=True, exist_ok=True)
    with log.path.open("ab") as file:
        file.write(b"".join(json.dumps(record).encode() + b"\n" for record in log.records[since:]))


def finds(memex: Memex, word: str) -> bool:
    """Tell whether a word is found in the raw text."""
    return any(word in row["content"] for row in memex.raw_index.search(Query(word), 50))


def served(memex: Memex, table: str) -> list[int]:
    """List the numbers of the talks of which there is a summary; 0 is a session's own."""
    return sorted(row.get("prompt_number", 0) for row in memex.lake.scan(table, None, "served").to_pylist())


def long_ago(path: Path) -> None:
    """Make a file look as if it was written long ago."""
    os.utime(path, (1_700_000_000, 1_700_000_000))
