"""What people ask the lake for: a session by its name, a list, one level of one session, counts."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from memex.errors import NotFound
from memex.store.lake import Lake, in_list
from memex.store.schemas import SUMMARY_TABLES

_SHOWN = {
    "observations": [
        "prompt_number", "type", "title", "subtitle", "facts", "narrative", "files_read", "files_modified",
        "occurred_at",
    ],
    "talks": ["prompt_number", "user_request", "summary", "completed", "files_involved", "occurred_at", "model"],
    "sessions": ["summary", "key_points", "files_involved", "technologies", "occurred_at", "model"],
}  # fmt: skip


def find_session(lake: Lake, name: str) -> str:
    """Complete a session id from its beginning, with or without its CLI.

    Raises:
        NotFound: no session, or more than one, begins like that.
    """
    ids = lake.scan("sessions", ["id"])["id"].to_pylist()
    if name in ids:
        return name
    found = sorted(i for i in ids if i.startswith(name) or i.split(":", 1)[1].startswith(name))
    if len(found) == 1 and name:
        return str(found[0])
    if not found or not name:
        raise NotFound(f"no session is called {name!r}", "memex sessions lists them")
    raise NotFound(f"{len(found)} sessions begin with {name!r}: {', '.join(found[:5])} …", "give more of the id")


def find_project(lake: Lake, name: str) -> str:
    """Find a project's id by its id, its name, or one of its folders.

    Raises:
        NotFound: no project, or more than one, is called like that.
    """
    rows = list_projects(lake)
    if name in {row["id"] for row in rows}:
        return name
    found = [row for row in rows if name and (name.lower() == row["name"].lower() or name in row["folders"])]
    if len(found) == 1:
        return str(found[0]["id"])
    if found:
        raise NotFound(f"{len(found)} projects are called {name!r}: {_named(found)}", "give one of these ids")
    near = [row for row in rows if name and name.lower() in f"{row['name']}\n{row['id']}".lower()]
    hint = f"did you mean {_named(near)}?" if near else "memex projects lists them"
    raise NotFound(f"no project is called {name!r}", hint)


def list_projects(lake: Lake) -> list[dict[str, Any]]:
    """List projects, the one that was worked on last first, with what the lake has of each."""
    import polars as pl

    columns = ["project_id", "project", "cwd", "talks", "started_at", "ended_at"]
    rows = (
        lake.frame("sessions", columns)
        .group_by(id="project_id")
        .agg(
            name=pl.col("project").first(),
            sessions=pl.len(),
            talks=pl.col("talks").sum(),
            first=pl.col("started_at").min(),
            last=pl.max_horizontal(pl.col("ended_at").max(), pl.col("started_at").max()),
            folders=pl.col("cwd").filter(pl.col("cwd") != "").unique().sort(),
        )
        .sort(pl.col("last"), "id", descending=[True, False], nulls_last=True)
    )
    return rows.to_dicts()


def list_sessions(lake: Lake, project: str, limit: int) -> list[dict[str, Any]]:
    """List sessions, newest first; `project` matches anywhere in a project's name or id."""
    rows = lake.scan("sessions").to_pylist()
    wanted = project.lower()
    rows = [r for r in rows if wanted in r["project"].lower() or wanted in r["project_id"].lower()]
    rows.sort(key=lambda r: (r["ended_at"] is not None, r["ended_at"], r["id"]), reverse=True)
    return rows[:limit]


def choose_sessions(lake: Lake, project_id: str, since: datetime | None, limit: int | None) -> list[str]:
    """List the ids of sessions, newest first: of a project unless it is "", that were active since then."""
    import polars as pl

    rows = lake.frame("sessions", ["id", "project_id", "ended_at"])
    if project_id:
        rows = rows.filter(pl.col("project_id") == project_id)
    if since:
        rows = rows.filter(pl.col("ended_at") >= since)
    ordered = rows.sort("ended_at", "id", descending=True, nulls_last=True)
    return list(ordered["id"] if limit is None else ordered["id"].head(limit))


def show_session(lake: Lake, session_id: str, level: str) -> dict[str, Any]:
    """Read a session and its rows at one level: raw, observations, talks or session."""
    about = lake.scan("sessions", None, in_list("id", [session_id])).to_pylist()[0]
    mine = in_list("session_id", [session_id])
    if level == "raw":
        rows = raw_rows(lake, mine)
    else:
        name = "sessions" if level == "session" else level
        columns = ["source_offset", *_SHOWN[name]] if name == "observations" else _SHOWN[name]
        rows = lake.scan(SUMMARY_TABLES[name], columns, f"{mine} AND served").to_pylist()
        rows.sort(key=lambda r: (r.get("prompt_number", 0), r.pop("source_offset", 0)))
    return {"session": about, "rows": rows}


