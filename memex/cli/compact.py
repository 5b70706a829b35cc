"""`memex compact`: pending summaries, by hand and without Prefect."""

from typing import Annotated

import typer

from memex.cli.app import app
from memex.cli.output import Json, note, print_json, print_table

LEVELS = ("observations", "talks", "sessions")


@app.command()
def compact(
    session: Annotated[list[str] | None, typer.Option(help="Only this session (may be given again).")] = None,
    level: Annotated[list[str] | None, typer.Option(help="Only this level: observations, talks or sessions.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be made, and make nothing.")] = False,
    force: Annotated[bool, typer.Option(help="Make summaries again even where nothing changed.")] = False,
    as_json: Json = False,
) -> None:
    """Write the summaries that are pending."""
    from memex.compact.run import CompactReport
    from memex.setup import open_memex
    from memex.store.views import find_session

    for name in level or ():
        if name not in LEVELS:
            raise typer.BadParameter(f"{name!r} is no level: use {', '.join(LEVELS)}")
    memex = open_memex()
    sessions = [find_session(memex.lake, name) for name in session] if session else None
    if not dry_run:
        memex.forget.finish()
    verb = memex.compact_at(level)
    plan = verb.plan(sessions, force=force)
    if dry_run:
        _show(plan.pending, as_json, f"{sum(map(len, plan.batches))} sessions: {dict(plan.reasons)}")
        return
    report = CompactReport()
    for batch in plan.batches:
        report += verb.run(batch, force=force)
    if report.failed:
        note(f"{report.failed} could not be written: memex status says why")
    _show(
        report.made,
        as_json,
        f"tokens (estimated): {report.tokens_input:,} read, {report.tokens_output:,} written",
    )


def _show(counts: object, as_json: bool, remark: str) -> None:
    values = dict(counts)  # type: ignore[call-overload]
    if as_json:
        print_json(values)
    elif not values:
        note("nothing to do")
    else:
        print_table(list(values), [list(values.values())])
        note(remark)
