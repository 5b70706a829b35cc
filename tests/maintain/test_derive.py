"""From talks to memories: which, under which ids, and what happens when a talk's summary is made anew."""

from dataclasses import replace

import pytest

from memex.maintain.derive import pending_talks, updated_memory
from memex.maintain.extract import ExtractiveMemories, Found, TalkRows
from memex.maintain.run import Maintain, run_all
from memex.setup import Memex
from tests.conftest import ingest, rows
from tests.logs import ClaudeLog, talk
from tests.maintain.making import NOW, memory


def summary(request: str, told: str = "Done.", completed: str = "edited a.py") -> dict:
    return {
        "id": "l2", "session_id": "claude:s", "prompt_number": 3, "user_request": request, "summary": told,
        "completed": completed, "occurred_at": NOW,
    }  # fmt: skip


def found(request: str, told: str = "Done.", completed: str = "edited a.py", person: bool = True) -> list[Found]:
    return list(ExtractiveMemories().memories(TalkRows(summary(request, told, completed), (), person)))


@pytest.mark.parametrize(
    ("request_", "told", "kind"),
    [
        ("Never commit to main without a review.", "", "rule"),
        ("From now on write tests first.", "", "rule"),
        ("以后都用中文写提交说明。", "", "rule"),
        ("I prefer small functions over comments.", "", "preference"),
        ("我更喜欢简短的回答。", "", "preference"),
        ("Fix it.", "Settled: retry only on 5xx and 429, at most four times.", "decision"),
        ("修一下", "最后决定采用短期访问令牌。", "decision"),
        ("Fix it.", "The root cause was a missing lock around the merge.", "lesson"),
        ("Fix it.", "The parser of dates is not yet covered by tests.", "thread"),
    ],
)
def test_what_is_said_in_so_many_words_is_found(request_: str, told: str, kind: str):
    assert kind in {one.kind for one in found(request_, told or "Done.")}


@pytest.mark.parametrize(
    ("request_", "told"), [("Hello", "Hello!"), ("Is it always slow?", "No."), ("Fix the typo.", "Done.")]
)
def test_nothing_is_a_good_answer(request_: str, told: str):
    assert found(request_, told) == []


def test_a_rule_comes_from_a_person_only():
    assert not any(one.kind == "rule" for one in found("Never touch the tests.", person=False))


def test_an_interrupted_talk_leaves_a_thread():
    assert "thread" in {one.kind for one in found("Move it.", "Moved half of it.", "Edited a.py; stopped by the user")}


def test_events_are_the_observations_that_changed_something():
    base = {"narrative": "It did.", "occurred_at": NOW}
    types = ("bugfix", "discovery", "feature")
    below = tuple(
        {**base, "id": f"l1-{kind}", "type": kind, "title": kind, "sources": [f"call-{kind}"]} for kind in types
    )
    talk_ = summary("Fix it.", "It is a longer story of what was done.")
    made = ExtractiveMemories().memories(TalkRows(talk_, below))
    assert [(m.source, m.importance, m.sources) for m in made] == [
        ("call-bugfix", 7.0, ("l1-bugfix",)),
        ("call-feature", 6.0, ("l1-feature",)),
    ]


def test_edits_of_one_title_in_a_talk_are_one_event():
    base = {"occurred_at": NOW, "title": "Edited a.py", "type": "change"}
    below = tuple({**base, "id": f"l1-{n}", "narrative": f"Line {n // 2}.", "sources": [f"call-{n}"]} for n in range(4))
    [event] = ExtractiveMemories().memories(TalkRows(summary("Fix it."), below))
    assert (event.source, event.text, len(event.sources)) == ("call-0", "Line 0.\nLine 1.", 4)


def test_without_observations_the_talk_is_the_event():
    [event] = found("How does the cache work?", "It keeps pages by path and drops the oldest first.")
    assert (event.kind, event.source, event.sources) == ("event", "claude:s#3", ("l2",))


# --- in the lake


