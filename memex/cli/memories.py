"""`memex memories`, `memex memory`, `memex remember`: look at the graph, and add to it."""

from typing import Annotated, Any

import typer

from memex.cli.app import app
from memex.cli.maintain import Project, project_ids
from memex.cli.output import Json, local_time, note, print_json, print_table


@app.command()
def memories(
    project: Project = None,
    kind: Annotated[str, typer.Option(help="event, lesson, thread, fact, preference, rule or decision.")] = "",
    archived: Annotated[bool, typer.Option("--archived", help="Those that are out of sight.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 50,
    as_json: Json = False,
) -> None:
    """List what is remembered, the newest first."""
    from memex.maintain.views import list_memories
    from memex.setup import open_memex

    memex = open_memex()
    _known_kind(kind)
    rows = list_memories(memex.lake, project_ids(memex, project), kind, archived, limit)
    if as_json:
        print_json(rows)
        return
    shown = [
        [r["id"][:10], r["kind"], r["level"], local_time(r["occurred_at"]), f"{r['importance']:.1f}", _what(r)]
        for r in rows
    ]
    print_table(["memory", "kind", "level", "when", "weight", "what"], shown, right=["level", "weight"])


@app.command()
def memory(
    name: Annotated[str, typer.Argument(help="The id of a memory, or its beginning.")], as_json: Json = False
) -> None:
    """Show one memory: what it says, what it came from down to the lines of the log, its history and its edges."""
    from memex.maintain.views import find_memory, show_memory
    from memex.setup import open_memex

    lake = open_memex().lake
    found = show_memory(lake, find_memory(lake, name))
    if as_json:
        print_json(found)
        return
    about = found["memory"]
    wanted = ("id", "kind", "level", "project_id", "importance", "access_count", "archived_reason", "valid_to")
    print_table(["", ""], [[key.replace("_", " "), about[key]] for key in wanted if about[key] not in ("", None)])
    print(f"{about['name']}\n\n{about['text']}\n", flush=True)
    _table("history", found["history"], ["field", "value", "from"])
    _table("edges", found["edges"], ["source", "relation", "target", "strength"])
    _table("went into", found["above"], ["id", "level", "name", "archived_reason"])
    _table("holds", found["children"], ["id", "level", "name", "archived_reason"])
    for source in found["sources"]:
        title = f"{source['session_id']} talk {source['prompt_number']}: {source['what']}"
        _table(title, source["lines"], ["seq", "who", "text", "offset"])


@app.command()
def remember(
    text: Annotated[str, typer.Argument(help="What is to be remembered.")],
    kind: Annotated[str, typer.Option(help="rule, preference, decision, fact, lesson or thread.")] = "rule",
    project: Annotated[str, typer.Option(help="The project it is about; else that of this folder.")] = "",
    name: Annotated[str, typer.Option(help="What it is called; of a rule or fact of one name the newest holds.")] = "",
    importance: Annotated[float | None, typer.Option(min=0, max=10, help="0 to 10.")] = None,
    as_json: Json = False,
) -> None:
    """Remember something for good: it is kept with the archive, and made again after a rebuild."""
    from memex.maintain.kinds import kinds
    from memex.setup import open_memex

    _known_kind(kind)
    if not text.strip():
        raise typer.BadParameter("there is nothing to remember")
    memex = open_memex()
    made = memex.maintain.remember(text, kind, "" if kinds()[kind].user else _project(memex, project), name, importance)
    if as_json:
        print_json({"id": made.id, "kind": made.kind, "project_id": made.project_id})
    else:
        note(f"remembered as {made.kind} {made.id[:10]}, for {made.project_id or 'all projects'}")


def _project(memex: Any, name: str) -> str:
    """Find the project that was named, or that this folder belongs to."""
    from pathlib import Path

    from memex.store.views import find_project

    return find_project(memex.lake, name or str(Path.cwd()))


def _known_kind(kind: str) -> None:
    from memex.maintain.kinds import kinds

    if kind and kind not in kinds():
        raise typer.BadParameter(f"no kind is called {kind}: there are {', '.join(kinds())}")


def _what(row: dict[str, Any]) -> str:
    from memex.text import clip_units, one_line

    ended = "(replaced) " if row["valid_to"] else ""
    why = f" [{row['archived_reason']}]" if row["archived"] else ""
    return ended + clip_units(one_line(row["text"]), 24) + why


def _table(title: str, rows: list[dict[str, Any]], columns: list[str]) -> None:
    if rows:
        print_table([c.replace("_", " ") for c in columns], [[row[c] for c in columns] for row in rows], title)
