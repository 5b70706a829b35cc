"""Reciprocal rank fusion (Cormack, Clarke & Büttcher 2009)."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def fuse(rankings: Mapping[str, Sequence[Key]], k: int = 60) -> list[tuple[Key, float, tuple[str, ...]]]:
    """Merge rankings by the sum of 1 / (k + rank): best first, each with its score and the legs it is in.

    >>> fuse({"text": ["a", "b"], "vector": ["b"]})[0][0]
    'b'
    """
    scores: dict[Key, float] = {}
    legs: dict[Key, list[str]] = {}
    for leg, ranking in rankings.items():
        for rank, key in enumerate(dict.fromkeys(ranking), 1):
            scores[key] = scores.get(key, 0.0) + 1 / (k + rank)
            legs.setdefault(key, []).append(leg)
    ordered = sorted(scores, key=lambda key: (-scores[key], str(key)))
    return [(key, scores[key], tuple(legs[key])) for key in ordered]
