"""Whether consolidation should run at all: many new memories, or one that looks like what is there."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memex.maintain.identity import compatible, same_identity
from memex.maintain.kinds import kinds
from memex.model import Memory

log = logging.getLogger("memex.maintain")

Nearest = Callable[[Memory], Sequence[tuple[str, float]]]
"""Gives (id, calibrated similarity) of the memories most like one, best first; it may raise."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to run, and why: the best score seen, the new memory that had it, and what it was like."""

    run: bool
    why: str
    new: int = 0
    score: float = 0.0
    memory_id: str = ""
    match_id: str = ""
    asked: int = 0


def gate(
    new: Sequence[Memory],
    active: Sequence[Memory],
    nearest: Nearest,
    threshold: float = 0.85,
    min_new: int = 2,
) -> Verdict:
    """Decide about the new memories of one scope.

    `active` are the memories that they may be joined with, new ones included. `nearest` is asked for kinds with
    any number of memories a name, and where no name fits. `threshold` is clamped to [0, 1].
    """
    fresh = [memory for memory in new if not memory.archived]
    if not fresh:
        return Verdict(False, "nothing new")
    if len(fresh) >= max(1, min_new):
        return Verdict(True, f"{len(fresh)} new memories", len(fresh))
    return _analyse(fresh, [memory for memory in active if not memory.archived], nearest, min(1.0, max(0.0, threshold)))


def _analyse(fresh: Sequence[Memory], active: Sequence[Memory], nearest: Nearest, threshold: float) -> Verdict:
    by_id = {memory.id: memory for memory in active}
    for memory in sorted(fresh, key=lambda m: (m.seq, m.id)):
        twin = _namesake(memory, active)
        if twin:
            return Verdict(True, "same name", len(fresh), 1.0, memory.id, twin.id)
    best, asked = (0.0, "", ""), 0
    for memory in fresh:
        asked += 1
        try:
            found = nearest(memory)
        except Exception as error:
            log.warning("cannot look for what is like %s: %s", memory.id, error)
            continue
        likely = [
            (score, memory.id, name)
            for name, score in found
            if name != memory.id and name in by_id and compatible(memory, by_id[name])
        ]
        best = max([best, *likely[:1]], key=lambda one: one[0])
        if best[0] >= threshold:
            return Verdict(True, "similar", len(fresh), *best, asked)
    return Verdict(False, "nothing like it", len(fresh), *best, asked)


def _namesake(memory: Memory, active: Sequence[Memory]) -> Memory | None:
    kind = kinds()[memory.kind]
    if not kind.latest_only:
        return None
    return next(
        (
            other
            for other in sorted(active, key=lambda m: (m.seq, m.id))
            if other.id != memory.id and compatible(memory, other) and same_identity(memory, other, kind)
        ),
        None,
    )
