"""What is forgotten is nowhere, and does not come back; everything else is as it was."""

import json

import pytest

from memex.errors import NotFound
from memex.forget.target import BadPattern, Target
from memex.search.query import Query
from memex.setup import open_memex
from memex.sources.verify import verify
from tests.forget.home import (
    CHINESE,
    IDS,
    NEEDLES,
    WORD,
    agent_of,
    fingerprints,
    fork_of,
    history_line,
    holding,
    lived,
    log_at,
    readers_of,
    refresh,
    story,
    target_log,
    unreferenced,
    with_small_checkpoints,
)  # fmt: skip
from tests.logs import talk

TARGET = f"claude:{IDS['target']}"
AGENT = "claude:agent-7be41c02"
HISTORIES = frozenset(("claude:history", "claude:99999999-0000-4000-8000-000000000009"))

TARGETS = {
    "session": Target(session=IDS["target"][:8]),
    "project": Target(project=WORD),
    "text": Target(matching=f"{WORD}|{CHINESE}"),
}


@pytest.fixture
def told(memex, claude_dir):
    """A home that holds the needles everywhere."""
    return lived(with_small_checkpoints(memex), claude_dir)


def ingest(memex):
    return memex.ingest.run(memex.ingest.plan())


@pytest.fixture(params=TARGETS)
def target(request):
    return TARGETS[request.param]


def test_needles_are_everywhere_before(told):
    places = " ".join(holding(told.home, *NEEDLES))
    assert all(area in places for area in ("archive/", "messages.lance", "talk_summaries.lance", "sources.lance"))
    assert all(area in places for area in ("sessions.lance", "observations.lance", "cache/readers", ".duckdb docs"))
    assert unreferenced(told.home) and readers_of(told.home)
    assert told.lake.count("messages", "superseded") > 0


def test_forgotten_is_nowhere(told, target):
    plan = told.forget.plan(target)
    assert not plan.empty and not plan.damaged
    assert told.forget.run(target) == plan
    assert holding(told.home, *NEEDLES) == []
    assert unreferenced(told.home) == []
    assert told.raw_index.search(Query(WORD), 5) == told.summary_index.search(Query(CHINESE), 5) == []


def test_others_are_as_they_were(told, target):
    reached = frozenset((TARGET, AGENT)) | HISTORIES
    before = story(told, reached)
    told.forget.run(target)
    assert story(told, reached) == before
    assert told.raw_index.search(Query("login"), 5)
    assert verify(told.archive, disk=True).damaged == verify(told.archive, disk=True).differs == ()


def test_forgotten_does_not_come_back(told, target, claude_dir):
    told.forget.run(target)
    before = story(told)
    again = with_small_checkpoints(open_memex())
    assert again.ingest.plan().empty
    assert again.ingest.plan().forgotten == (0 if target.matching else 2)
    for path in claude_dir.rglob("*"):
        if path.is_file():
            path.touch()
    refresh(again)
    again.ingest.rebuild()
    refresh(again)
    assert holding(told.home, *NEEDLES) == []
    if not target.matching:
        assert story(again)["messages"] == before["messages"]


def test_logs_that_grow_do_not_bring_it_back(told, target, claude_dir):
    told.forget.run(target)
    log = log_at(claude_dir, "target", f"-src-{WORD}", f"/src/{WORD}")
    with log.path.open("ab") as file:
        file.write(talk(log, f"and {WORD} again, {CHINESE}").lines())
    with (claude_dir / "history.jsonl").open("ab") as file:
        file.write(history_line(f"and {WORD} again", IDS["target"], 4) + history_line("quite another", "7" * 8, 5))
    with (claude_dir / "projects" / f"-src-{WORD}" / IDS["target"] / "tool-results" / "out1.txt").open("a") as file:
        file.write(WORD)
    refresh(told)
    assert holding(told.home, *NEEDLES) == []
    assert "quite another" in [talk["prompt"] for talk in story(told)["talks"]]
    generations = {kept.generation for kept in told.archive.sources() if IDS["target"] in kept.path}
    assert generations == ({1, 2} if target.matching else set())
    assert verify(told.archive, disk=True).differs == ()


