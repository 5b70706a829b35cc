"""What was already given to each session, so that nothing is said twice: kept in the journal, so over restarts too.

journal/given-2026-09-01.jsonl    one line an answer: {"at", "session", "mode", "keys", "tokens", "shown"}
"""

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Any

import orjson

from memex.errors import translated_os_errors

KEPT = timedelta(days=60)
"""A session that is taken up after so long may hear something again."""


@dataclass(frozen=True, slots=True)
class Line:
    """One answer. `keys` are what it must not be followed by; `shown` are ids with their confidence."""

    at: datetime
    session: str
    mode: str
    keys: tuple[str, ...]
    tokens: int = 0
    shown: tuple[tuple[str, float], ...] = ()


class Given:
    """The answers of all sessions, below `folder`. Several threads may ask; other processes' answers count as well."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._read: dict[str, int] = {}
        self._keys: dict[str, set[str]] = {}

    def keys(self, session: str, now: datetime) -> frozenset[str]:
        """List what a session was given."""
        with self._lock:
            self._catch_up(now)
            return frozenset(self._keys.get(session, ()))

    def claim(self, line: Line) -> bool:
        """Note an answer before it goes out; False when another one said some of it meanwhile.

        Raises:
            DiskFull, HomeError: it could not be noted, so it must not be said.
        """
        with self._lock:
            self._catch_up(line.at)
            if self._said(line.session, line.keys):
                return False
            self._append(line)
            return True

    def _said(self, session: str, keys: Collection[str]) -> bool:
        return not self._keys.get(session, set()).isdisjoint(keys)

    def _append(self, line: Line) -> None:
        written = {
            "at": line.at.isoformat(),
            "session": line.session,
            "mode": line.mode,
            "keys": line.keys,
            "tokens": line.tokens,
            "shown": line.shown,
        }
        with translated_os_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = self._folder / f"given-{line.at:%Y-%m-%d}.jsonl"
            out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(out, orjson.dumps(written) + b"\n")
            finally:
                os.close(out)
        self._keys.setdefault(line.session, set()).update(line.keys)

    def _catch_up(self, now: datetime) -> None:
        """Read what was noted since, by whatever process."""
        oldest = f"given-{now - KEPT:%Y-%m-%d}.jsonl"
        for path in sorted(self._folder.glob("given-*.jsonl")):
            if path.name < oldest:
                continue
            start = self._read.get(path.name, 0)
            if path.stat().st_size > start:
                lines, self._read[path.name] = _lines(path, start)
                for line in lines:
                    self._keys.setdefault(line["session"], set()).update(line["keys"])


def _lines(path: Path, start: int) -> tuple[list[dict[str, Any]], int]:
    """Read the whole lines from `start` on; return them, and where they end."""
    with path.open("rb") as file:
        file.seek(start)
        data = file.read()
    data = data[: data.rfind(b"\n") + 1]
    return list(_parsed(data.splitlines())), start + len(data)


def _parsed(lines: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            read = orjson.loads(line)
            if isinstance(read["session"], str) and all(isinstance(key, str) for key in read["keys"]):
                yield read
        except (orjson.JSONDecodeError, KeyError, TypeError):
            continue  # torn by a crash
