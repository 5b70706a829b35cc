"""`memex ingest` and `memex index`: the steps of `memex run`, by hand and without Prefect."""

from typing import Annotated

import typer

from memex.cli.app import app
from memex.cli.output import Json, note, print_json, print_table


@app.command()
def ingest(as_json: Json = False) -> None:
    """Read new and changed logs. What is read is findable at once."""
    from memex.search.refresh import refresh_raw
    from memex.setup import open_memex

    memex = open_memex()
    memex.forget.finish()
    plan = memex.ingest.plan()
    several = len(plan.batches) > 1
    report = memex.ingest.run(plan, lambda read: note(f"read {read} of {plan.sessions} sessions") if several else None)
    refresh_raw(memex.lake, memex.raw_index)
    for problem in report.unreadable:
        note(f"cannot read {problem}")
    if as_json:
        print_json(report)
    elif report.sessions == report.gone == 0:
        note("nothing new")
    else:
        columns = ["sessions", "files", "bytes_read", "talks", "messages", "tool_calls", "bad_lines", "gone"]
        print_table([c.replace("_", " ") for c in columns], [[getattr(report, c) for c in columns]])


@app.command()
def index(
    whole: Annotated[bool, typer.Option(help="Build the full text anew.")] = False,
    optimize: Annotated[bool, typer.Option(help="Compact the tables of the lake.")] = False,
    as_json: Json = False,
) -> None:
    """Bring full text and vectors up to date."""
    import sys

    from memex.search.refresh import refresh_raw, refresh_summaries
    from memex.search.vectors import fill_vectors
    from memex.setup import open_memex
    from memex.store.schemas import TABLES

    def tell(done: int, total: int, rate: float) -> None:
        left = (total - done) / max(rate, 1e-9) / 60
        print(
            f"\rvectors: {done} of {total}, {rate:.1f} a second, {left:.1f} min left  ",
            end="",
            file=sys.stderr,
            flush=True,
        )

    memex = open_memex()
    report = {
        "raw": refresh_raw(memex.lake, memex.raw_index, whole),
        "summaries": refresh_summaries(memex.lake, memex.summary_index, whole),
        "vectors": 0,
    }
    if memex.embedder:
        from memex.search.calibration import refresh_calibrations

        report["vectors"] = fill_vectors(memex.lake, memex.embedder, None, tell, memex.embedded_levels).embedded
        refresh_calibrations(memex.lake, memex.embedder, memex.calibrations)
    if report["vectors"]:
        note("")
    for table in TABLES if optimize else ():
        memex.lake.optimize(table)
    if as_json:
        print_json(report)
    else:
        print_table(list(report), [list(report.values())])
