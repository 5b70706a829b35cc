"""`memex maintain`, `memex sleep`, `memex undo`: keep the graph of memories small, and take that back."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memex.cli.app import app
from memex.cli.output import Json, local_time, note, print_json, print_table

if TYPE_CHECKING:
    from memex.maintain.run import StepReport
    from memex.setup import Memex

SHOWN = 30
"""Units that are listed."""

Project = Annotated[list[str] | None, typer.Option("--project", help="Only this project: its name, id or folder.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")]


@app.command()
def maintain(
    project: Project = None,
    step: Annotated[
        list[str] | None,
        typer.Option(
            "--step", help="derive, gate, consolidate, compress, rollup, sleep or index; else all, in this order."
        ),
    ] = None,
    dry_run: DryRun = False,
    force: Annotated[bool, typer.Option("--force", help="Do what is not due yet, as far as it is possible.")] = False,
    as_json: Json = False,
) -> None:
    """Make memories of new talks, join those that say the same, fold old ones, roll up digests."""
    from memex.maintain.run import STEPS
    from memex.setup import open_memex

    unknown = sorted(set(step or ()) - set(STEPS))
    if unknown:
        raise typer.BadParameter(f"no step is called {unknown[0]}: there are {', '.join(STEPS)}")
    memex = open_memex()
    if not dry_run:
        memex.forget.finish()
    verb, projects = memex.maintain, project_ids(memex, project)
    scopes = verb.scopes(projects)
    reports = [verb.step(name, scopes, force, dry_run) for name in STEPS if not step or name in step]
    _show(reports, dry_run, as_json)


@app.command()
def sleep(
    horizon: Annotated[
        str, typer.Option(help="How long a memory of importance 5 is kept that is never recalled, as 90d or 12h.")
    ] = "",
    project: Project = None,
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Even when more than half would sleep.")] = False,
    as_json: Json = False,
) -> None:
    """Archive memories that are of little use; nothing is deleted, and `memex undo` wakes them again."""
    from memex.maintain.sleep import threshold_for
    from memex.setup import open_memex

    memex = open_memex()
    if not dry_run:
        memex.forget.finish()
    verb = memex.maintain
    threshold = threshold_for(_span(horizon)) if horizon else verb.settings.forget_threshold
    report = verb.step("sleep", verb.scopes(project_ids(memex, project)), False, dry_run, threshold, yes)
    if not as_json:
        note(f"threshold {threshold:.4f}")
    _show([report], dry_run, as_json)


@app.command()
def undo(
    unit: Annotated[str, typer.Argument(help="The id of a unit, or its beginning; else the latest.")] = "",
    project: Project = None,
    listed: Annotated[bool, typer.Option("--list", help="List what can be taken back, and change nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Take back what maintenance did last; it is not done again by itself."""
    from memex.setup import open_memex

    memex = open_memex()
    verb, projects = memex.maintain, project_ids(memex, project)
    if listed:
        _list_units(verb.journal.heads("undoable AND state = 'done'").to_dicts(), projects, as_json)
        return
    entry = verb.undo(unit, projects)
    if as_json:
        print_json({"id": entry.id, "step": entry.unit.step, "why": entry.unit.why, "rows": len(entry.unit.changes)})
    else:
        note(f"taken back: {entry.unit.step}, {entry.unit.why} ({len(entry.unit.changes)} rows)")


def project_ids(memex: "Memex", names: list[str] | None) -> list[str] | None:
    """Find the ids of projects; None for all."""
    from memex.store.views import find_project

    return [find_project(memex.lake, name) for name in names] if names else None


def _list_units(heads: list[dict[str, Any]], projects: list[str] | None, as_json: bool) -> None:
    found = [h for h in heads if projects is None or h["project_id"] in projects][::-1]
    if as_json:
        print_json([{key: h[key] for key in ("id", "step", "why", "project_id", "at")} for h in found])
        return
    rows = [[h["id"][:10], local_time(h["at"]), h["step"], h["project_id"] or "user", h["why"]] for h in found[:SHOWN]]
    print_table(["unit", "when", "step", "project", "what"], rows)


def _show(reports: "list[StepReport]", dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_json([_values(report) for report in reports])
        return
    would = "would " if dry_run else ""
    for report in reports:
        derived = report.derived
        parts = {
            "talks": derived.talks, "new": derived.new, "changed": derived.changed, "retired": derived.retired,
            "units": report.units, "rows": report.changed, "vectors": report.embedded,
        }  # fmt: skip
        done = ", ".join(f"{count:,} {name}" for name, count in parts.items() if count)
        note(f"{would}{report.step}: {done or 'nothing to do'}")
        for name, verdict in report.verdicts if report.step == "gate" else ():
            note(f"  {name}: {'yes' if verdict.run else 'no'}, {verdict.why} (best {verdict.score:.2f})")
        for remark in report.notes:
            note(f"  {remark}")
    planned = [(name, unit) for report in reports for name, unit in report.planned]
    if planned:
        rows = [[unit.step, name, unit.why, len(unit.changes)] for name, unit in planned[:SHOWN]]
        print_table(["step", "project", "what", "rows"], rows, right=["rows"])
    if len(planned) > SHOWN:
        note(f"… and {len(planned) - SHOWN:,} units more")


def _values(report: "StepReport") -> dict[str, Any]:
    return {
        "step": report.step,
        "scopes": report.scopes,
        "units": report.units,
        "rows": report.changed,
        "embedded": report.embedded,
        "derived": report.derived,
        "verdicts": dict(report.verdicts),
        "notes": report.notes,
        "planned": [{"project": n, "why": u.why, "step": u.step, "members": u.members} for n, u in report.planned],
    }


def _span(text: str) -> Any:
    """Read 90d, 12h or 2w."""
    from datetime import timedelta

    units = {"h": "hours", "d": "days", "w": "weeks"}
    try:
        return timedelta(**{units[text.strip()[-1]]: float(text.strip()[:-1])})
    except (KeyError, ValueError, IndexError, OverflowError):
        raise typer.BadParameter(f"{text!r} is no time: write it as 90d, 12h or 2w") from None
