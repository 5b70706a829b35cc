"""Many talks through a service that fails in every way it can."""

import pytest

from memex.setup import Memex
from tests.conftest import LONG_AGO, ingest, rows
from tests.llm.models import compact, settings_for
from tests.llm.server import Script, serving
from tests.logs import ClaudeLog, talk

CHAOS = {
    "busy": 0.03, "broken": 0.02, "overloaded": 0.02, "hang": 0.01, "cut": 0.01, "error_200": 0.02, "html": 0.01,
    "half": 0.02, "prose": 0.02, "wrong_types": 0.02, "empty": 0.02, "no_choices": 0.01, "shell": 0.02,
    "unfinished": 0.01, "filtered": 0.01, "chatty": 0.05, "invented": 0.03,
}  # fmt: skip
TALKS = 10


@pytest.mark.parametrize("sessions", [20, pytest.param(100, marks=pytest.mark.long)])
def test_every_talk_is_a_right_row_or_a_failure_with_its_reason(home, claude_dir, sessions):
    for number in range(sessions):
        name = f"{number:08}-0000-4000-8000-000000000001"
        log = ClaudeLog(claude_dir / "projects" / "-src-app" / f"{name}.jsonl", LONG_AGO)
        for each in range(TALKS):
            talk(log, f"Add flag {each} of session {number}")
        log.write()
    own = {"workers": 8, "timeout_seconds": 2}
    with serving(Script(chances=CHAOS, seed=4, hang=5, retry_after="0.05")) as service:
        memex = Memex(settings_for(home, service.endpoint, own=own))
        ingest(memex)
        report = compact(memex, ("talks",))
        assert report.stopped == ""
        least, sent = sessions * TALKS, len(service.requests)
    made, failed = rows(memex, "talk_summaries"), rows(memex, "failures")
    assert len(made) + len(failed) == least == report.made["talks"] + report.failed
    assert {row["served"] for row in made} == {True}
    places = [(row["session_id"], row["prompt_number"]) for row in (*made, *failed)]
    assert len(set(places)) == least
    for row in made:
        wanted = f"The person asked: Add flag {row['prompt_number'] - 1} of session {int(row['session_id'][7:15])}"
        assert row["summary"].rstrip(".") == wanted
    assert all(row["reason"].split(":")[0] in ("InvalidAnswer", "Refused", "ProviderBusy") for row in failed)

    assert len(failed) <= least * 0.06
    assert sent <= 1.5 * least
    print(f"{sent} requests for {least} talks, {len(failed)} failed")
