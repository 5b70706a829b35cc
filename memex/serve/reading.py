"""Routes that read: search, sessions, memories, usage. They block, and so run in threads."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Query

from memex.maintain.views import find_memory, list_memories, show_memory
from memex.search.query import Filters, SearchLevel, ask
from memex.serve.asked import Home
from memex.store.timeline import show_around
from memex.store.views import find_project, find_session, list_projects, list_sessions, show_session

reading = APIRouter(prefix="/api")
Limit = Annotated[int, Query(ge=1, le=1000)]
Around = Annotated[int, Query(ge=0, le=1000)]


@reading.get("/search")
def search(
    memex: Home,
    query: Annotated[str, Query(description="What to look for; any text is legal.")],
    level: SearchLevel = "raw",
    project: str = "",
    session: str = "",
    source: str = "",
    role: str = "",
    type: str = "",
    file: str = "",
    since: Annotated[str, Query(description="A date, or an age such as 3d, 12h, 2w.")] = "",
    until: str = "",
    limit: Annotated[int | None, Query(ge=1, le=1000)] = None,
) -> dict[str, Any]:
    """Search everything that was ever said or done, as `memex search` does."""
    filters = Filters((), project, session, role, source, type, file)
    try:
        asked = ask(query, datetime.now().astimezone(), filters, since, until)
    except ValueError as error:
        raise HTTPException(422, str(error)) from error
    return asdict(memex.search.run(asked, level, limit or memex.settings.search.limit))


@reading.get("/projects")
def projects(memex: Home) -> list[dict[str, Any]]:
    """List projects, the one that was worked on last first."""
    return list_projects(memex.lake)


@reading.get("/sessions")
def sessions(memex: Home, project: str = "", limit: Limit = 30) -> list[dict[str, Any]]:
    """List sessions, newest first; `project` is part of a project's name or id."""
    return list_sessions(memex.lake, project, limit)


@reading.get("/sessions/{name}")
def session(memex: Home, name: str, format: Literal["summary", "raw"] = "summary") -> dict[str, Any]:
    """Read a session, named by its id or the beginning of it: its summaries, or every line."""
    found = find_session(memex.lake, name)
    if format == "raw":
        return show_session(memex.lake, found, "raw")
    talks = show_session(memex.lake, found, "talks")
    summary = show_session(memex.lake, found, "session")["rows"]
    return {"session": talks["session"], "summary": summary[0] if summary else None, "talks": talks["rows"]}


@reading.get("/sessions/{name}/summary")
def summary(memex: Home, name: str) -> dict[str, Any]:
    """Read the summary of a session; 404 where there is none yet."""
    found = show_session(memex.lake, find_session(memex.lake, name), "session")
    if not found["rows"]:
        raise HTTPException(404, f"{found['session']['id']} has no summary yet: POST /api/compact/session/… makes it")
    return {"session_id": found["session"]["id"], **found["rows"][0]}


@reading.get("/timeline/{name:path}")
def timeline(memex: Home, name: str, before: Around = 5, after: Around = 5) -> dict[str, Any]:
    """Read the entries around a message, a call, an observation, or a place such as `5d0c1f52#3` (`#` is `%23`)."""
    return show_around(memex.lake, name, before, after)


@reading.get("/memories")
def memories(
    memex: Home, project: str = "", kind: str = "", archived: bool = False, limit: Limit = 50
) -> list[dict[str, Any]]:
    """List what is remembered, the newest first; `project` is a name, an id or a folder."""
    wanted = [find_project(memex.lake, project)] if project else None
    return list_memories(memex.lake, wanted, kind, archived, limit)


@reading.get("/memories/{name}")
def memory(memex: Home, name: str) -> dict[str, Any]:
    """Read one memory: its text, its history, its edges, and the lines of the log behind it."""
    return show_memory(memex.lake, find_memory(memex.lake, name))


@reading.get("/usage")
def usage(memex: Home, days: Annotated[int, Query(ge=1, le=3650)] = 30) -> dict[str, Any]:
    """Tell what models took by day, what is left of the caps, and what summaries save."""
    return memex.usage(days)
