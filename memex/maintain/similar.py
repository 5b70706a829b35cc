"""How alike two memories are: by their words, and by their vectors on a scale that all models share."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from memex.embed.calibrate import Calibration
from memex.maintain.identity import identity
from memex.model import Memory
from memex.text import CJK, is_cjk

_WORD = re.compile(rf"[{CJK}]|[^\W{CJK}]+(?:['.:/_-][^\W{CJK}]+)*")
_EXACT = re.compile(
    r"\d|[/_.]|^(?:no|not|never|don't|without|only|always|instead|off|on)$|不|没|勿|别|只|無|ない|안|않"
)
"""Words in which two texts must agree to say the same: numbers, paths, names in code, negations."""

_CAMEL = re.compile(r"\b\w*[a-z][A-Z]\w*\b")
CHANGED = "→"
"""Stands between what was and what became of it."""

Pair = tuple[str, str]
"""The scripts of two texts, `latin` or `cjk`."""


@dataclass(frozen=True, slots=True)
class Similarity:
    """From the cosine of two passages to a similarity; None where nothing was fitted for their languages."""

    maps: Mapping[Pair, Calibration] = field(default_factory=dict)

    def __call__(self, a: str, b: str, cosine: float) -> float | None:
        """Map the cosine of two texts to [0, 1]."""
        found = self.maps.get((script(a), script(b)))
        return found(cosine) if found else None

    @classmethod
    def identity(cls) -> "Similarity":
        """The map that changes nothing, for any pair of languages."""
        return cls({(a, b): Calibration.identity() for a in ("latin", "cjk") for b in ("latin", "cjk")})


@lru_cache(maxsize=100_000)
def script(text: str) -> str:
    """Tell the script that calibration distinguishes."""
    return "cjk" if is_cjk(text[:400]) else "latin"


def words(text: str) -> frozenset[str]:
    """Split text into words to compare: CJK characters in pairs, others folded.

    >>> sorted(words("Use ruff, 使用它"))
    ['ruff', 'use', '使用', '用它']
    """
    found = _WORD.findall(identity(text))
    wide = [is_cjk(word) for word in found]
    pairs = {a + b for a, b, first, second in zip(found, found[1:], wide, wide[1:], strict=False) if first and second}
    return frozenset(pairs | {word for word, cjk in zip(found, wide, strict=True) if not cjk})


def said(memory: Memory) -> str:
    """Give the words of a memory that are embedded and compared."""
    return memory.text if memory.name in memory.text else f"{memory.name}\n{memory.text}".strip()


def lexical(a: Collection[str], b: Collection[str]) -> float:
    """Jaccard index of two sets of words."""
    either = len({*a, *b})
    return len(set(a) & set(b)) / either if either else 0.0


def says_the_same(a: str, b: str) -> bool:
    """Tell whether two texts agree in all numbers, paths, names and negations; a change also in what became what."""
    if CHANGED in a or CHANGED in b:
        return _WORD.findall(identity(a)) == _WORD.findall(identity(b))
    return _exact(a) == _exact(b)


def says_no_more(a: str, b: str) -> bool:
    """Tell whether every line of `a` is a line of `b`."""
    return set(map(identity, a.splitlines())) <= set(map(identity, b.splitlines()))


def _exact(text: str) -> frozenset[str]:
    return frozenset([*(word for word in words(text) if _EXACT.search(word)), *_CAMEL.findall(text)])
