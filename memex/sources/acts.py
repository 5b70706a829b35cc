"""What the person did, as opposed to what was read: kept with the archive, for nothing else can bring it back.

    archive/acts.jsonl      one line an act: {"at": …, "act": "forget", …}

Acts are appended and synced before they take effect, and replayed after a rebuild. A `forget` that was carried
out is followed by a `forgotten`. A `project` is no act of a person: it notes which project a folder belonged to
while the folder was there to tell.
"""

import heapq
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import orjson
from filelock import FileLock

from memex.errors import translated_os_errors

Kind = Literal["forget", "forgotten", "merge_projects", "project", "remember", "undo"]


@dataclass(frozen=True, slots=True)
class Acts:
    """The log of acts below the archive's folder."""

    root: Path

    def add(self, act: Kind, **about: Any) -> dict[str, Any]:
        """Append one act, and return it as it was written.

        Raises:
            DiskFull, HomeError: it could not be written, and so must not be carried out.
        """
        return self.add_all(act, [about])[0]

    def add_all(self, act: Kind, about: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Append acts of one kind at once, and return them as they were written.

        Raises:
            DiskFull, HomeError: they could not be written, and so must not be carried out.
        """
        now = datetime.now(UTC).isoformat(timespec="microseconds")  # two acts of one millisecond are told apart
        entries = [{"at": now, "act": act, **one} for one in about]
        with translated_os_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._lock, self._path.open("ab") as out:
                out.write(b"\n" * self._is_torn() + b"".join(orjson.dumps(entry) + b"\n" for entry in entries))
                out.flush()
                os.fsync(out.fileno())
        return entries

    def read(self, *acts: Kind) -> Iterator[dict[str, Any]]:
        """Yield the acts of some kinds, oldest first; the torn last line of a crash never happened."""
        marks = [f'"{act}"'.encode() for act in acts]
        for line in self._lines():
            if any(mark in line for mark in marks):
                yield from (entry for entry in _entries(line) if entry.get("act") in acts)

    def every(self) -> Iterator[dict[str, Any]]:
        """Yield all acts, of kinds too that only a newer Memex knows, oldest first."""
        for line in self._lines():
            yield from _entries(line)

    def overwrite(self, clean: Callable[[bytes], bytes]) -> None:
        """Take forgotten texts out of all acts but those of forgetting, which hold hashes only.

        `clean` gets a line and gives what is left of it.
        """
        if not self._path.exists():
            return
        with translated_os_errors(self.root), self._lock:
            old = self._lines()
            self._replace(old, [line if b'"act":"forg' in line else clean(line) for line in old])

    def merge(self, others: Iterable[Mapping[str, Any]]) -> int:
        """Take in acts of another log, each where its time puts it; return how many there were not before.

        An act is known by all that it says, its time included.

        Raises:
            DiskFull, HomeError: they could not be written; the log is as before.
        """
        with translated_os_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._lock:
                old = [line if line.endswith(b"\n") else line + b"\n" for line in self._lines()]
                mine = _timed(old)
                known = {line for _at, line in mine}
                lines = dict.fromkeys(orjson.dumps(act) + b"\n" for act in others)
                new = _timed([line for line in lines if line not in known])
                self._replace(old, [line for _at, line in heapq.merge(mine, new, key=lambda one: one[0])])
        return len(new)

    def state(self) -> tuple[int, int, int]:
        """Tell apart the log before and after any change."""
        try:
            now = self._path.stat()
        except FileNotFoundError:
            return (0, 0, 0)
        return (now.st_ino, now.st_size, now.st_mtime_ns)

    @property
    def _path(self) -> Path:
        return self.root / "acts.jsonl"

    @property
    def _lock(self) -> FileLock:
        return FileLock(self.root / "acts.lock")

    def _lines(self) -> list[bytes]:
        return self._path.read_bytes().splitlines(keepends=True) if self._path.exists() else []

    def _replace(self, old: list[bytes], new: list[bytes]) -> None:
        if new == old:
            return
        aside = self.root / "acts.aside"
        with aside.open("wb") as out:
            out.writelines(new)
            out.flush()
            os.fsync(out.fileno())
        aside.replace(self._path)

    def _is_torn(self) -> bool:
        data = self._path.read_bytes() if self._path.exists() else b""
        return bool(data) and not data.endswith(b"\n")


def _entries(line: bytes) -> Iterator[dict[str, Any]]:
    """Read the act of a line; none, when a crash tore it."""
    try:
        entry = orjson.loads(line)
    except orjson.JSONDecodeError:
        return
    if isinstance(entry, dict):
        yield entry


def _timed(lines: Iterable[bytes]) -> list[tuple[str, bytes]]:
    """Pair lines with the time of their act; a torn one has that of the line before."""
    timed: list[tuple[str, bytes]] = []
    for line in lines:
        before = timed[-1][0] if timed else ""
        timed.append((str(next(_entries(line), {}).get("at", before)), line))
    return timed
