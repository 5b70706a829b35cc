"""The units that each level wants, with their fingerprints. No text is read for it, only hashes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memex.compact.observations import CALL_COLUMNS, group_calls
from memex.compact.plan import UNIT
from memex.compact.recipe import recipe_of
from memex.llm.base import SummaryLevel, Writer
from memex.settings import L1Settings
from memex.store.lake import Lake, in_list

L2_TOKENS = 220
"""What a talk summary usually takes."""

if TYPE_CHECKING:
    import polars as pl


def wanted_units(
    lake: Lake,
    level: SummaryLevel,
    talks: "pl.DataFrame",
    writer: Writer,
    options: L1Settings,
    sessions: Sequence[str] | None,
) -> "pl.DataFrame":
    """List the units of a level, from the talks of `talk_states`."""
    complete = talks.filter("complete")
    if level == "talks":
        return _talk_units(complete, writer)
    if level == "sessions":
        return _session_units(complete, writer)
    where = None if sessions is None else in_list("session_id", sessions)
    calls = lake.frame("tool_calls", CALL_COLUMNS, where)
    return group_calls(calls, complete, options, recipe_of(writer, level))


def growing_units(level: SummaryLevel, talks: "pl.DataFrame") -> "pl.DataFrame":
    """List the places whose talk, or session, is not finished."""
    import polars as pl

    if level == "sessions":
        return talks.filter(~pl.col("over")).select("session_id", prompt_number=pl.lit(0, pl.Int64)).unique()
    return talks.filter(~pl.col("complete")).select(UNIT)


def _talk_units(talks: "pl.DataFrame", writer: Writer) -> "pl.DataFrame":
    import polars as pl

    recipe = recipe_of(writer, "talks")
    inputs = talks.select("session_id", pl.col("prompt_number").cast(pl.String), "content")
    prints = [recipe.fingerprint(*row) for row in inputs.iter_rows()]
    return talks.select(*UNIT, key="id").with_columns(fingerprint=pl.Series(prints, dtype=pl.String))


def _session_units(talks: "pl.DataFrame", writer: Writer) -> "pl.DataFrame":
    import polars as pl

    recipe = recipe_of(writer, "sessions")
    parts = (
        talks.filter("over")
        .join(_talk_units(talks, writer), on=UNIT)
        .sort(UNIT)
        .group_by("session_id", maintain_order=True)
        .agg("fingerprint")
    )
    prints = [recipe.fingerprint(session, *l2s) for session, l2s in parts.iter_rows()]
    return parts.select("session_id", prompt_number=pl.lit(0, pl.Int64), key="session_id").with_columns(
        fingerprint=pl.Series(prints, dtype=pl.String)
    )


def source_sizes(lake: Lake, level: SummaryLevel, units: "pl.DataFrame") -> list[int]:
    """Estimate the tokens that each unit is made from, without reading any text."""
    import polars as pl

    where = in_list("session_id", units["session_id"].unique().to_list())
    if level == "observations":
        tokens = lake.frame("tool_calls", ["id", "tokens"], where)
        calls = units.select("fingerprint", "call_ids").explode("call_ids")
        sizes = (
            calls.join(tokens, left_on="call_ids", right_on="id").group_by("fingerprint").agg(pl.col("tokens").sum())
        )
        return sizes["tokens"].to_list()
    talks = lake.frame("talks", [*UNIT, "tokens_raw"], where)
    if level == "talks":
        return units.join(talks, on=UNIT)["tokens_raw"].to_list()
    counts = talks.join(units, on="session_id", how="semi").group_by("session_id").len()
    return (counts["len"] * L2_TOKENS).to_list()
