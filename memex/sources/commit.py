"""Write what was read into the lake: only rows that changed, and nothing is ever dropped.

A row that a rewritten source no longer has stays, marked superseded. One that vanished though the source
only grew was read another way by now (a queued prompt that was delivered, a newer parser) and is deleted:
its text stands elsewhere.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from memex.model import Message, Session, Talk, ToolCall
from memex.sources.base import ProjectOf
from memex.sources.parse import SLICE, Outcome
from memex.sources.talks import View, complete, cut_talks, makers
from memex.sources.transcript import Rows
from memex.store.lake import Lake, in_list
from memex.store.schemas import rows_to_arrow, to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

_RAW = ("messages", "tool_calls")


@dataclass(slots=True)
class Commit:
    """One batch of sessions on its way into the lake.

    `known` are those of which the lake has rows, `rewritten` those of which a source was rewritten since.
    """

    lake: Lake
    known: frozenset[str]
    rewritten: frozenset[str]
    messages: int = 0
    calls: int = 0
    _rows: dict[str, dict[str, Message | ToolCall]] = field(default_factory=lambda: {table: {} for table in _RAW})
    _held: int = 0

    def add(self, rows: Rows) -> None:
        """Take rows in; write when many are held. Of a repeated id the last one counts."""
        self._rows["messages"] |= {m.id: m for m in rows.messages}
        self._rows["tool_calls"] |= {c.id: c for c in rows.calls}
        self._held += sum(len(m.text) for m in rows.messages) + sum(len(c.input) + len(c.output) for c in rows.calls)
        if self._held > 2 * SLICE:
            self.flush()

    def flush(self) -> None:
        """Write the rows that differ from what is stored."""
        self.messages += len(self._rows["messages"])
        self.calls += len(self._rows["tool_calls"])
        for table, rows in self._rows.items():
            stored = self._stored(table, [r.id for r in rows.values() if r.session_id in self.known])
            changed = [r for r in rows.values() if stored.get(r.id) != (r.digest, r.superseded)]
            self._keep_old(table, [r for r in changed if r.id in stored and r.session_id in self.rewritten])
            self.lake.upsert(table, to_arrow(table, changed))
            rows.clear()
        self._held = 0

    def finish(self, outcomes: Sequence[Outcome], project_of: ProjectOf) -> list[Session]:
        """Write the rest, retire what is no longer there, and bring talks and sessions up to date."""
        self.flush()
        for outcome in outcomes:
            if outcome.session.id in self.known:
                self._retire(outcome)
            if outcome.abandoned:
                self._supersede_talks(outcome.session.id, outcome.abandoned)
        touched = [outcome.session for outcome in outcomes]
        return write_views(self.lake, [*touched, *self._agents_of(touched)], project_of)

    def _stored(self, table: str, ids: Sequence[str]) -> dict[str, tuple[str, bool]]:
        if not ids:
            return {}
        rows = self.lake.scan(table, ("id", "digest", "superseded"), in_list("id", ids)).to_pydict()
        return dict(zip(rows["id"], zip(rows["digest"], rows["superseded"], strict=True), strict=True))

    def _retire(self, outcome: Outcome) -> None:
        mine = in_list("session_id", [outcome.session.id])
        for table in _RAW:
            gone = outcome.taken_back
            if outcome.whole:
                stored = self.lake.scan(table, ["id"], f"{mine} AND NOT superseded")["id"].to_pylist()
                gone = set(stored) - outcome.ids
            if not gone:
                continue
            where = f"{mine} AND {in_list('id', sorted(gone))}"
            if outcome.session.id in self.rewritten:
                self._supersede(table, where)
            elif self.lake.count(table, where):
                self.lake.delete(table, where)

    def _keep_old(self, table: str, rows: Sequence[Message | ToolCall]) -> None:
        """Keep, under an id of its own, the text that a rewrite replaced within a record."""
        old = self.lake.scan(table, None, in_list("id", [r.id for r in rows])).to_pylist() if rows else []
        new = {r.id: _text_of(r) for r in rows}
        lost = [
            {**row, "id": f"{row['id']}~{row['digest'][:8]}", "superseded": True}
            for row in old
            if (row["text"] if table == "messages" else row["output"]) not in new[row["id"]]
        ]
        self.lake.upsert(table, rows_to_arrow(table, lost))

    def _supersede_talks(self, session_id: str, numbers: Iterable[int]) -> None:
        listed = ", ".join(map(str, sorted(numbers)))
        for table in _RAW:
            self._supersede(
                table, f"{in_list('session_id', [session_id])} AND prompt_number IN ({listed}) AND NOT superseded"
            )

    def _supersede(self, table: str, where: str) -> None:
        self.lake.upsert(table, _superseded(self.lake.scan(table, None, where)))

    def _agents_of(self, sessions: Sequence[Session]) -> list[Session]:
        """Read the stored subagents that calls of these sessions made: they may learn of their call only now."""
        ids = [s.id for s in sessions]
        where = f"{in_list('session_id', ids)} AND agent_session_id != ''"
        made = set(self.lake.scan("tool_calls", ["agent_session_id"], where)["agent_session_id"].to_pylist()) - set(ids)
        if not made:
            return []
        return sessions_from(self.lake.scan("sessions", None, in_list("id", sorted(made))).to_pylist())


def write_views(lake: Lake, sessions: Sequence[Session], project_of: ProjectOf) -> list[Session]:
    """Derive talks and counts of sessions from their messages and calls, and write what changed."""
    ids = [s.id for s in sessions]
    view = View.of(lake, ids)
    talks = cut_talks(view)
    _write_changed(lake, "talks", talks, in_list("session_id", ids))
    whole = complete(sessions, view, talks, makers(lake, sessions), project_of)
    _write_changed(lake, "sessions", whole, in_list("id", ids))
    return whole


def sessions_from(rows: Iterable[dict[str, Any]]) -> list[Session]:
    """Turn rows back into records, equal to those that became these rows."""
    return [Session(**{name: _as_read(value) for name, value in row.items()} | {"digest": ""}) for row in rows]


def _as_read(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC)  # another object that means UTC has another repr, and so another digest
    return tuple(value) if isinstance(value, list) else value


def _write_changed(lake: Lake, table: str, records: Sequence[Talk] | Sequence[Session], where: str) -> None:
    """Upsert the records whose digest is new, and delete rows that no record stands for."""
    stored = lake.scan(table, ["id", "digest"], where).to_pydict()
    digests = dict(zip(stored["id"], stored["digest"], strict=True))
    lake.upsert(table, to_arrow(table, [r for r in records if digests.get(r.id) != r.digest]))
    stray = digests.keys() - {r.id for r in records}
    if stray:
        lake.delete(table, in_list("id", sorted(stray)))


def _text_of(row: Message | ToolCall) -> str:
    return row.text if isinstance(row, Message) else row.output


def _superseded(rows: "pa.Table") -> "pa.Table":
    import pyarrow as pa

    column = rows.schema.get_field_index("superseded")
    return rows.set_column(column, rows.schema.field(column), pa.array([True] * rows.num_rows, pa.bool_()))
