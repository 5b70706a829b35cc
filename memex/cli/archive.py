"""`memex verify` and `memex rebuild`: the archive proved, and L0 made anew from it."""

from typing import Annotated

import typer

from memex.cli.app import app
from memex.cli.output import Json, note, print_json, print_table


@app.command()
def verify(
    disk: Annotated[bool, typer.Option(help="Compare with the files that are still on disk, too.")] = False,
    as_json: Json = False,
) -> None:
    """Prove that everything kept decodes to the bytes that were read."""
    from memex.errors import DamagedArchive
    from memex.setup import open_memex
    from memex.sources.verify import verify as prove

    report = prove(open_memex().archive, disk)
    if as_json:
        print_json(report)
    else:
        columns = ["sources", "generations", "chunks", "bytes", "on_disk"]
        print_table([c.replace("_", " ") for c in columns], [[getattr(report, c) for c in columns]])
        for path in report.differs:
            note(f"differs from its file, though size and time are the same: {path}")
    if report.damaged:
        listed = "\n  ".join(report.damaged)
        raise DamagedArchive(
            f"{len(report.damaged)} of {report.sources} sources are damaged:\n  {listed}",
            "restore them from a backup; a log that is still on disk is read again once its source is removed",
        )


@app.command()
def rebuild(as_json: Json = False) -> None:
    """Make sessions, talks, messages and calls anew from the archive alone. Summaries stay."""
    from memex.search.refresh import refresh_raw
    from memex.setup import open_memex

    memex = open_memex()
    memex.forget.finish()
    report = memex.ingest.rebuild(lambda done: note(f"{done} sessions"))
    refresh_raw(memex.lake, memex.raw_index)
    if as_json:
        print_json(report)
    else:
        columns = ["sessions", "files", "talks", "messages", "tool_calls", "bad_lines"]
        print_table([c.replace("_", " ") for c in columns], [[getattr(report, c) for c in columns]])
