"""Vectors of the summaries: filled in after the text is searchable, and searched with the filters inside.

Newest first, L3 and L2 before L1. Rows are written whole, guarded by being served still, a batch at a
time, so that a run that is stopped resumes where it was.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memex.embed.base import Embedder
from memex.search.query import Filters
from memex.store.lake import Lake, in_list
from memex.store.schemas import SUMMARY_TABLES

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 64
ORDER = ("sessions", "talks", "observations")
MAX_CHARS = {"sessions": 800, "talks": 800, "observations": 360}
"""What of each level is embedded: time grows with length, and the head says what it is about."""
_TEXT = {
    "sessions": ("summary", "key_points"),
    "talks": ("user_request", "summary", "completed"),
    "observations": ("narrative", "facts"),
}
Progress = Callable[[int, int, float], None]
"""Told after each batch: rows done, rows in all, rows a second."""


@dataclass(frozen=True, slots=True)
class EmbedReport:
    """Rows that got a vector, and the seconds it took."""

    embedded: int = 0
    seconds: float = 0.0


def missing_vectors(lake: Lake, model: str) -> dict[str, list[str]]:
    """List, by level, the ids of served rows without a vector of this model, newest first."""
    return {level: _missing(lake, SUMMARY_TABLES[level], model) for level in ORDER}


def fill_vectors(
    lake: Lake, embedder: Embedder, limit: int | None = None, progress: Progress = lambda _d, _t, _r: None
) -> EmbedReport:
    """Embed what is missing, at most `limit` rows."""
    missing = missing_vectors(lake, embedder.model)
    total = min(sum(map(len, missing.values())), limit or 10**9)
    started, done = time.monotonic(), 0
    for level, ids in _batches(missing, total):
        table = SUMMARY_TABLES[level]
        if lake.dimension(table) != embedder.dimension:
            lake.set_dimension(table, embedder.dimension)
        _fill(lake, table, level, ids, embedder)
        done += len(ids)
        progress(done, total, done / max(1e-9, time.monotonic() - started))
    return EmbedReport(done, time.monotonic() - started)


def search_vectors(
    lake: Lake, embedder: Embedder, level: str, text: str, filters: Filters, limit: int
) -> list[dict[str, Any]]:
    """Find the summaries of one level nearest to a question: their rows, with `cosine`."""
    table = SUMMARY_TABLES[level]
    if lake.dimension(table) != embedder.dimension:
        return []
    where = f"served AND vector_model = '{embedder.model}'{_condition(lake, filters)}"
    columns = [name for name in lake.dataset(table).schema.names if name != "vector"]
    rows = lake.nearest(table, embedder.query(text), limit, columns, where).to_pylist()
    return [{**row, "cosine": 1 - row["_distance"]} for row in rows]


def _condition(lake: Lake, filters: Filters) -> str:
    """Write the filters as a predicate over a summary table; project, CLI and session become session ids."""
    parts = []
    if filters.project or filters.cli or filters.session:
        about = lake.scan("sessions", ["id", "cli", "project_id", "project"]).to_pylist()
        parts.append(in_list("session_id", [row["id"] for row in about if _fits(row, filters)]))
    if filters.since:
        parts.append(f"occurred_at >= timestamp '{filters.since.isoformat()}'")
    if filters.until:
        parts.append(f"occurred_at < timestamp '{filters.until.isoformat()}'")
    return "".join(f" AND {part}" for part in parts)


def _fits(session: dict[str, Any], filters: Filters) -> bool:
    project = filters.project.lower()
    return (
        (not project or project in session["project"].lower() or project in session["project_id"].lower())
        and (not filters.cli or session["cli"] == filters.cli)
        and (
            not filters.session
            or filters.session
            in (session["id"][: len(filters.session)], session["id"].split(":", 1)[1][: len(filters.session)])
        )
    )


def _missing(lake: Lake, table: str, model: str) -> list[str]:
    where = f"served AND (vector_model IS NULL OR vector_model != '{model}')"
    rows = lake.frame(table, ["id", "occurred_at"], where)
    return list(rows.sort("occurred_at", "id", descending=True, nulls_last=True)["id"])


def _batches(missing: dict[str, list[str]], total: int) -> Iterator[tuple[str, list[str]]]:
    left = total
    for level in ORDER:
        ids = missing[level][:left]
        left -= len(ids)
        for start in range(0, len(ids), BATCH):
            yield level, ids[start : start + BATCH]


def _fill(lake: Lake, table: str, level: str, ids: Sequence[str], embedder: Embedder) -> None:
    import pyarrow as pa

    rows = lake.scan(table, None, f"{in_list('id', ids)} AND served")
    if not rows.num_rows:
        return
    vectors = embedder.passages([_text(row, level) for row in rows.select(list(_TEXT[level])).to_pylist()])
    values = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1), pa.float32()), embedder.dimension)
    models = pa.array([embedder.model] * rows.num_rows, pa.string())
    lake.upsert(table, _with(_with(rows, "vector", values), "vector_model", models))


def _with(rows: "pa.Table", name: str, values: Any) -> "pa.Table":
    position = rows.schema.get_field_index(name)
    return rows.set_column(position, rows.schema.field(position), values)


def _text(row: dict[str, Any], level: str) -> str:
    values = (row[name] for name in _TEXT[level])
    return "\n".join(v if isinstance(v, str) else "\n".join(v) for v in values if v)[: MAX_CHARS[level]]
