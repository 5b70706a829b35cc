"""Memories, edges and digests as rows of the lake: read into a graph, and changed there field by field."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import orjson

from memex.maintain.graph import RECORDS, Change, Graph, Record, Values, columns
from memex.store.lake import Lake, in_list
from memex.store.schemas import schema

if TYPE_CHECKING:
    import polars as pl

JSON_COLUMNS = ("fields", "history")
TEXT_COLUMNS = ("name", "text")
"""What a vector is made of: a change here makes it stale."""
IDS = 2000


def read_graph(lake: Lake, scope: tuple[str, str], where: str = "true") -> Graph:
    """Read the memories of a scope (owner and project) that meet a predicate, with all edges of the scope."""
    owner, project = scope
    mine = f"{in_list('owner', [owner])} AND {in_list('project_id', [project])}"
    edges = read_records(lake, "edges", in_list("project_id", [project]))
    return Graph.of(*read_records(lake, "memories", f"{mine} AND {where}"), *edges)


def read_digests(lake: Lake, project_id: str) -> Graph:
    """Read the digests of a project."""
    return Graph.of(*read_records(lake, "digests", in_list("project_id", [project_id])))


def read_records(lake: Lake, table: str, where: str) -> list[Any]:
    """Read the records of a table."""
    return [record_of(table, row) for row in lake.scan(table, columns(table), where).to_pylist()]


def read_touched(lake: Lake, changes: Sequence[Change]) -> Graph:
    """Read the rows that changes are about, as they are now."""
    records = [
        record
        for table in RECORDS
        if (ids := [change.id for change in changes if change.table == table])
        for record in read_records(lake, table, in_list("id", ids))
    ]
    return Graph.of(*records)


def record_of(table: str, row: Mapping[str, Any]) -> Record:
    """Make a record of a row; what is null takes its default."""
    given = {name: _read(name, value) for name, value in row.items() if value is not None}
    return RECORDS[table](**given)


def row_of(values: Values) -> dict[str, Any]:
    """Write the values of a record as they are stored."""
    return {name: _write(name, value) for name, value in values.items()}


@cache
def times_of(table: str) -> frozenset[str]:
    """Name the columns that hold times."""
    import pyarrow as pa

    return frozenset(field.name for field in schema(table) if pa.types.is_timestamp(field.type))


def patch(lake: Lake, table: str, changes: Sequence[Change], epoch: int | None = None) -> None:
    """Bring the rows of a table to what they are after some changes, in at most two commits.

    A row that is gone meanwhile stays gone.
    """
    gone, new, changed = _last_of_each(changes)
    if gone:
        for start in range(0, len(gone), IDS):
            lake.delete(table, in_list("id", gone[start : start + IDS]))
    frames = []
    if changed:
        frames.append(_updated(lake, table, changed))
    if new:
        made = [
            {"served": True, **row_of(values)} if table == "memories" else row_of(values) for values in new.values()
        ]
        frames.append(_frame(table, made))
    if frames:
        import polars as pl

        lake.upsert(table, pl.concat(frames, how="diagonal").to_arrow(), epoch)


def _last_of_each(
    changes: Iterable[Change],
) -> tuple[list[str], dict[str, Values], dict[str, Values]]:
    """Sum up changes of the same rows: which go, which are new, and what else gets which values."""
    gone: dict[str, None] = {}
    new: dict[str, Values] = {}
    changed: dict[str, Values] = {}
    for change in changes:
        if change.after is None:
            new.pop(change.id, None)
            changed.pop(change.id, None)
            gone[change.id] = None
        elif change.before is None:
            gone.pop(change.id, None)
            new[change.id] = change.after
        elif change.id in new:
            new[change.id] = {**new[change.id], **change.after}
        else:
            changed[change.id] = {**changed.get(change.id, {}), **change.after}
    return list(gone), new, changed


def _updated(lake: Lake, table: str, changed: Mapping[str, Values]) -> "pl.DataFrame":
    """Read rows whole and put values into them; rows that get the same columns are done at once."""
    import polars as pl

    ids = list(changed)
    parts = [lake.frame(table, None, in_list("id", ids[i : i + IDS])) for i in range(0, len(ids), IDS)]
    rows = pl.concat(parts)
    by_columns: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for name, values in changed.items():
        by_columns.setdefault(tuple(sorted(values)), []).append({"id": name, **row_of(values)})
    for names, group in by_columns.items():
        stale = [name for name in ("vector", "vector_model") if name in rows.columns and {*names} & {*TEXT_COLUMNS}]
        fresh = _frame(table, group, ["id", *names])
        chosen = pl.col("id").is_in(fresh["id"].to_list())
        mine = rows.filter(chosen).drop([*names, *stale]).join(fresh, on="id")
        rows = pl.concat([rows.filter(~chosen), mine], how="diagonal")
    return rows


def _frame(table: str, rows: Sequence[Mapping[str, Any]], names: Sequence[str] | None = None) -> "pl.DataFrame":
    import polars as pl
    import pyarrow as pa

    wanted = schema(table)
    fields = [wanted.field(name) for name in names or [n for n in wanted.names if n in rows[0]]]
    frame = pl.from_arrow(pa.Table.from_pylist(list(rows), schema=pa.schema(fields)))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _read(name: str, value: Any) -> Any:
    if name in JSON_COLUMNS:
        value = orjson.loads(value or ("{}" if name == "fields" else "[]"))
    return tuple(value) if isinstance(value, list) else value


def _write(name: str, value: Any) -> Any:
    if name in JSON_COLUMNS:
        return orjson.dumps(value, default=list).decode()
    return list(value) if isinstance(value, tuple) else value