def test_text_is_overwritten_and_the_rest_stays(told):
    before = story(told)
    told.forget.run(TARGETS["text"])
    after = story(told)
    ids = {table: [row["id"] for row in rows] for table, rows in before.items()}
    assert [row["id"] for row in after["messages"]] == ids["messages"]
    assert [row["id"] for row in after["tool_calls"]] == ids["tool_calls"]
    assert [row["offset"] for row in after["messages"]] == [row["offset"] for row in before["messages"]]
    prompts = [row["text"] for row in after["messages"] if row["kind"] == "prompt" and row["session_id"] == TARGET]
    assert "please use [forgotten...] 和[forgotten....]" in prompts
    assert [row["superseded"] for row in after["messages"]] == [row["superseded"] for row in before["messages"]]
    kept = [row["id"] for row in after["talk_summaries"] if row["session_id"] == TARGET]
    assert kept == []
    refresh(told)
    assert len(story(told)["talk_summaries"]) == len([row for row in before["talk_summaries"] if row["served"]])
    assert holding(told.home, *NEEDLES) == []


def test_only_summaries_of_what_changed_are_made_again(memex, log):
    talk(talk(talk(talk(log, "first"), "the secret zanzibar"), "third"), "fourth").write()
    refresh(memex)
    before = {row["prompt_number"]: row["id"] for row in memex.lake.scan("talk_summaries").to_pylist()}
    memex.forget.run(Target(matching="zanzibar"))
    left = [row["id"] for row in memex.lake.scan("talk_summaries").to_pylist()]
    assert sorted(left) == sorted([before[1], before[4]])
    refresh(memex)
    after = {row["prompt_number"]: row["id"] for row in memex.lake.scan("talk_summaries").to_pylist()}
    assert {number for number in before if before[number] != after[number]} == {2}


def test_dry_run_changes_no_byte(told, target):
    before = fingerprints(told.home)
    plan = told.forget.plan(target)
    assert fingerprints(told.home) == before
    assert plan.rows["messages"] > 5 and plan.on_disk
    assert (plan.files > 0) == (plan.texts == 0)


def test_forgetting_twice_finds_nothing(told):
    told.forget.run(TARGETS["text"])
    before = fingerprints(told.home)
    assert told.forget.run(TARGETS["text"]).empty
    assert fingerprints(told.home) == before
    told.forget.run(TARGETS["session"])
    with pytest.raises(NotFound):
        told.forget.plan(TARGETS["session"])


