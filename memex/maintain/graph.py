"""The graph of one scope in memory, and the units in which it is changed.

A planner works on a copy of the graph. What it does between `begin` and `end` becomes one unit: the fields that
changed, before and after. So a plan shows exactly what a run will do, and a unit can be taken back.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import cache
from typing import Any, Literal

from memex.maintain.identity import scope_of
from memex.model import Digest, Edge, Memory
from memex.text import digest

Step = Literal["consolidate", "compress", "rollup", "sleep", "recall", "remember", "undo"]
Record = Memory | Edge | Digest
Values = Mapping[str, Any]

RECORDS: Mapping[str, type[Memory] | type[Edge] | type[Digest]] = {
    "memories": Memory,
    "edges": Edge,
    "digests": Digest,
}
COUNTERS = ("access_count", "importance", "last_access_at")
"""What a recall changes: no reason against taking a unit back."""


@dataclass(frozen=True, slots=True)
class Change:
    """One row: the fields that a unit owns, before and after. A row that was not there before has None."""

    table: str
    id: str
    before: Values | None
    after: Values | None


@dataclass(frozen=True, slots=True)
class Unit:
    """What is applied, journalled and taken back as a whole. `key` names what it does to what, on any machine."""

    step: Step
    key: str
    why: str
    changes: tuple[Change, ...]
    undoable: bool = True
    count: int = 0

    @property
    def members(self) -> tuple[str, ...]:
        """The ids of the rows that it touches."""
        return tuple(change.id for change in self.changes)


@dataclass(frozen=True, slots=True)
class Vetoes:
    """What a person took back, and is therefore not done again: units by key; memories that a step leaves alone."""

    keys: frozenset[str] = frozenset()
    compress: frozenset[str] = frozenset()
    sleep: frozenset[str] = frozenset()


NO_VETOES = Vetoes()


def unit_key(what: str, *ids: str) -> str:
    """Name a unit by what it does to which memories, whose ids are the same in every home."""
    return digest(what, *ids)


@cache
def columns(table: str) -> tuple[str, ...]:
    """List the columns of a table that the graph knows; vectors and prices are none of them."""
    return tuple(field.name for field in fields(RECORDS[table]))


def values_of(record: Record) -> dict[str, Any]:
    """Spread a record over its columns."""
    return {name: getattr(record, name) for name in columns(table_of(record))}


def table_of(record: Record) -> str:
    """Name the table that a record is a row of."""
    return next(table for table, kind in RECORDS.items() if isinstance(record, kind))


@dataclass
class Graph:
    """Memories, edges and digests by id, of one scope or of several. `put` and `drop` are recorded inside a unit."""

    memories: dict[str, Memory] = field(default_factory=dict)
    edges: dict[str, Edge] = field(default_factory=dict)
    digests: dict[str, Digest] = field(default_factory=dict)
    _before: dict[tuple[str, str], Record | None] | None = field(default=None, init=False, repr=False)
    _touching: dict[str, set[str]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        for edge in self.edges.values():
            self._link(edge)

    @classmethod
    def of(cls, *records: Record) -> "Graph":
        """Gather records into a graph."""
        graph = cls()
        for record in records:
            graph.table(table_of(record))[record.id] = record
        return cls(graph.memories, graph.edges, graph.digests)

    def copy(self) -> "Graph":
        """Copy the graph; records are frozen and shared."""
        return Graph(dict(self.memories), dict(self.edges), dict(self.digests))

    def active(self) -> Iterator[Memory]:
        """Yield the memories that are not archived."""
        return (memory for memory in self.memories.values() if not memory.archived)

    def edges_of(self, memory: str) -> list[Edge]:
        """List the edges that begin or end at a memory, by id."""
        return [self.edges[name] for name in sorted(self._touching.get(memory, ()))]

    def begin(self) -> None:
        """Start to record a unit."""
        self._before = {}

    def end(self, step: Step, key: str, why: str, undoable: bool = True) -> Unit | None:
        """Close the unit; None when nothing changed."""
        touched, self._before = self._before or {}, None
        pairs = ((record, self.table(table).get(name)) for (table, name), record in touched.items())
        changes = tuple(change_of(before, after) for before, after in pairs if before != after)
        return Unit(step, key, why, changes, undoable) if changes else None

    def rollback(self) -> None:
        """Forget the unit, and what was done in it."""
        touched, self._before = self._before or {}, None
        for (table, name), record in touched.items():
            self._set(table, name, record)

    def put(self, record: Record) -> None:
        """Insert or replace a record."""
        self._write(table_of(record), record.id, record)

    def drop(self, record: Record) -> None:
        """Delete a record."""
        self._write(table_of(record), record.id, None)

    def change(self, memory: str, **values: Any) -> Memory:
        """Replace some fields of a memory."""
        changed = replace(self.memories[memory], **values)
        self.put(changed)
        return changed

    def connect(
        self,
        source: str,
        target: str,
        relation: str = "related",
        strength: float = 0.8,
        valid_at: datetime | None = None,
        invalid_at: datetime | None = None,
    ) -> Edge | None:
        """Add an edge, or strengthen the valid one that is there; None for a loop and across scopes."""
        ends = [self.memories.get(name) for name in (source, target)]
        if source == target or (ends[0] and ends[1] and scope_of(ends[0]) != scope_of(ends[1])):
            return None
        strength = min(1.0, max(0.0, strength))
        alike = [e for e in self.edges_of(source) if (e.source, e.target, e.relation) == (source, target, relation)]
        for edge in alike:
            if edge.invalid_at == invalid_at:
                starts = [at for at in (edge.valid_at, valid_at) if at]
                joined = replace(edge, strength=max(edge.strength, strength), valid_at=min(starts, default=None))
                self.put(joined)
                return joined
        name = digest("edge", source, target, relation, str(invalid_at or ""))
        project = next((end.project_id for end in ends if end), "")
        edge = Edge(
            id=name, project_id=project, source=source, target=target, relation=relation, strength=strength,
            valid_at=valid_at, invalid_at=invalid_at,
        )  # fmt: skip
        self.put(edge)
        return edge

    def apply(self, units: Iterable[Unit]) -> None:
        """Do what units say."""
        for unit in units:
            for change in unit.changes:
                self._apply(change)

    def _apply(self, change: Change) -> None:
        old = self.table(change.table).get(change.id)
        if change.after is None:
            self._write(change.table, change.id, None)
        elif old is not None:
            self._write(change.table, change.id, replace(old, **change.after))
        elif change.before is None:
            self._write(change.table, change.id, RECORDS[change.table](**change.after))

    def _write(self, table: str, name: str, record: Record | None) -> None:
        if self._before is not None:
            self._before.setdefault((table, name), self.table(table).get(name))
        self._set(table, name, record)

    def _set(self, table: str, name: str, record: Record | None) -> None:
        if table == "edges" and name in self.edges:
            for end in (self.edges[name].source, self.edges[name].target):
                self._touching[end].discard(name)
        if record is None:
            self.table(table).pop(name, None)
        else:
            self.table(table)[name] = record
        if isinstance(record, Edge):
            self._link(record)

    def _link(self, edge: Edge) -> None:
        for end in (edge.source, edge.target):
            self._touching.setdefault(end, set()).add(edge.id)

    def table(self, table: str) -> dict[str, Any]:
        """Give the records of a table by id."""
        tables: dict[str, dict[str, Any]] = {"memories": self.memories, "edges": self.edges, "digests": self.digests}
        return tables[table]


def change_of(before: Record | None, after: Record | None) -> Change:
    """Say what became of a record, at least one of which is there."""
    one = after or before
    assert one is not None
    old, new = (None if record is None else values_of(record) for record in (before, after))
    if old is not None and new is not None:
        differing = [column for column in old if old[column] != new[column]]
        old, new = ({column: row[column] for column in differing} for row in (old, new))
    return Change(table_of(one), one.id, old, new)


def is_valid(edge: Edge, now: datetime) -> bool:
    """Tell whether an edge holds now."""
    return edge.invalid_at is None or edge.invalid_at > now


def repoint(graph: Graph, gone: str, survivor: str) -> None:
    """Move the edges of a memory that goes to the one that stays; what would become a loop goes."""
    for edge in graph.edges_of(gone):
        graph.drop(edge)
        source, target = (survivor if end == gone else end for end in (edge.source, edge.target))
        graph.connect(source, target, edge.relation, edge.strength, edge.valid_at, edge.invalid_at)
