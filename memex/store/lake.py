"""The lake: a folder (or an s3:// prefix) of LanceDB tables, read without locks and written under one.

`pylance` reads and writes the same files as `lancedb` and is imported in a fifth of the time
(docs/decisions/001-lance-without-lancedb.md); this is the only module that knows.

A merge is not idempotent by itself: two processes merging the same keys at once double the rows. So every
write takes the table's file lock and then the latest version. On object stores, where there is no lock,
the primary key in the schema does the same as long as no index is used.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from filelock import FileLock, Timeout

from memex.errors import (
    DISK_FULL_HINT,
    DiskFull,
    HomeError,
    StoreBusy,
    StoreError,
    is_disk_full,
    translated_os_errors,
)
from memex.store import schemas
from memex.store.readers import Readers
from memex.text import digest

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    import pyarrow as pa

Result = TypeVar("Result")

VERSION_KEY = "memex.schema_version"
TAIL = 2
"""A table that ends in more data files than this, each of them small beside those before it, has them made one."""
GROWTH = 16
"""A data file is not small that has so many times the rows of all newer ones. So a row is rewritten a few times while
its table grows, and the reader of a large table finds few files."""
UNINDEXED = 5000
"""Rows that may be searched one by one, before they are taken into the indexes."""
KEEP_VERSIONS = timedelta(hours=1)
MAX_VERSIONS = 64
"""Of versions that are younger, so many are kept: a live session makes thousands an hour, each with its files."""
CLEAN_EVERY = 32
"""Commits to a table between two looks for versions that nobody needs."""
FRESH_SECONDS = 10.0
"""A version that was the latest so long ago may still be read by somebody who said nothing."""
LOCK_SECONDS = 300
READ_ATTEMPTS = 7
_RETRYABLE = (
    "retryable commit conflict",
    "was not found",
    "not found:",
    "commit conflict",
    "too many concurrent",
)


class Lake:
    """All tables under one root.

    >>> lake = Lake("/tmp/lake"); lake.prepare()              # doctest: +SKIP
    >>> lake.upsert("sessions", schemas.to_arrow("sessions", [session]))   # doctest: +SKIP
    """

    def __init__(
        self, root: str | Path, fresh_seconds: float = FRESH_SECONDS, clock: Callable[[], float] = time.time
    ) -> None:
        self.root = str(root)
        self._clock = clock
        self._fresh_seconds = fresh_seconds
        self._remote = "://" in self.root
        self._readers = Readers(Path(self.root, ".locks", "readers"))
        self._untidy: set[str] | None = None

    def prepare(self) -> None:
        """Create what is missing, and bring an older lake to the present schema.

        Raises:
            SchemaError: a newer Memex wrote this lake.
            HomeError: the folder cannot be written.
        """
        if not self._remote:
            with translated_os_errors(self.root):
                Path(self.root, ".locks").mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.exists():
            from memex.store.migrations import migrate

            migrate(self)
        if all(self._exists(table) for table in schemas.TABLES):
            return
        with self._lock("schema"):
            for table in schemas.TABLES:
                if not self._exists(table):
                    self._create(table)

    def exists(self) -> bool:
        """Tell whether there is a lake at all."""
        return self._exists("sessions") and self._exists(schemas.TABLES[-1])

    def version(self) -> int:
        """Read the schema version."""
        return int(self.dataset(schemas.TABLES[-1]).config().get(VERSION_KEY, 0))

    def set_version(self, version: int) -> None:
        """Record that the lake has this schema version."""
        self.dataset(schemas.TABLES[-1]).update_config({VERSION_KEY: str(version)})

    def dataset(self, table: str) -> Any:
        """Open the latest version of `table` as a Lance dataset."""
        import lance

        with _translated(table):
            return lance.dataset(self._uri(table))

    def scan(self, table: str, columns: Sequence[str] | None = None, where: str | None = None) -> "pa.Table":
        """Read rows; `where` is a SQL predicate over the table's columns."""
        wanted = list(columns) if columns else None
        return self._read(table, lambda dataset: dataset.to_table(columns=wanted, filter=where))

    def batches(
        self, table: str, size: int, columns: Sequence[str] | None = None, where: str | None = None
    ) -> Iterator["pa.RecordBatch"]:
        """Read a table, `size` rows in memory at a time."""
        wanted = list(columns) if columns else None
        with self.reading(), _translated(table):
            yield from self.dataset(table).to_batches(columns=wanted, filter=where, batch_size=size)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep every table, as it is now and later, for a reader that takes its time. A scan needs none of this."""
        with nullcontext() if self._remote else self._readers.announced():
            yield

    @contextmanager
    def alone_with(self, keys: Sequence[str], patience: float = LOCK_SECONDS) -> Iterator[None]:
        """Work on some things, such as sessions, while nobody else does who asks in this way.

        Raises:
            StoreBusy: somebody else has been at one of them for `patience` seconds (Transient).
        """
        with ExitStack() as held:
            if not self._remote:
                with translated_os_errors(self.root):
                    Path(self.root, ".locks", "work").mkdir(parents=True, exist_ok=True, mode=0o700)
                for key in sorted(set(keys)):  # in one order, so that nobody waits in a circle
                    held.enter_context(self._lock(f"work/{digest(key)}", patience))
            yield

    def frame(self, table: str, columns: Sequence[str] | None = None, where: str | None = None) -> "pl.DataFrame":
        """Read rows into a Polars frame."""
        import polars as pl

        frame = pl.from_arrow(self.scan(table, columns, where))
        assert isinstance(frame, pl.DataFrame)
        return frame

    def count(self, table: str, where: str | None = None) -> int:
        """Count rows."""
        return self._read(table, lambda dataset: int(dataset.count_rows(where)))

    def upsert(self, table: str, rows: "pa.Table", epoch: int | None = None) -> int:
        """Insert rows, replacing those with the same id, in one commit; of a repeated id the last wins.

        Returns the number of rows merged. An empty batch commits nothing. `epoch` is that of the time at which
        the writer read what the rows are made of, when that was outside the lock.

        Raises:
            StoreBusy: another writer won, or something was forgotten since `epoch` (Transient).
            StoreError: the rows do not fit the table (Terminal).
            DiskFull: no space left; the table is as before.
        """
        rows = _last_of_each_id(rows)
        if not rows.num_rows:
            return 0
        with self._lock(table), _translated(table):
            if epoch is not None and epoch != self.epoch():
                raise StoreBusy(f"{table}: something was forgotten meanwhile; run the same command again")
            dataset = self.dataset(table)
            before = dataset.version
            merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            (merge.use_index(False) if self._remote else merge).execute(_fitted(rows, dataset.schema))
            self._tidy(table, before)
        return int(rows.num_rows)

    def delete(self, table: str, where: str) -> None:
        """Delete the rows that match a SQL predicate."""
        with self._lock(table), _translated(table):
            dataset = self.dataset(table)
            before = dataset.version
            dataset.delete(where)
            self._tidy(table, before)

    def clear(self, table: str) -> None:
        """Delete every row of a table that can be made anew."""
        self.delete(table, "true")

    def optimize(self, table: str) -> None:
        """Compact small files, bring the indexes up to date, drop versions that nobody needs."""
        with self._lock(table), _translated(table):
            self._optimize(table)

    @contextmanager
    def in_bulk(self) -> Iterator[None]:
        """Write much at once: the tables are tidied at the end, and not again and again while they grow.

        After a crash the next write tidies.
        """
        self._untidy = set()
        try:
            yield
        finally:
            tables, self._untidy = sorted(self._untidy), None
        for table in tables:
            self.optimize(table)

    def purge(self, table: str) -> None:
        """Leave nothing of deleted and replaced rows on disk: in no data file, no index and no older version."""
        with self._lock(table), _translated(table):
            dataset = self.dataset(table)
            dataset.optimize.compact_files(materialize_deletions=True, materialize_deletions_threshold=0.0)
            for index in dataset.describe_indices():
                if index.name not in {f"{column}_idx" for column in _indexed(table)}:
                    dataset.drop_index(index.name)
            for column in _indexed(table):
                dataset.create_scalar_index(column, "BTREE", replace=True)
            dataset.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)

    def epoch(self) -> int:
        """Tell how often something was forgotten: what was read in an earlier epoch may not be written back."""
        try:
            return 0 if self._remote else self._epoch.stat().st_size
        except FileNotFoundError:
            return 0

    def begin_epoch(self) -> None:
        """Turn away whoever is about to write what is being forgotten, and wait for those who are writing."""
        if self._remote:
            return
        with translated_os_errors(self.root), self._epoch.open("ab") as file:
            file.write(b".")
        for table in schemas.TABLES:
            with self._lock(table):
                pass

    def add_columns(self, table: str, names: Sequence[str]) -> None:
        """Add columns of the present schema to an older table, null in every row."""
        import pyarrow as pa

        wanted = schemas.schema(table)
        with self._lock(table), _translated(table):
            dataset = self.dataset(table)
            missing = [wanted.field(name) for name in names if name not in dataset.schema.names]
            if missing:
                dataset.add_columns(pa.schema(missing))

    def dimension(self, table: str) -> int:
        """Tell the dimension of the vector column, 0 when there is none yet."""
        names = self.dataset(table).schema
        return names.field("vector").type.list_size if "vector" in names.names else 0

    def set_dimension(self, table: str, dimension: int) -> None:
        """Make room for vectors of another model: the old vectors go, no row is rewritten."""
        import pyarrow as pa

        with self._lock(table), _translated(table):
            dataset = self.dataset(table)
            if "vector" in dataset.schema.names:
                if dataset.schema.field("vector").type.list_size == dimension:
                    return
                dataset.drop_columns(["vector"])
            dataset.add_columns(pa.schema([pa.field("vector", pa.list_(pa.float32(), dimension))]))

    def nearest(self, table: str, vector: "np.ndarray", limit: int, columns: Sequence[str], where: str) -> "pa.Table":
        """Read the `limit` rows nearest to `vector` by cosine, filtered first; `_distance` is 1 - cosine."""
        query = {"column": "vector", "q": vector, "k": limit, "metric": "cosine", "use_index": True}
        wanted = [*columns, "_distance"]
        return self._read(
            table, lambda data: data.to_table(columns=wanted, nearest=query, filter=where, prefilter=True)
        )

    def nearest_each(
        self, table: str, vectors: "np.ndarray", limit: int, columns: Sequence[str], where: str
    ) -> "pa.Table":
        """Do the same for many vectors at once, given as rows; `query_index` tells which of them a row answers."""
        query = {"column": "vector", "q": vectors, "k": limit, "metric": "cosine", "use_index": True}
        wanted = [*columns, "_distance"]
        return self._read(
            table, lambda data: data.to_table(columns=wanted, nearest=query, filter=where, prefilter=True)
        )

    def _read(self, table: str, read: Callable[[Any], Result]) -> Result:
        """Read the latest version; again, when it was removed meanwhile because something in it is forgotten."""
        for attempt in range(READ_ATTEMPTS):
            try:
                with _translated(table):
                    return read(self.dataset(table))
            except StoreBusy:
                if attempt == READ_ATTEMPTS - 1:
                    raise
                time.sleep(0.02 * 2**attempt)
        raise AssertionError

    @property
    def _epoch(self) -> Path:
        return Path(self.root, ".locks", "epoch")

    def _tidy(self, table: str, before: int) -> None:
        """Keep a table fast to read and its folder small, after a commit to the version `before`."""
        if self._untidy is not None:
            self._untidy.add(table)
            return
        dataset = self.dataset(table)
        sizes = [fragment.metadata.physical_rows for fragment in dataset.get_fragments()]
        tail = tail_of(sizes)
        if len(tail) > TAIL:
            dataset.optimize.compact_files(target_rows_per_fragment=sum(tail))
            if sum(tail) >= min(sum(sizes) // GROWTH, UNINDEXED):
                dataset.optimize.optimize_indices()
        if dataset.version // CLEAN_EVERY > before // CLEAN_EVERY:
            self._forget_versions(dataset)

    def _optimize(self, table: str) -> None:
        dataset = self.dataset(table)
        dataset.optimize.compact_files()
        dataset.optimize.optimize_indices()
        self._forget_versions(dataset)

    def _forget_versions(self, dataset: Any) -> None:
        """Drop versions older than an hour, and the oldest when there are many; none that may be read just now."""
        if self._remote:
            dataset.cleanup_old_versions(older_than=KEEP_VERSIONS)
            return
        now = self._clock()
        in_use = min(self._readers.oldest(now), now - self._fresh_seconds)
        made = [(version["version"], version["timestamp"].timestamp()) for version in dataset.versions()]
        # One of a time to come was made before the clock was put back: for long, who knows.
        until = now + self._fresh_seconds
        superseded = [(number, after if after <= until else 0.0) for (number, _made), (_next, after) in pairwise(made)]
        spare = len(made) - MAX_VERSIONS
        dropped = [
            number
            for place, (number, at) in enumerate(superseded)
            if at < in_use and (place < spare or at < now - KEEP_VERSIONS.total_seconds())
        ]
        if dropped:
            dataset.cleanup_old_versions(versions=dropped, error_if_tagged_old_versions=False)

    def _create(self, table: str) -> None:
        import lance

        with _translated(table):
            dataset = lance.write_dataset(schemas.schema(table).empty_table(), self._uri(table))
            for column in _indexed(table):
                dataset.create_scalar_index(column, "BTREE")
            dataset.update_config({VERSION_KEY: str(schemas.SCHEMA_VERSION)})

    def _uri(self, table: str) -> str:
        return f"{self.root}/{table}.lance"

    def _exists(self, table: str) -> bool:
        if not self._remote:
            return Path(self._uri(table), "_versions").is_dir()
        import lance

        try:
            lance.dataset(self._uri(table))
        except ValueError:
            return False
        return True

    @contextmanager
    def _lock(self, name: str, patience: float = LOCK_SECONDS) -> Iterator[None]:
        lock = nullcontext() if self._remote else FileLock(Path(self.root, ".locks", f"{name}.lock"), patience)
        try:
            with translated_os_errors(self.root), lock:
                yield
        except Timeout as error:
            raise StoreBusy(f"another process has written to {name} for {patience:.0f} s") from error


def tail_of(sizes: Sequence[int]) -> Sequence[int]:
    """Cut off the sizes at the end of which none is large beside the ones after it."""
    start, newer = len(sizes), 0
    while start and (not newer or sizes[start - 1] < GROWTH * newer):
        start -= 1
        newer += sizes[start]
    return sizes[start:]


def _indexed(table: str) -> tuple[str, ...]:
    return ("id", *schemas.SCALAR_INDEXES[table])


def in_list(column: str, values: Sequence[str]) -> str:
    """Write the SQL predicate `column IN (values)`, quoted; no value matches nothing."""
    if not values:
        return "false"
    quoted = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    return f"{column} IN ({quoted})"


def _last_of_each_id(rows: "pa.Table") -> "pa.Table":
    ids = rows.column("id").to_pylist()
    last = {key: position for position, key in enumerate(ids)}
    return rows if len(last) == len(ids) else rows.take(sorted(last.values()))


def _fitted(rows: "pa.Table", wanted: "pa.Schema") -> "pa.Table":
    """Order the columns as the table has them; one that the rows lack becomes null."""
    import pyarrow as pa

    names = set(rows.column_names)
    columns = [
        rows.column(field.name).cast(field.type) if field.name in names else pa.nulls(rows.num_rows, field.type)
        for field in wanted
    ]
    return pa.Table.from_arrays(columns, schema=wanted)


@contextmanager
def _translated(table: str) -> Iterator[None]:
    """Turn what Lance raises into the errors of this project."""
    try:
        yield
    except (RuntimeError, ValueError, OSError) as error:
        text = str(error)
        if is_disk_full(error):
            raise DiskFull(f"no space left while writing {table}", DISK_FULL_HINT) from error
        if isinstance(error, PermissionError) or "permission denied" in text.lower():
            raise HomeError(
                f"cannot use the table {table}: permission denied", "check the permissions of MEMEX_HOME"
            ) from error
        if any(phrase in text.lower() for phrase in _RETRYABLE):
            raise StoreBusy(f"{table}: {text[:300]}") from error
        raise StoreError(f"{table}: {text[:500]}", "memex status shows the state of the lake") from error
