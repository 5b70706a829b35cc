"""The archive: the verbatim bytes of every source file, append-only, in zstd frames.

    archive/<cli>/<2 hex>/<source id>.jsonl        what was read when, one line an event
                          <source id>.0001.zst     the frames of generation 1, one per `chunk` event

A source that only grew gets its new bytes as another frame of the same generation. One that was rewritten,
truncated or rotated starts a new generation; the old one stays. A frame counts once its event is on disk,
so a crash between the two leaves bytes that the next append overwrites.
"""

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import orjson
import zstandard

from memex.errors import DamagedArchive, translated_os_errors
from memex.sources.base import Found
from memex.sources.walk import NO_STAT, Stat, state_of
from memex.text import digest

CHUNK = 8 * 1024 * 1024
READ_THREADS = 4
SYNC_THREADS = 16
CHECKED_WHOLE = 32 * 1024 * 1024
CHECKED_TAIL = 1024 * 1024


class UnreadableSource(Exception):
    """A source file that cannot be opened or read; what was kept of it before stays."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One frame: `size` bytes of the source from `at` on, kept in `stored` bytes from `stored_at` on."""

    generation: int
    at: int
    size: int
    stored_at: int
    stored: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A source as the archive has it: the latest generation, and the file state it was read at.

    `first_at` is when it was read first, in ISO 8601.
    """

    id: str
    cli: str
    path: str
    session_id: str
    role: str
    generation: int = 0
    stat: Stat = NO_STAT
    gone: bool = False
    first_at: str = ""
    chunks: tuple[Chunk, ...] = field(default=(), repr=False)

    @property
    def size(self) -> int:
        """Bytes of the latest generation."""
        return self.size_of(self.generation)

    def size_of(self, generation: int) -> int:
        """Bytes of one generation."""
        last = self.chunks_of(generation)
        return last[-1].at + last[-1].size if last else 0

    def chunks_of(self, generation: int) -> list[Chunk]:
        """The frames of one generation, in order."""
        return [c for c in self.chunks if c.generation == generation]


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
            if kept := self._load(log):
                yield kept

    def find(self, cli: str, path: Path) -> Kept | None:
        """Look one source up by its place."""
        return self.load(cli, source_id(cli, path))

    def load(self, cli: str, identity: str) -> Kept | None:
        """Look one source up by its `source_id`."""
        return self._load(self._log(cli, identity))

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

        Frames are on disk before the events that tell of them.

        Raises:
            DiskFull, HomeError: the archive cannot be written; what was kept before stays valid.
        """
        taken: list[_Taken] = []
        with ThreadPoolExecutor(READ_THREADS) as pool:  # hashing and compressing leave the interpreter free
            for one in pool.map(self._read, files):
                if isinstance(one, UnreadableSource):
                    yield one
                else:
                    taken.append(one)
        _sync(one.frames for one in taken)
        for one in taken:
            with translated_os_errors(one.log), one.log.open("ab") as out:
                out.write(b"\n" * _is_torn(one.log) + b"".join(orjson.dumps(event) + b"\n" for event in one.events))
        _sync(one.log for one in taken)
        for one in taken:
            if kept := self._load(one.log):
                yield kept

    def _read(self, found: Found) -> "_Taken | UnreadableSource":
        try:
            return self._store_frames(found)
        except OSError as error:
            return UnreadableSource(f"{found.place}: {error.strerror or error}")

    def _store_frames(self, found: Found) -> "_Taken":
        """Write the frames of what is new in one file; their events are for the caller to write."""
        with found.path.open("rb") as file:
            stat = os.fstat(file.fileno())
            log = self._log(found.cli, source_id(found.cli, found.place))
            events: list[dict[str, Any]] = []
            kept = self._load(log)
            if kept is None:
                with translated_os_errors(log):
                    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                kept = Kept(log.stem, found.cli, found.place, found.session_id, found.role)
                events.append({"source": {n: getattr(kept, n) for n in ("cli", "path", "session_id", "role")}})
            holds = _prefix_holds(file, kept, stat.st_size)
            generation = max(kept.generation, 1) if holds else kept.generation + 1
            start = kept.size if holds else 0
            file.seek(start)
            frames = _frames(log, generation)
            events += _store(frames, kept, generation, _pieces(file, stat.st_size - start), start)
            read = {"stat": state_of(stat), "generation": generation, "at": _now()}
            events.append({"read": read})
            return _Taken(log, frames, events)

    def mark_gone(self, kept: Kept) -> None:
        """Record that the file is no longer where it was; its bytes stay."""
        log = self._log(kept.cli, kept.id)
        with translated_os_errors(log), log.open("ab") as out:
            out.write(b"\n" * _is_torn(log) + orjson.dumps({"gone": {"at": _now()}}) + b"\n")

    def pieces(self, kept: Kept, generation: int = 0, start: int = 0) -> Iterator[bytes]:
        """Yield the bytes of one generation (the latest: 0) from `start` on, a frame at a time.

        Raises:
            DamagedArchive: a frame does not decode to the bytes that were read.
        """
        wanted = generation or kept.generation
        chunks = [c for c in kept.chunks_of(wanted) if c.at + c.size > start]
        if not chunks:
            return
        try:
            with _frames(self._log(kept.cli, kept.id), wanted).open("rb") as file:
                for chunk in chunks:
                    file.seek(chunk.stored_at)
                    yield _decoded(file.read(chunk.stored), chunk, kept.path)[max(0, start - chunk.at) :]
        except FileNotFoundError as error:
            raise DamagedArchive(
                f"the archive of {kept.path} has lost generation {wanted}: {error.filename}"
            ) from error

    def read(self, kept: Kept, generation: int = 0) -> bytes:
        """Give back the bytes of one generation, the latest by default."""
        return b"".join(self.pieces(kept, generation))

    def _log(self, cli: str, identity: str) -> Path:
        return self.root / cli / identity[:2] / f"{identity}.jsonl"

    def _load(self, log: Path) -> Kept | None:
        """Replay a log; None when a crash left it without its first event, and so without any."""
        fields: dict[str, Any] = {}
        chunks: list[Chunk] = []
        for line in log.read_bytes().splitlines() if log.exists() else ():
            try:
                event = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue  # the torn last line of a crash: that event never happened
            if "source" in event:
                fields |= event["source"]
            elif "chunk" in event:
                chunks.append(Chunk(**event["chunk"]))
            elif "read" in event:
                read = event["read"]
                fields.setdefault("first_at", read["at"])
                fields |= {"stat": tuple(read["stat"]), "generation": read["generation"], "gone": False}
            elif "gone" in event:
                fields["gone"] = True
        if "cli" not in fields:
            return None
        fields["generation"] = max(fields.get("generation", 0), *(c.generation for c in chunks), 0)
        return Kept(id=log.stem, chunks=tuple(chunks), **fields)


