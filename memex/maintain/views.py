"""What people ask about memories: a list, and one of them with all that it came from, down to the lines of the log."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memex.errors import NotFound
from memex.maintain.stored import read_records
from memex.model import Memory
from memex.store.lake import Lake, in_list
from memex.text import clip_units, one_line

_LISTED = ["id", "kind", "level", "project_id", "name", "text", "importance", "access_count", "occurred_at", "seq",
           "archived", "archived_reason", "parent_id", "valid_from", "valid_to"]  # fmt: skip
_SUMMARIES = {"observations": "title", "talk_summaries": "user_request"}
HEAD_UNITS = 30
DEEPEST = 12


def list_memories(
    lake: Lake, projects: Sequence[str] | None, kind: str = "", archived: bool = False, limit: int = 50
) -> list[dict[str, Any]]:
    """List memories, newest first: the active ones, or the archived."""
    parts = ["archived" if archived else "NOT archived"]
    if projects is not None:
        parts.append(in_list("project_id", list(projects)))
    if kind:
        parts.append(in_list("kind", [kind]))
    rows = lake.frame("memories", _LISTED, " AND ".join(parts))
    return rows.sort("seq", "id", descending=True).head(limit).drop("seq").to_dicts()


def find_memory(lake: Lake, name: str) -> str:
    """Complete the id of a memory from its beginning.

    Raises:
        NotFound: no memory, or more than one, begins like that.
    """
    ids = lake.scan("memories", ["id"])["id"].to_pylist()
    found = sorted(i for i in ids if name and i.startswith(name))
    if len(found) == 1 or name in found:
        return name if name in found else str(found[0])
    if not found:
        raise NotFound(f"no memory is called {name!r}", "memex memories lists them")
    raise NotFound(f"{len(found)} memories begin with {name!r}", "give more of the id")


def show_memory(lake: Lake, memory_id: str) -> dict[str, Any]:
    """Read a memory with its history, its edges, what it went into, what went into it, and the lines behind it."""
    [memory] = read_records(lake, "memories", in_list("id", [memory_id]))
    below = _below(lake, memory)
    ends = f"{in_list('source', [memory_id])} OR {in_list('target', [memory_id])}"
    edges = lake.scan("edges", ["source", "target", "relation", "strength", "valid_at", "invalid_at"], ends).to_pylist()
    sources = [source for one in (memory, *below) for source in one.sources]
    return {
        "memory": _plain(memory),
        "history": [dict(entry) for entry in memory.history],
        "edges": edges,
        "above": [_head(one) for one in _above(lake, memory)],
        "children": [_head(one) for one in below],
        "sources": list(_sources(lake, sources)),
    }


def _plain(memory: Memory) -> dict[str, Any]:
    names = [name for name in Memory.__slots__ if name not in ("history", "sources")]
    return {name: getattr(memory, name) for name in names}


def _head(memory: Memory) -> dict[str, Any]:
    return {
        "id": memory.id,
        "kind": memory.kind,
        "level": memory.level,
        "name": memory.name,
        "text": clip_units(one_line(memory.text), HEAD_UNITS),
        "archived_reason": memory.archived_reason,
    }


def _below(lake: Lake, memory: Memory) -> list[Memory]:
    """Read all that went into a memory, level by level."""
    found: dict[str, Memory] = {}
    wanted = [*memory.child_ids]
    while wanted:
        level = read_records(lake, "memories", in_list("id", wanted))
        found.update({one.id: one for one in level})
        wanted = [child for one in level for child in one.child_ids if child not in found]
    return list(found.values())


def _above(lake: Lake, memory: Memory) -> list[Memory]:
    path: list[Memory] = []
    while memory.parent_id and len(path) < DEEPEST:
        above = read_records(lake, "memories", in_list("id", [memory.parent_id]))
        if not above or above[0] in path:
            break
        memory = above[0]
        path.append(memory)
    return path


def _sources(lake: Lake, ids: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """Follow summaries to the messages and calls that they were made from."""
    wanted = in_list("id", sorted(set(ids)))
    for table, title in _SUMMARIES.items():
        rows = lake.scan(table, ["id", "session_id", "prompt_number", "sources", title], wanted).to_pylist()
        for row in rows:
            lines = list(_lines(lake, row["sources"] or ()))
            yield {
                "table": table,
                "id": row["id"],
                "session_id": row["session_id"],
                "prompt_number": row["prompt_number"],
                "what": clip_units(one_line(row[title]), HEAD_UNITS),
                "lines": lines,
            }


def _lines(lake: Lake, ids: Sequence[str]) -> Iterator[dict[str, Any]]:
    wanted = in_list("id", list(ids))
    for row in lake.scan("messages", ["seq", "role", "text", "source_id", "offset"], wanted).to_pylist():
        yield _line(row, row["role"], row["text"])
    for row in lake.scan("tool_calls", ["seq", "name", "input", "source_id", "offset"], wanted).to_pylist():
        yield _line(row, row["name"], row["input"])


def _line(row: Mapping[str, Any], who: str, text: str) -> dict[str, Any]:
    head = clip_units(one_line(text), HEAD_UNITS)
    return {"seq": row["seq"], "who": who, "text": head, "source_id": row["source_id"], "offset": row["offset"]}
