"""Units that could not be written: why, how often, and when they are tried again."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from memex.compact.plan import UNIT
from memex.store.lake import Lake, in_list
from memex.store.schemas import schema
from memex.text import digest

if TYPE_CHECKING:
    import polars as pl

PAUSES = (timedelta(minutes=10), timedelta(hours=1), timedelta(hours=6), timedelta(days=1))
"""How long a unit rests after its first, second, … failure."""


def waiting_units(lake: Lake, level: str, now: datetime) -> "pl.DataFrame":
    """List the places of a level that rest after a failure."""
    import polars as pl

    rows = lake.frame("failures", [*UNIT, "retry_at"], f"level = '{level}'")
    return rows.filter(pl.col("retry_at") > now).select(UNIT).unique()


def record_failures(
    lake: Lake,
    level: str,
    failed: Sequence[tuple[dict[str, Any], Exception]],
    made: Sequence[dict[str, Any]],
    now: datetime,
    epoch: int | None = None,
) -> None:
    """Count up the units that failed now, and forget earlier failures of those that were made."""
    import pyarrow as pa

    attempts = dict(lake.frame("failures", ["id", "attempts"], f"level = '{level}'").iter_rows())
    rows = [_row(level, unit, error, attempts, now) for unit, error in failed]
    if rows:
        lake.upsert("failures", pa.Table.from_pylist(rows, schema("failures")), epoch)
    cleared = sorted({_id(level, unit) for unit in made} & attempts.keys())
    if cleared:
        lake.delete("failures", in_list("id", cleared))


def _id(level: str, unit: dict[str, Any]) -> str:
    return digest(level, unit["session_id"], str(unit["prompt_number"]), unit["key"])


def _row(level: str, unit: dict[str, Any], error: Exception, attempts: dict[str, int], now: datetime) -> dict[str, Any]:
    count = attempts.get(_id(level, unit), 0) + 1
    return {
        "id": _id(level, unit),
        "level": level,
        "session_id": unit["session_id"],
        "prompt_number": unit["prompt_number"],
        "reason": f"{type(error).__name__}: {error}"[:500],
        "attempts": count,
        "failed_at": now,
        "retry_at": now + PAUSES[min(count, len(PAUSES)) - 1],
    }
