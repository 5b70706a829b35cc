"""One session again."""

from typing import Annotated

from prefect import flow
from pydantic import Field

from flows.compact import Minutes, compact
from flows.index import index
from memex.compact.run import CompactReport
from memex.llm.base import SummaryLevel
from tasks.ingest import read_sessions, resolve_session


@flow(name="session")
def session(
    session_id: Annotated[str, Field(min_length=1)],
    levels: list[SummaryLevel] | None = None,
    force: bool = True,
    delay_minutes: Minutes | None = None,
) -> CompactReport:
    """Read one session again and remake its summaries, and no others.

    Args:
        session_id: The session, such as claude:1b2c…, or the beginning of its id.
        levels: Levels to make: observations, talks, sessions; none: those that are switched on.
        force: Make the summaries again even where nothing changed.
        delay_minutes: Take a session that ended less than so many minutes ago for unfinished; none: as configured.
    """
    found = resolve_session(session_id)
    read_sessions([found], 1, 1)
    report = compact.fn(sessions=[found], levels=levels, delay_minutes=delay_minutes, force=force)
    index.fn()
    return report
