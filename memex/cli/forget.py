"""`memex forget`: a session, a project or a text, everywhere and for good."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from memex.cli.app import app
from memex.cli.output import Json, note, print_json, print_table

if TYPE_CHECKING:
    from memex.forget.run import ForgetPlan, Reached

SHOWN = 20
"""Sessions and files that are listed."""


@app.command()
def forget(
    session: Annotated[str, typer.Argument(help="A session id, or its beginning; its subagents go with it.")] = "",
    project: Annotated[str, typer.Option(help="All sessions of a project: its name, or its id.")] = "",
    matching: Annotated[
        str, typer.Option(help="A regular expression, as for a leaked secret: what it matches is overwritten.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Remove something from memory, older versions and indexes included, and keep it from coming back.

    The CLI's own logs are not touched.
    """
    from memex.forget.target import BadPattern, Target
    from memex.setup import open_memex

    if sum(map(bool, (session, project, matching))) != 1:
        raise typer.BadParameter("name one: a session, --project, or --matching")
    memex = open_memex()
    verb, target = memex.forget, Target(session, project, matching)
    try:
        if not dry_run:
            verb.finish()
        plan = verb.plan(target)
        if dry_run or plan.empty:
            _show(plan, as_json, "would go")
            return
        if not yes:
            _show(plan, False, "will go")
            _ask()
        _show(verb.run(target), as_json, "forgotten")
    except BadPattern as error:
        raise typer.BadParameter(str(error)) from error


def _ask() -> None:
    if not sys.stdin.isatty():
        raise typer.BadParameter("there is nobody to ask: add --yes, or --dry-run to see what would go")
    typer.confirm("This cannot be undone. Forget it?", abort=True, err=True)


def _show(plan: "ForgetPlan", as_json: bool, what: str) -> None:
    if as_json:
        print_json(plan)
        return
    if plan.empty:
        note("nothing to forget")
        return
    print_table(
        ["session", "kind", "project", what],
        [[one.session_id, one.kind, one.project, _share(one)] for one in plan.sessions[:SHOWN]],
    )
    if len(plan.sessions) > SHOWN:
        note(f"… and {len(plan.sessions) - SHOWN} sessions more")
    counts = {
        **({"different texts": plan.texts} if plan.texts else {}),
        "archived files": plan.files,
        "archived bytes": plan.bytes,
        "lines in files that stay": plan.lines,
        **{table.replace("_", " "): count for table, count in plan.rows.items()},
    }
    print_table([what, ""], [[name, count] for name, count in counts.items()], right=[""])
    for problem in plan.damaged:
        note(f"cannot look into it: {problem}")
    if plan.on_disk:
        note(f"{len(plan.on_disk)} files of your CLIs still hold it, and are yours to delete:")
        for path in plan.on_disk[:SHOWN]:
            note(f"  {path}")


def _share(one: "Reached") -> str:
    return "all of it" if one.lines is None else f"{one.lines:,} lines; the rest stays"