def prepare(memex: Memex) -> Maintain:
    ingest(memex)
    for batch in memex.compact.plan().batches:
        memex.compact.run(batch)
    return memex.maintain


def test_a_summary_made_anew_updates_its_memories(memex: Memex, log: ClaudeLog):
    talk(log, "Never push without tests.", "Understood, I will run them from here on.").write()
    run_all(prepare(memex), None, ["derive"])
    before = {row["id"]: row for row in rows(memex, "memories")}
    [l2] = rows(memex, "talk_summaries", "served")
    changed = {**l2, "id": "other", "fingerprint": "other", "user_request": "Never push without running the tests."}
    from memex.store.schemas import rows_to_arrow

    memex.lake.upsert("talk_summaries", rows_to_arrow("talk_summaries", [{**l2, "served": False}, changed]))
    run_all(memex.maintain, None, ["derive"])
    after = {row["id"]: row for row in rows(memex, "memories")}
    assert after.keys() == before.keys()
    [rule] = [row for row in after.values() if row["kind"] == "rule"]
    assert rule["text"] == "Never push without running the tests."
    assert "Never push without tests." in rule["history"]
    assert rule["ingested_at"] == before[rule["id"]]["ingested_at"]


def test_a_talk_that_leaves_nothing_is_not_looked_at_again(memex: Memex, log: ClaudeLog):
    log.prompt("Hello").reply("Hello!").write()
    verb = prepare(memex)
    run_all(verb, None, ["derive"])
    assert rows(memex, "memories") == []
    assert len(rows(memex, "extractions")) == 1
    assert pending_talks(memex.lake, ExtractiveMemories()).is_empty()


def test_what_a_talk_does_not_say_any_more_is_out_of_sight(memex: Memex, log: ClaudeLog):
    talk(log, "Never push without tests.").write()
    run_all(prepare(memex), None, ["derive"])
    memex.lake.delete("talk_summaries", "true")
    run_all(memex.maintain, None, ["derive"])
    assert {row["archived_reason"] for row in rows(memex, "memories", "session_id != ''")} == {"retired"}
    assert rows(memex, "extractions") == []


def test_a_preference_belongs_to_the_user(memex: Memex, log: ClaudeLog):
    talk(log, "I prefer small functions over long ones.").write()
    run_all(prepare(memex), None, ["derive"])
    [row] = rows(memex, "memories", "kind = 'preference'")
    assert (row["owner"], row["project_id"]) == ("user", "")


def test_another_writer_makes_memories_again(memex: Memex, log: ClaudeLog):
    talk(log, "Never push without tests.").write()
    verb = prepare(memex)
    run_all(verb, None, ["derive"])
    other = ExtractiveMemories()
    other.version = "2"
    assert sum(replace(verb, writer=other).pending().values()) == 1
    run_all(replace(verb, writer=other), None, ["derive"])
    assert {row["recipe"].split("/")[1] for row in rows(memex, "memories")} == {"prompt-2"}


# --- one memory


def test_an_update_keeps_what_the_graph_did():
    old = memory(
        "m", access_count=4, importance=5.3, archived=True, archived_reason="compressed", parent_id="p", settled=True
    )
    after = updated_memory(old, replace(old, text="New.", importance=5.0, access_count=0))
    assert (after.access_count, after.importance, after.parent_id, after.archived) == (4, 5.3, "p", True)
    assert (after.text, after.settled) == ("New.", False)


def test_a_changed_memory_that_was_joined_comes_back_to_be_looked_at():
    old = memory("m", archived=True, archived_reason="merged", parent_id="p", settled=True)
    after = updated_memory(old, replace(old, text="New."))
    assert (after.archived, after.archived_reason, after.parent_id, after.settled) == (False, "", "", False)
    same = updated_memory(old, replace(old, fingerprint="x"))
    assert (same.archived, same.parent_id, same.settled) == (True, "p", True)


def test_a_memory_that_is_said_again_comes_back():
    old = memory("m", archived=True, archived_reason="retired")
    assert not updated_memory(old, old).archived
