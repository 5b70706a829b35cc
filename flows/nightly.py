"""Everything that a night should leave done."""

import time
from collections.abc import Callable
from typing import TypeVar

from prefect import flow
from pydantic import BaseModel

from flows.compact import Minutes, compact
from flows.index import IndexReport, index
from flows.ingest import ingest
from flows.maintain import MaintainReport, maintain
from flows.report import publish
from memex.compact.run import CompactReport
from memex.sources.load import IngestReport

Report = TypeVar("Report")


class NightlyReport(BaseModel):
    """What each step did, and the seconds it took."""

    ingest: IngestReport
    compact: CompactReport
    index: IndexReport
    maintain: MaintainReport | None
    seconds: dict[str, float]


@flow(name="nightly")
def nightly(
    delay_minutes: Minutes | None = None, optimize: bool = True, vectors: bool = True, memories: bool = True
) -> NightlyReport:
    """Ingest, compact, index, maintain.

    Args:
        delay_minutes: Leave sessions alone that ended less than so many minutes ago; none: as configured.
        optimize: Compact the tables of the lake as well.
        vectors: Make the missing vectors as well.
        memories: Keep the graph of memories as well.
    """
    seconds: dict[str, float] = {}

    def timed(name: str, step: Callable[[], Report]) -> Report:
        started = time.monotonic()
        report = step()
        seconds[name] = time.monotonic() - started
        return report

    # The steps run inside this flow run: a nested run costs over a second each.
    read = timed("ingest", ingest.fn)
    written = timed("compact", lambda: compact.fn(delay_minutes=delay_minutes))
    indexed = timed("index", lambda: index.fn(optimize=optimize, vectors=vectors))
    kept = timed("maintain", maintain.fn) if memories else None
    report = NightlyReport(ingest=read, compact=written, index=indexed, maintain=kept, seconds=seconds)
    publish("nightly", report)
    return report