def _pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    while size > 0 and (piece := file.read(min(CHUNK, size))):
        yield piece
        size -= len(piece)


def _store(target: Path, kept: Kept, generation: int, data: Iterator[bytes], start: int) -> list[dict[str, Any]]:
    """Append new bytes as frames, not yet synced; return their events."""
    events: list[dict[str, Any]] = []
    compressor = zstandard.ZstdCompressor(level=3, write_content_size=True)
    stored_at = max((c.stored_at + c.stored for c in kept.chunks if c.generation == generation), default=0)
    for piece in data:
        frame = compressor.compress(piece)
        with translated_os_errors(target), target.open("r+b" if target.exists() else "w+b") as out:
            out.truncate(stored_at)  # what a crash left behind the last frame
            out.seek(stored_at)
            out.write(frame)
        chunk = Chunk(generation, start, len(piece), stored_at, len(frame), hashlib.sha256(piece).hexdigest())
        events.append({"chunk": {name: getattr(chunk, name) for name in Chunk.__slots__}})
        start += len(piece)
        stored_at += len(frame)
    return events


def _frames(log: Path, generation: int) -> Path:
    return log.with_name(f"{log.stem}.{generation:04}.zst")


def source_id(cli: str, path: Path | str) -> str:
    """Name a source by its CLI and its absolute path."""
    return digest(cli, str(path))


def _prefix_holds(file: BinaryIO, kept: Kept, size: int) -> bool:
    """Tell whether the file still begins with the bytes of the latest generation.

    Up to CHECKED_WHOLE bytes every one is compared; of a larger file the first frame, the last ones, and one
    between, another at each read: whoever rewrites a log rewrites its beginning or its end.
    """
    if size < kept.size:
        return False
    chunks = kept.chunks_of(kept.generation)
    if kept.size > CHECKED_WHOLE:
        tail = [c for c in chunks if c.at + c.size > kept.size - CHECKED_TAIL]
        chunks = [chunks[0], chunks[len(kept.chunks) * 31 % len(chunks)], *tail]
    return all(_holds(file, chunk) for chunk in chunks)


def _holds(file: BinaryIO, chunk: Chunk) -> bool:
    file.seek(chunk.at)
    return hashlib.sha256(file.read(chunk.size)).hexdigest() == chunk.sha256


def _decoded(frame: bytes, chunk: Chunk, path: str) -> bytes:
    try:
        data = zstandard.ZstdDecompressor().decompress(frame)
    except (zstandard.ZstdError, MemoryError) as error:
        raise DamagedArchive(f"the archive of {path} is damaged at byte {chunk.at}: {error}") from error
    if hashlib.sha256(data).hexdigest() != chunk.sha256:
        raise DamagedArchive(f"the archive of {path} does not hold the bytes that were read at {chunk.at}")
    return data


def _is_torn(log: Path) -> bool:
    """Tell whether a crash left the last line of a log without its end."""
    if not log.exists() or log.stat().st_size == 0:
        return False
    with log.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _sync(paths: Iterable[Path]) -> None:
    """Put files on disk, side by side: a file system commits many at about the price of one."""
    with ThreadPoolExecutor(SYNC_THREADS) as pool:
        list(pool.map(_sync_one, paths))


def _sync_one(path: Path) -> None:
    if path.exists():  # nothing new, nothing to lose
        with translated_os_errors(path), path.open("rb") as file:
            os.fsync(file.fileno())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
