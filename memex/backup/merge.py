"""Rows of two homes in one table: none is lost, and of each unit one is served."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memex.backup.rows import BATCH, batches_in
from memex.store.lake import Lake, in_list
from memex.store.schemas import SUMMARY_TABLES, has_vector, schema

if TYPE_CHECKING:
    import pyarrow as pa

_ABOUT = ("id", "session_id", "prompt_number", "sources", "served", "created_at")
_TIMES = (
    "created_at",
    "replaced_at",
    "ingested_at",
    "last_access_at",
    "valid_at",
    "invalid_at",
    "failed_at",
    "called_at",
)
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Choice:
    """What becomes of two sets of rows: ids of theirs to `take`, and ids that are no longer served, since when."""

    take: frozenset[str]
    replaced: Mapping[str, datetime]


def choose(table: str, ours: Iterable[Mapping[str, Any]], theirs: Iterable[Mapping[str, Any]]) -> Choice:
    """Choose: of one id the row that was touched last; of one unit, the served row that was made last.

    Units are a talk (L2), a session (L3), calls (L1: two rows that have a call in common are of one).
    """
    rows = {row["id"]: row for row in ours}
    take = set()
    for row in theirs:
        known = rows.get(row["id"])
        if known is None or _touched(row) > _touched(known):
            take.add(row["id"])
            rows[row["id"]] = row
    claimed: dict[Any, datetime] = {}
    replaced: dict[str, datetime] = {}
    served = [row for row in rows.values() if table in SUMMARY_TABLES.values() and row["served"]]
    for row in sorted(served, key=lambda row: (row["created_at"] or _NEVER, row["id"]), reverse=True):
        units = _units(table, row)
        if since := [claimed[unit] for unit in units if unit in claimed]:
            replaced[row["id"]] = max(since)
        else:
            claimed |= dict.fromkeys(units, row["created_at"] or _NEVER)
    return Choice(frozenset(take), replaced)


def merge_rows(lake: Lake, table: str, path: Path, epoch: int) -> int:
    """Take the rows of a Parquet file into a table; return how many were new, newer, or no longer served.

    Vectors of another dimension than the table's are left out, and made again. `epoch` is that of the time at which
    nothing in the file was forgotten.

    Raises:
        StoreBusy: something was forgotten meanwhile (Transient).
        DiskFull: no space left; the same again goes on.
    """
    columns = [name for name in schema(table).names if name in (*_ABOUT, *_TIMES)]
    theirs = [row for batch in batches_in(path, columns) for row in batch.to_pylist()]
    choice = choose(table, lake.scan(table, columns).to_pylist(), _padded(theirs, columns))
    if choice.take and has_vector(table):
        _make_room(lake, table, path)
    for batch in batches_in(path):
        rows = _picked(batch, choice.take)
        lake.upsert(table, _switched(_fitting(lake, table, rows), choice.replaced), epoch)
    ours = sorted(choice.replaced.keys() - choice.take)
    for at in range(0, len(ours), BATCH):
        rows = lake.scan(table, None, in_list("id", ours[at : at + BATCH]))
        lake.upsert(table, _switched(rows, choice.replaced), epoch)
    return len(choice.take) + len(ours)


def clear_failures(lake: Lake) -> None:
    """Delete failures of units that the other home has written."""
    for level, table in SUMMARY_TABLES.items():
        place = ["session_id", "prompt_number"] if level != "sessions" else ["session_id"]
        written = {tuple(row.values()) for row in lake.scan(table, place, "served").to_pylist()}
        failed = lake.scan("failures", ["id", *place], f"level = '{level}'").to_pylist()
        if done := sorted(row["id"] for row in failed if tuple(row[name] for name in place) in written):
            lake.delete("failures", in_list("id", done))


def _touched(row: Mapping[str, Any]) -> datetime:
    return max((row[name] for name in _TIMES if row.get(name)), default=_NEVER)


def _units(table: str, row: Mapping[str, Any]) -> Sequence[Any]:
    if table == "observations" and row["sources"]:
        return list(row["sources"])
    return [(row["session_id"], row.get("prompt_number", 0))]


def _padded(rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Give rows of an older table the columns that it had not."""
    return ({**dict.fromkeys(columns), **row} for row in rows)


def _make_room(lake: Lake, table: str, path: Path) -> None:
    import pyarrow.parquet as pq

    found = pq.read_schema(path)
    if not lake.dimension(table) and "vector" in found.names:
        lake.set_dimension(table, found.field("vector").type.list_size)


def _picked(rows: "pa.Table", ids: frozenset[str]) -> "pa.Table":
    import pyarrow as pa

    return rows.filter(pa.array([key in ids for key in rows["id"].to_pylist()], pa.bool_()))


def _fitting(lake: Lake, table: str, rows: "pa.Table") -> "pa.Table":
    """Leave out vectors that do not fit."""
    import pyarrow as pa

    if "vector" not in rows.column_names or rows.schema.field("vector").type.list_size == lake.dimension(table):
        return rows
    at = rows.schema.get_field_index("vector_model")
    return rows.set_column(at, "vector_model", pa.nulls(rows.num_rows, pa.string())).drop_columns(["vector"])


def _switched(rows: "pa.Table", replaced: Mapping[str, datetime]) -> "pa.Table":
    """Let rows be served no longer."""
    import pyarrow as pa

    ids = rows["id"].to_pylist()
    if not any(key in replaced for key in ids):
        return rows
    for name, values in (
        ("served", [now and key not in replaced for key, now in zip(ids, rows["served"].to_pylist(), strict=True)]),
        ("replaced_at", [replaced.get(key, at) for key, at in zip(ids, rows["replaced_at"].to_pylist(), strict=True)]),
    ):
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), pa.array(values, rows.schema.field(at).type))
    return rows
