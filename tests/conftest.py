"""Every test gets an empty home of its own and no setting of the machine it runs on."""

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from memex.search.refresh import refresh_raw, refresh_summaries
from memex.settings import Settings
from memex.setup import Memex, open_memex
from memex.sources.load import IngestReport
from tests.logs import ClaudeLog

settings.register_profile("memex", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("memex")  # how long an example takes says nothing on a busy machine

SAMPLE = Path(__file__).parents[1] / "data" / "claude"
LONG_AGO = datetime(2026, 9, 1, 8, tzinfo=UTC)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty MEMEX_HOME, an empty HOME, and no other variable that Memex reads."""
    for name in list(os.environ):
        if name.startswith("MEMEX_") and name != "MEMEX_SHARED":
            monkeypatch.delenv(name)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "user").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("MEMEX_HOME", str(tmp_path / "memex"))
    monkeypatch.setenv("MEMEX_EMBED_PROVIDER", "none")
    return tmp_path / "memex"


@pytest.fixture
def claude_dir(tmp_path: Path) -> Path:
    """The folder of Claude Code in the user's home: ~/.claude."""
    folder = tmp_path / "user" / ".claude"
    (folder / "projects").mkdir(parents=True)
    return folder


@pytest.fixture
def log(claude_dir: Path) -> Iterator[ClaudeLog]:
    """A session log of Claude Code, to be filled and written."""
    return ClaudeLog(claude_dir / "projects" / "-src-app" / "11111111-0000-4000-8000-000000000001.jsonl", LONG_AGO)


@pytest.fixture
def memex(home: Path, claude_dir: Path) -> Memex:
    """Everything wired to the empty home."""
    return open_memex()


@pytest.fixture
def sample(home: Path, monkeypatch: pytest.MonkeyPatch) -> Memex:
    """Everything wired to the sample logs."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(SAMPLE))
    return open_memex()


@pytest.fixture(scope="session")
def filled_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the sample logs read, summarised and indexed by words; copy it, do not change it."""
    home = tmp_path_factory.mktemp("filled") / "memex"
    memex = open_memex(_sample_settings(home))
    memex.ingest.run(memex.ingest.plan())
    for batch in memex.compact.plan().batches:
        memex.compact.run(batch)
    refresh_raw(memex.lake, memex.raw_index)
    refresh_summaries(memex.lake, memex.summary_index)
    return home


@pytest.fixture
def filled(filled_home: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Memex:
    """The sample logs, read, summarised and indexed by words, in a home of its own."""
    shutil.copytree(filled_home, home)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(SAMPLE))
    return open_memex()


def _sample_settings(home: Path) -> Settings:
    return Settings.model_validate(
        {"home": home, "sources": {"claude_config_dir": SAMPLE}, "embed": {"provider": "none"}}
    )


def settings_with(**changes: object) -> Settings:
    """Settings with some keys of `compact` changed."""
    return Settings.model_validate({"compact": changes})


def ingest(memex: Memex) -> IngestReport:
    """Read everything new."""
    return memex.ingest.run(memex.ingest.plan())


def rows(memex: Memex, table: str, where: str | None = None) -> list[dict]:
    """The rows of a table, by id."""
    return sorted(memex.lake.scan(table, None, where).to_pylist(), key=lambda row: row["id"])


def later(**delta: float) -> datetime:
    """A time after LONG_AGO."""
    return LONG_AGO + timedelta(**delta)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real logs and benchmarks; a test that needs it fails loudly without it."""
    folder = Path(os.environ.get("MEMEX_SHARED", Path(__file__).parents[2] / "shared"))
    if not (folder / "corpus" / "home").is_dir():
        pytest.fail(f"no corpus in {folder}: set MEMEX_SHARED to the folder of real logs")
    return folder


@pytest.fixture(scope="session")
def corpus(shared: Path) -> Path:
    """A home folder with real logs, read-only."""
    return shared / "corpus" / "home"
