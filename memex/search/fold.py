"""Fold hits of one session into one: a session is as good as its best hit, and a little better with each other."""

from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
FADING = 0.3
"""What each further hit of a session counts, as a share of the one before it."""


def fold(hits: Iterable[Item], session: Callable[[Item], str], score: Callable[[Item], float]) -> list[list[Item]]:
    """Group hits by session: the best session first, and in it the best hit first.

    >>> fold([("a", 1.0), ("b", 0.9), ("b", 0.8)], lambda hit: hit[0], lambda hit: hit[1])[0][0]
    ('b', 0.9)
    """
    groups: dict[str, list[Item]] = {}
    for hit in sorted(hits, key=score, reverse=True):
        groups.setdefault(session(hit), []).append(hit)

    def total(group: list[Item]) -> float:
        return sum(score(hit) * FADING**place for place, hit in enumerate(group))

    return sorted(groups.values(), key=total, reverse=True)
