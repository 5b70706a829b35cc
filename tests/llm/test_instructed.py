"""Summaries by a model, end to end: real logs, a real lake, a real HTTP server."""

from memex.settings import Settings
from memex.setup import Memex
from tests.conftest import ingest, rows
from tests.llm.server import INVENTED, serving
from tests.logs import talk

LEVELS = ("observations", "talks", "sessions")


def settings(home, endpoint, **compact) -> Settings:
    own = {"endpoint": endpoint, "model": "test-model", "timeout_seconds": 5, "workers": 2, **compact.pop("own", {})}
    return Settings.model_validate(
        {
            "home": home,
            "sources": {"claude_config_dir": home.parent / "user" / ".claude"},
            "embed": {"provider": "none"},
            "compact": {"provider": "compatible", "compatible": own, **compact},
            **compact.pop("more", {}),
        }
    )


def compact(memex, levels=LEVELS):
    report = None
    for batch in memex.compact_at(levels).plan().batches:
        done = memex.compact_at(levels).run(batch)
        report = done if report is None else report + done
    return report


def test_all_levels_are_written_by_a_model(home, claude_dir, log):
    talk(talk(log, "Add a flag to the parser"), "Document the flag")
    log.write()
    with serving() as service:
        memex = Memex(settings(home, service.endpoint))
        ingest(memex)
        report = compact(memex)
        assert (dict(report.made), report.failed, report.stopped) == (
            {"observations": 2, "talks": 2, "sessions": 1}, 0, "",
        )  # fmt: skip
        assert len(service.requests) == 5
        assert memex.compact_at(LEVELS).plan().empty
    made = rows(memex, "talk_summaries")
    assert {row["provider"] for row in made} == {"compatible"} and {row["model"] for row in made} == {"test-model"}
    assert "The person asked: Add a flag to the parser" in {row["summary"] for row in made}
    assert len(rows(memex, "ledger")) == 5
    assert INVENTED not in str(made)
