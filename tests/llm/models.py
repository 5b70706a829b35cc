"""A home whose summaries are written by a service of tests.llm.server."""

from pathlib import Path
from typing import Any

from memex.compact.run import CompactReport
from memex.settings import Settings
from memex.setup import Memex

LEVELS = ("observations", "talks", "sessions")
PRICES = '[models."test-model"]\nprice_input = 100.0\nprice_cached = 10.0\nprice_output = 400.0\n'


def settings_for(home: Path, endpoint: str, **changes: Any) -> Settings:
    """Settings that name a service; `own` changes its table, `privacy` that table, the rest is of [compact]."""
    own = {"endpoint": endpoint, "model": "test-model", "timeout_seconds": 5, "workers": 2, **changes.pop("own", {})}
    return Settings.model_validate(
        {
            "home": home,
            "sources": {"claude_config_dir": home.parent / "user" / ".claude"},
            "embed": {"provider": "none"},
            "privacy": changes.pop("privacy", {}),
            "compact": {"provider": "compatible", "compatible": own, **changes},
        }
    )


def prices(home: Path) -> Path:
    """A file that says that the test model costs 100 dollars a million tokens in, and 400 out."""
    path = home.parent / "prices.toml"
    path.write_text(PRICES)
    return path


def compact(memex: Memex, levels: tuple[str, ...] = LEVELS, force: bool = False) -> CompactReport:
    """Write everything pending."""
    report = CompactReport()
    for batch in memex.compact_at(levels).plan(force=force).batches:
        report += memex.compact_at(levels).run(batch, force=force)
    return report
