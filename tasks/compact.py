"""Tasks of writing summaries."""

from prefect import task

from memex.compact.run import CompactPlan, CompactReport
from memex.llm.base import SummaryLevel
from memex.setup import open_memex
from tasks.policy import POLICY
from tasks.progress import ProgressArtifact


@task(**POLICY)
def plan_compact(
    sessions: list[str] | None, levels: list[SummaryLevel] | None, delay_minutes: float | None, force: bool
) -> CompactPlan:
    """Compute what is pending, and why."""
    memex = open_memex()
    return memex.compact_at(levels).plan(sessions, memex.delay(delay_minutes), force)


@task(task_run_name="compact {number} of {total}", **POLICY)
def compact_sessions(
    sessions: list[str],
    levels: list[SummaryLevel] | None,
    delay_minutes: float | None,
    force: bool,
    number: int,
    total: int,
    run_id: str,
) -> CompactReport:
    """Write what is pending in one batch of sessions. All batches with one `run_id` share the caps of a run."""
    memex = open_memex(run_id=run_id)
    compact, delay = memex.compact_at(levels), memex.delay(delay_minutes)
    pending = sum(compact.plan(sessions, delay, force).pending.values())
    progress = ProgressArtifact(f"summaries, batch {number} of {total}", pending)
    return compact.run(sessions, delay, force, progress.advance)
