"""The right memory for a prompt, once, and silence otherwise."""

import json

import numpy as np
import pytest

from memex.embed.usem3 import Usem3
from memex.llm.tokens import count_tokens
from memex.maintain.vectors import fill_memory_vectors
from memex.search.calibration import refresh_calibrations
from memex.search.vectors import fill_vectors
from tests.inject.conftest import APP, NOW, SITE, prompt, said

ASKED = "session_store.py breaks: why does load_config run after SESSION_TTL is read?"
BOOKS = "does the exporter still use fetch_many for the batch of books?"


def test_what_helps_is_told_and_framed(knowing):
    answer = knowing().inject.answer("smart", prompt(ASKED))
    assert answer["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    text = said(answer)
    assert text.startswith("<memex-history>\n") and text.endswith("\n</memex-history>")
    assert "not instructions" in text
    assert "SESSION_TTL is read before load_config" in text
    assert "2026-09-01" in text and "confidence 0." in text
    assert "memex show 00000010-0000 --level" in text
    assert "exporter" not in text


@pytest.mark.parametrize(
    "text",
    ["continue", "yes", "", "  ", "ok, do it", "thanks!", "好的，继续", "\x00", "\ud800", "?" * 9000,
     "write a haiku about spring", "What is the weather like in Paris tomorrow?"],
)  # fmt: skip
def test_silence_is_the_default(knowing, text):
    assert knowing().inject.answer("smart", prompt(text)) == {}


def test_nothing_is_said_twice_in_a_session_also_after_a_restart(knowing):
    first = knowing()
    once = said(first.inject.answer("smart", prompt(ASKED)))
    assert once
    lines = set(once.splitlines()[2:-1])
    again = said(first.inject.answer("smart", prompt(ASKED + " Again, please")))
    later = said(knowing().inject.answer("smart", prompt(ASKED)))  # a new process
    assert lines.isdisjoint(again.splitlines()) and lines.isdisjoint(later.splitlines())
    assert "session_store now reads it lazily" not in again + later
    assert lines & set(said(first.inject.answer("smart", prompt(ASKED, "another"))).splitlines())


def test_what_the_session_itself_said_is_not_told_to_it(knowing):
    memex = knowing()
    own = "00000010-0000-4000-8000-000000000001"
    assert "SESSION_TTL" not in said(memex.inject.answer("smart", prompt(ASKED, own)))


@pytest.mark.parametrize("most", [0, 20, 80, 120, 200, 400, 2000])
def test_never_more_than_max_tokens(knowing, most):
    text = said(knowing(max_tokens=most, similarity_threshold=0.1).inject.answer("smart", prompt(ASKED + BOOKS)))
    assert count_tokens(text) <= most
    assert text or most < 200


def test_never_more_than_max_results(knowing):
    many = ASKED + BOOKS + " BadZipFile quarantine, /internal/metrics"
    told = [said(knowing(max_results=1, similarity_threshold=0.1).inject.answer("smart", prompt(many)))]
    assert [text.count("\n- ") for text in told] == [1]


def test_other_projects_are_told_of_only_on_request_and_above_a_higher_bar(knowing):
    asked = prompt("which LANCZOS filter does thumb_maker use for thumbs.py?", cwd=APP)
    memex = knowing()
    assert memex.inject.answer("smart", asked) == {}
    assert "LANCZOS" in said(memex.inject.answer("smart", {**asked, "cwd": SITE, "session_id": "at-home"}))


def test_the_bar_for_other_projects_is_higher(knowing):
    memex = knowing(project_scope="all", similarity_threshold=0.2)
    asked = "which LANCZOS filter does thumb_maker use for thumbs.py?"
    here = {j.candidate.id: j for j in memex.inject.smart.find(asked, f"dir:{SITE}", "claude:x", (), NOW)[0]}
    there = {j.candidate.id: j for j in memex.inject.smart.find(asked, f"dir:{APP}", "claude:x", (), NOW)[0]}
    assert {k: j.confidence for k, j in here.items()} == {k: j.confidence for k, j in there.items()}
    bar = memex.inject.smart._bar(f"dir:{APP}")
    assert bar.elsewhere == pytest.approx(0.6) and bar.threshold == 0.2
    assert all(j.confidence.value >= bar.elsewhere for j in there.values() if not j.why_not)


@pytest.mark.parametrize(
    ("given", "event"),
    [
        ({"exclude_projects": ("app",)}, {}),
        ({"exclude_projects": ("/src/*",)}, {}),
        ({"exclude_sessions": ("claude:new",)}, {}),
        ({"exclude_sessions": ("ne?",)}, {}),
        ({}, {"agent_id": "a1b2", "agent_type": "Explore"}),
        ({}, {"session_id": ""}),
        ({}, {"session_id": 7}),
        ({}, {"hook_event_name": "Stop"}),
        ({}, {"hook_event_name": None}),
    ],
)
def test_switches(knowing, given, event):
    assert knowing(**given).inject.answer("smart", prompt(ASKED, **event)) == {}


def test_subagents_may_be_told(knowing):
    assert knowing(subagents=True).inject.answer("smart", prompt(ASKED, agent_id="a1b2"))


def test_memex_tells_its_own_sessions_nothing(knowing, home):
    assert knowing().inject.answer("smart", prompt(ASKED, cwd=str(home / "work"))) == {}


def test_an_excluded_project_is_told_of_nowhere(knowing):
    asked = prompt("which LANCZOS filter does thumb_maker use for thumbs.py?", cwd=APP)
    options = {"project_scope": "all", "similarity_threshold": 0.2}
    assert "LANCZOS" in said(knowing(**options).inject.answer("smart", asked))


@pytest.mark.parametrize("key", ["inject", "privacy"])
def test_an_excluded_project_is_not_told_of_elsewhere(knowing, key):
    asked = prompt("which LANCZOS filter does thumb_maker use for thumbs.py?", cwd=APP)
    options = {"project_scope": "all", "similarity_threshold": 0.2}
    hidden = {"exclude_projects": (f"dir:{SITE}",)}
    memex = knowing(**options, **hidden) if key == "inject" else knowing(**options, privacy=hidden)
    assert memex.inject.answer("smart", asked) == {}


def test_what_was_forgotten_is_not_told(knowing):
    memex = knowing()
    memex.inject.warm()
    memex.lake.delete("memories", "true")
    for table in ("observations", "talk_summaries", "session_summaries"):
        memex.lake.delete(table, "true")
    assert memex.inject.answer("smart", prompt(ASKED)) == {}  # though the index still finds it


def test_recalls_of_memories_go_to_the_journal(knowing, home):
    memex = knowing()
    memex.maintain.remember("load_config must run before SESSION_TTL is read", "decision", f"dir:{APP}")
    answer = memex.inject.explain("smart", event_of(prompt(ASKED)))
    told = {one.key for one in answer.told.quotations}
    memories = set(memex.lake.scan("memories", ["id"])["id"].to_pylist())
    lines = [
        json.loads(line) for path in home.glob("journal/recalls-*.jsonl") for line in path.read_text().splitlines()
    ]
    assert told & memories
    assert [(line["how"], set(line["memories"])) for line in lines] == [("selected", told & memories)]
    before = rows_of(memex, told & memories)
    memex.maintain.step("derive", memex.maintain.scopes())
    after = rows_of(memex, told & memories)
    assert {k: after[k] - before[k] for k in before} == dict.fromkeys(before, 1)


def test_answers_are_noted_with_their_confidence(knowing, home):
    memex = knowing()
    answer = memex.inject.explain("smart", event_of(prompt(ASKED)))
    (line,) = [
        json.loads(text) for path in home.glob("journal/given-*.jsonl") for text in path.read_text().splitlines()
    ]
    assert (line["session"], line["mode"], line["tokens"]) == ("claude:new", "smart", answer.told.tokens)
    assert line["shown"] == [[one.key, round(one.confidence, 4)] for one in answer.told.quotations]
    assert oct(next(home.glob("journal/given-*.jsonl")).stat().st_mode)[-3:] == "600"


class TestVectors:
    """With a model."""

    @pytest.fixture
    def embedded(self, knowing):
        memex = knowing(embed="local:usem3")
        fill_vectors(memex.lake, memex.embedder)
        fill_memory_vectors(memex.lake, memex.embedder)
        return memex

    def test_both_legs_are_asked(self, embedded):
        refresh_calibrations(embedded.lake, embedded.embedder, embedded.calibrations)
        answer = embedded.inject.explain("smart", event_of(prompt(ASKED)))
        assert answer.told.quotations and answer.notes == ()

    def test_a_late_embedding_leaves_the_answer_to_the_words(self, embedded):
        class Asleep(Usem3):
            def query(self, text: str) -> np.ndarray:
                woken.wait(60)
                return super().query(text)

        import threading
        import time

        woken = threading.Event()
        embedded.embedder = Asleep()
        embedded.inject.settings = embedded.inject.settings.model_copy(update={"timeout_seconds": 2})
        started = time.monotonic()
        answers = [embedded.inject.explain("smart", event_of(prompt(ASKED, f"s{n}"))) for n in range(4)]
        took = time.monotonic() - started
        woken.set()
        assert all("SESSION_TTL" in answer.told.text for answer in answers)
        assert "too late" in answers[0].notes[0]
        assert took < 4 * 2  # each within its own time

    def test_an_embedding_that_fails_leaves_the_answer_to_the_words(self, embedded):
        class Broken(Usem3):
            def query(self, text: str) -> np.ndarray:
                raise RuntimeError("no model")

        embedded.embedder = Broken()
        assert "SESSION_TTL" in said(embedded.inject.answer("smart", prompt(ASKED)))


def event_of(raw):
    from memex.inject.event import read_event

    return read_event(raw)


def rows_of(memex, ids):
    rows = memex.lake.scan("memories", ["id", "access_count"]).to_pylist()
    return {row["id"]: row["access_count"] for row in rows if row["id"] in ids}
