"""What a new memory may be the same as: by its name, by rare words in common, by vectors from the lake."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from memex.maintain.consolidate import Near
from memex.maintain.identity import compatible, names_of
from memex.maintain.kinds import kinds
from memex.maintain.similar import Similarity, lexical, said, words
from memex.model import Memory
from memex.store.lake import Lake, in_list

if TYPE_CHECKING:
    import numpy as np

RARE = 40
"""A word that more memories have tells nothing."""
LOOKED_AT = 8
"""The rarest words of a memory that are looked up."""
SPARE = 3
"""So many times as many neighbours are read as are shown: some are not compatible."""
QUESTIONS = 256
"""Vectors that are looked for at once."""


class Neighbourhood:
    """The active leaves of one scope, ready to be asked for what is like one of them."""

    def __init__(self, active: Sequence[Memory], similarity: Similarity, limit: int = 5) -> None:
        self._by_id = {memory.id: memory for memory in active if memory.level == 0 and not memory.archived}
        self._similarity = similarity
        self._limit = limit
        self._words = {name: words(said(memory)) for name, memory in self._by_id.items()}
        self._by_name = _inverted((m.id, {f"{m.kind} {n}" for n in names_of(m)}) for m in self._by_id.values())
        self._by_word = _inverted(
            (m.id, {f"{m.kind} {word}" for word in self._words[m.id]}) for m in self._by_id.values()
        )

    def near(self, new: Memory, cosines: Sequence[tuple[str, float]] = ()) -> list[Near]:
        """List the neighbours of a memory, the best first: namesakes, then by similarity and common words.

        `cosines` are ids with the cosine of their vector to the memory's own.
        """
        raw = dict(cosines)
        names = {*self._namesakes(new), *self._wordsakes(new), *raw} - {new.id}
        mine = self._words.get(new.id) or words(said(new))
        found: list[tuple[bool, float, Near]] = []
        for name in names:
            other = self._by_id.get(name)
            if other is None or not compatible(new, other):
                continue
            score = self._similarity(said(new), said(other), raw[name]) if name in raw else None
            common = lexical(mine, self._words[name])
            twin = kinds()[new.kind].latest_only and bool(names_of(new) & names_of(other))
            found.append((not twin, -max(score or 0.0, common), (name, score, common)))
        return [near for _twin, _rank, near in sorted(found)[: self._limit]]

    def _namesakes(self, new: Memory) -> Iterable[str]:
        return (i for name in names_of(new) for i in self._by_name.get(f"{new.kind} {name}", ()))

    def _wordsakes(self, new: Memory) -> Iterable[str]:
        """Find those with which it shares most of its rarest words."""
        keys = [f"{new.kind} {word}" for word in self._words.get(new.id) or words(said(new))]
        known = sorted((len(self._by_word[key]), key) for key in keys if key in self._by_word)
        rare = [key for count, key in known if (new.id in self._by_id) < count <= RARE][:LOOKED_AT]
        shared: dict[str, int] = {}
        for key in rare:
            for name in self._by_word[key]:
                shared[name] = shared.get(name, 0) + 1
        return sorted(shared, key=lambda name: (-shared[name], name))[: self._limit * SPARE]


def vectors_of(lake: Lake, ids: Sequence[str], model: str) -> tuple[list[str], "np.ndarray"]:
    """Read the vectors of memories that have one of this model: their ids, and one row each."""
    import numpy as np

    none = np.empty((0, lake.dimension("memories")), np.float32)
    if not ids or not none.shape[1]:
        return [], none
    rows = lake.scan("memories", ["id", "vector"], f"{in_list('id', ids)} AND vector_model = '{model}'")
    if not rows.num_rows:
        return [], none
    values = rows["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return rows["id"].to_pylist(), values.reshape(rows.num_rows, -1)


def nearest_by_vector(
    lake: Lake, new: Sequence[Memory], model: str, limit: int
) -> Mapping[str, list[tuple[str, float]]]:
    """Look for the active memories of the same kind and scope whose vectors are nearest; (id, cosine), best first."""
    found: dict[str, list[tuple[str, float]]] = {}
    groups: dict[tuple[str, str, str], list[str]] = {}
    for memory in new:
        groups.setdefault((memory.owner, memory.project_id, memory.kind), []).append(memory.id)
    for (owner, project, kind), ids in groups.items():
        where = (
            f"NOT archived AND level = 0 AND kind = '{kind}' AND vector_model = '{model}' AND "
            f"{in_list('owner', [owner])} AND {in_list('project_id', [project])}"
        )
        for start in range(0, len(ids), QUESTIONS):
            asked, vectors = vectors_of(lake, ids[start : start + QUESTIONS], model)
            if asked:
                rows = lake.nearest_each("memories", vectors, limit * SPARE + 1, ["id"], where)
                for row in rows.to_pylist():
                    found.setdefault(asked[row["query_index"]], []).append((row["id"], 1 - row["_distance"]))
    return found


def _inverted(items: Iterable[tuple[str, Iterable[str]]]) -> dict[str, list[str]]:
    index: dict[str, list[str]] = {}
    for name, keys in items:
        for key in keys:
            index.setdefault(key, []).append(name)
    return index
