"""L1: which calls make one observation, and the observation itself.

Pruned: calls that returned nothing, unless they change something or failed. Merged: a whole run of at
least `merge_threshold` operations of one kind within a talk. All other calls are observed one by one.
"""

from typing import TYPE_CHECKING

from memex.compact.recipe import Recipe, made_by
from memex.compact.talks import TalkText
from memex.llm.answers import ObservationAnswer
from memex.model import Observation, Origin, ToolCall
from memex.settings import L1Settings
from memex.text import unique

if TYPE_CHECKING:
    import polars as pl

CALL_COLUMNS = (
    "id", "session_id", "prompt_number", "seq", "operation", "answered", "is_error", "empty", "mutates",
    "content", "superseded",
)  # fmt: skip
"""What grouping needs to know of a call; the texts stay in the lake."""

_MODIFYING = ("edit", "write")


def group_calls(calls: "pl.DataFrame", talks: "pl.DataFrame", options: L1Settings, recipe: Recipe) -> "pl.DataFrame":
    """Prune and merge the calls of complete talks into units.

    `calls` has CALL_COLUMNS, `talks` the columns of `complete_talks`. Returns one row a group:
    `session_id, prompt_number, key, call_ids, fingerprint`, where key is the first call's id.
    """
    import polars as pl

    kept = calls.filter(~pl.col("superseded")).join(talks, on=["session_id", "prompt_number"], how="semi")
    if options.prune_empty:
        kept = kept.filter(~pl.col("empty") | pl.col("mutates") | pl.col("is_error"))
    kept = kept.sort("session_id", "prompt_number", "seq")
    run = pl.struct("session_id", "prompt_number", "operation").rle_id()
    length = pl.len().over("run")
    threshold = options.merge_threshold if options.merge_consecutive else 2**31
    alone = pl.int_range(pl.len()).cast(pl.Int64) + 2**32
    grouped = (
        kept.with_columns(run.alias("run"))
        .with_columns(pl.when(length >= threshold).then(pl.col("run").cast(pl.Int64)).otherwise(alone).alias("unit"))
        .group_by("session_id", "prompt_number", "unit", maintain_order=True)
        .agg(pl.col("id").alias("call_ids"), pl.col("content").alias("contents"))
        .with_columns(key=pl.col("call_ids").list.first())
    )
    prints = [
        recipe.fingerprint(*ids, *contents) for ids, contents in grouped.select("call_ids", "contents").iter_rows()
    ]
    return grouped.drop("unit", "contents").with_columns(fingerprint=pl.Series(prints, dtype=pl.String))


def observation_of(
    answer: ObservationAnswer, calls: tuple[ToolCall, ...], talk: TalkText, origin: Origin
) -> Observation:
    """Make the row of one group of calls. The files are taken from the arguments, never from the writer."""
    return Observation(
        id=origin.fingerprint,
        session_id=talk.session_id,
        prompt_number=talk.prompt_number,
        source_offset=calls[0].offset,
        type=answer.type,
        title=answer.title,
        subtitle=answer.subtitle,
        facts=answer.facts,
        narrative=answer.narrative,
        files_read=unique(path for c in calls if c.operation not in _MODIFYING for path in c.files),
        files_modified=unique(path for c in calls if c.operation in _MODIFYING for path in c.files),
        project_id=talk.project_id,
        occurred_at=calls[0].started_at,
        origin=made_by(origin, answer),
    )
