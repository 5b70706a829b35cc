"""The files of one source in the archive: its frames, and the log that says which of them count.

    <source id>.jsonl        one line an event: what was read when
    <source id>.0001.zst     the frames of generation 1, one per `chunk` event
    <source id>.0001.2.zst   the same, laid anew for the second time, to forget something

A frame counts once its event is on disk, so a crash between the two leaves bytes that the next append overwrites.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import orjson
import zstandard

from memex.errors import DamagedArchive, translated_os_errors
from memex.sources.walk import NO_STAT, Stat

CHUNK = 8 * 1024 * 1024
"""Bytes of a file that become one frame."""
SYNC_THREADS = 16

Place = tuple[int, int, str]
"""Where bytes stand: at, size, SHA-256."""
Contents = Iterable[tuple[bytes, Place | None]]
"""Bytes to keep, each piece with where it stands on disk, or None when it stands there as it is."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One frame: `size` bytes of the source from `at` on, kept in `stored` bytes from `stored_at` on.

    rewrite: how often the frames of the generation were laid anew. `disk` is where the bytes stand on disk, when
    those that are kept are others.
    """

    generation: int
    at: int
    size: int
    stored_at: int
    stored: int
    sha256: str
    rewrite: int = 0
    disk: Place | None = None

    @property
    def on_disk(self) -> Place:
        """Where the bytes stand on disk."""
        return self.disk or (self.at, self.size, self.sha256)

    def is_in(self, file: BinaryIO) -> bool:
        """Tell whether a file has the bytes in their place."""
        at, size, sha256 = self.on_disk
        file.seek(at)
        return hashlib.sha256(file.read(size)).hexdigest() == sha256

    def event(self) -> dict[str, Any]:
        """Write it as an event of the log."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {"chunk": {name: value for name, value in values.items() if name not in ("rewrite", "disk") or value}}


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

    @property
    def disk_size(self) -> int:
        """Bytes of the file that the latest generation was read from."""
        last = self.chunks_of(self.generation)
        return last[-1].on_disk[0] + last[-1].on_disk[1] if last else 0

    def size_of(self, generation: int) -> int:
        """Bytes of one generation."""
        last = self.chunks_of(generation)
        return last[-1].at + last[-1].size if last else 0

    def chunks_of(self, generation: int) -> list[Chunk]:
        """The frames of one generation, in order."""
        return [c for c in self.chunks if c.generation == generation]

    @property
    def is_repacked(self) -> bool:
        """Whether the latest generation was compressed by its CLI, and again without what was forgotten."""
        return self.path.endswith(".zst") and any(c.disk for c in self.chunks_of(self.generation))

    def frames(self, log: Path, generation: int = 0) -> Path:
        """Name the file of a generation's frames (of the latest: 0), beside its log."""
        mine = self.chunks_of(generation or self.generation)
        return frames_path(log, generation or self.generation, mine[0].rewrite if mine else 0)

    def source_event(self) -> dict[str, Any]:
        """Write the first event of its log."""
        return {"source": {name: getattr(self, name) for name in ("cli", "path", "session_id", "role")}}


def frames_path(log: Path, generation: int, rewrite: int = 0) -> Path:
    """Name the file of a generation's frames, beside its log."""
    return log.with_name(f"{log.stem}.{generation:04}.{f'{rewrite}.' if rewrite else ''}zst")


def load_log(log: Path) -> Kept | None:
    """Replay a log; None when a crash left it without its first event, and so without any."""
    return replay(log.stem, log.read_bytes()) if log.exists() else None


def replay(identity: str, lines: bytes) -> Kept | None:
    """Replay the lines of a log."""
    fields: dict[str, Any] = {}
    chunks: list[Chunk] = []
    for event in events_in(lines):
        if "source" in event:
            fields |= event["source"]
        elif "chunk" in event:
            disk = event["chunk"].get("disk")
            chunks.append(Chunk(**event["chunk"] | ({"disk": tuple(disk)} if disk else {})))
        elif "read" in event:
            read = event["read"]
            fields.setdefault("first_at", read["at"])
            fields |= {"stat": tuple(read["stat"]), "generation": read["generation"], "gone": False}
        elif "gone" in event:
            fields["gone"] = True
    if "cli" not in fields:
        return None
    fields["generation"] = max(fields.get("generation", 0), *(c.generation for c in chunks), 0)
    return Kept(id=identity, chunks=tuple(chunks), **fields)


def read_events(log: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a log; the torn last line of a crash never happened."""
    return events_in(log.read_bytes() if log.exists() else b"")


def events_in(lines: bytes) -> Iterator[dict[str, Any]]:
    """Yield the events in the lines of a log."""
    for line in lines.splitlines():
        try:
            yield orjson.loads(line)
        except orjson.JSONDecodeError:
            continue


def add_events(log: Path, events: Sequence[dict[str, Any]]) -> None:
    """Append events, not yet synced."""
    with translated_os_errors(log), log.open("ab") as out:
        out.write(b"\n" * _is_torn(log) + b"".join(orjson.dumps(event) + b"\n" for event in events))


def store_frames(log: Path, kept: Kept, contents: Contents) -> list[Chunk]:
    """Append bytes to the frames of the latest generation, not yet synced."""
    chunks = kept.chunks_of(kept.generation)
    stored_at = max((c.stored_at + c.stored for c in chunks), default=0)
    rewrite = chunks[0].rewrite if chunks else 0
    return write_frames(kept.frames(log), contents, Chunk(kept.generation, kept.size, 0, stored_at, 0, "", rewrite))


def write_frames(target: Path, contents: Contents, first: Chunk) -> list[Chunk]:
    """Write bytes as frames, from where `first`, an empty one, stands."""
    chunks: list[Chunk] = []
    compressor = zstandard.ZstdCompressor(level=3, write_content_size=True)
    at, stored_at = first.at, first.stored_at
    for piece, disk in contents:
        frame = compressor.compress(piece)
        with translated_os_errors(target), target.open("r+b" if target.exists() else "w+b") as out:
            out.truncate(stored_at)  # what a crash left behind the last frame
            out.seek(stored_at)
            out.write(frame)
        sha256 = hashlib.sha256(piece).hexdigest()
        disk = None if disk == (at, len(piece), sha256) else disk
        chunks.append(Chunk(first.generation, at, len(piece), stored_at, len(frame), sha256, first.rewrite, disk))
        at += len(piece)
        stored_at += len(frame)
    return chunks


def read_frames(log: Path, kept: Kept, generation: int, start: int = 0) -> Iterator[bytes]:
    """Yield the bytes of one generation from `start` on, a frame at a time.

    Raises:
        DamagedArchive: a frame does not decode to the bytes that were kept.
    """
    chunks = [c for c in kept.chunks_of(generation) if c.at + c.size > start]
    if not chunks:
        return
    try:
        with kept.frames(log, generation).open("rb") as file:
            for chunk in chunks:
                file.seek(chunk.stored_at)
                yield _decoded(file.read(chunk.stored), chunk, kept.path)[max(0, start - chunk.at) :]
    except FileNotFoundError as error:
        raise DamagedArchive(
            f"the archive of {kept.path} has lost generation {generation}: {error.filename}"
        ) from error


def sync(paths: Iterable[Path]) -> None:
    """Put files on disk, side by side: a file system commits many at about the price of one."""
    with ThreadPoolExecutor(SYNC_THREADS) as pool:
        list(pool.map(_sync_one, paths))


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


def _sync_one(path: Path) -> None:
    if path.exists():  # nothing new, nothing to lose
        with translated_os_errors(path), path.open("rb") as file:
            os.fsync(file.fileno())
