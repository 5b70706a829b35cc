"""Pending talks and sessions into summaries."""

from functools import reduce
from typing import Annotated

from prefect import flow
from prefect.task_runners import ThreadPoolTaskRunner
from pydantic import Field

from flows.report import publish
from memex.compact.run import CompactReport
from memex.llm.base import SummaryLevel
from tasks.compact import compact_sessions, plan_compact

Sessions = Annotated[list[str] | None, Field(description="Session ids, such as claude:1b2c…; empty: all.")]
Levels = Annotated[list[SummaryLevel] | None, Field(description="Levels to make; empty: those that are switched on.")]
Delay = Annotated[
    float | None,
    Field(ge=0, description="Leave sessions alone that ended less than so many minutes ago; empty: as configured."),
]
Force = Annotated[bool, Field(description="Make summaries again even where nothing changed.")]


@flow(name="compact", task_runner=ThreadPoolTaskRunner(max_workers=2))  # type: ignore[arg-type]
def compact(
    sessions: Sessions = None, levels: Levels = None, delay_minutes: Delay = None, force: Force = False
) -> CompactReport:
    """Write every summary that is pending."""
    plan = plan_compact(sessions, levels, delay_minutes, force)
    total = len(plan.batches)
    futures = [
        compact_sessions.submit(list(batch), levels, delay_minutes, force, number, total)
        for number, batch in enumerate(plan.batches, 1)
    ]
    report = reduce(CompactReport.__add__, (future.result() for future in futures), CompactReport())
    publish("compact", report)
    return report