def raw_rows(lake: Lake, where: str) -> list[dict[str, Any]]:
    """Read messages and calls as entries of one kind, in the order of their session; `where` chooses them."""
    messages = lake.scan(
        "messages", ["id", "seq", "prompt_number", "role", "kind", "text", "ts", "superseded"], where
    ).to_pylist()
    calls = lake.scan(
        "tool_calls",
        ["id", "seq", "prompt_number", "name", "input", "output", "is_error", "started_at", "superseded"],
        where,
    ).to_pylist()
    for call in calls:
        text = f"{call.pop('input')}\n=> {call.pop('output')}"
        call |= {
            "role": "tool",
            "kind": call.pop("name") + (" failed" if call.pop("is_error") else ""),
            "text": text,
        }
        call["ts"] = call.pop("started_at")
    return sorted((r for r in [*messages, *calls] if r["text"]), key=lambda r: r["seq"])


def list_observations(lake: Lake, session_id: str = "", ids: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Read the observations of a session, in order, or those with these ids."""
    where = in_list("id", ids) if ids else f"{in_list('session_id', [session_id])} AND served"
    columns = ["id", "session_id", "source_offset", *_SHOWN["observations"]]
    rows: list[dict[str, Any]] = lake.scan("observations", columns, where).to_pylist()
    rows.sort(key=lambda r: (r["session_id"], r["prompt_number"], r.pop("source_offset")))
    return rows


def token_counts(lake: Lake) -> dict[str, tuple[int, int]]:
    """Sum, by level, the estimated tokens that the served summaries stand for and those they take."""
    counts = {}
    for level, table in SUMMARY_TABLES.items():
        rows = lake.frame(table, ["tokens_input", "tokens_output"], "served")
        counts[level] = (int(rows["tokens_input"].sum()), int(rows["tokens_output"].sum()))
    return counts


def calls_by_day(lake: Lake, days: int) -> list[dict[str, Any]]:
    """Sum up the calls of models in the last days, by day (UTC), provider and model, the newest first."""
    import polars as pl

    day = pl.col("called_at").dt.date()
    calls = lake.frame("ledger").filter(day > datetime.now(UTC).date() - timedelta(days=days))
    sums = (
        calls.group_by(day.alias("day").cast(pl.String), "provider", "model")
        .agg(
            pl.len().alias("calls"),
            pl.col("tokens_input", "tokens_output", "tokens_cached").sum(),
            (pl.col("latency_ms").median() / 1000).round(1).alias("seconds a call"),
            pl.col("cost_usd").sum().round(6).alias("US dollars"),
        )
        .sort("day", "provider", "model", descending=[True, False, False])
    )
    names = {"tokens_input": "tokens in", "tokens_output": "tokens out", "tokens_cached": "of which cached"}
    return sums.rename(names).to_dicts()


def tokens_by_level(lake: Lake) -> dict[str, int]:
    """Sum up the tokens, in and out, of all calls of models, by level."""
    import polars as pl

    tokens = pl.col("tokens_input").sum() + pl.col("tokens_output").sum()
    return dict(lake.frame("ledger").group_by("level").agg(tokens.alias("tokens")).iter_rows())


def savings(lake: Lake) -> list[dict[str, Any]]:
    """Compare, by level, what summaries stand for with what they take to read and what they took to write."""
    paid = tokens_by_level(lake)
    return [
        {"level": level, "raw tokens": raw, "tokens of summaries": small, "tokens to write them": paid.get(level, 0)}
        for level, (raw, small) in token_counts(lake).items()
    ]


def vector_counts(lake: Lake, model: str) -> tuple[int, int]:
    """Count the served summaries with a vector of this model, and all served summaries."""
    has = f"served AND vector_model = '{model}'"
    tables = SUMMARY_TABLES.values()
    return sum(lake.count(t, has) for t in tables), sum(lake.count(t, "served") for t in tables)


def _named(projects: list[dict[str, Any]]) -> str:
    shown = [f"{row['name']} ({row['id']})" for row in projects[:5]]
    return ", ".join(shown) + (" …" if len(projects) > 5 else "")
