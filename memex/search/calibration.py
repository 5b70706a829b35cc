"""Fit and keep the calibration of a model on what is stored.

One map per prefix (a question asked of passages, or passages among themselves) and language pair. They are
kept in one JSON file and fitted anew when the store has doubled.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from memex.embed.base import Embedder
from memex.embed.calibrate import Calibration
from memex.search.vectors import LEVELS, SUMMARIES
from memex.store.lake import Lake
from memex.text import is_cjk

if TYPE_CHECKING:
    import numpy as np

SAMPLE = 2000
QUESTIONS = 64
MINIMUM = 40
"""Fewer vectors than this tell nothing about random pairs."""
MINIMUM_PAIRS = 400

Pair = tuple[str, str, str]
"""Prefix (`query` or `passage`) and the two languages, `latin` or `cjk`."""


def language(text: str) -> str:
    """Tell the script that calibration distinguishes."""
    return "cjk" if is_cjk(text[:400]) else "latin"


def load_calibrations(folder: Path, model: str) -> tuple[int, dict[Pair, Calibration]]:
    """Read how many vectors the maps of a model were fitted on, and the maps; 0 and none without a file."""
    try:
        kept = orjson.loads(_file(folder, model).read_bytes())
    except (FileNotFoundError, orjson.JSONDecodeError):
        return 0, {}
    maps = {tuple(m["pair"]): Calibration(tuple((x, y) for x, y in m["points"])) for m in kept["maps"]}
    return kept["vectors"], maps


def calibrations_due(lake: Lake, model: str, folder: Path) -> int:
    """Count the vectors to fit the maps of a model on; 0 when the maps there are will do."""
    count = sum(lake.count(LEVELS[level].table, _condition(level, model)) for level in SUMMARIES)
    known, _maps = load_calibrations(folder, model)
    return count if count >= max(MINIMUM, 2 * known) else 0


def refresh_calibrations(lake: Lake, embedder: Embedder, folder: Path) -> int:
    """Fit the maps of a model when there are none, or twice the vectors; return how many were fitted."""
    count = calibrations_due(lake, embedder.model, folder)
    if not count:
        return 0
    texts, vectors = _sample(lake, embedder.model)
    questions = [text.split("\n", 1)[0] for text in texts[:: max(1, len(texts) // QUESTIONS)]][:QUESTIONS]
    asked = [embedder.query(question) for question in questions]
    found = _fitted("passage", texts, vectors, texts, vectors) | _fitted("query", questions, asked, texts, vectors)
    folder.mkdir(parents=True, exist_ok=True)
    maps = [{"pair": pair, "points": calibration.points} for pair, calibration in found.items()]
    aside = _file(folder, embedder.model).with_suffix(".aside")
    aside.write_bytes(orjson.dumps({"vectors": count, "maps": maps}))
    aside.replace(_file(folder, embedder.model))
    return len(found)


def _file(folder: Path, model: str) -> Path:
    return folder / f"{model.replace(':', '-')}.json"


def _condition(level: str, model: str) -> str:
    return f"{LEVELS[level].where} AND vector_model = '{model}'"


def _sample(lake: Lake, model: str) -> tuple[list[str], "np.ndarray"]:
    """Read texts and vectors of a few rows of each level, evenly over the table."""
    import numpy as np

    texts: list[str] = []
    vectors: list[Any] = []
    for level in SUMMARIES:
        what = LEVELS[level]
        if "vector" not in lake.dataset(what.table).schema.names:
            continue
        rows = lake.scan(what.table, [what.fields[0], "vector"], _condition(level, model))
        step = max(1, rows.num_rows * len(SUMMARIES) // SAMPLE)
        rows = rows.take(list(range(0, rows.num_rows, step)))
        texts += rows[what.fields[0]].to_pylist()
        vectors += rows["vector"].to_pylist()
    return texts, np.array(vectors, np.float32)


def _fitted(
    prefix: str, left: Sequence[str], asked: Any, right: Sequence[str], vectors: "np.ndarray"
) -> dict[Pair, Calibration]:
    """Fit one map for each pair of languages with enough texts; a text is not paired with itself."""
    import numpy as np

    cosines = np.asarray(asked) @ vectors.T
    tongues = [np.array([language(text) for text in texts]) for texts in (left, right)]
    heads = [np.array([text.split("\n", 1)[0] for text in texts]) for texts in (left, right)]
    apart = heads[0][:, None] != heads[1][None, :]
    found: dict[Pair, Calibration] = {}
    for a in ("latin", "cjk"):
        for b in ("latin", "cjk"):
            chosen = apart & (tongues[0] == a)[:, None] & (tongues[1] == b)[None, :]
            if int(chosen.sum()) >= MINIMUM_PAIRS:
                found[prefix, a, b] = Calibration.fit(cosines[chosen].tolist())
    return found
