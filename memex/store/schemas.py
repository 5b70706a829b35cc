"""The Arrow schemas of the lake's tables, and the records that become their rows.

Every table has a string key `id` (its unenforced primary key), except where `KEYS` says otherwise. Rows of
L1-L3 carry their vector themselves; `vector_model` names the space it lies in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 3
"""Version of the whole lake; `migrations.py` leads from each to the next."""

RAW_TABLES = ("sources", "projects", "sessions", "talks", "messages", "tool_calls")
"""The tables that can be made anew from the archive."""

SUMMARY_TABLES = {"observations": "observations", "talks": "talk_summaries", "sessions": "session_summaries"}
"""The table of each level above raw."""

_TEXT, _INT, _BOOL, _LIST, _TIME, _REAL = "string", "int64", "bool", "list<string>", "timestamp", "double"

_ORIGIN = {
    "fingerprint": _TEXT,
    "recipe": _TEXT,
    "provider": _TEXT,
    "model": _TEXT,
    "sources": _LIST,
    "tokens_input": _INT,
    "tokens_output": _INT,
    "cost_usd": _REAL,
    "created_at": _TIME,
    "served": _BOOL,
    "replaced_at": _TIME,
}
_VECTOR = {"vector_model": _TEXT, "vector": "vector"}

_TABLES: dict[str, dict[str, str]] = {
    "sources": {
        "id": _TEXT,
        "cli": _TEXT,
        "path": _TEXT,
        "session_id": _TEXT,
        "generation": _INT,
        "size": _INT,
        "file_size": _INT,
        "file_mtime_ns": _INT,
        "file_ctime_ns": _INT,
        "gone": _BOOL,
        "parser_version": _INT,
        "lines": _INT,
        "records": _TEXT,
        "bad_lines": _TEXT,
        "torn_bytes": _INT,
    },
    "projects": {
        "id": _TEXT,
        "name": _TEXT,
        "remote": _TEXT,
        "paths": _LIST,
        "aliases": _LIST,
        "first_seen": _TIME,
        "last_seen": _TIME,
    },
    "sessions": {
        "id": _TEXT,
        "cli": _TEXT,
        "native_id": _TEXT,
        "project_id": _TEXT,
        "project": _TEXT,
        "cwd": _TEXT,
        "git_branch": _TEXT,
        "title": _TEXT,
        "kind": _TEXT,
        "parent_id": _TEXT,
        "parent_call_id": _TEXT,
        "root": _TEXT,
        "agent_type": _TEXT,
        "cli_version": _TEXT,
        "models": _LIST,
        "started_at": _TIME,
        "ended_at": _TIME,
        "talks": _INT,
        "messages": _INT,
        "tool_calls": _INT,
        "tokens_raw": _INT,
        "tokens_input": _INT,
        "tokens_output": _INT,
        "tokens_cached": _INT,
        "parser_version": _INT,
        "digest": _TEXT,
    },
    "talks": {
        "id": _TEXT,
        "session_id": _TEXT,
        "prompt_number": _INT,
        "prompt": _TEXT,
        "started_at": _TIME,
        "ended_at": _TIME,
        "seq_from": _INT,
        "seq_to": _INT,
        "messages": _INT,
        "tool_calls": _INT,
        "tokens_raw": _INT,
        "answered": _BOOL,
        "superseded": _BOOL,
        "content": _TEXT,
        "digest": _TEXT,
        **_VECTOR,
    },
    "messages": {
        "id": _TEXT,
        "session_id": _TEXT,
        "prompt_number": _INT,
        "seq": _INT,
        "role": _TEXT,
        "kind": _TEXT,
        "text": _TEXT,
        "ts": _TIME,
        "model": _TEXT,
        "uuid": _TEXT,
        "source_id": _TEXT,
        "offset": _INT,
        "images": _INT,
        "tokens_input": _INT,
        "tokens_output": _INT,
        "tokens_cached": _INT,
        "tokens": _INT,
        "superseded": _BOOL,
        "content": _TEXT,
        "digest": _TEXT,
    },
    "tool_calls": {
        "id": _TEXT,
        "session_id": _TEXT,
        "prompt_number": _INT,
        "seq": _INT,
        "message_id": _TEXT,
        "name": _TEXT,
        "operation": _TEXT,
        "input": _TEXT,
        "output": _TEXT,
        "answered": _BOOL,
        "is_error": _BOOL,
        "empty": _BOOL,
        "mutates": _BOOL,
        "files": _LIST,
        "started_at": _TIME,
        "ended_at": _TIME,
        "agent_session_id": _TEXT,
        "source_id": _TEXT,
        "offset": _INT,
        "tokens": _INT,
        "superseded": _BOOL,
        "content": _TEXT,
        "digest": _TEXT,
    },
    "observations": {
        "id": _TEXT,
        "session_id": _TEXT,
        "prompt_number": _INT,
        "source_offset": _INT,
        "type": _TEXT,
        "title": _TEXT,
        "subtitle": _TEXT,
        "facts": _LIST,
        "narrative": _TEXT,
        "files_read": _LIST,
        "files_modified": _LIST,
        "project_id": _TEXT,
        "occurred_at": _TIME,
        **_ORIGIN,
        **_VECTOR,
    },
    "talk_summaries": {
        "id": _TEXT,
        "session_id": _TEXT,
        "prompt_number": _INT,
        "user_request": _TEXT,
        "summary": _TEXT,
        "completed": _TEXT,
        "files_involved": _LIST,
        "project_id": _TEXT,
        "occurred_at": _TIME,
        **_ORIGIN,
        **_VECTOR,
    },
    "session_summaries": {
        "id": _TEXT,
        "session_id": _TEXT,
        "summary": _TEXT,
        "key_points": _LIST,
        "files_involved": _LIST,
        "technologies": _LIST,
        "project_id": _TEXT,
        "occurred_at": _TIME,
        **_ORIGIN,
        **_VECTOR,
    },
    "memories": {
        "id": _TEXT,
        "kind": _TEXT,
        "level": _INT,
        "project_id": _TEXT,
        "owner": _TEXT,
        "name": _TEXT,
        "text": _TEXT,
        "fields": _TEXT,
        "importance": _REAL,
        "access_count": _INT,
        "last_access_at": _TIME,
        "occurred_at": _TIME,
        "ingested_at": _TIME,
        "seq": _INT,
        "seq_from": _INT,
        "seq_to": _INT,
        "valid_from": _TIME,
        "valid_to": _TIME,
        "archived": _BOOL,
        "archived_reason": _TEXT,
        "parent_id": _TEXT,
        "child_ids": _LIST,
        "history": _TEXT,
        "settled": _BOOL,
        "session_id": _TEXT,
        "prompt_number": _INT,
        "slot": _TEXT,
        **_ORIGIN,
        **_VECTOR,
    },
    "edges": {
        "id": _TEXT,
        "project_id": _TEXT,
        "source": _TEXT,
        "target": _TEXT,
        "relation": _TEXT,
        "strength": _REAL,
        "valid_at": _TIME,
        "invalid_at": _TIME,
    },
    "digests": {
        "id": _TEXT,
        "project_id": _TEXT,
        "kind": _TEXT,
        "level": _INT,
        "status": _TEXT,
        "text": _TEXT,
        "extraction_from": _INT,
        "extraction_to": _INT,
        "message_from": _INT,
        "message_to": _INT,
        "time_from": _TIME,
        "time_to": _TIME,
        **_ORIGIN,
        **_VECTOR,
    },
    "extractions": {
        "id": _TEXT,
        "session_id": _TEXT,
        "prompt_number": _INT,
        "project_id": _TEXT,
        "fingerprint": _TEXT,
        "recipe": _TEXT,
        "memories": _INT,
        "created_at": _TIME,
    },
    "journal": {
        "id": _TEXT,
        "number": _INT,
        "project_id": _TEXT,
        "owner": _TEXT,
        "step": _TEXT,
        "unit": _TEXT,
        "why": _TEXT,
        "state": _TEXT,
        "undoable": _BOOL,
        "count": _INT,
        "at": _TIME,
        "members": _LIST,
        "changes": _TEXT,
    },
    "failures": {
        "id": _TEXT,
        "level": _TEXT,
        "session_id": _TEXT,
        "prompt_number": _INT,
        "reason": _TEXT,
        "attempts": _INT,
        "failed_at": _TIME,
        "retry_at": _TIME,
    },
    "ledger": {
        "id": _TEXT,
        "run_id": _TEXT,
        "level": _TEXT,
        "provider": _TEXT,
        "model": _TEXT,
        "tokens_input": _INT,
        "tokens_output": _INT,
        "tokens_cached": _INT,
        "cost_usd": _REAL,
        "latency_ms": _REAL,
        "called_at": _TIME,
    },
}

SCALAR_INDEXES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_TABLES, ()),
    **dict.fromkeys(("talks", "messages", "tool_calls", "observations", "talk_summaries"), ("session_id",)),
    "session_summaries": ("session_id",),
    "sources": ("session_id",),
    "memories": ("project_id",),
    "journal": ("project_id",),
}
"""Columns with a BTREE index beside `id`."""

TABLES = tuple(_TABLES)


def has_vector(table: str) -> bool:
    """Tell whether rows of `table` carry a vector."""
    return "vector" in _TABLES[table]


@cache
def schema(table: str, dimension: int = 0) -> "pa.Schema":
    """Build the Arrow schema of `table`; a vector column needs its dimension, 0 leaves the column out."""
    import pyarrow as pa

    types = {
        _TEXT: pa.string(),
        _INT: pa.int64(),
        _BOOL: pa.bool_(),
        _LIST: pa.list_(pa.string()),
        _TIME: pa.timestamp("us", tz="UTC"),
        _REAL: pa.float64(),
        "vector": pa.list_(pa.float32(), dimension),
    }
    primary = {"lance-schema:unenforced-primary-key": "true"}
    return pa.schema(
        pa.field(
            name,
            types[kind],
            nullable=name != "id",
            metadata=primary if name == "id" else None,
        )
        for name, kind in _TABLES[table].items()
        if kind != "vector" or dimension
    )


def to_arrow(table: str, records: Sequence[Any], extra: Mapping[str, Any] | None = None) -> "pa.Table":
    """Turn records of one dataclass into an Arrow table with the columns of `table`.

    A nested `origin` is spread over its columns; `extra` gives the same value to every row. A column that
    the record does not have is null.
    """
    import pyarrow as pa

    wanted = schema(table)
    extra = dict(extra or {})
    columns = []
    for field in wanted:
        read = _reader(type(records[0]), field.name) if records else None
        values = [read(record) for record in records] if read else [extra.get(field.name)] * len(records)
        columns.append(pa.array(values, field.type))
    return pa.Table.from_arrays(columns, schema=wanted)


def rows_to_arrow(table: str, rows: Sequence[Mapping[str, Any]]) -> "pa.Table":
    """Turn rows, as a scan gives them, back into an Arrow table with the columns of `table`."""
    import pyarrow as pa

    return pa.Table.from_pylist(list(rows), schema=schema(table))


def _reader(record: type, column: str) -> Any:
    from operator import attrgetter

    for field in fields(record):
        if field.name == column:
            return attrgetter(column)
        if is_dataclass(field.type) and column in {f.name for f in fields(field.type)}:
            return attrgetter(f"{field.name}.{column}")
    return None
