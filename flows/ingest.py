"""Logs into archive and lake, and at once into the full text."""

from functools import reduce

from prefect import flow

from flows.report import publish
from memex.sources.load import IngestReport
from tasks.index import index_raw
from tasks.ingest import keep_sessions, mark_gone, plan_ingest, read_sessions


@flow(name="ingest")
def ingest() -> IngestReport:
    """Read every log that changed since the last time."""
    plan = plan_ingest()
    gone = mark_gone(list(plan.gone)) if plan.gone else 0
    total = len(plan.batches)
    kept = keep_sessions([session for batch in plan.batches for session in batch]) if total > 1 else IngestReport()
    reports = [read_sessions(list(batch), number, total) for number, batch in enumerate(plan.batches, 1)]
    report = reduce(IngestReport.__add__, reports, kept + IngestReport(gone=gone, unreadable=plan.unreadable))
    index_raw()
    publish("ingest", report)
    return report
