"""Write parsed sessions into the lake: only rows that changed, and nothing is ever dropped.

A row that a rewritten source no longer has stays, marked superseded. One that vanished though the source
only grew was read another way by now (a queued prompt that was delivered, a newer parser) and is deleted:
its text stands elsewhere.
"""

from collections.abc import Collection, Sequence
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


def commit(lake: Lake, sessions: Sequence[Parsed], rewritten: Collection[str] = ()) -> None:
    """Upsert what changed of these sessions, children before the session rows.

    `rewritten` names the sessions of which a source was rewritten since they were last committed.
    """
    if not sessions:
        return
    ids = [p.session.id for p in sessions]
    known = lake.scan("sessions", ("id",), in_list("id", ids))["id"].to_pylist()
    rows: dict[str, list[Any]] = {
        "messages": [m for p in sessions for m in p.messages],
        "tool_calls": [c for p in sessions for c in p.calls],
        "talks": [t for p in sessions for t in p.talks],
    }
    for table in _CHILD_TABLES:
        stored = _stored(lake, table, known)
        changed = [r for r in rows[table] if stored.digests.get(r.id) != r.digest or r.id not in stored.live]
        lake.upsert(table, to_arrow(table, changed))
        _retire(lake, table, stored.live - {r.id for r in rows[table]}, rewritten)
    stored = _stored(lake, "sessions", known)
    lake.upsert(
        "sessions",
        to_arrow("sessions", [p.session for p in sessions if stored.digests.get(p.session.id) != p.session.digest]),
    )


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


def _retire(lake: Lake, table: str, ids: set[str], rewritten: Collection[str]) -> None:
    if not ids:
        return
    gone = in_list("id", sorted(ids))
    of_rewritten = in_list("session_id", sorted(rewritten))
    lake.upsert(table, _superseded(lake.scan(table, None, f"{gone} AND {of_rewritten}")))
    if lake.count(table, f"{gone} AND NOT ({of_rewritten})"):
        lake.delete(table, f"{gone} AND NOT ({of_rewritten})")


def _superseded(rows: "pa.Table") -> "pa.Table":
    import pyarrow as pa

    column = rows.schema.get_field_index("superseded")
    return rows.set_column(column, rows.schema.field(column), pa.array([True] * rows.num_rows, pa.bool_()))
