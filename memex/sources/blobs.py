"""Archived files as the adapters read them: logs as streams of bytes, side files by name."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from memex.sources.archive import Archive
from memex.sources.frames import Kept
from memex.sources.zst import decompressed

BLOCK = 4 * 1024 * 1024
MAX_SIDE = 16 * 1024 * 1024
"""Bytes of a side file that are read; the archive has all of it."""


@dataclass(frozen=True, slots=True)
class KeptBlob:
    """One generation of a kept file. A log that its CLI compressed (`.zst`) reads as its content."""

    archive: Archive
    kept: Kept
    generation: int

    @property
    def source_id(self) -> str:
        """The id of the source."""
        return self.kept.id

    @property
    def path(self) -> Path:
        """Where the file was."""
        return Path(self.kept.path)

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """Yield the bytes from `start` on, a few MB at a time."""
        if self.path.suffix != ".zst":
            yield from self.archive.pieces(self.kept, self.generation, start)
            return
        for piece in decompressed(self.archive.pieces(self.kept, self.generation)):
            if start < len(piece):
                yield piece[start:]
            start = max(0, start - len(piece))


def distinct(blobs: Sequence[KeptBlob]) -> list[KeptBlob]:
    """Leave out logs that another one begins with: the same log moved, archived or compressed; in path order."""
    if len(blobs) < 2:
        return list(blobs)
    kept: list[KeptBlob] = []
    for blob in sorted(blobs, key=lambda b: (-sum(map(len, b.pieces())), b.path.suffix == ".zst", str(b.path))):
        if not any(begins_with(other.pieces(), blob.pieces()) for other in kept):
            kept.append(blob)
    return sorted(kept, key=lambda b: str(b.path))


def begins_with(longer: Iterable[bytes], shorter: Iterable[bytes]) -> bool:
    """Tell whether one stream begins with all of another, whatever the pieces they come in."""
    return all(
        own is None or (theirs is not None and theirs.startswith(own))
        for own, theirs in zip_longest(_blocks(shorter), _blocks(longer))
    )


def _blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Cut a stream into blocks of one size, so that two can be compared block by block."""
    held = b""
    for piece in pieces:
        held += piece
        while len(held) >= BLOCK:
            yield held[:BLOCK]
            held = held[BLOCK:]
    if held:
        yield held


class SideFiles(Mapping[str, bytes]):
    """The side files of a session by file name, read when asked for."""

    def __init__(self, blobs: Sequence[KeptBlob]) -> None:
        self._blobs = {blob.path.name: blob for blob in blobs}

    def __getitem__(self, name: str) -> bytes:
        held = b""
        for piece in self._blobs[name].pieces():
            held += piece
            if len(held) >= MAX_SIDE:
                break
        return held[:MAX_SIDE]

    def __iter__(self) -> Iterator[str]:
        return iter(self._blobs)

    def __len__(self) -> int:
        return len(self._blobs)
