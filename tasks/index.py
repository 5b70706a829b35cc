"""Tasks of making things findable."""

from prefect import task

from memex.search.calibration import refresh_calibrations
from memex.search.refresh import refresh_raw, refresh_summaries
from memex.search.vectors import EmbedReport, fill_vectors
from memex.setup import open_memex
from memex.store.schemas import TABLES
from tasks.policy import POLICY
from tasks.progress import ProgressArtifact


@task(**POLICY)
def index_raw(whole: bool = False) -> int:
    """Bring the full text over raw logs up to date."""
    memex = open_memex()
    return refresh_raw(memex.lake, memex.raw_index, whole)


@task(**POLICY)
def index_summaries(whole: bool = False) -> int:
    """Bring the full text over summaries up to date."""
    memex = open_memex()
    return refresh_summaries(memex.lake, memex.summary_index, whole)


@task(**POLICY)
def count_missing_vectors() -> int:
    """Count the summaries without a vector."""
    return open_memex().count_missing_vectors()


@task(task_run_name="embed up to {limit}", **POLICY)
def embed_summaries(limit: int, done: int, total: int) -> EmbedReport:
    """Give vectors to at most `limit` summaries, newest first; `done` of `total` have theirs by now."""
    memex = open_memex()
    if memex.embedder is None:
        return EmbedReport()
    progress = ProgressArtifact("vectors", total, done)
    before = 0

    def tell(now: int, _limit: int, rate: float) -> None:
        nonlocal before
        minutes = (total - done - now) / max(rate, 1e-9) / 60
        progress.advance(now - before, f", {rate:.1f} a second, {minutes:.1f} min left")
        before = now

    return fill_vectors(memex.lake, memex.embedder, limit, tell, memex.embedded_levels)


@task(**POLICY)
def calibrate() -> int:
    """Fit the maps from cosine to similarity when the store has doubled; return how many."""
    memex = open_memex()
    return refresh_calibrations(memex.lake, memex.embedder, memex.calibrations) if memex.embedder else 0


@task(**POLICY)
def optimize_lake() -> int:
    """Compact every table; return how many there are."""
    lake = open_memex().lake
    for table in TABLES:
        lake.optimize(table)
    return len(TABLES)
