"""`memex projects`: what was worked on, and two that are one."""

from typing import Annotated

import typer

from memex.cli.app import app
from memex.cli.output import Json, note, print_json, print_table

SHOWN = 3
"""Folders of a project that are listed."""

projects = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
app.add_typer(projects, name="projects")


@projects.callback(invoke_without_command=True)
def show(context: typer.Context, as_json: Json = False) -> None:
    """List projects, the one that was worked on last first.

    A project is a git repository, by its remote, else by its folder: clones and worktrees are one. A folder in
    no repository is a project of its own.
    """
    if context.invoked_subcommand:
        return
    from memex.setup import open_memex
    from memex.store.views import list_projects

    rows = list_projects(open_memex().lake)
    if as_json:
        print_json(rows)
        return
    columns = ["name", "id", "sessions", "talks", "first", "last", "folders"]
    table = [[_folders(row[name]) if name == "folders" else row[name] for name in columns] for row in rows]
    print_table(columns, table, right=["sessions", "talks"])


@projects.command()
def merge(
    source: Annotated[str, typer.Argument(help="The project that ends: its name, its id, or one of its folders.")],
    target: Annotated[str, typer.Argument(help="The project that it becomes part of.")],
    as_json: Json = False,
) -> None:
    """Make one project of two.

    All sessions of SOURCE, their summaries and memories belong to TARGET from now on, and so does everything
    that is read later from SOURCE's folders or repository. Nothing is deleted and no summary is made again. It
    holds after a rebuild and travels with backups. There is no command that takes it back.
    """
    from memex.search.refresh import refresh_raw, refresh_summaries
    from memex.setup import open_memex
    from memex.store.views import find_project

    memex = open_memex()
    memex.forget.finish()
    old, new = find_project(memex.lake, source), find_project(memex.lake, target)
    if old == new:
        raise typer.BadParameter(f"{source!r} and {target!r} are the same project: {new}")
    moved = memex.ingest.merge_projects(old, new)
    refresh_raw(memex.lake, memex.raw_index)
    refresh_summaries(memex.lake, memex.summary_index)
    if as_json:
        print_json({"source": old, "target": new, "sessions": moved})
    else:
        note(f"{moved} sessions of {old} are part of {new} now")


def _folders(folders: list[str]) -> str:
    more = f"\n… {len(folders) - SHOWN} more" if len(folders) > SHOWN else ""
    return "\n".join(folders[:SHOWN]) + more
