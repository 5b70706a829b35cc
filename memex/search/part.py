"""Build one immutable part of a full-text index, in bounded memory: of new documents, and of older parts."""

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from memex.errors import DISK_FULL_HINT, DiskFull, is_disk_full
from memex.search.postings import Vocabulary, count_tokens
from memex.search.tokens import RULES

if TYPE_CHECKING:
    import duckdb

CHUNK = 4000
CHUNK_SIZE = 16 * 1024 * 1024
"""Documents, and characters of them, that are cut into tokens at once."""
ROW_GROUP = 8192
"""Rows that are skipped together when no wanted one is among them: a term is read without most of the others."""


@dataclass(frozen=True, slots=True)
class Doc:
    """A text to be found. `key` is the id of its row in the lake, `digest` changes with its content."""

    key: str
    digest: str
    session_id: str
    prompt_number: int
    level: str
    cli: str
    role: str
    type: str
    project_id: str
    project: str
    ts: datetime | None
    content: str


Place = tuple[str, int]
"""Where a document stands: the name of its part, and its number there."""


@dataclass(frozen=True, slots=True)
class Part:
    """A finished part: its file name, documents, tokens, and how many documents of older parts it voids.

    `rules` are those by which it was made.
    """

    name: str
    docs: int
    length: int
    void: int
    rules: int = 1

    @property
    def size(self) -> int:
        """Documents, and documents voided: what it takes to write it."""
        return self.docs + self.void


@cache
def sql(name: str) -> str:
    """Read a query of this package."""
    return files("memex.search").joinpath(f"sql/{name}.sql").read_text("utf-8")


def quoted(path: Path) -> str:
    """Write a path as it stands between the quotes of SQL."""
    return str(path).replace("'", "''")


def build_part(folder: Path, docs: Iterable[Doc], void: Collection[Place], folded: Sequence[Part] = ()) -> Part:
    """Write new documents, and the living ones of `folded` parts, to a new file in `folder`.

    `void` are documents of any older part that count no longer. Those of the other parts are noted in the new one.

    Raises:
        DiskFull: no space left; the unfinished file is removed.
    """
    import duckdb

    name = f"{time.time_ns():x}-{uuid4().hex[:6]}.duckdb"
    path = folder / name
    try:
        config = {"memory_limit": "600MB", "preserve_insertion_order": False, "temp_directory": f"{path}.tmp"}
        with closing(duckdb.connect(config=config)) as db:
            db.execute(sql("create_part").format(path=quoted(path), rows=ROW_GROUP))
            _note_void(db, void)
            _fill(db, docs)
            for part in folded:
                db.execute("INSERT INTO void SELECT part, doc FROM " + _attach(db, folder / part.name) + ".void")
            for part in folded:
                _fold(db, folder / part.name)
            db.execute("DELETE FROM void WHERE part IN (SELECT unnest(?::VARCHAR[]))", [[part.name for part in folded]])
            counts = db.execute(sql("count_part")).fetchone()
            db.execute(sql("finish_part"))
    except BaseException as error:
        path.unlink(missing_ok=True)
        if is_disk_full(error):
            raise DiskFull(f"no space left while indexing in {folder}", DISK_FULL_HINT) from error
        raise
    assert counts is not None
    docs_now, length, void_now = counts
    return Part(name, docs_now, length, void_now, RULES)


def _note_void(db: "duckdb.DuckDBPyConnection", void: Collection[Place]) -> None:
    import pyarrow as pa

    names, numbers = zip(*sorted(void), strict=True) if void else ((), ())
    _insert(db, "void", pa.table({"part": pa.array(names, pa.string()), "doc": pa.array(numbers, pa.uint32())}))


def _fill(db: "duckdb.DuckDBPyConnection", docs: Iterable[Doc]) -> None:
    """Take in new documents: cut into tokens, a chunk at a time."""
    import numpy as np
    import pyarrow as pa

    vocabulary = Vocabulary()
    count = 0
    for chunk in _chunks(docs):
        found = count_tokens([doc.content for doc in chunk], vocabulary)
        _insert(db, "docs", _docs_table(chunk, count))
        _insert(db, "unsorted", pa.table(found._replace(doc=found.doc + np.uint32(count))._asdict()))
        count += len(chunk)
    terms = {"term": pa.array(vocabulary, pa.string()), "tid": pa.array(vocabulary.values(), pa.uint32())}
    _insert(db, "new_terms", pa.table(terms))


def _attach(db: "duckdb.DuckDBPyConnection", path: Path) -> str:
    """Attach an older part for reading, and return the name that SQL knows it by."""
    db.execute(f"ATTACH IF NOT EXISTS '{quoted(path)}' AS \"{path.stem}\" (READ_ONLY)")
    return f'"{path.stem}"'


def _fold(db: "duckdb.DuckDBPyConnection", path: Path) -> None:
    """Take in the living documents of an older part, with the tokens they were cut into then."""
    db.execute(sql("fold_part").format(old=_attach(db, path), name=path.name))


def _insert(db: "duckdb.DuckDBPyConnection", table: str, rows: Any) -> None:
    db.register("rows_to_insert", rows)
    db.execute(f"INSERT INTO {table} SELECT * FROM rows_to_insert")
    db.unregister("rows_to_insert")


def _docs_table(docs: list[Doc], first: int) -> Any:
    import pyarrow as pa

    types = {"prompt_number": pa.int64(), "ts": pa.timestamp("us")}
    columns = {
        f.name: pa.array([getattr(doc, f.name) for doc in docs], types.get(f.name, pa.string())) for f in fields(Doc)
    }
    return pa.table({"doc": pa.array(range(first, first + len(docs)), pa.uint32()), **columns})


def _chunks(docs: Iterable[Doc]) -> Iterator[list[Doc]]:
    chunk: list[Doc] = []
    size = 0
    for doc in docs:
        chunk.append(doc)
        size += len(doc.content)
        if len(chunk) == CHUNK or size > CHUNK_SIZE:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
