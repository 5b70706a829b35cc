"""A full-text index on DuckDB, in immutable parts.

    index/<name>/current.json      which parts are in force, oldest first
    index/<name>/<stamp>.duckdb    a part: docs, terms, postings, and the documents of older parts it makes void

The parts are searched together and score like one index. A refresh writes one new part of what changed, and takes
in the newest ones until each part is several times larger than the next: an addition costs about what it adds,
and there are few parts. A new generation is built aside and put in force by renaming the pointer, so readers never
wait and a crash leaves the old one.
"""

import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import orjson
from filelock import FileLock

from memex.errors import DamagedIndex, translated_os_errors
from memex.search.part import Doc, Part, Place, build_part, quoted
from memex.search.query import Query
from memex.search.rank import count_documents, ranked
from memex.search.tokens import RULES

if TYPE_CHECKING:
    import duckdb

Result = TypeVar("Result")

GROWTH = 4
"""A part is at least so many times larger than the next newer one."""
READ_ATTEMPTS = 6


@dataclass(frozen=True, slots=True)
class Change:
    """What a refresh has to write: keys to `add`, and the documents that are `void`."""

    add: frozenset[str] = frozenset()
    void: frozenset[Place] = frozenset()

    @property
    def empty(self) -> bool:
        """Whether the index is as wanted."""
        return not (self.add or self.void)


class TextIndex:
    """One index below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = Lock()
        self._opened: tuple[list[Part], duckdb.DuckDBPyConnection] | None = None

    def compare(self, wanted: Mapping[str, str], sessions: Sequence[str] | None = None) -> Change:
        """Compare the wanted documents (key → digest) with the indexed ones, all or those of some sessions."""
        indexed = self._read(lambda connection, parts: _indexed(connection, parts, sessions)) or {}
        add = frozenset(key for key, digest in wanted.items() if key not in indexed or indexed[key][0] != digest)
        return Change(add, frozenset(place for key, (digest, place) in indexed.items() if wanted.get(key) != digest))

    def refresh(
        self,
        wanted: Callable[[], Mapping[str, str]],
        docs: Callable[[frozenset[str]], Iterable[Doc]],
        whole: bool = False,
        sessions: Sequence[str] | None = None,
    ) -> int:
        """Bring the index to the wanted documents; return how many were written. One writer at a time.

        `sessions` says that only their documents are wanted now: those of all others stay as they are.

        Raises:
            DiskFull: no space left; the generation before stays in force.
        """
        with translated_os_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            with FileLock(self.root / "write.lock"):
                digests = wanted()
                change = Change(frozenset(digests)) if whole else self.compare(digests, sessions)
                if change.empty and not whole:
                    return 0
                kept, folded = _settled([] if whole else self._parts(), len(change.add) + len(change.void))
                self._point([*kept, build_part(self.root, docs(change.add), change.void, folded)])
        return len(change.add)

    def search(self, query: Query, limit: int) -> list[dict[str, Any]]:
        """Find documents by BM25, best first: the columns of Doc, and `score`."""
        return self._read(lambda connection, parts: ranked(connection, parts, query, limit)) or []

    def frequencies(self, tokens: Sequence[str]) -> tuple[dict[str, int], int]:
        """Count the documents that have each token, voided ones included, and all documents."""

        def read(connection: "duckdb.DuckDBPyConnection", parts: Sequence[Part]) -> tuple[dict[str, int], int]:
            return count_documents(connection, len(parts), tokens), sum(part.docs for part in parts)

        return self._read(read) or ({}, 0)

    def count(self) -> int:
        """Count the documents in force."""
        return sum(part.docs - part.void for part in self._parts())

    def _read(self, read: "Callable[[duckdb.DuckDBPyConnection, Sequence[Part]], Result]") -> Result | None:
        """Read the parts in force; None when there are none.

        Raises:
            DamagedIndex: a part is gone, or not what was written.
        """
        import duckdb

        for attempt in range(READ_ATTEMPTS):
            parts = self._parts()
            if not parts:
                return None
            try:
                with closing(self._open(parts)) as connection:
                    return read(connection, parts)
            except duckdb.Error as error:
                if attempt == READ_ATTEMPTS - 1 or all((self.root / part.name).exists() for part in parts):
                    raise DamagedIndex(
                        f"{self.root} cannot be read: {error}", "memex doctor --mend makes it anew"
                    ) from error
                time.sleep(0.02 * 2**attempt)  # a part was replaced between reading the pointer and opening it
        return None

    def _open(self, parts: list[Part]) -> "duckdb.DuckDBPyConnection":
        """Open the parts, or open them still: for one thread, which closes what it got."""
        import duckdb

        with self._lock:
            if self._opened is None or self._opened[0] != parts:
                connection = duckdb.connect(config={"threads": 1})  # more only wait for each other
                for number, part in enumerate(parts):
                    connection.execute(f"ATTACH '{quoted(self.root / part.name)}' AS p{number} (READ_ONLY)")
                self._opened = parts, connection
            return self._opened[1].cursor()

    def _parts(self) -> list[Part]:
        """Read which parts are in force; none, when they were made by other rules than those of today."""
        try:
            parts = [Part(**part) for part in orjson.loads((self.root / "current.json").read_bytes())]
        except (FileNotFoundError, orjson.JSONDecodeError, TypeError):
            return []
        return parts if all(part.rules == RULES for part in parts) else []

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


def _indexed(
    connection: "duckdb.DuckDBPyConnection", parts: Sequence[Part], sessions: Sequence[str] | None
) -> dict[str, tuple[str, Place]]:
    """Read digest and place of the documents in force, by key."""

    def read(query: str, values: Sequence[Any] = ()) -> list[Any]:
        rows: list[Any] = connection.execute(query, list(values)).fetchall()
        return rows

    where = "" if sessions is None else " WHERE session_id IN (SELECT unnest($1::VARCHAR[]))"
    values = [] if sessions is None else [list(sessions)]
    void = {place for n in range(len(parts)) for place in read(f"SELECT part, doc FROM p{n}.void")}
    return {
        key: (digest, (part.name, doc))
        for n, part in enumerate(parts)
        for key, digest, doc in read(f"SELECT key, digest, doc FROM p{n}.docs{where}", values)
        if (part.name, doc) not in void
    }


def _settled(parts: Sequence[Part], size: int) -> tuple[list[Part], list[Part]]:
    """Split parts into those that stay, and those that a new one of `size` takes in."""
    stay = len(parts)
    while stay and parts[stay - 1].size < GROWTH * size:
        stay -= 1
        size += parts[stay].size
    return list(parts[:stay]), list(parts[stay:])
