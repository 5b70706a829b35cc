"""What is worth keeping in mind: one value a memory, and what falls below a threshold sleeps.

Nothing is deleted: a memory that sleeps is archived, leaves the index, and can be woken.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from memex.maintain.graph import Graph, Unit, unit_key
from memex.maintain.kinds import kinds
from memex.maintain.merge import SLEPT

if TYPE_CHECKING:
    import polars as pl

FORGET_THRESHOLD = 0.5
KEPT_IMPORTANCE = 8.0
"""From here on a memory never sleeps."""
YOUNGEST_HOURS = 1.0
TIMES = ("occurred_at", "ingested_at", "last_access_at")
COLUMNS = ("id", "kind", "level", "archived", "importance", "access_count", *TIMES)
"""What the value of a memory depends on."""


def retention(importance: "pl.Expr", age_hours: "pl.Expr", access_count: "pl.Expr") -> "pl.Expr":
    """The value of a memory, about 0 to 1 and more when it is often recalled.

    A missing, infinite or negative importance counts as 5, such a count as 0.
    """
    weight, count = _sane(importance, 5.0), _sane(access_count, 0.0)
    recency = 1 / (1 + (1 + age_hours.clip(lower_bound=0)).log10())
    frequency = count / (age_hours / 24).clip(lower_bound=1)
    return weight / 10 * recency * (1 + frequency)


def age_hours(now: datetime) -> "pl.Expr":
    """Hours since a memory happened, was first read or was last recalled, whichever came last."""
    import polars as pl

    since = pl.max_horizontal(*TIMES)
    return (pl.lit(now) - since).dt.total_microseconds() / 3.6e9


def tired(memories: "pl.DataFrame", now: datetime, threshold: float = FORGET_THRESHOLD) -> "pl.DataFrame":
    """Pick the active memories (COLUMNS) to put to sleep; adds `age_hours` and `retention`.

    One without any time is as young as can be: nothing says that it is old. A parent stays: its children are
    reached through it.
    """
    import polars as pl

    awake = [name for name, kind in kinds().items() if not kind.sleep]
    valued = memories.filter(~pl.col("archived").fill_null(False)).with_columns(age_hours=age_hours(now).fill_null(0.0))
    valued = valued.with_columns(
        retention=retention(
            pl.col("importance").cast(pl.Float64), pl.col("age_hours"), pl.col("access_count").cast(pl.Float64)
        )
    )
    return valued.filter(
        pl.col("level").fill_null(0) == 0,
        ~pl.col("kind").is_in(awake),
        _sane(pl.col("importance").cast(pl.Float64), 5.0) < KEPT_IMPORTANCE,
        pl.col("age_hours") >= YOUNGEST_HOURS,
        pl.col("retention") < threshold,
    )


def threshold_for(horizon: timedelta, importance: float = 5.0) -> float:
    """The threshold under which a memory of this importance, never recalled, is kept for `horizon`, at least 1 h.

    >>> round(threshold_for(timedelta(days=90)), 4)
    0.1153
    """
    hours = max(YOUNGEST_HOURS, horizon.total_seconds() / 3600)
    return importance / 10 / (1 + math.log10(1 + hours))


def horizon_of(threshold: float, importance: float = 5.0) -> timedelta:
    """How long a memory of this importance is kept that is never recalled; the inverse of `threshold_for`."""
    exponent = min(12.0, importance / (10 * threshold) - 1)
    return timedelta(hours=min(1e9, max(YOUNGEST_HOURS, 10**exponent - 1)))


@dataclass(frozen=True, slots=True)
class SleepPlan:
    """What would sleep: `units` (one, or none) and the number of memories awake before."""

    units: tuple[Unit, ...]
    awake: int

    @property
    def sleeping(self) -> int:
        """How many memories would be put to sleep."""
        return sum(len(unit.changes) for unit in self.units)

    @property
    def most(self) -> bool:
        """Whether that is more than half of what is awake."""
        return 2 * self.sleeping > self.awake


def sleep(graph: Graph, ids: Sequence[str], why: str, spared: frozenset[str] = frozenset()) -> SleepPlan:
    """Plan to archive memories that `tired` picked; those that a person woke are `spared`."""
    graph = graph.copy()
    awake = sum(1 for _memory in graph.active())
    graph.begin()
    going = [name for name in sorted(ids) if name not in spared and name in graph.memories]
    for name in going:
        graph.put(replace(graph.memories[name], archived=True, archived_reason=SLEPT))
    unit = graph.end("sleep", unit_key("sleep", *going), why)
    return SleepPlan((unit,) if unit else (), awake)


def _sane(value: "pl.Expr", default: float) -> "pl.Expr":
    import polars as pl

    return pl.when(value.is_finite() & (value >= 0)).then(value).otherwise(default)
