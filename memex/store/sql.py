"""SQL over the lake: DuckDB reads the tables as they are, and cannot write to them."""

from contextlib import closing
from typing import Any

from memex.errors import SqlError
from memex.store.lake import Lake
from memex.store.schemas import TABLES


def query(lake: Lake, text: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run a query; return column names and rows.

    Raises:
        SqlError: DuckDB refuses it, with DuckDB's own words.
    """
    import duckdb

    with lake.reading(), closing(duckdb.connect()) as connection:
        for table in TABLES:
            connection.register(table, lake.dataset(table))
        connection.execute("SET enable_external_access = false")
        try:
            cursor = connection.execute(text)
            return [column[0] for column in cursor.description or ()], cursor.fetchall() if cursor.description else []
        except duckdb.Error as error:
            raise SqlError(str(error), f"tables: {', '.join(TABLES)}") from error
