"""The archive: the verbatim bytes of every source file, append-only, in zstd frames.

    archive/<cli>/<2 hex>/<source id>.jsonl        what was read when, one line an event
                          <source id>.0001.zst     the frames of generation 1, one per `chunk` event

A source that only grew gets its new bytes as another frame of the same generation. One that was rewritten,
truncated or rotated starts a new generation; the old one stays.

What was forgotten is the one exception to "verbatim": it is taken out of bytes before they are written, and
`erase.py` takes it out of those that were written before. A chunk remembers what stands on disk in its place.
"""

import os
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from memex.errors import translated_os_errors
from memex.sources.base import Found
from memex.sources.erase import clean_generation, clean_growth, put_in_force
from memex.sources.frames import CHUNK, Contents, Kept, add_events, load_log, read_frames, store_frames, sync
from memex.sources.tombstones import Tombstones
from memex.sources.walk import state_of
from memex.text import digest

READ_THREADS = 4
CHECKED_WHOLE = 32 * 1024 * 1024
CHECKED_TAIL = 1024 * 1024


class UnreadableSource(Exception):
    """A source file that cannot be opened or read; what was kept of it before stays."""


@dataclass(frozen=True, slots=True)
class _Taken:
    """A file whose frames are written and whose events are not."""

    log: Path
    frames: Path
    events: list[dict[str, Any]]


class Archive:
    """All sources below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def sources(self) -> Iterator[Kept]:
        """Yield every source that was ever kept."""
        for log in sorted(self.root.glob("*/??/*.jsonl")):
            if kept := load_log(log):
                yield kept

    def find(self, cli: str, path: Path) -> Kept | None:
        """Look one source up by its place."""
        return self.load(cli, source_id(cli, path))

    def load(self, cli: str, identity: str) -> Kept | None:
        """Look one source up by its `source_id`."""
        return load_log(self._log(cli, identity))

    def others(self, known: Collection[str]) -> Iterator[tuple[str, str]]:
        """Name the sources that are kept and not `known`: (cli, source id)."""
        for folder in self.root.glob("*/??"):
            for name in os.listdir(folder):  # noqa: PTH208 - names are enough
                if name.endswith(".jsonl") and name[:-6] not in known:
                    yield folder.parent.name, name[:-6]

    def is_current(self, kept: Kept | None, path: Path) -> bool:
        """Tell whether the file has the size and time at which it was last read."""
        if kept is None or kept.gone:
            return False
        return kept.stat == state_of(path.stat())

    def take(self, files: Iterable[Found]) -> Iterator[Kept | UnreadableSource]:
        """Read what is new in files and keep it; yield each source as kept now, or why it could not be read.

        Frames are on disk before the events that tell of them. Files of forgotten sessions are passed over, and a
        file that was found twice, by roots that overlap, is read once: two at a time would write over each other.

        Raises:
            DiskFull, HomeError: the archive cannot be written; what was kept before stays valid.
        """
        tombstones = Tombstones.of(self.root)
        once = {(file.cli, file.place): file for file in files}.values()
        wanted = (file for file in once if not tombstones.covers(file.cli, file.session_id, file.place))
        taken: list[_Taken] = []
        with ThreadPoolExecutor(READ_THREADS) as pool:  # hashing and compressing leave the interpreter free
            for one in pool.map(partial(self._read, tombstones), wanted):
                if isinstance(one, UnreadableSource):
                    yield one
                else:
                    taken.append(one)
        sync(one.frames for one in taken)
        for one in taken:
            add_events(one.log, one.events)
        sync(one.log for one in taken)
        for one in taken:
            if kept := load_log(one.log):
                yield kept

    def mark_gone(self, kept: Kept) -> None:
        """Record that the file is no longer where it was; its bytes stay."""
        add_events(self.log_of(kept), [{"gone": {"at": _now()}}])

    def pieces(self, kept: Kept, generation: int = 0, start: int = 0) -> Iterator[bytes]:
        """Yield the bytes of one generation (the latest: 0) from `start` on, a frame at a time.

        Raises:
            DamagedArchive: a frame does not decode to the bytes that were kept.
        """
        return read_frames(self.log_of(kept), kept, generation or kept.generation, start)

    def read(self, kept: Kept, generation: int = 0) -> bytes:
        """Give back the bytes of one generation, the latest by default."""
        return b"".join(self.pieces(kept, generation))

    def log_of(self, kept: Kept) -> Path:
        """Name the log of a source; its frames lie beside it."""
        return self._log(kept.cli, kept.id)

    def _log(self, cli: str, identity: str) -> Path:
        return self.root / cli / identity[:2] / f"{identity}.jsonl"

    def _read(self, tombstones: Tombstones, found: Found) -> "_Taken | UnreadableSource":
        try:
            return self._store(found, tombstones)
        except OSError as error:
            return UnreadableSource(f"{found.place}: {error.strerror or error}")

    def _store(self, found: Found, tombstones: Tombstones) -> "_Taken":
        """Write the frames of what is new in one file; their events are for the caller to write."""
        with found.path.open("rb") as file:
            stat = os.fstat(file.fileno())
            log = self._log(found.cli, source_id(found.cli, found.place))
            kept = load_log(log)
            events: list[dict[str, Any]] = []
            if kept is None:
                with translated_os_errors(log):
                    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                kept = Kept(log.stem, found.cli, tombstones.place(found.place), found.session_id, found.role)
                events.append(kept.source_event())
            holds = _prefix_holds(file, kept, stat.st_size)
            kept = replace(kept, generation=max(kept.generation, 1) if holds else kept.generation + 1)
            start = kept.disk_size
            read = {"read": {"stat": state_of(stat), "generation": kept.generation, "at": _now()}}
            new: Contents = ((piece, None) for piece in _pieces(file, start, stat.st_size))
            if cleaner := tombstones.cleaner(found.cli, found.role, found.place):
                size = stat.st_size - start
                clean = clean_growth(log, kept, _pieces(file, start, stat.st_size), size, cleaner)
                if clean is None:
                    pieces = _pieces(file, start, stat.st_size)
                    anew = clean_generation(log, kept, kept.generation, cleaner, pieces, size)
                    put_in_force(log, kept, {kept.generation: anew}, [read])
                    return _Taken(log, log, [])
                new = clean
            chunks = store_frames(log, kept, new)
            return _Taken(log, kept.frames(log), [*events, *(chunk.event() for chunk in chunks), read])


def _pieces(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    file.seek(start)
    while start < end and (piece := file.read(min(CHUNK, end - start))):
        yield piece
        start += len(piece)


def source_id(cli: str, path: Path | str) -> str:
    """Name a source by its CLI and its absolute path."""
    return digest(cli, str(path))


def _prefix_holds(file: BinaryIO, kept: Kept, size: int) -> bool:
    """Tell whether the file still begins with the bytes of the latest generation.

    Up to CHECKED_WHOLE bytes every one is compared; of a larger file the first frame, the last ones, and one
    between, another at each read: whoever rewrites a log rewrites its beginning or its end.
    """
    chunks = kept.chunks_of(kept.generation)
    if size < kept.disk_size or (size > kept.disk_size and kept.is_repacked):
        return False
    if kept.size > CHECKED_WHOLE:
        tail = [c for c in chunks if c.at + c.size > kept.size - CHECKED_TAIL]
        chunks = [chunks[0], chunks[len(kept.chunks) * 31 % len(chunks)], *tail]
    return all(chunk.is_in(file) for chunk in chunks)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
