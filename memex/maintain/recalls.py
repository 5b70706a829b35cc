"""Recall events: appended by whoever shows memories to somebody, folded into the memories by maintenance.

    journal/recalls-2026-09-01.jsonl    one line an event: {"at": …, "how": "selected", "memories": [ids]}

Only what was selected for a question counts, not what is always shown. How far a file is folded in, is kept with
the counters that it led to, for each scope.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import orjson

from memex.errors import translated_os_errors
from memex.maintain.graph import Graph, Unit
from memex.text import digest

How = Literal["selected", "always"]
GAIN = 0.1
"""What a recall adds to the importance of a memory."""
MOST = 10.0


def note_recall(folder: Path, memories: Sequence[str], at: datetime, how: How = "selected") -> None:
    """Append one event; several processes may do so at once."""
    line = orjson.dumps({"at": at.isoformat(), "how": how, "memories": list(memories)}) + b"\n"
    with translated_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / f"recalls-{at:%Y-%m-%d}.jsonl"
        out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(out, line)
        finally:
            os.close(out)


def fold_recalls(graph: Graph, folder: Path, folded: Mapping[str, int]) -> list[Unit]:
    """Plan the counters of a scope: one unit a file that has events beyond what is `folded` (bytes, by its name).

    The unit's `why` is the file's name and its `count` the bytes that are folded with it.
    """
    graph = graph.copy()
    units = []
    for path in sorted(folder.glob("recalls-*.jsonl")):
        start = folded.get(path.name, 0)
        events, end = _events(path, start)
        graph.begin()
        for event in events:
            _count(graph, event)
        unit = graph.end("recall", digest("recall", path.name, str(end)), path.name, undoable=False)
        if unit:
            units.append(replace(unit, count=end))
    return units


def _count(graph: Graph, event: Mapping[str, Any]) -> None:
    at = datetime.fromisoformat(event["at"])
    for name in dict.fromkeys(event["memories"]):
        memory = graph.memories.get(name)
        if memory is not None:
            latest = max(at, memory.last_access_at) if memory.last_access_at else at
            graph.change(
                name,
                access_count=max(0, memory.access_count) + 1,
                importance=min(MOST, memory.importance + GAIN),
                last_access_at=latest,
            )


def _events(path: Path, start: int) -> tuple[list[dict[str, Any]], int]:
    """Read the whole lines from `start` on; return the events that count, and where the lines end."""
    data = path.read_bytes()[start:]
    data = data[: data.rfind(b"\n") + 1]
    return list(_selected(data)), start + len(data)


def _selected(data: bytes) -> Iterator[dict[str, Any]]:
    for line in data.splitlines():
        try:
            event = orjson.loads(line)
            at = datetime.fromisoformat(event["at"])
            if event["how"] == "selected" and at.tzinfo and all(isinstance(m, str) for m in event["memories"]):
                yield event
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            continue  # torn by a crash, or no event
