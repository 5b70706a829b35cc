"""What of the archive is copied: a prefix of each source that is whole in itself, whoever writes meanwhile."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BytesIO
from os import fstat
from pathlib import Path
from typing import IO

from memex.sources.archive import Archive
from memex.sources.frames import Kept, replay

ATTEMPTS = 5
"""Frames are laid anew now and then, to forget something; then the log is read again."""


@dataclass(frozen=True, slots=True)
class Copied:
    """A file to copy: `size` bytes of what is open in `file`, under its name in the backup."""

    name: str
    file: IO[bytes]
    size: int


@dataclass(frozen=True, slots=True)
class Source:
    """A source to copy: its log, as it was read, and its frames. `lost` names frames that are not there."""

    kept: Kept
    log: Copied
    frames: tuple[Copied, ...]
    lost: tuple[str, ...] = ()


def copied_bytes(name: str, data: bytes) -> Copied:
    """Make something to copy of bytes."""
    return Copied(name, BytesIO(data), len(data))


def acts_of(archive: Archive) -> Copied | None:
    """Give what the person did, up to the last whole line; None when nothing was done."""
    path = archive.root / "acts.jsonl"
    return copied_bytes("archive/acts.jsonl", _whole_lines(path.read_bytes())) if path.exists() else None


def sources_of(archive: Archive) -> Iterator[Source]:
    """Yield every source, its files open until the next one."""
    for log in sorted(archive.root.glob("*/??/*.jsonl")):
        with _opened(archive.root, log) as source:
            if source:
                yield source


@contextmanager
def _opened(root: Path, log: Path) -> Iterator[Source | None]:
    folder = f"archive/{log.parent.relative_to(root).as_posix()}"
    with ExitStack() as files:
        for attempt in range(ATTEMPTS):
            try:
                data = _whole_lines(log.read_bytes())
            except FileNotFoundError:  # forgotten just now
                break
            kept = replay(log.stem, data)
            if kept is None:
                break
            frames, lost = [], []
            for generation in sorted({chunk.generation for chunk in kept.chunks}):
                path = kept.frames(log, generation)
                last = kept.chunks_of(generation)[-1]
                try:
                    file = files.enter_context(path.open("rb"))
                except FileNotFoundError:
                    lost.append(f"{folder}/{path.name}")
                    continue
                size = min(last.stored_at + last.stored, fstat(file.fileno()).st_size)
                frames.append(Copied(f"{folder}/{path.name}", file, size))
            if not lost or attempt == ATTEMPTS - 1:
                yield Source(kept, copied_bytes(f"{folder}/{log.name}", data), tuple(frames), tuple(lost))
                return
        yield None


def _whole_lines(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]
