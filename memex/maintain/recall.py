"""Find memories for a question, one of each talk. One of a session whose decision was replaced, or replaced another,
brings both: why something was dropped is in the two of them.

This ranks what is given; who asks decides which scopes may be looked at, and notes what was shown (`recalls`).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memex.maintain.similar import said, words
from memex.model import Edge, Memory

WEIGHT_OF_VECTORS = 0.5
"""How much a calibrated similarity counts beside the words."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """A memory that answers a question. `because` is the id of the decision that brought it, or ""."""

    memory: Memory
    score: float
    because: str = ""


def recall(
    question: str,
    memories: Sequence[Memory],
    edges: Iterable[Edge],
    limit: int = 5,
    similarities: Mapping[str, float] | None = None,
) -> list[Recalled]:
    """Rank active memories by the rarity of the words that they share with a question; the best come first.

    `similarities` are calibrated ones, by id. A memory that shares no word and is not similar is left out.
    """
    active = {memory.id: memory for memory in memories if not memory.archived}
    scores = _scores(question, active.values())
    for name, similarity in (similarities or {}).items():
        if name in active:
            scores[name] = scores.get(name, 0.0) + WEIGHT_OF_VECTORS * similarity
    partners = _partners(edges, active)
    found: dict[str, Recalled] = {}
    talks: set[tuple[str, int]] = set()
    for name in sorted(scores, key=lambda n: (-scores[n], n)):
        memory = active[name]
        if len(found) >= limit:
            break
        if memory.session_id and (memory.session_id, memory.prompt_number) in talks:
            continue
        talks.add((memory.session_id, memory.prompt_number))
        found.setdefault(name, Recalled(memory, scores[name]))
        for partner in partners.get(memory.session_id or name, ()):
            found.setdefault(partner, Recalled(active[partner], scores.get(partner, 0.0), name))
    return list(found.values())[:limit]


def _scores(question: str, memories: Iterable[Memory]) -> dict[str, float]:
    """Weigh the words in common by their rarity; 1 is a memory that has all words of the question."""
    texts = {memory.id: words(said(memory)) for memory in memories}
    asked = words(question)
    count: dict[str, int] = {}
    for text in texts.values():
        for word in asked & text:
            count[word] = count.get(word, 0) + 1
    weight = {word: math.log(1 + len(texts) / number) for word, number in count.items()}
    whole = sum(weight.values()) or 1.0
    scores = {name: sum(weight[word] for word in asked & text) / whole for name, text in texts.items()}
    return {name: score for name, score in scores.items() if score > 0}


def _partners(edges: Iterable[Edge], active: Mapping[str, Memory]) -> dict[str, list[str]]:
    """List, by session (else by decision), the decisions that were replaced or that replaced one, and both of them."""
    found: dict[str, list[str]] = {}
    for edge in edges:
        if edge.relation == "supersedes" and edge.source in active and edge.target in active:
            for end in (edge.source, edge.target):
                known = found.setdefault(active[end].session_id or end, [])
                known += [name for name in (edge.target, edge.source) if name not in known]
    return found
