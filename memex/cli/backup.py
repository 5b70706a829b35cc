"""`memex backup` and `memex restore`: a home in one file or folder, and back; and two homes made one."""

from pathlib import Path
from typing import Annotated

import typer

from memex.cli.app import app
from memex.cli.output import Json, note, print_json, print_table

EVERY = 1000
"""Sources between two notes on how far it is."""


@app.command()
def backup(
    target: Annotated[
        Path, typer.Argument(help="A file (*.tar.zst), or a folder: there only what is new is written the next time.")
    ],
    as_json: Json = False,
) -> None:
    """Keep the archive, what you did, and all summaries and memories in one file or folder."""
    from memex.setup import open_memex

    report = open_memex().backup.run(target, lambda done: None if done % EVERY else note(f"{done:,} sources"))
    for path in report.lost:
        note(f"not in the archive, and so not in the backup: {path}")
    if as_json:
        print_json(report)
        return
    counts = {"sources": report.sources, **{table.replace("_", " "): count for table, count in report.rows.items()}}
    print_table(["in the backup", ""], [*counts.items(), ("bytes written", report.written)], right=[""])


@app.command()
def restore(
    source: Annotated[Path, typer.Argument(help="A file or folder that `memex backup` made.")],
    as_json: Json = False,
) -> None:
    """Bring a backup into this home. What is here stays: two homes in one lose nothing and double nothing."""
    from memex.search.refresh import refresh_raw
    from memex.setup import open_memex

    memex = open_memex()
    report = memex.restore.run(source, lambda done: note(f"{done} sessions"))
    refresh_raw(memex.lake, memex.raw_index)
    for problem in report.unreadable:
        note(f"cannot read {problem}")
    if as_json:
        print_json(report)
    elif report.empty:
        note("nothing new: all of it was here")
    else:
        counts = {
            "sources": report.sources,
            "sources that had more": report.changed,
            "acts": report.acts,
            **{table.replace("_", " "): count for table, count in report.rows.items() if count},
        }
        print_table(["restored", ""], list(counts.items()), right=[""])
        note("`memex run` brings summaries and search by meaning up to date")
