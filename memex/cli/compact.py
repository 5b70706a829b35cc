"""`memex compact`: pending summaries, by hand and without Prefect."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from memex.cli.app import app
from memex.cli.output import Json, note, print_json, print_table

if TYPE_CHECKING:
    from memex.compact.run import CompactPlan
    from memex.llm.base import Price
    from memex.setup import Memex

LEVELS = ("observations", "talks", "sessions")


@app.command()
def compact(
    session: Annotated[list[str] | None, typer.Option(help="Only this session (may be given again).")] = None,
    project: Annotated[str, typer.Option(help="Only sessions of this project: its name, id or folder.")] = "",
    since: Annotated[str, typer.Option(help="Only sessions since a date, or an age such as 3d, 12h, 2w.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many of these sessions, the newest.")] = None,
    level: Annotated[list[str] | None, typer.Option(help="Only this level: observations, talks or sessions.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be made at which price.")] = False,
    force: Annotated[bool, typer.Option(help="Make summaries again even where nothing changed.")] = False,
    as_json: Json = False,
) -> None:
    """Write the summaries that are pending: new ones, and all whose model or prompt is another now.

    After a change of provider, model or prompt, this makes everything again, the newest sessions first; the old
    summaries are served until then, and kept.
    """
    from memex.compact.run import CompactReport
    from memex.setup import open_memex

    for name in level or ():
        if name not in LEVELS:
            raise typer.BadParameter(f"{name!r} is no level: use {', '.join(LEVELS)}")
    memex = open_memex()
    sessions = _chosen(memex, session, project, since, limit)
    if not dry_run:
        memex.forget.finish()
    verb = memex.compact_at(level)
    plan = verb.plan(sessions, force=force)
    if dry_run:
        _show_plan(plan, verb.price(sessions, force=force), as_json)
        return
    report = CompactReport()
    for number, batch in enumerate(plan.batches, 1):
        report += verb.run(batch, force=force)
        if report.stopped:
            break
        if len(plan.batches) > 1:
            note(f"batch {number} of {len(plan.batches)}: {dict(report.made)}")
    if report.failed:
        note(f"{report.failed} could not be written: memex status says why")
    if report.stopped:
        note(f"stopped: {report.stopped}")
    _show(
        report.made,
        as_json,
        f"tokens (estimated): {report.tokens_input:,} read, {report.tokens_output:,} written"
        + (f"; {report.cost_usd:.4f} US dollars" if report.cost_usd else ""),
    )


def _chosen(memex: "Memex", names: list[str] | None, project: str, since: str, limit: int | None) -> list[str] | None:
    """List the sessions that the options name, newest first; None for all."""
    from datetime import datetime

    from memex.search.query import parse_when
    from memex.store.views import choose_sessions, find_project, find_session

    if names:
        return [find_session(memex.lake, name) for name in names]
    if not (project or since or limit):
        return None
    try:
        start = parse_when(since, datetime.now().astimezone()) if since else None
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--since") from error
    return choose_sessions(memex.lake, find_project(memex.lake, project) if project else "", start, limit)


def _show_plan(plan: "CompactPlan", prices: Mapping[str, "Price"], as_json: bool) -> None:
    if as_json:
        print_json({**plan.pending, "prices": dict(prices)} if any(p.calls for p in prices.values()) else plan.pending)
        return
    if not plan.pending:
        note("nothing to do")
        return
    columns = ["level", "to write", "requests", "tokens in", "tokens out", "US dollars"]
    rows = [
        (name, count, price.calls, price.tokens_input, price.tokens_output, f"{price.cost_usd:.4f}")
        for name, count in plan.pending.items()
        for price in [prices[name]]
    ]
    print_table(columns, rows, right=columns[1:])
    note(f"{sum(map(len, plan.batches))} sessions: {dict(plan.reasons)}; the price is an estimate")


def _show(counts: Mapping[str, int], as_json: bool, remark: str) -> None:
    if as_json:
        print_json(dict(counts))
    elif not counts:
        note("nothing to do")
    else:
        print_table(list(counts), [list(counts.values())])
        note(remark)
