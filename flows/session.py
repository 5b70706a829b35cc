"""One session again."""

from typing import Annotated

from prefect import flow
from pydantic import Field

from flows.compact import Force, Levels, compact
from flows.index import index
from memex.compact.run import CompactReport
from tasks.ingest import read_sessions, resolve_session


@flow(name="session")
def session(
    session_id: Annotated[str, Field(min_length=1, description="The session, such as claude:1b2c…, or its beginning.")],
    levels: Levels = None,
    force: Force = True,
) -> CompactReport:
    """Read one session again and remake its summaries, and no others."""
    found = resolve_session(session_id)
    read_sessions([found], 1, 1)
    report = compact.fn(sessions=[found], levels=levels, force=force)
    index.fn()
    return report
