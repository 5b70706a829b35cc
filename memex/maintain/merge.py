"""What becomes of two memories that are one: values, their history, counters, edges.

The history of a memory lists every value that a field has had: `field, value, seq, rank, from`. The value in force
is the one with the greatest (seq, rank, value), so the result does not depend on the order of joining. Rank 1 is a
value that somebody made of several.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from memex.maintain.graph import Graph, repoint
from memex.maintain.kinds import kinds
from memex.model import Memory
from memex.text import unique

Entry = Mapping[str, Any]
SLEPT = "slept"
"""Why a memory was archived: it was of little use."""
FACE = ("name", "text")
"""The columns that hold values; all other fields are in `fields`."""


def merge(graph: Graph, new: Memory, target: Memory, merged_fields: object = None) -> Memory:
    """Fold `new` into `target`: archive the one, extend the other; return the survivor.

    `merged_fields` are the values that somebody else chose; they count when they are a non-empty mapping of fields
    that the kind has. Else a kind with one memory a name takes the newer values, and any other what it lacks.
    """
    chosen = _own_fields(new, target, merged_fields)
    if chosen:
        survivor = record_values(target, chosen, max(new.seq, target.seq), new.id)
    elif kinds()[target.kind].latest_only:
        survivor = _with_values(target, [*_entries(target), *_entries(new)])
    else:
        survivor = _filled(target, new)
    dated = target if target.valid_from or target.valid_to else new
    survivor = replace(
        survivor,
        seq=max(new.seq, target.seq),
        seq_from=min(new.seq_from, target.seq_from),
        seq_to=max(new.seq_to, target.seq_to),
        valid_from=dated.valid_from,
        valid_to=dated.valid_to,
        importance=max(new.importance, target.importance),
        access_count=new.access_count + target.access_count,
        last_access_at=_latest(new.last_access_at, target.last_access_at),
        occurred_at=_latest(new.occurred_at, target.occurred_at),
        child_ids=unique([*target.child_ids, new.id]),
        sources=unique([*target.sources, *new.sources]),
        archived=False,
        archived_reason="",
    )
    graph.put(survivor)
    graph.put(replace(new, archived=True, archived_reason="merged", parent_id=target.id))
    repoint(graph, new.id, target.id)
    return survivor


def skip(graph: Graph, new: Memory, survivor: Memory) -> None:
    """Archive a memory of which nothing is new."""
    graph.put(replace(new, archived=True, archived_reason="duplicate", parent_id=survivor.id))
    graph.change(survivor.id, child_ids=unique([*survivor.child_ids, new.id]))
    repoint(graph, new.id, survivor.id)


def record_values(memory: Memory, values: Mapping[str, str], seq: int, source: str) -> Memory:
    """Give fields new values that somebody made; the old ones go to the history."""
    made = [{"field": name, "value": value, "seq": seq, "rank": 1, "from": source} for name, value in values.items()]
    return _with_values(memory, [*_entries(memory), *made])


def _own_fields(new: Memory, target: Memory, given: object) -> dict[str, str]:
    """Keep what somebody chose for fields that such memories have."""
    if not isinstance(given, Mapping):
        return {}
    known = {*FACE, *new.fields, *target.fields}
    return {name: value for name, value in given.items() if name in known and isinstance(value, str) and value.strip()}


def _filled(target: Memory, new: Memory) -> Memory:
    face = {name: getattr(target, name) or getattr(new, name) for name in FACE}
    missing = {name: value for name, value in new.fields.items() if value and not target.fields.get(name)}
    return replace(target, **face, fields={**target.fields, **missing})


def _entries(memory: Memory) -> list[Entry]:
    """List the values of a memory: those of its history, and those in force that the history does not know."""
    known = {(entry["field"], entry["value"]) for entry in memory.history}
    now = {**{name: getattr(memory, name) for name in FACE}, **memory.fields}
    fresh = [
        {"field": name, "value": value, "seq": memory.seq, "rank": 0, "from": memory.id}
        for name, value in now.items()
        if value and (name, value) not in known
    ]
    return [*memory.history, *fresh]


def _with_values(memory: Memory, entries: Iterable[Entry]) -> Memory:
    """Put the greatest value of each field in force, and all of them into the history."""
    every = {_order(entry): entry for entry in entries}
    history = tuple(every[key] for key in sorted(every))
    now = {entry["field"]: entry["value"] for entry in history}  # the last of each field wins
    face = {name: now.pop(name, getattr(memory, name)) for name in FACE}
    return replace(memory, **face, fields={**memory.fields, **now}, history=history)


def _order(entry: Entry) -> tuple[Any, ...]:
    return entry["seq"], entry.get("rank", 0), entry["field"], entry["value"], entry["from"]


def _latest(*times: Any) -> Any:
    return max((at for at in times if at), default=None)
