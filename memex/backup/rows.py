"""Rows of the lake as Parquet files, and back."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, BinaryIO

from memex.store.lake import Lake

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 2000
"""Rows in memory at a time."""


def state_of(lake: Lake, table: str) -> str:
    """Tell apart a table before and after any change."""
    latest = lake.dataset(table).versions()[-1]
    return f"{latest['version']} {latest['timestamp'].isoformat()}"


@contextmanager
def exported(lake: Lake, table: str) -> Iterator[tuple[BinaryIO, int]]:
    """Write the rows of a table, vectors included, to a file without a name; give it and the number of rows."""
    import pyarrow.parquet as pq

    count = 0
    with TemporaryFile() as file:
        with pq.ParquetWriter(file, lake.dataset(table).schema, compression="zstd") as writer:
            for batch in lake.batches(table, BATCH):
                writer.write_batch(batch)
                count += batch.num_rows
        yield file, count


def ids_in(path: Path) -> set[str]:
    """Read the ids of the rows in a Parquet file."""
    import pyarrow.parquet as pq

    return set(pq.read_table(path, columns=["id"])["id"].to_pylist())


def batches_in(path: Path, columns: list[str] | None = None) -> "Iterator[pa.Table]":
    """Read a Parquet file, some rows in memory at a time; columns that it lacks are left out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        wanted = None if columns is None else [name for name in columns if name in names]
        for batch in file.iter_batches(BATCH, columns=wanted):
            yield pa.Table.from_batches([batch])
