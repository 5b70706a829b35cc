"""Vectors of summaries, and of raw talks where wanted: filled in after the words, searched with the filters inside.

Newest first, L3 and L2 before L1. Rows are written whole, guarded by their condition, a batch at a time, so
that a run that is stopped resumes where it was.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memex.embed.base import Embedder
from memex.search.query import Filters
from memex.store.lake import Lake, in_list

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 16
"""Rows a commit: seconds of embedding, of which a run that is stopped loses the last; a commit takes 30 ms."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """What of a level gets a vector: the rows of `table` that meet `where`, by these fields, cut at `chars`.

    Time grows with length, and the head of a text says what it is about.
    """

    table: str
    where: str
    when: str
    fields: tuple[str, ...]
    chars: int


LEVELS: Mapping[str, Embedded] = {
    "sessions": Embedded("session_summaries", "served", "occurred_at", ("summary", "key_points"), 800),
    "talks": Embedded("talk_summaries", "served", "occurred_at", ("user_request", "summary", "completed"), 800),
    "observations": Embedded("observations", "served", "occurred_at", ("narrative", "facts"), 360),
    "raw": Embedded("talks", "answered AND NOT superseded", "ended_at", (), 1200),
}
"""In the order in which they are filled. The text of a raw talk is its prompt and replies."""

SUMMARIES = ("sessions", "talks", "observations")
Progress = Callable[[int, int, float], None]
"""Told after each batch: rows done, rows in all, rows a second."""


@dataclass(frozen=True, slots=True)
class EmbedReport:
    """Rows that got a vector, and the seconds it took."""

    embedded: int = 0
    seconds: float = 0.0


def missing_vectors(lake: Lake, model: str, levels: Sequence[str] = SUMMARIES) -> dict[str, list[str]]:
    """List, by level, the ids of rows without a vector of this model, newest first."""
    return {level: _missing(lake, LEVELS[level], model) for level in LEVELS if level in levels}


def count_vectors(lake: Lake, level: str, model: str) -> tuple[int, int]:
    """Count the rows of a level that have a vector of this model, and all that should."""
    what = LEVELS[level]
    return lake.count(what.table, f"{what.where} AND vector_model = '{model}'"), lake.count(what.table, what.where)


def fill_vectors(
    lake: Lake,
    embedder: Embedder,
    limit: int | None = None,
    progress: Progress = lambda _done, _total, _rate: None,
    levels: Sequence[str] = SUMMARIES,
) -> EmbedReport:
    """Embed what is missing, at most `limit` rows."""
    missing = missing_vectors(lake, embedder.model, levels)
    total = min(sum(map(len, missing.values())), 10**9 if limit is None else limit)
    started, done = time.monotonic(), 0
    for level, ids in _batches(missing, total):
        _fill(lake, LEVELS[level], ids, embedder)
        done += len(ids)
        progress(done, total, done / max(1e-9, time.monotonic() - started))
    return EmbedReport(done, time.monotonic() - started)


def search_vectors(
    lake: Lake,
    embedder: Embedder,
    level: str,
    text: str,
    filters: Filters,
    limit: int,
    only: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """Find the rows of one level nearest to a question, among `only` these ids: their columns, `project`, `cosine`."""
    what = LEVELS[level]
    if lake.dimension(what.table) != embedder.dimension or (filters.type and level != "observations"):
        return []
    where = f"{what.where} AND vector_model = '{embedder.model}'{_condition(lake, filters, what.when)}"
    if only is not None:
        where += f" AND {in_list('id', only)}"
    columns = [name for name in lake.dataset(what.table).schema.names if name != "vector"]
    rows = lake.nearest(what.table, embedder.query(text), limit, columns, where).to_pylist()
    mine = in_list("id", sorted({row["session_id"] for row in rows}))
    projects = dict(lake.frame("sessions", ["id", "project"], mine).iter_rows())
    return [
        {**row, "project": projects[row["session_id"]], "cosine": 1 - row["_distance"]}
        for row in rows
        if row["session_id"] in projects  # else it was forgotten just now
    ]


def _condition(lake: Lake, filters: Filters, when: str) -> str:
    """Write the filters as a predicate over a table; project, CLI and session become session ids."""
    parts = []
    if filters.project or filters.cli or filters.session:
        about = lake.scan("sessions", ["id", "cli", "project_id", "project"]).to_pylist()
        parts.append(in_list("session_id", [row["id"] for row in about if _fits(row, filters)]))
    if filters.type:
        parts.append(in_list("lower(type)", [filters.type.lower()]))
    if filters.since:
        parts.append(f"{when} >= timestamp '{filters.since.isoformat()}'")
    if filters.until:
        parts.append(f"{when} < timestamp '{filters.until.isoformat()}'")
    return "".join(f" AND {part}" for part in parts)


def _fits(session: dict[str, Any], filters: Filters) -> bool:
    project = filters.project.lower()
    native = session["id"].split(":", 1)[1]
    return (
        (project in session["project"].lower() or project in session["project_id"].lower())
        and filters.cli in ("", session["cli"])
        and (session["id"].startswith(filters.session) or native.startswith(filters.session))
    )


def _missing(lake: Lake, what: Embedded, model: str) -> list[str]:
    where = f"{what.where} AND (vector_model IS NULL OR vector_model != '{model}')"
    rows = lake.frame(what.table, ["id", what.when], where)
    return list(rows.sort(what.when, "id", descending=True, nulls_last=True)["id"])


def _batches(missing: Mapping[str, list[str]], total: int) -> Iterator[tuple[str, list[str]]]:
    left = total
    for level, every in missing.items():
        ids = every[:left]
        left -= len(ids)
        for start in range(0, len(ids), BATCH):
            yield level, ids[start : start + BATCH]


def _fill(lake: Lake, what: Embedded, ids: Sequence[str], embedder: Embedder) -> None:
    import pyarrow as pa

    if lake.dimension(what.table) != embedder.dimension:
        lake.set_dimension(what.table, embedder.dimension)
    epoch = lake.epoch()
    rows = lake.scan(what.table, None, f"{in_list('id', ids)} AND {what.where}")
    if not rows.num_rows:
        return
    vectors = embedder.passages([text[: what.chars] for text in _texts(lake, what, rows)])
    values = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1), pa.float32()), embedder.dimension)
    models = pa.array([embedder.model] * rows.num_rows, pa.string())
    lake.upsert(what.table, _with(_with(rows, "vector", values), "vector_model", models), epoch)


def _with(rows: "pa.Table", name: str, values: Any) -> "pa.Table":
    position = rows.schema.get_field_index(name)
    return rows.set_column(position, rows.schema.field(position), values)


def _texts(lake: Lake, what: Embedded, rows: "pa.Table") -> list[str]:
    if what.fields:
        return [_joined(row.values()) for row in rows.select(list(what.fields)).to_pylist()]
    sessions = rows["session_id"].unique().to_pylist()
    where = f"{in_list('session_id', sessions)} AND kind IN ('prompt', 'reply') AND NOT superseded"
    said: dict[tuple[str, int], list[str]] = {}
    messages = lake.scan("messages", ["session_id", "prompt_number", "seq", "text"], where).sort_by("seq")
    for message in messages.to_pylist():
        said.setdefault((message["session_id"], message["prompt_number"]), []).append(message["text"])
    places = zip(rows["session_id"].to_pylist(), rows["prompt_number"].to_pylist(), strict=True)
    return ["\n".join(said.get(place, ())) for place in places]


def _joined(values: Any) -> str:
    return "\n".join(v if isinstance(v, str) else "\n".join(v) for v in values if v)
