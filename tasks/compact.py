"""Tasks of writing summaries."""

from datetime import timedelta

from prefect import task

from memex.compact.run import CompactPlan, CompactReport
from memex.setup import open_memex
from tasks.policy import POLICY
from tasks.progress import ProgressArtifact


@task(**POLICY)
def plan_compact(
    sessions: list[str] | None, levels: list[str] | None, delay_minutes: float, force: bool
) -> CompactPlan:
    """Compute what is pending, and why."""
    return open_memex().compact_at(levels).plan(sessions, timedelta(minutes=delay_minutes), force)


@task(task_run_name="compact {number} of {total}", **POLICY)
def compact_sessions(
    sessions: list[str], levels: list[str] | None, delay_minutes: float, force: bool, number: int, total: int
) -> CompactReport:
    """Write what is pending in one batch of sessions."""
    compact = open_memex().compact_at(levels)
    delay = timedelta(minutes=delay_minutes)
    pending = sum(compact.plan(sessions, delay, force).pending.values())
    progress = ProgressArtifact(f"summaries, batch {number} of {total}", pending)
    return compact.run(sessions, delay, force, progress.advance)
