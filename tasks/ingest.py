"""Tasks of reading logs."""

from prefect import task

from memex.setup import open_memex
from memex.sources.ingest import IngestPlan
from memex.sources.load import IngestReport
from memex.store.views import find_session
from tasks.policy import POLICY


@task(**POLICY)
def plan_ingest() -> IngestPlan:
    """Compare the logs on disk with the archive and the lake, once nothing is left half forgotten."""
    memex = open_memex()
    memex.forget.finish()
    return memex.ingest.plan()


@task(**POLICY)
def mark_gone(paths: list[str]) -> int:
    """Note sources that their CLI has deleted."""
    return open_memex().ingest.mark_gone(paths)


@task(**POLICY)
def keep_sessions(sessions: list[str]) -> IngestReport:
    """Archive what is new, before any of it is parsed: a copied session must find the one it was copied from."""
    return open_memex().ingest.keep(sessions)


@task(task_run_name="read {number} of {total}", **POLICY)
def read_sessions(sessions: list[str], number: int, total: int) -> IngestReport:  # noqa: ARG001 - shown in the run's name
    """Archive and parse one batch of sessions."""
    return open_memex().ingest.read(sessions)


@task(**POLICY)
def resolve_session(name: str) -> str:
    """Complete the beginning of a session id."""
    return find_session(open_memex().lake, name)
