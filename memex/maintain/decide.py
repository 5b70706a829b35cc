"""The seam to whoever decides and writes: a model, or the rules that need none.

A decider sees memories under small numbers and answers with plain mappings. What it answers is not trusted: the
planners read it field by field, and what does not fit is a keep.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from memex.llm.rank import central
from memex.maintain.identity import identity, same_identity
from memex.maintain.kinds import kinds
from memex.maintain.similar import said, says_no_more, says_the_same, words
from memex.model import Memory
from memex.text import clip_units, one_line, sentences, unique, units

NEAR = 0.85
"""Calibrated similarity from which two memories are taken for one, if their words agree."""
ALIKE = 0.5
"""Share of common words that is asked of those."""
SAME_WORDS = 0.9
"""Share of common words that is enough by itself."""
HAPPENED = ("event",)
"""Kinds of which two that are alike may both have happened: only the same words make them one."""
SAME_SUBJECT = 0.5
"""Share of the words of the shorter name that two decisions about one thing have in common."""
AMENDED = 0.2
"""Share of the words of the shorter text that a decision and its amendment have in common."""
PARENT_UNITS = 120
NAME_UNITS = 24

_AMENDS = re.compile(
    r"\bamend|\bsupersed|\breplac(?:es|ing)\b|\bno longer\b|\binstead of the (?:old|earlier|previous)\b|"
    r"\brevis(?:ed|ing)\b|取代|不再|改为|修订|廃止|変更|대신|변경",
    re.IGNORECASE,
)
_COMMON = frozenset(
    """a an and any are as at be but by for from has have if in is it its not of on one only or over per so than that
    the then this to two under use we when where which with without decided decision settled agreed amended amending
    amendment rule policy supersedes superseding go going chose keep old new""".split()  # noqa: SIM905 - read as prose
)
"""Words that say nothing about what a decision is about."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A memory that may be the same: its number, its calibrated similarity (None unknown), its common words."""

    number: int
    memory: Memory
    similarity: float | None
    lexical: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A new memory under its number, with its neighbours, the most similar first."""

    number: int
    memory: Memory
    neighbours: tuple[Neighbour, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """The name and the text of a parent."""

    name: str
    text: str


class Decider(Protocol):
    """Decides about new memories, and writes parents and digests.

    `consolidate` answers one mapping a candidate: `id` (its number), `action` (keep, merge, skip, supersede),
    `merge_target_id`, `merged_fields`, `duplicate_of`, `supersedes` (numbers), and for a keep `evolution`:
    `should_evolve`, `connections` (numbers), `updates` (`id`, `state`, `summary`).
    """

    provider: str
    model: str
    version: str
    batch: int

    def consolidate(self, candidates: Sequence[Candidate]) -> Sequence[Mapping[str, Any]]:
        """Decide about a batch of candidates of one scope."""
        ...

    def parent(self, kind: str, children: Sequence[Memory]) -> Told | None:
        """Write the memory that stands for its children; None when nothing can be said."""
        ...

    def digest(self, texts: Sequence[str], least: int, most: int) -> str:
        """Write what happened, in `least` to `most` units; "" when nothing can be said."""
        ...


class Rules:
    """Decides without a model: exact names, common words, calibrated vectors; texts are sentences of the sources.

    Of new memories the first one stays and the later ones are folded into it, one after the other.
    """

    provider = "extractive"
    model = "extractive"
    version = "1"
    batch = 1

    def __init__(self, near: float = NEAR) -> None:
        self._near = near

    def consolidate(self, candidates: Sequence[Candidate]) -> Sequence[Mapping[str, Any]]:
        """Merge what has one name, skip what says the same, close a decision that a newer one replaces."""
        return [{"id": candidate.number, **self._decide(candidate)} for candidate in candidates]

    def parent(self, kind: str, children: Sequence[Memory]) -> Told | None:  # noqa: ARG002 - one way for all kinds
        """Take the most central sentences of the children."""
        told = unique(one_line(s) for child in children for s in sentences(said(child)))
        text = _fitted(told, PARENT_UNITS)
        if not text:
            return None
        names = unique(child.name for child in children) or (text,)
        share = max(4, NAME_UNITS // len(names))
        return Told("; ".join(clip_units(name, share) for name in names), text)

    def digest(self, texts: Sequence[str], least: int, most: int) -> str:  # noqa: ARG002 - all is told when it is little
        """Take the most central sentences of the texts, as many as there is room for."""
        return _fitted(unique(one_line(s) for text in texts for s in sentences(text)), most)

    def _decide(self, candidate: Candidate) -> Mapping[str, Any]:
        new, kind = candidate.memory, kinds()[candidate.memory.kind]
        others = [n for n in candidate.neighbours if n.memory.settled or _place(n.memory) < _place(new)]
        for other in others:
            if same_identity(new, other.memory, kind):
                return {"action": "merge", "merge_target_id": other.number}
        for other in others:
            if self._is_same(new, other):
                return {"action": "skip", "duplicate_of": other.number}
        if kind.supersedes:
            replaced = _beside(new, [n for n in others if _one_subject(new, n.memory)])
            if replaced:
                return {"action": "supersede", "supersedes": [other.number for other in replaced]}
        return {"action": "keep"}

    def _is_same(self, new: Memory, other: Neighbour) -> bool:
        alike = other.similarity is not None and other.similarity >= self._near and other.lexical >= ALIKE
        if says_no_more(new.text, other.memory.text):
            return True
        near = alike and new.kind not in HAPPENED
        return (near or other.lexical >= SAME_WORDS) and says_the_same(said(new), said(other.memory))


def _place(memory: Memory) -> tuple[int, str]:
    return memory.seq, memory.id


def _beside(new: Memory, others: Sequence[Neighbour]) -> list[Neighbour]:
    """Pick the last one before a decision and the first one after it."""
    ordered = sorted(others, key=lambda n: _place(n.memory))
    before = [n for n in ordered if _place(n.memory) < _place(new)]
    return [*before[-1:], *ordered[len(before) :][:1]]


def _one_subject(a: Memory, b: Memory) -> bool:
    """Tell whether two decisions are about one thing: by the words of their names, or because the later amends."""
    if any(one and one == other for one, other in zip(_names(a), _names(b), strict=True)):
        return True
    later = max(a, b, key=_place)
    texts, names = [[_telling(getattr(one, part)) for one in (a, b)] for part in ("text", "name")]
    amends = bool(_AMENDS.search(later.text))
    return _common(names) > SAME_SUBJECT or (amends and _common(texts) >= AMENDED)


def _names(memory: Memory) -> tuple[str, str]:
    return identity(memory.fields.get("subject", "")), identity(memory.name)


def _telling(text: str) -> frozenset[str]:
    return words(text) - _COMMON


def _common(sets: Sequence[frozenset[str]]) -> float:
    """Overlap of two sets of words, of which at least two must be shared."""
    shared = len(sets[0] & sets[1])
    return shared / min(map(len, sets)) if shared >= 2 else 0.0


def _fitted(told: Sequence[str], room: int) -> str:
    """Keep the most central sentences for which there is room, in their order."""
    if sum(map(units, told)) <= room:
        return " ".join(told)
    chosen: list[str] = []
    for sentence in unique([*central(told, max(1, len(told) // 2)), *told]):
        if units(sentence) <= room:
            chosen.append(sentence)
            room -= units(sentence)
    return " ".join(s for s in told if s in chosen) or clip_units(told[0], room)
