"""What a ranking is worth, with some answers known to be right."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from math import log2
from statistics import fmean


@dataclass(frozen=True, slots=True)
class Measures:
    """Of one ranking, or the mean of many: all between 0 and 1.

    `recall` is the share of right answers among the first k, `hit` whether there is one, `every` whether all are there.
    """

    hit_1: float
    recall_5: float
    recall_10: float
    hit_5: float
    hit_10: float
    every_5: float
    mrr: float
    ndcg_10: float


def measure(ranking: Sequence[str], right: Collection[str]) -> Measures:
    """Measure a ranking of distinct ids.

    >>> measure(["a", "b"], {"b", "c"}).recall_5
    0.5
    """
    found = [key in right for key in ranking]
    first = found.index(True) + 1 if True in found else 0
    gain = sum(1 / log2(place + 2) for place, is_right in enumerate(found[:10]) if is_right)
    ideal = sum(1 / log2(place + 2) for place in range(min(10, len(right))))
    return Measures(
        hit_1=float(any(found[:1])),
        recall_5=sum(found[:5]) / len(right),
        recall_10=sum(found[:10]) / len(right),
        hit_5=float(any(found[:5])),
        hit_10=float(any(found[:10])),
        every_5=float(sum(found[:5]) == len(right)),
        mrr=1 / first if first else 0.0,
        ndcg_10=gain / ideal,
    )


def mean(measures: Collection[Measures]) -> Measures:
    """Average the measures of many rankings."""
    return Measures(*(fmean(getattr(one, field.name) for one in measures) for field in fields(Measures)))
