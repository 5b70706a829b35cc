"""A home with the history of two projects, and the hooks that ask about it."""

import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from memex.maintain.run import run_all
from memex.search.refresh import refresh_raw, refresh_summaries
from memex.settings import Settings
from memex.setup import Memex, open_memex
from tests.conftest import LONG_AGO
from tests.logs import ClaudeLog

APP, SITE = "/src/app", "/src/site"
FACTS = (
    ("The login fails behind the proxy, look at auth/session_store.py", "auth/session_store.py",
     "The root cause was that SESSION_TTL is read before load_config runs; session_store now reads it lazily."),
    ("Exporting books takes minutes", "export/writer.py",
     "The exporter ran one query per book. We decided to batch them with fetch_many, which is forty times faster."),
    ("Make the importer skip broken zip archives", "importer/zips.py",
     "The importer now catches BadZipFile and reports the archive in the quarantine table."),
    ("Please tidy the changelog", "CHANGELOG.md", "The changelog lists the three releases in order."),
    ("Rename the metrics endpoint", "metrics/routes.py", "The endpoint is /internal/metrics now."),
)  # fmt: skip
"""What the sessions of the app were about: a request, the file that was edited, and the reply."""
ELSEWHERE = (
    "The thumbnails are blurry",
    "img/thumbs.py",
    "Thumbnails are scaled with the LANCZOS filter in thumb_maker.",
)
NOW = LONG_AGO + timedelta(days=2)


def history(root: Path, cwd: str, facts: tuple[tuple[str, str, str], ...], number: int) -> None:
    """Write one session a fact."""
    for place, (request, file, reply) in enumerate(facts, number):
        log = ClaudeLog(root / f"p{number}" / f"{place:08}-0000-4000-8000-000000000001.jsonl", LONG_AGO, cwd)
        log.prompt(request)
        log.call("Edit", {"file_path": f"{cwd}/{file}", "old_string": "a = 1", "new_string": f"a = {place}"}, "updated")
        log.reply(reply).write()


@pytest.fixture(scope="session")
def known_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that knows both projects, by words; copy it, do not change it."""
    folder = tmp_path_factory.mktemp("known")
    history(folder / "claude" / "projects", APP, FACTS, 10)
    history(folder / "claude" / "projects", SITE, (ELSEWHERE,), 50)
    given = {
        "home": folder / "memex",
        "sources": {"claude_config_dir": folder / "claude"},
        "embed": {"provider": "none"},
    }
    fill(open_memex(Settings.model_validate(given)))
    return folder / "memex"


def fill(memex: Memex) -> None:
    """Read, summarise, remember and index what there is."""
    memex.ingest.run(memex.ingest.plan())
    for batch in memex.compact.plan().batches:
        memex.compact.run(batch)
    run_all(memex.maintain)
    refresh_raw(memex.lake, memex.raw_index)
    refresh_summaries(memex.lake, memex.summary_index)


@pytest.fixture
def knowing(known_home: Path, home: Path) -> Callable[..., Memex]:
    """Open a copy of that home, with these keys of `[inject]` and a clock that stands still."""
    shutil.copytree(known_home, home)

    def opened(
        now: datetime = NOW, embed: str = "none", privacy: dict[str, object] | None = None, **inject: object
    ) -> Memex:
        given = {
            "home": home,
            "embed": {"provider": embed},
            "privacy": privacy or {},
            "inject": {"timeout_seconds": 20, **inject},
        }
        memex = open_memex(Settings.model_validate(given))
        memex.inject.clock = lambda: now
        return memex

    return opened


def prompt(text: str, session: str = "new", cwd: str = APP, **more: object) -> dict[str, object]:
    """A prompt, as Claude Code tells its hook."""
    return {
        "session_id": session,
        "transcript_path": f"/home/me/.claude/projects/-src-app/{session}.jsonl",
        "cwd": cwd,
        "permission_mode": "default",
        "hook_event_name": "UserPromptSubmit",
        "prompt": text,
        **more,
    }


def said(answer: dict[str, dict[str, str]]) -> str:
    """What the model gets to read."""
    return answer["hookSpecificOutput"]["additionalContext"] if answer else ""
