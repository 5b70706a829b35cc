"""`memex search`."""

from typing import TYPE_CHECKING, Annotated

import typer

from memex.cli.app import app
from memex.cli.output import Json, local_time, note, print_json

if TYPE_CHECKING:
    from memex.model import Hit


@app.command()
def search(
    query: Annotated[list[str], typer.Argument(help="What to look for; any text is legal.")],
    level: Annotated[str, typer.Option(help="raw, observations, talks, sessions or all.")] = "raw",
    project: Annotated[str, typer.Option(help="Part of a project's name or id.")] = "",
    session: Annotated[str, typer.Option(help="Beginning of a session id.")] = "",
    role: Annotated[str, typer.Option(help="user, assistant, tool or system; raw level only.")] = "",
    since: Annotated[str, typer.Option(help="A date, or an age such as 3d, 12h, 2w.")] = "",
    until: Annotated[str, typer.Option(help="A date, or an age.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, max=1000, help="How many hits.")] = None,
    as_json: Json = False,
) -> None:
    """Search everything that was ever said or done."""
    from datetime import datetime

    from memex.search.query import LEVELS, Filters, parse_when
    from memex.setup import open_memex

    if level not in LEVELS:
        raise typer.BadParameter(f"{level!r} is no level: use {', '.join(LEVELS)}", param_hint="--level")
    now = datetime.now().astimezone()
    try:
        start, end = (parse_when(text, now) if text else None for text in (since, until))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    memex = open_memex()
    text = " ".join(query)
    filters = Filters(project=project, session=session, role=role, since=start, until=end)
    found = memex.search.run(text, level, filters, limit or memex.settings.search.limit)  # type: ignore[arg-type]
    if as_json:
        print_json(found)
        return
    for remark in found.notes:
        note(f"note: {remark}")
    if not found.hits:
        note("nothing found" + ("" if memex.raw_index.count() else ": nothing is indexed yet, memex run does it"))
    for number, hit in enumerate(found.hits, 1):
        _print_hit(number, hit, text)


def _print_hit(number: int, hit: "Hit", text: str) -> None:
    from memex.search.snippet import snippet

    where = f"{hit.level}{' ' + hit.role if hit.role else ''}"
    place = f"{hit.project}  {hit.session_id} #{hit.prompt_number}"
    near = "" if hit.similarity is None else f" similarity {hit.similarity:.2f}"
    print(f"{number}. {local_time(hit.ts)}  {place}  [{where}] {hit.score:.3f}{near}")
    print(f"   {snippet(hit.content, text)}")
