"""Builds memories, talks and deciders."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from memex.maintain.consolidate import Near
from memex.maintain.decide import Candidate, Rules, Told
from memex.maintain.rollup import Extraction
from memex.model import Memory

NOW = datetime(2026, 9, 1, 12, tzinfo=UTC)


def memory(called: str, kind: str = "event", seq: int = 0, /, **fields: Any) -> Memory:
    """An active memory of project `p`, that says its id and name."""
    made: dict[str, Any] = {
        "id": called, "kind": kind, "seq": seq, "seq_from": seq, "seq_to": seq, "name": called,
        "text": f"It is {called}.",
        "project_id": "p", "occurred_at": NOW - timedelta(days=9), "ingested_at": NOW - timedelta(days=9),
    }  # fmt: skip
    return Memory(**{**made, **fields})


def leaves(count: int, kind: str = "event", **fields: Any) -> list[Memory]:
    """So many leaves, in order."""
    return [memory(f"{kind}{n:03}", kind, n, session_id="claude:s", **fields) for n in range(count)]


def talks(count: int, first: int = 1) -> list[Extraction]:
    """So many compacted talks, in order of time."""
    return [
        Extraction(f"l2-{n:03}", f"Talk {n} changed file{n}.py.", NOW + timedelta(hours=n), 2)
        for n in range(first, first + count)
    ]


class Scripted(Rules):
    """Answers what a test says; parents and digests as the rules write them."""

    provider = "scripted"

    def __init__(self, answer: Callable[[Candidate], Any] | None = None, batch: int = 200) -> None:
        super().__init__()
        self.batch = batch
        self.asked: list[Sequence[Candidate]] = []
        self._answer = answer

    def consolidate(self, candidates: Sequence[Candidate]) -> Sequence[Mapping[str, Any]]:
        self.asked.append(candidates)
        if self._answer is None:
            return super().consolidate(candidates)
        answers = [self._answer(candidate) for candidate in candidates]
        return [{"id": c.number, **a} for c, a in zip(candidates, answers, strict=True) if a is not None]


class Silent(Rules):
    """Says nothing from the nth parent or digest on."""

    def __init__(self, after: int = 0, error: Exception | None = None) -> None:
        super().__init__()
        self.left = after
        self._error = error

    def parent(self, kind: str, children: Sequence[Memory]) -> Told | None:
        return super().parent(kind, children) if self._speaks() else None

    def digest(self, texts: Sequence[str], least: int, most: int) -> str:
        return super().digest(texts, least, most) if self._speaks() else "  "

    def _speaks(self) -> bool:
        self.left -= 1
        if self.left < 0 and self._error:
            raise self._error
        return self.left >= 0


def everyone_near(memories: Sequence[Memory], score: float = 0.9) -> dict[str, list[Near]]:
    """Every memory is a neighbour of every other."""
    return {a.id: [(b.id, score, 0.9) for b in memories if b.id != a.id] for a in memories}