class TestForks:
    """A fork begins with the records of its original; those go, the rest stays."""

    @pytest.fixture
    def family(self, memex, claude_dir):
        log = log_at(claude_dir, "target", "-src-app", "/src/app")
        talk(talk(log, f"the original says {WORD}"), "second of the original").write()
        refresh(memex)
        fork = talk(fork_of(log, "fork1"), "the fork goes on")
        fork.write()
        refresh(memex)
        talk(fork_of(fork, "fork2"), "the fork of the fork").write()
        refresh(memex)
        return memex

    def prompts(self, memex):
        return sorted(row["text"] for row in memex.lake.scan("messages").to_pylist() if row["kind"] == "prompt")

    def test_copies_of_the_original_go(self, family):
        own = story(family, frozenset((TARGET,)))
        family.forget.run(Target(session=TARGET))
        assert holding(family.home, WORD) == []
        assert self.prompts(family) == ["the fork goes on", "the fork of the fork"]
        left, twice = story(family), frozenset(("claude:fork2",))  # which now is known to be a fork of fork1
        assert story(family, twice)["messages"] == [r for r in own["messages"] if r["session_id"] == "claude:fork1"]
        assert story(family, twice)["tool_calls"] == [r for r in own["tool_calls"] if r["session_id"] == "claude:fork1"]
        assert left["talk_summaries"] == own["talk_summaries"]
        family.ingest.rebuild()
        assert story(family)["messages"] == left["messages"]

    def test_original_stays_when_its_fork_goes(self, family):
        own = story(family, frozenset(("claude:fork1", "claude:fork2")))
        family.forget.run(Target(session="claude:fork1"))
        assert self.prompts(family) == ["second of the original", "the fork of the fork", f"the original says {WORD}"]
        assert holding(family.home, "the fork goes on") == []
        left = story(family, frozenset(("claude:fork2",)))
        assert {table: rows for table, rows in left.items() if table != "sources"} == {
            table: rows for table, rows in own.items() if table != "sources"
        }

    def test_fork_that_turns_up_later_brings_nothing_back(self, family, claude_dir):
        family.forget.run(Target(session=TARGET))
        log = log_at(claude_dir, "target", "-src-app", "/src/app")
        talk(talk(log, f"the original says {WORD}"), "second of the original")
        fork = talk(fork_of(log, "fork3"), "a third fork")
        data = fork.lines()
        fork.path.write_bytes(data[: len(data) // 3])
        refresh(family)
        fork.path.write_bytes(data)
        refresh(family)
        assert holding(family.home, WORD) == []
        assert self.prompts(family).count("a third fork") == 1


def test_subagents_go_with_their_session_and_turn_up_no_more(memex, claude_dir):
    log = target_log(claude_dir)
    log.write()
    agent_of(log, "look around").write()
    refresh(memex)
    plan = memex.forget.run(Target(session=IDS["target"]))
    assert {one.session_id for one in plan.sessions} == {TARGET, AGENT}
    late = agent_of(log, f"look for {WORD}")
    late.path = late.path.with_name("agent-late.jsonl")
    late.write()
    assert memex.ingest.plan().empty
    assert memex.lake.count("sessions") == 0


def test_words_of_a_subagent_go_from_its_parent(memex, claude_dir):
    log = log_at(claude_dir, "target", "-src-app", "/src/app")
    log.prompt("delegate")
    agent_of(log, f"look for {WORD}").write()
    inner = {"type": "assistant", "uuid": "u1", "message": {"role": "assistant", "content": f"I saw {WORD}"}}
    log.add("progress", data={"type": "agent_progress", "agentId": "7be41c02", "message": inner})
    log.reply("it is done").write()
    refresh(memex)
    memex.forget.run(Target(session="agent-7be41c02"))
    assert holding(memex.home, WORD) == []
    memex.ingest.rebuild()
    assert holding(memex.home, WORD) == []
    assert memex.lake.count("messages", "text = 'it is done'") == 1


class TestPatterns:
    def test_no_regular_expression(self, told):
        with pytest.raises(BadPattern, match="no regular expression"):
            told.forget.plan(Target(matching="("))

    @pytest.mark.parametrize("pattern", [".*", "x?", "|"])
    def test_empty_match(self, told, pattern):
        with pytest.raises(BadPattern, match="empty"):
            told.forget.plan(Target(matching=pattern))

    def test_short_match(self, told):
        with pytest.raises(BadPattern, match="less than 4 bytes"):
            told.forget.plan(Target(matching="xyz"))

    def test_nothing_matches(self, told):
        before = fingerprints(told.home)
        assert told.forget.plan(Target(matching="no such text")).empty
        assert told.forget.run(Target(matching="no such text")).empty
        assert fingerprints(told.home) == before

    def test_text_around_a_match_decides_only_what_it_is(self, memex, log):
        talk(log, "password=hunter22", "and again hunter22, but hunter23 stays").write()
        refresh(memex)
        memex.forget.run(Target(matching=r"(?<=password=)\w+"))
        assert holding(memex.home, "hunter22") == []
        assert holding(memex.home, "hunter23")

    def test_numbers(self, memex, log):
        log.prompt("x").call("Pay", {"pin": 918273, "amount": 12.5}, "ok").reply("done").write()
        refresh(memex)
        memex.forget.run(Target(matching="918273"))
        [given] = memex.lake.scan("tool_calls", ["input"])["input"].to_pylist()
        assert json.loads(given) == {"pin": 100000, "amount": 12.5}
        assert holding(memex.home, "918273") == []


def test_unknown_names(told):
    with pytest.raises(NotFound):
        told.forget.plan(Target(session="nothing-like-it"))
    with pytest.raises(NotFound, match="no project"):
        told.forget.plan(Target(project="plugh"))


def test_name_of_two_projects_is_refused(memex, claude_dir):
    for name, cwd in (("one", "/a/app"), ("two", "/b/app")):
        talk(log_at(claude_dir, name, f"-{name}", cwd), f"in {cwd}").write()
    refresh(memex)
    with pytest.raises(NotFound, match="dir:/a/app"):
        memex.forget.plan(Target(project="app"))
    memex.forget.run(Target(project="dir:/a/app"))
    assert [row["cwd"] for row in memex.lake.scan("sessions").to_pylist()] == ["/b/app"]
