"""`memex search`."""

from typing import TYPE_CHECKING, Annotated

import typer

from memex.cli.app import app
from memex.cli.output import Json, local_time, note, print_json

if TYPE_CHECKING:
    from memex.model import Hit

EVIDENCE_WIDTH = 140
"""Characters shown of what is found at other levels of the same session."""


@app.command()
def search(
    query: Annotated[list[str], typer.Argument(help="What to look for; any text is legal.")],
    level: Annotated[str, typer.Option(help="raw, observations, talks, sessions or all.")] = "raw",
    project: Annotated[str, typer.Option(help="Part of a project's name or id.")] = "",
    session: Annotated[str, typer.Option(help="Beginning of a session id.")] = "",
    source: Annotated[str, typer.Option(help="claude, codex or gemini.")] = "",
    role: Annotated[str, typer.Option(help="user, assistant, tool or system; raw level only.")] = "",
    kind: Annotated[str, typer.Option("--type", help="A tool's name, or the type of an observation.")] = "",
    file: Annotated[str, typer.Option(help="Part of a path that the text must name.")] = "",
    since: Annotated[str, typer.Option(help="A date, or an age such as 3d, 12h, 2w.")] = "",
    until: Annotated[str, typer.Option(help="A date, or an age.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, max=1000, help="How many hits.")] = None,
    as_json: Json = False,
) -> None:
    """Search everything that was ever said or done.

    The query may say the same as the options, and more: "a phrase" -without project:x source:codex role:user
    type:bash file:login.py since:3d until:2026-03-01 session:5d0c.
    """
    from datetime import datetime

    from memex.search.query import LEVELS, Filters, ask
    from memex.setup import open_memex

    if level not in LEVELS:
        raise typer.BadParameter(f"{level!r} is no level: use {', '.join(LEVELS)}", param_hint="--level")
    given = Filters((), project, session, role, source, kind, file)
    try:
        asked = ask(" ".join(query), datetime.now().astimezone(), given, since, until)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    memex = open_memex()
    found = memex.search.run(asked, level, limit or memex.settings.search.limit)  # type: ignore[arg-type]
    if as_json:
        print_json(found)
        return
    for remark in found.notes:
        note(f"note: {remark}")
    if not found.hits:
        note("nothing found" + ("" if memex.raw_index.count() else ": nothing is indexed yet, memex run does it"))
    for number, hit in enumerate(found.hits, 1):
        _print_hit(number, hit, asked.text)


def _print_hit(number: int, hit: "Hit", text: str) -> None:
    from memex.search.snippet import snippet

    where = f"{hit.level}{' ' + hit.role if hit.role else ''}"
    place = f"{hit.project}  {hit.session_id} #{hit.prompt_number}"
    near = "" if hit.similarity is None else f" similarity {hit.similarity:.2f}"
    print(f"{number}. {local_time(hit.ts)}  {place}  [{where}] {hit.score:.3f}{near}")
    print(f"   {snippet(hit.content, text)}")
    for other in hit.evidence:
        print(f"   #{other.prompt_number} [{other.level}] {snippet(other.content, text, EVIDENCE_WIDTH)}")
