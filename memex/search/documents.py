"""Which texts of the lake are indexed, and how a row reads as a document."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import orjson

from memex.search.part import Doc
from memex.store.lake import Lake, in_list
from memex.store.schemas import SUMMARY_TABLES
from memex.text import digest

BATCH = 4000

_RAW = {
    "messages": ["id", "session_id", "prompt_number", "role", "kind", "ts", "digest", "text"],
    "tool_calls": ["id", "session_id", "prompt_number", "name", "started_at", "digest", "input", "output"],
}
"""Columns of which a document is made."""
_SUMMARY = {
    "observations": ["title", "subtitle", "narrative", "facts", "files_read", "files_modified"],
    "talks": ["user_request", "summary", "completed", "files_involved"],
    "sessions": ["summary", "key_points", "files_involved", "technologies"],
}


def raw_digests(lake: Lake, of: Sequence[str] | None = None) -> dict[str, str]:
    """Map the id of every message and tool call, of all sessions or some, to its digest, with its project."""
    where = None if of is None else in_list("session_id", of)
    return {key: made for table in _RAW for key, made in _pairs(lake, table, "digest", where, of)}


def summary_digests(lake: Lake, of: Sequence[str] | None = None) -> dict[str, str]:
    """Map the id of every served summary, of all sessions or some, to the time it was made, with its project."""
    where = "served" if of is None else f"served AND {in_list('session_id', of)}"
    tables = SUMMARY_TABLES.values()
    return {key: made for table in tables for key, made in _pairs(lake, table, "created_at", where, of)}


def raw_documents(lake: Lake, keys: frozenset[str], of: Sequence[str] | None = None) -> Iterator[Doc]:
    """Read messages and tool calls as documents; `of` names their sessions, when it is some."""
    sessions = _sessions(lake, of)
    yield from _documents(
        lake,
        "messages",
        keys,
        of,
        lambda r: _doc(r, sessions, "raw", r["role"], r["kind"], r["ts"], r["digest"], r["text"]),
    )
    yield from _documents(
        lake,
        "tool_calls",
        keys,
        of,
        lambda r: _doc(r, sessions, "raw", "tool", r["name"], r["started_at"], r["digest"], _call_text(r)),
    )


def summary_documents(lake: Lake, keys: frozenset[str], of: Sequence[str] | None = None) -> Iterator[Doc]:
    """Read served summaries of all levels as documents; `of` names their sessions, when it is some."""
    sessions = _sessions(lake, of)
    for level, table in SUMMARY_TABLES.items():
        yield from _documents(
            lake,
            table,
            keys,
            of,
            lambda r, level=level: _doc(  # type: ignore[misc]
                r,
                sessions,
                level,
                "",
                r.get("type", ""),
                r["occurred_at"],
                str(r["created_at"]),
                _joined(r, _SUMMARY[level]),
            ),
        )


def content_of(level: str, row: Mapping[str, Any]) -> str:
    """Write a summary row as the text that a search shows."""
    fields = {
        "observations": ["title", "narrative"],
        "talks": ["user_request", "summary"],
        "sessions": ["summary", "key_points"],
    }
    return _joined(row, fields[level])


def _pairs(
    lake: Lake, table: str, column: str, where: str | None, of: Sequence[str] | None
) -> Iterable[tuple[str, str]]:
    """Pair ids with what changes when a row does, and the project that its document is found by."""
    import polars as pl

    tags = {key: _tag(project_id, project) for key, (_cli, project_id, project) in _sessions(lake, of).items()}
    rows = lake.frame(table, ["id", column, "session_id"], where)
    made = rows[column]
    if made.dtype != pl.String:
        made = pl.Series(map(str, made), dtype=pl.String)
    made += rows["session_id"].replace_strict(tags, default="", return_dtype=pl.String)
    return zip(rows["id"].to_list(), made.to_list(), strict=True)


@cache
def _tag(project_id: str, project: str) -> str:
    return "/" + digest(project_id, project)[:8] if project_id else ""


def _sessions(lake: Lake, of: Sequence[str] | None) -> dict[str, tuple[str, str, str]]:
    where = None if of is None else in_list("id", of)
    rows = lake.scan("sessions", ["id", "cli", "project_id", "project"], where).to_pylist()
    return {row["id"]: (row["cli"], row["project_id"], row["project"]) for row in rows}


def _documents(
    lake: Lake, table: str, keys: frozenset[str], of: Sequence[str] | None, read: Callable[[dict[str, Any]], Doc]
) -> Iterator[Doc]:
    """Read the wanted rows of a table: a few by id, many a batch at a time in storage order."""
    columns = _RAW.get(table)
    if len(keys) <= BATCH:
        yield from (read(row) for row in lake.scan(table, columns, in_list("id", sorted(keys))).to_pylist())
        return
    where = None if of is None else in_list("session_id", of)
    for batch in lake.batches(table, BATCH, columns, where=where):
        yield from (read(row) for row in batch.to_pylist() if row["id"] in keys)


def _doc(
    row: dict[str, Any],
    sessions: Mapping[str, tuple[str, str, str]],
    level: str,
    role: str,
    kind: str,
    ts: Any,
    made: str,
    text: str,
) -> Doc:
    session_id, number = row["session_id"], row.get("prompt_number") or 0
    cli, project_id, project = sessions.get(session_id, ("", "", ""))
    made += _tag(project_id, project)
    return Doc(row["id"], made, session_id, number, level, cli, role, kind, project_id, project, ts, text)


def _call_text(row: dict[str, Any]) -> str:
    values = _strings(orjson.loads(row["input"] or "{}"))
    return "\n".join(filter(None, (row["name"], *values, row["output"])))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _joined(row: Mapping[str, Any], names: Iterable[str]) -> str:
    values = (row[name] for name in names)
    return "\n".join(v if isinstance(v, str) else "\n".join(v) for v in values if v)
