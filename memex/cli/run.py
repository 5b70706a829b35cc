"""`memex run`: everything that is pending, words first, then meaning."""

import os
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memex.cli.app import app
from memex.cli.output import note, print_table

if TYPE_CHECKING:
    from memex.cli.server import TemporaryServer
    from memex.setup import Memex


@app.command()
def run(
    sample: Annotated[
        bool,
        typer.Option("--sample-if-empty", help="Use the sample logs, in a home of their own, when there are none."),
    ] = False,
) -> None:
    """Read, summarise and index everything new, as the Prefect flow `nightly`; vectors and memories follow."""
    from memex.setup import open_memex

    memex = open_memex()
    if sample and not _has_logs(memex):
        memex = _with_sample(memex)
    started = time.monotonic()
    if not _pending(memex):
        note("nothing to do")
        return
    from memex.cli.server import TemporaryServer

    standing = os.environ.get("PREFECT_API_URL")
    timeout = memex.settings.schedule.server_timeout_seconds
    with nullcontext() if standing else TemporaryServer(memex.home / "cache", timeout) as server:
        report, waited = _run_flow(server)
        _print_summary(memex, report, waited, time.monotonic() - started)
        _fill_vectors(memex)


def _has_logs(memex: "Memex") -> bool:
    return next(memex.ingest.discover(), None) is not None or next(memex.archive.sources(), None) is not None


def _with_sample(memex: "Memex") -> "Memex":
    """Turn to the sample logs, kept apart from the real home."""
    from memex.settings import load_settings
    from memex.setup import open_memex, sample_folder

    home = memex.home.with_name(memex.home.name + "-sample")
    note(f"no logs of Claude Code, Codex or Gemini CLI found: using the sample logs, in {home}")
    os.environ["MEMEX_HOME"] = str(home)
    os.environ["CLAUDE_CONFIG_DIR"] = str(sample_folder())
    return open_memex(load_settings())


def _pending(memex: "Memex") -> bool:
    """Plan every step; say what there is to do."""
    if memex.forget.finish():
        note("finished what was being forgotten when it was interrupted")
    plan = memex.ingest.plan()
    for problem in plan.unreadable:
        note(f"cannot read {problem}")
    if not plan.empty:
        note(f"to read: {plan.sessions} sessions" + (f", {len(plan.gone)} sources gone" if plan.gone else ""))
        return True
    pending = memex.compact.plan()
    if not pending.empty:
        note(
            "to write: " + (", ".join(f"{count} {level}" for level, count in pending.pending.items()) or "replacements")
        )
        return True
    stale = memex.stale_indexes()
    if stale:
        note("to index: " + ", ".join(stale))
    talks = sum(memex.maintain.pending().values())
    if talks:
        note(f"to remember: {talks:,} talks")
    unfinished = memex.maintain.is_unfinished
    if unfinished:
        note("to finish: memories")
    return bool(stale or talks or unfinished)


def _run_flow(server: "TemporaryServer | None") -> tuple[Any, float]:
    """Import the flow while the server starts, wait for it, run. Return the report and the seconds waited."""
    import logging

    note("starting Prefect …" if server else f"running on {os.environ['PREFECT_API_URL']}")
    from flows.nightly import nightly

    waited = 0.0
    if server:
        before = time.monotonic()
        server.wait(lambda seconds: note(f"waiting for Prefect, {seconds:.0f} s so far …"))
        waited = time.monotonic() - before
        note("Prefect is up")
    progress = logging.getLogger("memex.progress")
    progress.setLevel(logging.INFO)
    progress.propagate = False
    progress.addHandler(logging.StreamHandler())
    return nightly(optimize=False, vectors=False, memories=False), waited


def _fill_vectors(memex: "Memex") -> None:
    """Do what takes minutes on a first run once there is something to search, and tidy the lake after it."""
    from flows.index import index
    from flows.maintain import maintain

    missing = memex.count_missing_vectors()
    if missing:
        note(f"everything is searchable by words; now {missing:,} vectors for search by meaning, newest first")
        note("Ctrl-C is safe: the next run goes on from there")
    started = time.monotonic()
    report = index(optimize=True)
    if report.vectors:
        note(f"{report.vectors:,} vectors written in {time.monotonic() - started:.0f} s")
    derived = maintain().steps["derive"].derived
    if derived.new:
        note(f"{derived.new:,} memories of {derived.talks:,} talks: memex memories lists them")


def _print_summary(memex: "Memex", report: Any, waited: float, total: float) -> None:
    from memex.store.views import token_counts

    lake = memex.lake
    tokens = token_counts(lake)
    print_table(
        ["", "in memory", "this run"],
        [
            ("sessions", lake.count("sessions"), report.ingest.sessions),
            ("talks", lake.count("talks", "NOT superseded"), report.ingest.talks),
            ("messages", lake.count("messages"), report.ingest.messages),
            ("tool calls", lake.count("tool_calls"), report.ingest.tool_calls),
            (
                "observations (L1)",
                lake.count("observations", "served"),
                report.compact.made.get("observations", 0),
            ),
            (
                "talk summaries (L2)",
                lake.count("talk_summaries", "served"),
                report.compact.made.get("talks", 0),
            ),
            (
                "session summaries (L3)",
                lake.count("session_summaries", "served"),
                report.compact.made.get("sessions", 0),
            ),
            ("failed", lake.count("failures"), report.compact.failed),
            ("unreadable lines", report.ingest.bad_lines, report.ingest.bad_lines),
        ],
        right=["in memory", "this run"],
    )
    print_table(
        ["tokens (estimated)", "raw", "summarised", "share"],
        [(level, raw, small, f"{small / raw:.1%}" if raw else "-") for level, (raw, small) in tokens.items()],
        right=["raw", "summarised", "share"],
    )
    steps = [(name, f"{seconds:.1f} s") for name, seconds in report.seconds.items()]
    rest = total - waited - sum(report.seconds.values())
    print_table(
        ["step", "time"],
        [*steps, ("waiting for Prefect", f"{waited:.1f} s"), ("starting and planning", f"{rest:.1f} s")],
        right=["time"],
    )
    _suggest(memex)


def _suggest(memex: "Memex") -> None:
    from memex.search.suggest import suggestions

    command = _command_name()
    found = suggestions(memex.lake, memex.raw_index)
    if found:
        print("Try:", flush=True)
    for query in found:
        print(f"  {_home_prefix(memex)}{command} search {query}", flush=True)


def _home_prefix(memex: "Memex") -> str:
    from memex.settings import load_settings

    usual = load_settings({k: v for k, v in os.environ.items() if k != "MEMEX_HOME"}).home
    return "" if memex.home == usual else f"MEMEX_HOME={memex.home} "


def _command_name() -> str:
    import shutil
    import sys

    called = Path(sys.argv[0])
    on_path = shutil.which("memex")
    if on_path and Path(on_path).resolve() == called.resolve():
        return "memex"
    return str(called.relative_to(Path.cwd())) if called.is_relative_to(Path.cwd()) else str(called)
