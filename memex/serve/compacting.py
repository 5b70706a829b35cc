"""Routes that have summaries made, and tell how far that is."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from memex.errors import ServerError
from memex.llm.base import SummaryLevel
from memex.serve.asked import Home
from memex.serve.prefect import PrefectApi
from memex.store.views import find_session

compacting = APIRouter(prefix="/api/compact")
FLOWS = ("nightly", "compact", "session")


class Wanted(BaseModel):
    """What is to be made: these levels, or those that are on; with `force` also where nothing changed."""

    model_config = ConfigDict(extra="forbid")

    levels: list[SummaryLevel] | None = None
    force: bool = False
    delay_minutes: Annotated[float, Field(ge=0)] | None = None


class WantedOfMany(Wanted):
    """The same for some sessions, by id or its beginning, or for all."""

    sessions: Annotated[list[str], Field(max_length=1000)] | None = None


class Started(BaseModel):
    """The run that was asked for; `follow` tells how far it is."""

    run_id: str
    deployment: str
    follow: str


def _started(request: Request, deployment: str, parameters: dict[str, Any]) -> Started:
    run_id = _prefect(request).start(deployment, parameters)
    return Started(run_id=run_id, deployment=deployment, follow=f"/api/compact/status?run={run_id}")


def _prefect(request: Request) -> PrefectApi:
    server: PrefectApi = request.app.state.prefect
    return server


@compacting.post("/trigger", status_code=202)
def trigger(memex: Home, request: Request, wanted: WantedOfMany | None = None) -> Started:
    """Start a run that writes every summary that is pending; return its id at once."""
    given = (wanted or WantedOfMany()).model_dump()
    if given["sessions"] is not None:
        given["sessions"] = [find_session(memex.lake, name) for name in given["sessions"]]
    return _started(request, "compact/compact", given)


@compacting.post("/session/{name}", status_code=202)
def one_session(memex: Home, request: Request, name: str, wanted: Wanted | None = None) -> Started:
    """Start a run that reads one session again and writes its summaries; return its id at once."""
    found = find_session(memex.lake, name)
    return _started(request, "session/session", {"session_id": found, **(wanted or Wanted()).model_dump()})


@compacting.get("/status")
def status(
    memex: Home, request: Request, run: UUID | None = None, limit: Annotated[int, Query(ge=1, le=100)] = 10
) -> dict[str, Any]:
    """Count what is pending by level, and list the latest runs; with `run`, only that run and its progress."""
    if run is not None:
        return {"run": _prefect(request).run(str(run))}
    plan = memex.compact.plan()
    known: dict[str, Any] = {"pending": plan.pending, "why": plan.reasons, "failures": memex.lake.count("failures")}
    try:
        return known | {"runs": _prefect(request).recent(FLOWS, limit)}
    except ServerError as error:
        return known | {"runs": [], "note": f"{error}: {error.hint}"}
