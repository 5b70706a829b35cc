"""Write parsed sessions into the lake: only rows that changed, and nothing is ever dropped.

A row that a rewritten source no longer has stays, marked superseded. One that only a new parser version
no longer makes is deleted: its text stands elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memex.sources.base import Parsed
from memex.store.lake import Lake, in_list
from memex.store.schemas import to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

_CHILD_TABLES = ("messages", "tool_calls", "talks")


@dataclass(frozen=True, slots=True)
class _Stored:
    digests: dict[str, str]
    live: set[str]


def commit(lake: Lake, sessions: Sequence[Parsed]) -> None:
    """Upsert what changed of these sessions, children before the session rows."""
    if not sessions:
        return
    ids = [p.session.id for p in sessions]
    versions = _parser_versions(lake, ids)
    known = [i for i in ids if i in versions]
    outdated = [p.session.id for p in sessions if versions.get(p.session.id) not in (None, p.session.parser_version)]
    rows: dict[str, list[Any]] = {
        "messages": [m for p in sessions for m in p.messages],
        "tool_calls": [c for p in sessions for c in p.calls],
        "talks": [t for p in sessions for t in p.talks],
    }
    for table in _CHILD_TABLES:
        stored = _stored(lake, table, known)
        changed = [r for r in rows[table] if stored.digests.get(r.id) != r.digest or r.id not in stored.live]
        lake.upsert(table, to_arrow(table, changed))
        _retire(lake, table, stored.live - {r.id for r in rows[table]}, outdated)
    stored = _stored(lake, "sessions", known)
    lake.upsert(
        "sessions",
        to_arrow("sessions", [p.session for p in sessions if stored.digests.get(p.session.id) != p.session.digest]),
    )


def _parser_versions(lake: Lake, ids: Sequence[str]) -> dict[str, int]:
    rows = lake.scan("sessions", ("id", "parser_version"), in_list("id", ids)).to_pydict()
    return dict(zip(rows["id"], rows["parser_version"], strict=True))


def _stored(lake: Lake, table: str, sessions: Sequence[str]) -> _Stored:
    if not sessions:
        return _Stored({}, set())
    if table == "sessions":
        rows = lake.scan(table, ("id", "digest"), in_list("id", sessions)).to_pydict()
        rows["superseded"] = [False] * len(rows["id"])
    else:
        rows = lake.scan(table, ("id", "digest", "superseded"), in_list("session_id", sessions)).to_pydict()
    digests = dict(zip(rows["id"], rows["digest"], strict=True))
    return _Stored(digests, {i for i, old in zip(rows["id"], rows["superseded"], strict=True) if not old})


def _retire(lake: Lake, table: str, ids: set[str], outdated: Sequence[str]) -> None:
    if not ids:
        return
    where = in_list("id", sorted(ids))
    if outdated:
        lake.delete(table, f"{where} AND {in_list('session_id', outdated)}")
    lake.upsert(table, _superseded(lake.scan(table, None, where)))


def _superseded(rows: "pa.Table") -> "pa.Table":
    import pyarrow as pa

    column = rows.schema.get_field_index("superseded")
    return rows.set_column(column, rows.schema.field(column), pa.array([True] * rows.num_rows, pa.bool_()))
