"""Vectors of memories: copied from the summary that an event was made from where it has one, else made."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memex.embed.base import Embedder
from memex.maintain.similar import said
from memex.maintain.stored import record_of
from memex.model import Memory
from memex.store.lake import Lake, in_list

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

BATCH = 64
COPIES = 2000
CHARS = 600
"""The head of a text says what it is about, and time grows with length."""
SOURCES = ("observations", "talk_summaries")


def missing(lake: Lake, model: str, where: str = "true") -> list[str]:
    """List the active memories without a vector of this model, newest first."""
    lacking = f"{where} AND NOT archived AND (vector_model IS NULL OR vector_model != '{model}')"
    return list(lake.frame("memories", ["id", "seq"], lacking).sort("seq", "id", descending=True)["id"])


def fill_memory_vectors(lake: Lake, embedder: Embedder, where: str = "true") -> int:
    """Give every active memory that meets a predicate its vector; return how many got one."""
    if lake.dimension("memories") != embedder.dimension:
        lake.set_dimension("memories", embedder.dimension)
    ids = missing(lake, embedder.model, where)
    for start in range(0, len(ids), COPIES):
        part = ids[start : start + COPIES]
        left = _copy(lake, part, embedder.model)
        for at in range(0, len(left), BATCH):
            _embed(lake, left[at : at + BATCH], embedder)
    return len(ids)


def _copy(lake: Lake, ids: Sequence[str], model: str) -> list[str]:
    """Copy the vectors of sources to events that say the same; return the ids that are left."""
    epoch = lake.epoch()
    about = lake.scan(
        "memories", ["id", "sources"], f"{in_list('id', ids)} AND kind = 'event' AND level = 0"
    ).to_pylist()
    single = {row["sources"][0]: row["id"] for row in about if len(row["sources"] or ()) == 1}
    known: dict[str, list[float]] = {}
    for table in SOURCES:
        if lake.dimension(table) == lake.dimension("memories"):
            where = f"{in_list('id', list(single))} AND vector_model = '{model}'"
            rows = lake.scan(table, ["id", "vector"], where).to_pydict()
            known |= {single[name]: vector for name, vector in zip(rows["id"], rows["vector"], strict=True)}
    if known:
        rows = lake.scan("memories", None, in_list("id", list(known)))
        _write(lake, rows, [known[name] for name in rows["id"].to_pylist()], model, epoch)
    return [name for name in ids if name not in known]


def _embed(lake: Lake, ids: Sequence[str], embedder: Embedder) -> None:
    epoch = lake.epoch()
    rows = lake.scan("memories", None, in_list("id", ids))
    texts = [said(memory)[:CHARS] for memory in _memories(rows)]
    if texts:
        _write(lake, rows, embedder.passages(texts), embedder.model, epoch)


def _memories(rows: "pa.Table") -> list[Memory]:
    plain = rows.select(["id", "kind", "name", "text"]).to_pylist()
    found = [record_of("memories", row) for row in plain]
    return [memory for memory in found if isinstance(memory, Memory)]


def _write(lake: Lake, rows: "pa.Table", vectors: "np.ndarray | list[list[float]]", model: str, epoch: int) -> None:
    import numpy as np
    import pyarrow as pa

    flat = np.asarray(vectors, np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(flat.reshape(-1)), flat.shape[1])
    models = pa.array([model] * rows.num_rows, pa.string())
    for name, values in (("vector", column), ("vector_model", models)):
        rows = rows.set_column(rows.schema.get_field_index(name), name, values)
    lake.upsert("memories", rows, epoch)
