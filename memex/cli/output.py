"""How commands print: tables for people, JSON for programs, notes on standard error."""

import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def print_json(value: Any) -> None:
    """Print a value as indented JSON; dataclasses, dates and paths included."""
    import orjson

    data = orjson.dumps(value, default=_plain, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)
    sys.stdout.write(data.decode() + "\n")


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "", right: Sequence[str] = ()
) -> None:
    """Print rows under column heads; columns named in `right` hold numbers."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title or None, box=SIMPLE, title_justify="left", title_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    Console(soft_wrap=False, highlight=False, markup=False).print(table)


def note(text: str) -> None:
    """Tell the reader something on standard error."""
    print(text, file=sys.stderr, flush=True)


def local_time(when: datetime | None) -> str:
    """Write a time in the reader's zone, to the minute."""
    return when.astimezone().strftime("%Y-%m-%d %H:%M") if when else "-"


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return local_time(value) if isinstance(value, datetime) else str(value)


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump()
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    return str(value)
