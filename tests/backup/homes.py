"""Homes on several machines, and all that they hold."""

from pathlib import Path

import pyarrow as pa

from memex.search.refresh import refresh_raw, refresh_summaries
from memex.settings import Settings
from memex.setup import Memex, open_memex
from memex.store.schemas import TABLES
from tests.conftest import LONG_AGO
from tests.logs import ClaudeLog

KINDS = ("tar", "folder")


def home_at(folder: Path, claude_dir: Path | None = None, **compact: object) -> Memex:
    """A home on a machine of its own, which reads the logs in a folder, or none."""
    claude_dir = claude_dir or folder / "claude"
    (claude_dir / "projects").mkdir(parents=True, exist_ok=True)
    given = {
        "home": folder / "memex",
        "sources": {"claude_config_dir": claude_dir, "codex": False, "gemini": False},
        "embed": {"provider": "none"},
        "compact": compact,
    }
    return open_memex(Settings.model_validate(given))


def again(memex: Memex) -> Memex:
    """The same home, opened by another process."""
    return open_memex(memex.settings)


def refresh(memex: Memex) -> Memex:
    """Read, summarise and index everything."""
    memex.ingest.run(memex.ingest.plan())
    for batch in memex.compact.plan().batches:
        memex.compact.run(batch)
    refresh_raw(memex.lake, memex.raw_index)
    refresh_summaries(memex.lake, memex.summary_index)
    return memex


def log_in(claude_dir: Path, name: str = "1") -> ClaudeLog:
    """A log of its own session."""
    path = claude_dir / "projects" / "-src-app" / f"{name * 8}-0000-4000-8000-000000000001.jsonl"
    return ClaudeLog(path, LONG_AGO)


def copy_of(log: ClaudeLog) -> ClaudeLog:
    """The same log, to go on in another way."""
    other = ClaudeLog(log.path, log._now, log._cwd)
    other.records, other._last = list(log.records), log._last
    return other


def target(folder: Path, kind: str) -> Path:
    return folder / ("backup.tar.zst" if kind == "tar" else "backup")


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def story(memex: Memex, *without: str) -> dict[str, list[dict]]:
    """All rows of all tables, less some columns; a vector column that is missing is full of nulls."""
    found = {}
    for table in TABLES:
        rows = [{"vector": None, **row} for row in memex.lake.scan(table).to_pylist()]
        rows = [{name: value for name, value in row.items() if name not in without} for row in rows]
        found[table] = sorted(rows, key=lambda row: row["id"])
    return found


def contents(memex: Memex) -> set[tuple[str, bytes]]:
    """Every generation of every source."""
    archive = memex.archive
    return {(k.path, archive.read(k, g)) for k in archive.sources() for g in range(1, k.generation + 1)}


def prompts(memex: Memex) -> list[str]:
    """What was asked, in all sessions, superseded or not."""
    return sorted(row["text"] for row in memex.lake.scan("messages", ["text"], "kind = 'prompt'").to_pylist())


def with_vectors(memex: Memex, table: str = "talk_summaries") -> None:
    """Give every second row a vector."""
    memex.lake.set_dimension(table, 2)
    rows = memex.lake.scan(table).sort_by("id")
    places = range(rows.num_rows)
    vectors = pa.array([[float(n), 1.0] if n % 2 else None for n in places], pa.list_(pa.float32(), 2))
    models = pa.array(["m" if n % 2 else None for n in places], pa.string())
    rows = rows.drop_columns(["vector", "vector_model"]).append_column("vector_model", models)
    memex.lake.upsert(table, rows.append_column("vector", vectors))
