"""Prove the archive: every frame decodes to the bytes that were read, and no byte is missing between them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memex.errors import DamagedArchive
from memex.sources.archive import Archive
from memex.sources.frames import Kept


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was proved, and what is wrong.

    damaged: sources that do not decode, with the reason.
    differs: files on disk that no longer begin with what was kept, though their size and time say so.
    """

    sources: int = 0
    generations: int = 0
    chunks: int = 0
    bytes: int = 0
    on_disk: int = 0
    damaged: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()


def verify(archive: Archive, disk: bool = False, tick: Callable[[int], None] = lambda _sources: None) -> VerifyReport:
    """Decode every generation of every source; with `disk`, compare the latest with the file it came from."""
    sources = generations = chunks = size = on_disk = 0
    damaged, differs = [], []
    for kept in archive.sources():
        sources += 1
        chunks += len(kept.chunks)
        try:
            for generation in range(1, kept.generation + 1):
                generations += 1
                size += _decoded_size(archive, kept, generation)
            if disk and Path(kept.path).is_file() and archive.is_current(kept, Path(kept.path)):
                on_disk += 1
                if not _same(kept):
                    differs.append(kept.path)
        except DamagedArchive as error:
            damaged.append(str(error))
        tick(sources)
    return VerifyReport(sources, generations, chunks, size, on_disk, tuple(damaged), tuple(differs))


def _decoded_size(archive: Archive, kept: Kept, generation: int) -> int:
    at = 0
    for chunk in kept.chunks_of(generation):
        if chunk.at != at:
            raise DamagedArchive(
                f"the archive of {kept.path} lacks bytes {at} to {chunk.at} of generation {generation}"
            )
        at += chunk.size
    return sum(map(len, archive.pieces(kept, generation)))


def _same(kept: Kept) -> bool:
    with Path(kept.path).open("rb") as file:
        return all(chunk.is_in(file) for chunk in kept.chunks_of(kept.generation))
