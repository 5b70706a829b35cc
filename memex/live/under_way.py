"""Which sessions are being written, and until when: computed from what the lake knows of their last writes."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from memex.compact.plan import FAR_AHEAD
from memex.store.lake import Lake

if TYPE_CHECKING:
    import polars as pl


def under_way(lake: Lake, now: datetime, idle: timedelta) -> dict[str, datetime]:
    """Map each session that was written within `idle` to the time at which it will have been silent for so long.

    A write is the time of its last record, or that of one of its files: logs that are copied or restored are old
    by their records, and yet not to be taken for whole while they come in. Of file times those in the future count
    for nothing, and neither do ends that lie far ahead.
    """
    import polars as pl

    ends = lake.frame("sessions", ["id", "ended_at"]).select(session="id", written="ended_at")
    files = lake.frame("sources", ["session_id", "file_mtime_ns"]).select(
        session="session_id", written=_time(pl.col("file_mtime_ns"))
    )
    ends, files = ends.filter(pl.col("written") <= now + FAR_AHEAD), files.filter(pl.col("written") <= now)
    written = pl.concat([ends, files]).filter(pl.col("written") > now - idle)
    last = written.group_by("session").agg(pl.col("written").max())
    return {session: when.astimezone(UTC) + idle for session, when in last.iter_rows()}


def _time(nanoseconds: "pl.Expr") -> "pl.Expr":
    import polars as pl

    return (nanoseconds // 1000).cast(pl.Datetime("us", "UTC"))
