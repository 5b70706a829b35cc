"""The graph of memories, kept small and true."""

from functools import reduce

from prefect import flow
from pydantic import BaseModel

from flows.report import publish
from memex.maintain.run import STEPS, StepName, StepReport
from tasks.maintain import maintain_projects, plan_maintain


class MaintainReport(BaseModel):
    """What each step did, and what the gate said about each project."""

    steps: dict[str, StepReport]


@flow(name="maintain")
def maintain(
    projects: list[str] | None = None, steps: list[StepName] | None = None, force: bool = False
) -> MaintainReport:
    """Make memories of new talks, join those that say the same, fold old ones, roll up digests, put some to sleep.

    Args:
        projects: Project ids, "" for what holds in all of them; none: all projects.
        steps: Steps to do: derive, gate, consolidate, compress, rollup, sleep, index; none: all.
        force: Do what is not due yet, as far as it is possible.
    """
    batches = plan_maintain(projects)
    reports: dict[str, StepReport] = {}
    for step in [name for name in STEPS if not steps or name in steps]:
        done = [maintain_projects(step, batch, force, n, len(batches)) for n, batch in enumerate(batches, 1)]
        reports[step] = reduce(StepReport.__add__, done, StepReport(step))
    report = MaintainReport(steps=reports)
    publish("maintain", report)
    return report
