"""How the planners of maintenance grow: synthetic memories in many projects, without any model's time.

    python benchmarks/maintain.py 10000 100000

Prints, for each size, seconds of gate with neighbours, consolidation, compression and retention, and the most
memory that the process had.
"""

import resource
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from memex.embed.calibrate import Calibration
from memex.maintain.decide import Rules, Told
from memex.maintain.graph import Vetoes
from memex.maintain.journal import Journal
from memex.maintain.similar import Similarity
from memex.maintain.steps import Planner
from memex.settings import MaintainSettings
from memex.store.lake import Lake
from memex.store.schemas import schema

PROJECTS = 50
DIMENSION = 128
NEW_SHARE = 0.1
KINDS = ("event", "event", "event", "lesson", "thread", "fact", "decision")
WORDS = [f"{a}{b}" for a in ("parse", "store", "index", "merge", "cache", "route", "queue", "draw") for b in range(500)]
NOW = datetime(2026, 9, 1, tzinfo=UTC)


class Quiet(Rules):
    """Writes parents in no time: a model's time is not what is measured."""

    def parent(self, kind, children):  # noqa: ARG002 - one way for all kinds
        return Told(children[0].name, children[0].text)


class Space:
    """The space that the vectors lie in."""

    model = "synthetic"
    dimension = DIMENSION


def fill(lake: Lake, count: int) -> None:
    """Write memories, a tenth of them new."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(count, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = []
    for n in range(count):
        text = " ".join(rng.choice(WORDS, 14))
        at = NOW - timedelta(minutes=count - n)
        rows.append(
            {
                "id": f"m{n:07}",
                "kind": KINDS[n % len(KINDS)],
                "level": 0,
                "project_id": f"p{n % PROJECTS}",
                "owner": "",
                "name": text[:30],
                "text": text,
                "fields": "{}",
                "history": "[]",
                "importance": 5.0,
                "access_count": n % 3,
                "occurred_at": at,
                "ingested_at": at,
                "seq": n,
                "seq_from": n,
                "seq_to": n,
                "archived": False,
                "settled": n < count * (1 - NEW_SHARE),
                "session_id": f"s{n // 400}",
                "prompt_number": n % 400,
                "vector_model": Space.model,
            }
        )
    table = pa.Table.from_pylist(rows, schema=schema("memories"))
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), DIMENSION)
    lake.set_dimension("memories", DIMENSION)
    names = [*table.schema.names, "vector"]
    lake.upsert("memories", pa.table([*table.columns, column], names=[n for n in names if n != "vector"] + ["vector"]))
    lake.optimize("memories")


def measure(count: int) -> None:
    """Print the seconds of each planner."""
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(Path(folder, "lake"))
        lake.prepare()
        fill(lake, count)
        line = Calibration(((0.0, 0.3), (0.4, 0.7), (0.6, 0.85), (1.0, 1.0)))
        similarity = Similarity({("latin", "latin"): line})
        settings = MaintainSettings(enable_sleep_cycle=True)
        planner = Planner(lake, Journal(lake), Quiet(), settings, Space(), lambda: similarity, Vetoes(), NOW)  # type: ignore[arg-type]
        told = []
        for step in ("gate", "consolidate", "compress", "sleep"):
            started, busy = time.monotonic(), time.process_time()
            units = sum(len(planner.plan(step, ("", f"p{p}"), True).units) for p in range(PROJECTS))
            took, used = time.monotonic() - started, time.process_time() - busy
            told.append(f"{step} {took:.1f} s ({used:.1f} s of CPU, {units:,} units)")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{count:8,} memories: " + ", ".join(told) + f", peak {peak:,.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    for size in map(int, sys.argv[1:] or ("10000",)):
        measure(size)
