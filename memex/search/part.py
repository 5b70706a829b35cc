"""Build one immutable part of a full-text index, in bounded memory."""

import time
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, fields
from datetime import datetime
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from memex.errors import DISK_FULL_HINT, DiskFull, is_disk_full
from memex.search.tokens import index_tokens

if TYPE_CHECKING:
    import duckdb

CHUNK = 2000
"""Documents held in memory at once."""


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
    project_id: str
    project: str
    ts: datetime | None
    content: str


@dataclass(frozen=True, slots=True)
class Part:
    """A finished part: its file name, documents, tokens, and how many keys of older parts it voids."""

    name: str
    docs: int
    length: int
    dead: int


def sql(name: str) -> str:
    """Read a query of this package."""
    return files("memex.search").joinpath(f"sql/{name}.sql").read_text("utf-8")


def build_part(folder: Path, docs: Iterable[Doc], dead: frozenset[str]) -> Part:
    """Write documents and postings to a new file in `folder`.

    Raises:
        DiskFull: no space left; the unfinished file is removed.
    """
    import duckdb

    name = f"{time.time_ns():x}-{uuid4().hex[:6]}.duckdb"
    path = folder / name
    try:
        with closing(
            duckdb.connect(str(path), config={"memory_limit": "600MB", "preserve_insertion_order": False})
        ) as db:
            count, length = _fill(db, docs, dead)
    except BaseException as error:
        path.unlink(missing_ok=True)
        if is_disk_full(error):
            raise DiskFull(f"no space left while indexing in {folder}", DISK_FULL_HINT) from error
        raise
    return Part(name, count, length, len(dead))


def _fill(db: "duckdb.DuckDBPyConnection", docs: Iterable[Doc], dead: frozenset[str]) -> tuple[int, int]:
    import pyarrow as pa

    db.execute(sql("create_part"))
    terms: dict[str, int] = {}
    count = length = 0
    for chunk in _chunks(docs):
        columns: tuple[array[int], ...] = (array("I"), array("I"), array("I"), array("I"))
        for number, doc in enumerate(chunk, count):
            length += _post(columns, terms, number, doc.content)
        _insert(db, "docs", _docs_table(chunk, count))
        _insert(db, "unsorted", pa.table([pa.array(c, pa.uint32()) for c in columns], ["tid", "doc", "tf", "len"]))
        count += len(chunk)
    _insert(db, "dead", pa.table({"key": pa.array(sorted(dead), pa.string())}))
    db.register(
        "new_terms",
        pa.table({"term": pa.array(terms, pa.string()), "tid": pa.array(terms.values(), pa.uint32())}),
    )
    db.execute(sql("finish_part"))
    return count, length


def _post(columns: tuple["array[int]", ...], terms: dict[str, int], number: int, text: str) -> int:
    """Add the postings of one document; return its length in tokens."""
    counts = Counter(index_tokens(text))
    length = counts.total()
    for token, times in counts.items():
        columns[0].append(terms.setdefault(token, len(terms)))
        columns[1].append(number)
        columns[2].append(times)
        columns[3].append(length)
    return length


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
    iterator = iter(docs)
    while chunk := list(islice(iterator, CHUNK)):
        yield chunk
