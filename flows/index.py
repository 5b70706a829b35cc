"""Full text and vectors up to date."""

from typing import Annotated

from prefect import flow
from pydantic import BaseModel, Field

from flows.report import publish
from tasks.index import count_missing_vectors, embed_summaries, index_raw, index_summaries, optimize_lake

VECTOR_TASKS = 40
"""At most so many tasks embed, however much there is to do."""


class IndexReport(BaseModel):
    """Documents and vectors written."""

    raw: int
    summaries: int
    vectors: int


@flow(name="index")
def index(
    whole: Annotated[bool, Field(description="Build the full text anew instead of adding to it.")] = False,
    optimize: Annotated[bool, Field(description="Compact the tables of the lake as well.")] = False,
) -> IndexReport:
    """Make everything findable: words first, then meaning."""
    raw, summaries = index_raw(whole), index_summaries(whole)
    missing = count_missing_vectors()
    limit = max(256, -(-missing // VECTOR_TASKS))
    vectors = sum(embed_summaries(limit, done, missing).embedded for done in range(0, missing, limit))
    if optimize:
        optimize_lake()
    report = IndexReport(raw=raw, summaries=summaries, vectors=vectors)
    publish("index", report)
    return report
