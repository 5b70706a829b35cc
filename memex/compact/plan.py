"""What is pending, and why: the units that are wanted against the rows that there are, by anti-join.

A *unit* is what one row is made from: a group of calls (L1), a talk (L2), a session (L3). Units are frames
with the columns UNIT and `key`, `fingerprint`. A fingerprint hashes recipe and input, so a changed
prompt, model or text makes exactly the affected units pending, and nothing else does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from memex.llm.base import SummaryLevel
from memex.store.lake import Lake, in_list
from memex.store.schemas import SUMMARY_TABLES

if TYPE_CHECKING:
    import polars as pl

FAR_AHEAD = timedelta(days=1)
"""A time so far ahead is not waited for."""
UNIT = ("session_id", "prompt_number")
"""Where a unit stands; the prompt number of a session's unit is 0."""


@dataclass(frozen=True)
class Changes:
    """The difference at one level.

    make: wanted units without a row, with the column `why`: "new", or "changed" where a row is served now.
    revive: rows with a wanted fingerprint that are not served, by id (a model was switched back).
    retire: served rows that no unit wants any more, by id.
    """

    make: "pl.DataFrame"
    revive: tuple[str, ...]
    retire: tuple[str, ...]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return self.make.is_empty() and not self.revive and not self.retire


def compare(
    wanted: "pl.DataFrame",
    stored: "pl.DataFrame",
    growing: "pl.DataFrame",
    waiting: "pl.DataFrame",
    force: bool = False,
) -> Changes:
    """Compare wanted units with stored rows (`id, session_id, prompt_number, fingerprint, served`).

    A place (UNIT) that is still `growing`, or is `waiting` after a failure, keeps the row it has. `force`
    makes every wanted unit again.
    """
    import polars as pl

    by_print = ["session_id", "fingerprint"]
    served = stored.filter("served")
    places = served.select(UNIT).unique().with_columns(why=pl.lit("changed"))
    missing = wanted if force else wanted.join(stored, on=by_print, how="anti").join(waiting, on=UNIT, how="anti")
    make = missing.join(places, on=UNIT, how="left").with_columns(pl.col("why").fill_null("new"))
    back = stored.filter(~pl.col("served")).join(wanted, on=by_print, how="semi")
    unwanted = served.join(wanted, on=by_print, how="anti")
    for kept in (growing, waiting.clear() if force else waiting):
        unwanted = unwanted.join(kept, on=UNIT, how="anti")
    return Changes(make, tuple(back["id"]), tuple(unwanted["id"]))


def stored_rows(lake: Lake, level: SummaryLevel, sessions: Sequence[str] | None) -> "pl.DataFrame":
    """Read the identity of the rows of a level, history included."""
    import polars as pl

    numbered = level != "sessions"
    columns = ["id", "session_id", "fingerprint", "served", *(["prompt_number"] if numbered else [])]
    rows = lake.frame(SUMMARY_TABLES[level], columns, None if sessions is None else in_list("session_id", sessions))
    return rows if numbered else rows.with_columns(prompt_number=pl.lit(0, pl.Int64))


def talk_states(lake: Lake, now: datetime, idle: timedelta, sessions: Sequence[str] | None) -> "pl.DataFrame":
    """Read the answered talks, each with whether it is `complete` and its session `over`.

    A talk is complete when another prompt followed it, or when its session has been silent for `idle`; an end that
    lies FAR_AHEAD is a wrong clock's.
    Columns: `id, session_id, prompt_number, content, ended_at, project_id, project, cwd, over, complete`.
    """
    import polars as pl

    columns = ["id", *UNIT, "content", "ended_at", "answered", "superseded"]
    talks = lake.frame("talks", columns, None if sessions is None else in_list("session_id", sessions))
    about = lake.frame(
        "sessions",
        ["id", "project_id", "project", "cwd", "ended_at", "kind"],
        None if sessions is None else in_list("id", sessions),
    ).rename({"id": "session_id", "ended_at": "session_end"})
    end = pl.col("session_end")
    over = end.is_null() | (end <= now - idle) | (end > now + FAR_AHEAD)
    last = pl.col("prompt_number") == pl.col("prompt_number").max().over("session_id")
    return (
        talks.filter(~pl.col("superseded"))
        .join(about.filter(pl.col("kind") != "probe"), on="session_id")
        .with_columns(over.alias("over"))
        .with_columns((~last | pl.col("over")).alias("complete"))
        .filter("answered")
        .drop("answered", "superseded", "session_end", "kind")
        .sort(UNIT)
    )


def withheld(talks: "pl.DataFrame", excluded: Sequence[str]) -> "pl.DataFrame":
    """Take the talks of excluded projects for unfinished: nothing is made of them, and what they have stays."""
    import polars as pl

    if not excluded:
        return talks
    columns = ("project", "project_id", "cwd")
    projects = talks.select(columns).unique()
    hidden = [row for row in projects.iter_rows() if any(fnmatchcase(text, glob) for text in row for glob in excluded)]
    mine = pl.struct(columns).is_in([dict(zip(columns, row, strict=True)) for row in hidden])
    return talks.with_columns(over=pl.col("over") & ~mine, complete=pl.col("complete") & ~mine)
