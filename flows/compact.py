"""Pending talks and sessions into summaries."""

from functools import reduce
from typing import Annotated
from uuid import uuid4

from prefect import flow
from prefect.task_runners import ThreadPoolTaskRunner
from pydantic import Field

from flows.report import publish
from memex.compact.run import CompactReport
from memex.llm.base import SummaryLevel
from tasks.compact import compact_sessions, plan_compact

Minutes = Annotated[float, Field(ge=0)]


@flow(name="compact", task_runner=ThreadPoolTaskRunner(max_workers=2))  # type: ignore[arg-type]
def compact(
    sessions: list[str] | None = None,
    levels: list[SummaryLevel] | None = None,
    delay_minutes: Minutes | None = None,
    force: bool = False,
) -> CompactReport:
    """Write every summary that is pending.

    Args:
        sessions: Session ids, such as claude:1b2c…; none: all sessions.
        levels: Levels to make: observations, talks, sessions; none: those that are switched on.
        delay_minutes: Leave sessions alone that ended less than so many minutes ago; none: as configured.
        force: Make summaries again even where nothing changed.
    """
    plan = plan_compact(sessions, levels, delay_minutes, force)
    total, run_id = len(plan.batches), uuid4().hex
    futures = [
        compact_sessions.submit(list(batch), levels, delay_minutes, force, number, total, run_id)
        for number, batch in enumerate(plan.batches, 1)
    ]
    report = reduce(CompactReport.__add__, (future.result() for future in futures), CompactReport())
    publish("compact", report)
    return report
