"""What may be worth telling for a prompt: by words, and, when the vector comes in time, by meaning.

Words are looked up in the full-text index of L1-L3 and in the memories, which are kept in memory and read again when
their table has changed. Vectors are compared by the lake. What either finds is then compared with the prompt itself,
so that every candidate has the same measures whichever way it was found.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any

from memex.embed.base import Embedder
from memex.inject.evidence import paths_in, words_of
from memex.maintain.similar import said
from memex.maintain.stored import record_of
from memex.model import Memory
from memex.search.calibration import language, load_calibrations
from memex.search.documents import content_of
from memex.search.query import Filters, Query
from memex.search.text import TextIndex
from memex.search.vectors import LEVELS, SUMMARIES
from memex.store.lake import Lake, in_list

DEPTH = 24
"""Candidates by words, and by meaning of each level."""
MEMORIES = "memories"
_MEMORY = ["id", "kind", "level", "project_id", "name", "text", "importance", "occurred_at", "session_id",
           "prompt_number", "valid_to"]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something of a level (`observations`, `talks`, `sessions`, `memories`) that may be told.

    `text` is what it is compared by. `similarity` is calibrated, None when no vector of it was compared.
    """

    id: str
    level: str
    kind: str
    session_id: str
    prompt_number: int
    project_id: str
    text: str
    files: tuple[str, ...] = ()
    at: datetime | None = None
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Near:
    """What the vectors found; `least` is the smallest similarity that each level's list goes down to."""

    candidates: tuple[Candidate, ...] = ()
    least: Mapping[str, float] = field(default_factory=dict)


@dataclass
class Candidates:
    """The legs, with what they keep in memory. Projects None stands for all of them."""

    open_lake: Callable[[], Lake]
    summaries: TextIndex
    open_embedder: Callable[[], Embedder | None]
    calibrations: Path
    _memories: tuple[tuple[int, int], list[Candidate]] | None = field(default=None, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def by_words(self, text: str, words: Sequence[str], project: str | None) -> list[Candidate]:
        """Find L1-L3 by BM25, and memories by how many of the words they have."""
        filters = Filters(levels=SUMMARIES, project=project or "")
        rows = self.summaries.search(Query(text, filters=filters), DEPTH)
        found = [_of_document(row) for row in rows if project in (None, row["project_id"])]
        return found + self._memories_with(frozenset(words), project)

    def by_meaning(self, text: str, project: str | None) -> Near:
        """Embed a prompt and find what is nearest to it, of every level; slow while the processor is busy."""
        embedder = self.open_embedder()
        if embedder is None:
            return Near()
        lake, vector = self.open_lake(), embedder.query(text)
        maps = load_calibrations(self.calibrations, embedder.model)[1]
        found: list[Candidate] = []
        least: dict[str, float] = {}
        for level in (*SUMMARIES, MEMORIES):
            table = MEMORIES if level == MEMORIES else LEVELS[level].table
            where = f"served AND NOT archived AND {_active(project)}" if level == MEMORIES else _mine(project)
            if lake.dimension(table) != embedder.dimension:
                continue
            columns = _MEMORY if level == MEMORIES else _columns(lake, table)
            where = f"{where} AND vector_model = '{embedder.model}'"
            for row in lake.nearest(table, vector, DEPTH, columns, where).to_pylist():
                candidate = _of_memory(row) if level == MEMORIES else _of_summary(level, row)
                calibration = maps.get(("query", language(text), language(candidate.text)))
                if calibration:
                    similarity = calibration(1 - row["_distance"])
                    least[level] = min(similarity, least.get(level, 1.0))
                    found.append(replace(candidate, similarity=similarity))
        return Near(tuple(found), least)

    def memories(self) -> list[Candidate]:
        """List the active memories of all projects, as they are now."""
        lake = self.open_lake()
        state = (lake.dataset(MEMORIES).version, lake.epoch())
        with self._lock:
            if self._memories is None or self._memories[0] != state:
                rows = lake.scan(MEMORIES, _MEMORY, "NOT archived").to_pylist()
                self._memories = state, [_of_memory(row) for row in rows]
            return self._memories[1]

    def _memories_with(self, words: frozenset[str], project: str | None) -> list[Candidate]:
        """Find the memories of a project, and of the person, that have the most of some words."""
        mine = (one for one in self.memories() if project is None or one.project_id in ("", project))
        counted = [(len(words & words_of(one.text)), one) for one in mine]
        best = sorted((pair for pair in counted if pair[0]), key=lambda pair: (-pair[0], pair[1].id))
        return [one for _count, one in best[:DEPTH]]


def merged(words: Sequence[Candidate], near: Near | None) -> list[Candidate]:
    """Put the legs together. What only words found is at most as similar as the last that the vectors found."""
    if near is None or not near.least:
        return list({one.id: one for one in words}.values())
    known = {one.id: one for one in near.candidates}
    for one in words:
        known.setdefault(one.id, replace(one, similarity=near.least.get(one.level, min(near.least.values()))))
    return list(known.values())


def _mine(project: str | None) -> str:
    return "served" if project is None else f"served AND {in_list('project_id', [project])}"


def _active(project: str | None) -> str:
    return "true" if project is None else in_list("project_id", ["", project])


def _columns(lake: Lake, table: str) -> list[str]:
    return [name for name in lake.dataset(table).schema.names if name != "vector"]


def _of_document(row: Mapping[str, Any]) -> Candidate:
    return Candidate(
        row["key"], row["level"], row["type"] or row["level"], row["session_id"], row["prompt_number"] or 0,
        row["project_id"], row["content"], tuple(paths_in(row["content"])), row["ts"],
    )  # fmt: skip


def _of_summary(level: str, row: Mapping[str, Any]) -> Candidate:
    names = ("files_involved", "files_read", "files_modified")
    files = tuple(path for name in names for path in row.get(name) or ())
    more = "\n".join((row.get("completed") or "", *(row.get("facts") or ()), *(row.get("technologies") or ())))
    text = "\n".join((content_of(level, row), more, *files))
    return Candidate(
        row["id"], level, row.get("type") or level, row["session_id"], row.get("prompt_number") or 0,
        row["project_id"], text, files, row["occurred_at"],
    )  # fmt: skip


def _of_memory(row: Mapping[str, Any]) -> Candidate:
    memory = record_of(MEMORIES, {name: value for name, value in row.items() if name in _MEMORY})
    assert isinstance(memory, Memory)
    text = said(memory)
    return Candidate(
        memory.id, MEMORIES, memory.kind, memory.session_id, memory.prompt_number, memory.project_id, text,
        tuple(paths_in(text)), memory.occurred_at,
    )  # fmt: skip
