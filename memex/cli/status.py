"""`memex status`: what there is, what is pending, what failed, and why each number is what it is."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from memex.cli.app import app
from memex.cli.output import Json, print_json, print_table

if TYPE_CHECKING:
    from memex.setup import Memex
    from memex.sources.ingest import IngestPlan


@app.command()
def status(as_json: Json = False) -> None:
    """Show counts, pending work, failures, sizes and tokens."""
    from memex.setup import open_memex

    memex = open_memex()
    plan = memex.ingest.plan()
    state: dict[str, Any] = {
        "memory": _memory(memex),
        "sources": _sources(memex),
        "deleted within a week": _expiring(memex, plan),
        "records": _records(memex),
        "pending": _pending(memex, plan),
        "failures": _failures(memex),
        "unreadable lines": _bad_lines(memex),
        "size": _sizes(memex),
        "tokens": _tokens(memex),
    }
    if as_json:
        print_json(state)
        return
    for title, section in state.items():
        if isinstance(section, dict):
            print_table([title, ""], list(section.items()), right=[""])
        elif section:
            print_table(list(section[0]), [list(row.values()) for row in section], title=title)


def _memory(memex: "Memex") -> dict[str, int]:
    from memex.store.views import vector_counts

    lake = memex.lake
    counts = {
        "sessions": lake.count("sessions"),
        "of which subagents": lake.count("sessions", "kind = 'subagent'"),
        "of which without an answered talk": _silent_sessions(memex),
        "talks": lake.count("talks", "NOT superseded"),
        "of which without an answer": lake.count("talks", "NOT superseded AND NOT answered"),
        "messages": lake.count("messages"),
        "tool calls": lake.count("tool_calls"),
        "superseded messages and calls": lake.count("messages", "superseded") + lake.count("tool_calls", "superseded"),
        "observations (L1)": lake.count("observations", "served"),
        "talk summaries (L2)": lake.count("talk_summaries", "served"),
        "session summaries (L3)": lake.count("session_summaries", "served"),
        "replaced summaries kept": sum(
            lake.count(t, "NOT served") for t in ("observations", "talk_summaries", "session_summaries")
        ),
    }
    if memex.embedder:
        counts["summaries with a vector"] = vector_counts(lake, memex.embedder.model)[0]
    return counts


def _silent_sessions(memex: "Memex") -> int:
    """Count the sessions in which nothing was answered, and so nothing is summarised."""
    answered = memex.lake.scan("talks", ["session_id"], "answered AND NOT superseded")["session_id"]
    return memex.lake.count("sessions") - len(answered.unique())


def _sources(memex: "Memex") -> dict[str, int]:
    kept = list(memex.archive.sources())
    rows = memex.lake.frame("sources", ["lines", "torn_bytes"])
    return {
        "files kept": len(kept),
        "of which gone from disk": sum(source.gone for source in kept),
        "rewritten (more than one generation)": sum(source.generation > 1 for source in kept),
        "lines read": int(rows["lines"].sum()),
        "bytes of unfinished last lines": int(rows["torn_bytes"].sum()),
    }


def _expiring(memex: "Memex", plan: "IngestPlan") -> list[dict[str, Any]]:
    """Count the logs that their CLI will soon delete, by CLI, and those of them that are not kept yet."""
    from datetime import UTC, datetime, timedelta

    waiting = {session for batch in plan.batches for session in batch}
    found: dict[str, dict[str, Any]] = {}
    for file, end in memex.ingest.expiring(datetime.now(UTC), timedelta(days=7)):
        row = found.setdefault(file.cli, {"cli": file.cli, "logs": 0, "not kept yet": 0, "first": end})
        row["logs"] += 1
        row["not kept yet"] += file.session_id in waiting
        row["first"] = min(row["first"], end)
    return list(found.values())


def _records(memex: "Memex") -> list[dict[str, Any]]:
    """Count the records read by type, and tell what became of them."""
    import orjson

    counts: Counter[tuple[str, str, str]] = Counter()
    for row in memex.lake.scan("sources", ["cli", "records"]).to_pylist():
        for kind, uses in orjson.loads(row["records"]).items():
            for became, count in uses.items():
                counts[row["cli"], kind, became] += count
    return [
        {"cli": cli, "record": kind, "became": became, "count": count}
        for (cli, kind, became), count in sorted(counts.items(), key=lambda item: (item[0][:2], -item[1]))
    ]


def _pending(memex: "Memex", plan: "IngestPlan") -> dict[str, int]:
    pending = {"sessions to read": plan.sessions, "sources to mark gone": len(plan.gone)}
    if plan.forgotten:
        pending["forgotten sessions still on disk, left alone"] = plan.forgotten
    pending |= {f"{level} to write": count for level, count in memex.compact.plan().pending.items()}
    if memex.embedder:
        pending["vectors to make"] = memex.count_missing_vectors()
    return pending


def _failures(memex: "Memex") -> list[dict[str, Any]]:
    rows = memex.lake.scan("failures", ["level", "session_id", "prompt_number", "attempts", "retry_at", "reason"])
    return list(rows.to_pylist())


def _bad_lines(memex: "Memex") -> list[dict[str, Any]]:
    import orjson

    rows = memex.lake.scan("sources", ["path", "bad_lines"], "bad_lines != '[]'").to_pylist()
    return [
        {"file": r["path"], "byte": bad["offset"], "why": bad["reason"]}
        for r in rows
        for bad in orjson.loads(r["bad_lines"])
    ]


def _sizes(memex: "Memex") -> dict[str, str]:
    return {
        name: f"{sum(p.stat().st_size for p in (memex.home / name).rglob('*') if p.is_file()) / 1e6:,.1f} MB"
        for name in ("archive", "lake", "index")
    }


def _tokens(memex: "Memex") -> list[dict[str, Any]]:
    from memex.store.views import token_counts

    return [
        {"level": level, "raw": raw, "summarised": small, "share": f"{small / raw:.1%}" if raw else "-"}
        for level, (raw, small) in token_counts(memex.lake).items()
    ]
