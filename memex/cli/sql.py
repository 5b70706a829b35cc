"""`memex sql`: DuckDB over the tables of the lake, read-only."""

from typing import Annotated

import typer

from memex.cli.app import app
from memex.cli.output import Json, print_json, print_table


@app.command()
def sql(
    query: Annotated[str, typer.Argument(help="A SELECT over the lake's tables, such as: select count(*) from talks")],
    as_json: Json = False,
) -> None:
    """Query the lake with SQL. Tables: sessions, talks, messages, tool_calls, observations, talk_summaries, …"""
    from memex.setup import open_memex
    from memex.store.sql import query as run

    columns, rows = run(open_memex().lake, query)
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_table(columns, [[str(value) for value in row] for row in rows])
