"""Full text and vectors up to date."""

from prefect import flow
from pydantic import BaseModel

from flows.report import publish
from tasks.index import calibrate, count_missing_vectors, embed_summaries, index_raw, index_summaries, optimize_lake

VECTOR_TASKS = 40
"""At most so many tasks embed, however much there is to do."""


class IndexReport(BaseModel):
    """Documents and vectors written."""

    raw: int
    summaries: int
    vectors: int


@flow(name="index")
def index(whole: bool = False, optimize: bool = False, vectors: bool = True) -> IndexReport:
    """Make everything findable: words first, then meaning.

    Args:
        whole: Build the full text anew instead of adding to it.
        optimize: Compact the tables of the lake as well.
        vectors: Make the missing vectors, newest first; a run that is stopped leaves the rest to the next.
    """
    raw, summaries = index_raw(whole), index_summaries(whole)
    embedded = _embed() if vectors else 0
    if optimize:
        optimize_lake()
    report = IndexReport(raw=raw, summaries=summaries, vectors=embedded)
    publish("index", report)
    return report


def _embed() -> int:
    missing = count_missing_vectors()
    limit = max(256, -(-missing // VECTOR_TASKS))
    embedded = sum(embed_summaries(limit, done, missing).embedded for done in range(0, missing, limit))
    calibrate()
    return embedded
