"""Tasks of keeping memories."""

from dataclasses import replace

from prefect import task

from memex.maintain.run import StepName, StepReport
from memex.setup import open_memex
from tasks.policy import POLICY
from tasks.progress import ProgressArtifact


@task(**POLICY)
def plan_maintain(projects: list[str] | None) -> list[list[str]]:
    """List the projects that may have something to do, in batches."""
    memex = open_memex()
    memex.forget.finish()
    found, size = memex.maintain.scopes(projects), memex.settings.maintain.batch_projects
    return [found[start : start + size] for start in range(0, len(found), size)]


@task(task_run_name="{step}, batch {number} of {total}", **POLICY)
def maintain_projects(step: StepName, projects: list[str], force: bool, number: int, total: int) -> StepReport:
    """Do one step for one batch of projects."""
    progress = ProgressArtifact(f"{step}, batch {number} of {total}", len(projects))
    return replace(open_memex().maintain.step(step, projects, force, tick=progress.advance), planned=())
