"""A full-text index on DuckDB, in immutable parts.

    index/<name>/current.json      which parts are in force
    index/<name>/<stamp>.duckdb    a part: docs, terms, postings, and the keys of older parts it makes void

A large base and a small fresh part are searched together and score like one index. A new generation is
built aside and put in force by renaming the pointer, so readers never wait and a crash leaves the old one.
"""

import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import orjson
from filelock import FileLock

from memex.errors import translated_os_errors
from memex.search.part import Doc, Part, build_part, sql
from memex.search.query import Filters
from memex.search.tokens import query_tokens

if TYPE_CHECKING:
    import duckdb

FRESH_SHARE = 0.2
FRESH_MINIMUM = 2000
"""The fresh part joins the base when it is larger than both this and its share of the base."""
MAX_QUERY_TOKENS = 64
READ_ATTEMPTS = 6


@dataclass(frozen=True, slots=True)
class Change:
    """What a refresh has to write: keys to `add`, keys of the base to `drop`; or the `whole` index anew."""

    add: frozenset[str] = frozenset()
    drop: frozenset[str] = frozenset()
    whole: bool = False

    @property
    def empty(self) -> bool:
        """Whether the index is as wanted."""
        return not (self.add or self.drop or self.whole)


class TextIndex:
    """One index below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def compare(self, wanted: Mapping[str, str]) -> Change:
        """Compare the wanted documents (key → digest) with the indexed ones."""
        parts = self._parts()
        if not parts:
            return Change(frozenset(wanted), frozenset(), whole=bool(wanted))
        base = self._read(parts[0], "SELECT key, digest FROM docs")
        add = {key: digest for key, digest in wanted.items() if base.get(key) != digest}
        drop = frozenset(key for key, digest in base.items() if wanted.get(key) != digest)
        if len(add) + len(drop) > max(FRESH_MINIMUM, FRESH_SHARE * len(base)):
            return Change(frozenset(wanted), frozenset(), whole=True)
        fresh = self._read(parts[1], "SELECT key, digest FROM docs") if len(parts) > 1 else {}
        void = self._read(parts[1], "SELECT key, key FROM dead") if len(parts) > 1 else {}
        if fresh == add and frozenset(void) == drop:
            return Change()
        return Change(frozenset(add), drop)

    def refresh(
        self,
        wanted: Callable[[], Mapping[str, str]],
        docs: Callable[[frozenset[str]], Iterable[Doc]],
        whole: bool = False,
    ) -> int:
        """Bring the index to the wanted documents; return how many were written. One writer at a time.

        Raises:
            DiskFull: no space left; the generation before stays in force.
        """
        with translated_os_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            with FileLock(self.root / "write.lock"):
                digests = wanted()
                change = Change(frozenset(digests), whole=True) if whole else self.compare(digests)
                if change.empty:
                    return 0
                kept = [] if change.whole else self._parts()[:1]
                part = build_part(self.root, docs(change.add), change.drop)
                self._point([*kept, part])
        return part.docs

    def search(self, text: str, filters: Filters, limit: int) -> list[dict[str, Any]]:
        """Find documents by BM25, best first: the columns of Doc, and `score`. Any text is legal."""
        tokens = query_tokens(text)[:MAX_QUERY_TOKENS]
        for attempt in range(READ_ATTEMPTS):
            parts = self._parts()
            if not tokens or not parts:
                return []
            try:
                with closing(self._open(parts)) as connection:
                    return _ranked(connection, parts, tokens, filters, limit)
            except Exception as error:  # a part was replaced between reading the pointer and opening it
                if attempt == READ_ATTEMPTS - 1 or all((self.root / part.name).exists() for part in parts):
                    raise error
                time.sleep(0.02 * 2**attempt)
        return []

    def count(self) -> int:
        """Count the documents in force."""
        return sum(part.docs for part in self._parts()) - sum(part.dead for part in self._parts())

    def _open(self, parts: Sequence[Part]) -> "duckdb.DuckDBPyConnection":
        import duckdb

        connection = duckdb.connect()
        for number, part in enumerate(parts):
            path = str(self.root / part.name).replace("'", "''")
            connection.execute(f"ATTACH '{path}' AS p{number} (READ_ONLY)")
        return connection

    def _read(self, part: Part, query: str) -> dict[str, str]:
        import duckdb

        with closing(duckdb.connect(str(self.root / part.name), read_only=True)) as connection:
            return dict(connection.execute(query).fetchall())

    def _parts(self) -> list[Part]:
        try:
            return [Part(**part) for part in orjson.loads((self.root / "current.json").read_bytes())]
        except (FileNotFoundError, orjson.JSONDecodeError, TypeError):
            return []

    def _point(self, parts: Sequence[Part]) -> None:
        aside = self.root / f"current.{uuid4().hex[:6]}.aside"
        aside.write_bytes(orjson.dumps([asdict(part) for part in parts]))
        aside.replace(self.root / "current.json")
        names = {part.name for part in parts}
        for path in self.root.glob("*.duckdb*"):
            if path.name.removesuffix(".wal") in names:
                continue
            if path.is_dir():  # what a killed writer had no room for in memory
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _ranked(
    connection: "duckdb.DuckDBPyConnection",
    parts: Sequence[Part],
    tokens: Sequence[str],
    filters: Filters,
    limit: int,
) -> list[dict[str, Any]]:
    condition, values = filters.as_sql()
    numbers = range(len(parts))
    alive = " WHERE key NOT IN (SELECT key FROM p1.dead)" if len(parts) > 1 else ""
    query = sql("search_bm25").format(
        postings=" UNION ALL ".join(
            f"SELECT {n} AS part, doc, tf::DOUBLE AS tf, len::DOUBLE AS len, term "
            f"FROM p{n}.postings JOIN p{n}.terms USING (tid) JOIN asked USING (term)"
            for n in numbers
        ),
        docs=" UNION ALL ".join(f"SELECT {n} AS part, * FROM p{n}.docs" + (alive if n == 0 else "") for n in numbers),
        filters=condition,
    )
    docs = sum(part.docs for part in parts)
    mean = max(1.0, sum(part.length for part in parts) / max(1, docs))
    cursor = connection.execute(
        query, {**values, "tokens": list(tokens), "limit": limit, "docs": docs, "mean_length": mean}
    )
    names = [column[0] for column in cursor.description or ()]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return [{**row, "ts": row["ts"] and row["ts"].replace(tzinfo=UTC)} for row in rows]
