"""One source, kept by two homes: which generations there are in all, and how they are laid down in one archive."""

import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from memex.errors import DamagedArchive, translated_os_errors
from memex.sources.archive import Archive
from memex.sources.blobs import begins_with
from memex.sources.erase import put_in_force
from memex.sources.frames import Chunk, Kept, frames_path, read_events, sync

One = TypeVar("One")


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation of a source in an archive."""

    archive: Archive
    kept: Kept
    number: int

    @property
    def chunks(self) -> list[Chunk]:
        """Its frames."""
        return self.kept.chunks_of(self.number)

    def pieces(self) -> Iterator[bytes]:
        """Its bytes, a frame at a time."""
        return self.archive.pieces(self.kept, self.number)

    def is_damaged(self) -> bool:
        """Tell whether it does not decode."""
        try:
            deque(self.pieces(), maxlen=0)
        except DamagedArchive:
            return True
        return False


def united(
    ours: Sequence[One],
    theirs: Sequence[One],
    begins: Callable[[One, One], bool],
    ours_is_last: bool,
    is_damaged: Callable[[One], bool] = lambda _one: False,
) -> list[One]:
    """Put two histories of one file together; `begins(a, b)` tells whether `b` begins with all of `a`.

    What the other side has of a generation, or less, adds nothing; more of it takes its place, and so does the
    whole of one that is damaged here; damaged ones add nothing. Any other is put at the end, or before our last when
    that is the latest.

    >>> united(["ab"], ["abc", "x"], lambda a, b: b.startswith(a), True)
    ['x', 'abc']
    """
    found = list(ours)
    new: list[One] = []
    for one in theirs:
        if any(begins(one, other) and not is_damaged(other) for other in (*found, *new)):
            continue
        if is_damaged(one):
            continue
        shorter = [place for place, other in enumerate(found) if begins(other, one)]
        if shorter:
            found[shorter[-1]] = one
        else:
            new.append(one)
    at = len(found) - 1 if ours_is_last and found else len(found)
    return [*found[:at], *new, *found[at:]]


@dataclass(frozen=True, slots=True)
class Union:
    """All generations of a source of ours, some of which another archive has; nothing is written yet."""

    ours: Generation
    found: tuple[Generation, ...]

    def lay_down(self) -> None:
        """Put them in our archive, in force at once.

        Raises:
            DiskFull, HomeError: it cannot be written; what was kept stays as it was.
        """
        log, mine = self.ours.archive.log_of(self.ours.kept), _all(self.ours)
        rewrite = 1 + max((chunk.rewrite for one in (*mine, *self.found) for chunk in one.chunks), default=0)
        moved = {number: one for number, one in enumerate(self.found, 1) if one not in mine[number - 1 : number]}
        anew = {number: _laid_down(one, log, number, rewrite) for number, one in moved.items()}
        sync(frames_path(log, number, rewrite) for number in anew)
        put_in_force(log, replace(self.ours.kept, generation=len(self.found)), anew)


def union_of(ours: Generation, theirs: Generation, is_here: Callable[[Kept], bool]) -> Union | None:
    """See what another archive has of a source that ours has not; None when that is nothing.

    Both name the source by any of its generations. `is_here` tells whether its file is on this machine: then our
    latest generation stays the latest, for it is what will grow.
    """
    mine = _all(ours)
    is_last = is_here(ours.kept) or _last_read(ours) >= _last_read(theirs)
    found = united(mine, _all(theirs), _begins, is_last, Generation.is_damaged)
    return None if found == mine else Union(ours, tuple(found))


def _all(one: Generation) -> list[Generation]:
    return [replace(one, number=number) for number in range(1, one.kept.generation + 1)]


def _laid_down(one: Generation, log: Path, number: int, rewrite: int) -> list[Chunk]:
    """Copy the frames of a generation, which becomes another one."""
    target = frames_path(log, number, rewrite)
    with translated_os_errors(target):
        if one.chunks:
            shutil.copyfile(one.kept.frames(one.archive.log_of(one.kept), one.number), target)
    return [replace(chunk, generation=number, rewrite=rewrite) for chunk in one.chunks]


def _begins(one: Generation, other: Generation) -> bool:
    """Tell whether the bytes of one generation are the first of another."""
    places, others = _places(one), _places(other)
    if others[: len(places)] == places:
        return True
    if one.kept.size_of(one.number) > other.kept.size_of(other.number):
        return False
    try:
        return begins_with(other.pieces(), one.pieces())
    except DamagedArchive:
        return False


def _places(one: Generation) -> list[tuple[int, int, str]]:
    return [(chunk.at, chunk.size, chunk.sha256) for chunk in one.chunks]


def _last_read(one: Generation) -> str:
    events = read_events(one.archive.log_of(one.kept))
    return max((event["read"]["at"] for event in events if "read" in event), default="")
