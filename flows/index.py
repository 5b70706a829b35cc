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
def index(whole: bool = False, optimize: bool = False) -> IndexReport:
    """Make everything findable: words first, then meaning.

    Args:
        whole: Build the full text anew instead of adding to it.
        optimize: Compact the tables of the lake as well.
    """
    raw, summaries = index_raw(whole), index_summaries(whole)
    missing = count_missing_vectors()
    limit = max(256, -(-missing // VECTOR_TASKS))
    vectors = sum(embed_summaries(limit, done, missing).embedded for done in range(0, missing, limit))
    if vectors:
        calibrate()
    if optimize:
        optimize_lake()
    report = IndexReport(raw=raw, summaries=summaries, vectors=vectors)
    publish("index", report)
    return report
