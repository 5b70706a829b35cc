"""Merge rankings of the same things: by ranks, or by scores."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Scored = Sequence[tuple[Key, float]]
"""Keys with their scores, best first."""
Merged = list[tuple[Key, float, tuple[str, ...]]]
"""Keys with their scores and the legs that they are in, best first."""


def fuse(rankings: Mapping[str, Sequence[Key]], k: int = 60) -> Merged[Key]:
    """Merge rankings by the sum of 1 / (k + rank) (Cormack, Clarke & Büttcher 2009).

    >>> fuse({"text": ["a", "b"], "vector": ["b"]})[0][0]
    'b'
    """
    return _summed(
        {
            leg: [(key, 1 / (k + rank)) for rank, key in enumerate(dict.fromkeys(ranking), 1)]
            for leg, ranking in rankings.items()
        }
    )


def mix(rankings: Mapping[str, Scored[Key]], weights: Mapping[str, float]) -> Merged[Key]:
    """Merge rankings by the weighted sum of their scores, each brought to 0 … 1 between its worst and best.

    >>> mix({"text": [("a", 9.0), ("b", 8.0), ("c", 1.0)], "vector": [("b", 0.9), ("c", 0.1)]}, {})[0][0]
    'b'
    """
    return _summed(
        {
            leg: [(key, weights.get(leg, 1.0) * score) for key, score in _normal(dict(reversed(ranking)))]
            for leg, ranking in rankings.items()
        }
    )


def _normal(scores: Mapping[Key, float]) -> Scored[Key]:
    if not scores:
        return []
    low, high = min(scores.values()), max(scores.values())
    return [(key, (score - low) / (high - low) if high > low else 1.0) for key, score in scores.items()]


def _summed(legs: Mapping[str, Scored[Key]]) -> Merged[Key]:
    scores: dict[Key, float] = {}
    names: dict[Key, list[str]] = {}
    for leg, ranking in legs.items():
        for key, score in ranking:
            scores[key] = scores.get(key, 0.0) + score
            names.setdefault(key, []).append(leg)
    ordered = sorted(scores, key=lambda key: (-scores[key], str(key)))
    return [(key, scores[key], tuple(names[key])) for key in ordered]
