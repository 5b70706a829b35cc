"""What a provider gets to see: the requests that a real server recorded, searched for planted secrets."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memex.llm.base import TalkInput
from memex.llm.render import Renderer
from memex.privacy import redact
from memex.setup import Memex
from tests.conftest import ingest, rows
from tests.llm.models import compact, settings_for
from tests.llm.server import serving
from tests.test_privacy import KINDS, SECRETS

NOISE = "line of a log that says nothing new\n" * 40


def planted(kind: str) -> str:
    secret, around = SECRETS[kind]
    return around.format(secret)


def parts(kind: str) -> list[str]:
    return [line for line in SECRETS[kind][0].splitlines() if len(line) > 5]


def test_no_planted_secret_reaches_the_server_or_a_row(home, claude_dir, log):
    for kind in KINDS:
        log.prompt(f"Use this: {planted(kind)}")
        log.call("Bash", {"command": f"echo start\n{planted(kind)}"}, f"{NOISE}{planted(kind)}\n{NOISE}")
        log.reply(f"{NOISE}I saw {planted(kind)} there.\n{NOISE}")
    log.write()
    with serving() as service:
        memex = Memex(settings_for(home, service.endpoint, own={"workers": 4, "timeout_seconds": 60}))
        ingest(memex)
        report = compact(memex)
        reasons = [row["reason"] for row in rows(memex, "failures")]
        assert (report.made["talks"], report.failed) == (len(KINDS), 0), reasons
        sent = json.dumps([r["body"] for r in service.requests], ensure_ascii=False)
    made = str([rows(memex, t) for t in ("observations", "talk_summaries", "session_summaries")])
    for kind in KINDS:
        for part in parts(kind):
            assert part not in sent, f"{kind} was sent"
            assert part not in made, f"{kind} is in a row"
    assert "[redacted" in sent
    assert all(part in str(rows(memex, "messages")) for part in parts("GitHub token"))  # the lake stays verbatim


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(KINDS), st.integers(0, 400), st.integers(0, 400), st.integers(30, 400))
def test_no_cut_lets_half_a_secret_through(kind, before, after, room):
    given = "some word " * before + planted(kind) + " other word" * after
    renderer = Renderer(lambda text: redact(text).text)
    text = redact(renderer.talk(TalkInput(given, (given, given), ()), room)).text
    for part in parts(kind):
        assert not any(part[at : at + 12] in text for at in range(len(part) - 11)), text


@pytest.mark.parametrize("pattern", ["app", "*/app", "a?p"])
def test_an_excluded_project_is_never_sent(home, claude_dir, log, pattern):
    log.prompt("Something private").reply("Yes.").write()
    with serving() as service:
        memex = Memex(settings_for(home, service.endpoint, privacy={"exclude_projects": [pattern]}))
        ingest(memex)
        assert memex.compact.plan().empty
        assert service.requests == []
