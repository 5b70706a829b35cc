"""Decisions that were amended later, in conversations that others published: a question finds both."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memex.llm.base import TalkInput
from memex.llm.extractive import ExtractiveWriter
from memex.maintain.consolidate import consolidate
from memex.maintain.decide import Rules
from memex.maintain.derive import seq_of
from memex.maintain.extract import ExtractiveMemories, TalkRows
from memex.maintain.graph import Graph
from memex.maintain.neighbours import Neighbourhood
from memex.maintain.recall import recall
from memex.maintain.similar import Similarity
from memex.model import Memory
from memex.text import digest, sentences

pytestmark = pytest.mark.corpus
START = datetime(2026, 1, 1, tzinfo=UTC)
Turns = list[dict[str, str]]


def talks(turns: Turns) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Cut a conversation into requests and their replies."""
    starts = [n for n, turn in enumerate(turns) if turn["role"] == "user"]
    for start, end in zip(starts, [*starts[1:], len(turns)], strict=True):
        yield turns[start]["text"], tuple(turn["text"] for turn in turns[start + 1 : end])


def memories_of(turns: Turns, session: str, day: int) -> Iterator[Memory]:
    """Make the memories of a conversation, as ingest, compaction and derivation do."""
    writer, teller = ExtractiveWriter(), ExtractiveMemories()
    for number, (request, replies) in enumerate(talks(turns), 1):
        at = START + timedelta(days=day, minutes=number)
        row: dict[str, Any] = {
            **writer.talk(TalkInput(request, replies, ())).model_dump(),
            "id": f"{session}-{number}",
            "session_id": session,
            "prompt_number": number,
            "occurred_at": at,
        }
        for place, found in enumerate(teller.memories(TalkRows(row))):
            seq = seq_of(at, place)
            yield Memory(
                id=digest(session, str(number), found.kind, found.slot), kind=found.kind, project_id="p",
                name=found.name, text=found.text, seq=seq, seq_from=seq, seq_to=seq, occurred_at=at, session_id=session,
                prompt_number=number,
            )  # fmt: skip


def graph_of(memories: list[Memory]) -> Graph:
    """Consolidate memories without a model."""
    graph = Graph.of(*memories)
    hood = Neighbourhood(memories, Similarity())
    near = {memory.id: hood.near(memory) for memory in memories}
    graph.apply(consolidate(graph, [m.id for m in memories], near, Rules()).units)
    return graph


def test_a_question_finds_the_decision_and_its_amendment(shared: Path):
    folder = shared / "bench" / "sde_bench"
    amended = [t for t in json.loads((folder / "tasks.json").read_text()) if t["source"] == "conversation-amended"]
    decoys = [c["turns"] for c in json.loads((folder / "decoy_conversations.json").read_text())]
    noise = [m for n, turns in enumerate(decoys) for m in memories_of(turns, f"decoy:{n}", n)]
    missed = []
    for task in amended:
        own = [m for n, turns in enumerate(task["conversations"]) for m in memories_of(turns, f"s:{n}", 50 + 60 * n)]
        graph = graph_of([*noise, *own])
        question = sentences(task["bug_report"])[0]
        found = recall(question, list(graph.memories.values()), graph.edges.values(), 5)
        if not {"s:0", "s:1"} <= {one.memory.session_id for one in found}:
            missed.append(task["task_id"])
    assert len(amended) == 6
    assert missed == []
