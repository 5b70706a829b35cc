"""`memex sessions`, `memex show` and `memex timeline`."""

from typing import Annotated, Any

import typer

from memex.cli.app import app
from memex.cli.output import Json, local_time, print_json, print_table

LEVELS = ("raw", "observations", "talks", "session")


@app.command()
def sessions(
    project: Annotated[str, typer.Option(help="Part of a project's name or id.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="How many, newest first.")] = 30,
    as_json: Json = False,
) -> None:
    """List sessions, newest first."""
    from memex.setup import open_memex
    from memex.store.views import list_sessions

    rows = list_sessions(open_memex().lake, project, limit)
    if as_json:
        print_json(rows)
        return
    columns = ["id", "project", "kind", "ended_at", "talks", "tool_calls", "title"]
    print_table(
        columns,
        [[r["title"][:80] if c == "title" else r[c] for c in columns] for r in rows],
        right=["talks", "tool_calls"],
    )


@app.command()
def show(
    session: Annotated[str, typer.Argument(help="A session id, or its beginning.")],
    level: Annotated[str, typer.Option(help="raw, observations, talks or session.")] = "talks",
    as_json: Json = False,
) -> None:
    """Show a session at one level."""
    from memex.setup import open_memex
    from memex.store.views import find_session, show_session

    if level not in LEVELS:
        raise typer.BadParameter(f"{level!r} is no level: use {', '.join(LEVELS)}", param_hint="--level")
    lake = open_memex().lake
    found = show_session(lake, find_session(lake, session), level)
    if as_json:
        print_json(found)
        return
    about = found["session"]
    print(f"{about['id']}  {about['project']}  {local_time(about['started_at'])} to {local_time(about['ended_at'])}")
    print(f"{about['title']}\n")
    for row in found["rows"]:
        _PRINTERS[level](row)
    if not found["rows"]:
        print("nothing at this level (memex compact makes summaries)")


@app.command()
def timeline(
    name: Annotated[str, typer.Argument(metavar="ID", help="A message, call or observation; or SESSION#PROMPT.")],
    before: Annotated[int, typer.Option(min=0, help="How many entries before it.")] = 5,
    after: Annotated[int, typer.Option(min=0, help="How many entries after it.")] = 5,
    as_json: Json = False,
) -> None:
    """Show what was said and done around one place."""
    from memex.setup import open_memex
    from memex.store.timeline import show_around

    found = show_around(open_memex().lake, name, before, after)
    if as_json:
        print_json(found)
        return
    print(f"{found['session_id']}\n")
    for row in found["rows"]:
        _print_raw(row, ">>>" if row["id"] == found["anchor"] else "---")


def _print_raw(row: dict[str, Any], mark: str = "---") -> None:
    old = " (superseded)" if row["superseded"] else ""
    print(f"{mark} #{row['prompt_number']} {row['role']} {row['kind']} {local_time(row['ts'])}{old}\n{row['text']}\n")


def _print_observation(row: dict[str, Any]) -> None:
    print(f"#{row['prompt_number']} [{row['type']}] {row['title']}")
    for fact in row["facts"] or ():
        print(f"    {fact}")


def _print_talk(row: dict[str, Any]) -> None:
    print(f"#{row['prompt_number']} {row['user_request']}\n    {row['summary']}\n    => {row['completed']}")
    if row["files_involved"]:
        print(f"    files: {', '.join(row['files_involved'])}")
    print()


def _print_session(row: dict[str, Any]) -> None:
    print(row["summary"])
    for point in row["key_points"] or ():
        print(f"  - {point}")
    print(f"technologies: {', '.join(row['technologies'] or ()) or '-'}")
    print(f"files: {', '.join(row['files_involved'] or ()) or '-'}")


_PRINTERS = {
    "raw": _print_raw,
    "observations": _print_observation,
    "talks": _print_talk,
    "session": _print_session,
}
