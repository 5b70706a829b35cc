"""Compaction end to end on written logs, with a real lake."""

import threading
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotDone
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from memex.compact.run import Compact
from memex.llm.base import TalkInput
from memex.llm.extractive import ExtractiveWriter
from memex.settings import CompactSettings
from tests.conftest import later
from tests.logs import ClaudeLog, talk


class OtherWriter(ExtractiveWriter):
    """Another model."""

    model = "other"


class BrokenWriter(ExtractiveWriter):
    """Cannot write talks that mention dragons."""

    def talk(self, given: TalkInput):
        if "dragon" in given.request:
            raise ValueError("dragons are not supported")
        return super().talk(given)


class SlowWriter(ExtractiveWriter):
    """Takes its time over talks: until it may go on."""

    def __init__(self):
        self.begun, self.may_go_on = threading.Event(), threading.Event()

    def talk(self, given: TalkInput):
        self.begun.set()
        assert self.may_go_on.wait(60)
        return super().talk(given)


def ingest(memex, log: ClaudeLog):
    log.write()
    memex.ingest.run(memex.ingest.plan())


def compact(memex, levels=("observations", "talks", "sessions"), writer=None, clock=None) -> Compact:
    verb = Compact(memex.lake, writer or ExtractiveWriter(), CompactSettings(), levels)
    return replace(verb, clock=clock) if clock else verb


def run(verb: Compact, **options):
    return [verb.run(batch, **options) for batch in verb.plan(**options).batches]


def served(memex, table):
    rows = memex.lake.scan(table, None, "served").to_pylist()
    return sorted(rows, key=lambda r: (r["session_id"], r.get("prompt_number", 0)))


def test_each_level_is_made_once_and_then_there_is_nothing_to_do(memex, log):
    talk(talk(log, "Add a flag"), "Document the flag")
    ingest(memex, log)
    run(compact(memex))
    assert [r["prompt_number"] for r in served(memex, "talk_summaries")] == [1, 2]
    assert len(served(memex, "observations")) == 2
    assert len(served(memex, "session_summaries")) == 1
    versions = {t: memex.lake.dataset(t).version for t in ("observations", "talk_summaries", "session_summaries")}
    assert compact(memex).plan().empty
    assert {t: memex.lake.dataset(t).version for t in versions} == versions


def test_every_row_says_what_it_was_made_from_and_by_whom(memex, log):
    talk(log, "Add a flag")
    ingest(memex, log)
    run(compact(memex))
    row = served(memex, "talk_summaries")[0]
    known = set(memex.lake.scan("messages", ["id"])["id"].to_pylist()) | set(
        memex.lake.scan("tool_calls", ["id"])["id"].to_pylist()
    )
    assert row["sources"] and set(row["sources"]) <= known
    assert (row["provider"], row["model"]) == ("extractive", "extractive")
    assert row["recipe"].startswith("talks/") and row["fingerprint"]
    l3 = served(memex, "session_summaries")[0]
    assert l3["sources"] == [row["id"]]


def test_a_talk_still_being_written_is_not_summarised(memex, log):
    talk(talk(log, "Add a flag"), "Document the flag")
    ingest(memex, log)
    minute = compact(memex, clock=lambda: later(minutes=4))
    run(minute)
    assert [r["prompt_number"] for r in served(memex, "talk_summaries")] == [1]
    assert served(memex, "session_summaries") == []
    run(compact(memex, clock=lambda: later(minutes=30)))
    assert [r["prompt_number"] for r in served(memex, "talk_summaries")] == [1, 2]


def test_the_delay_leaves_a_session_alone_for_longer(memex, log):
    ingest(memex, talk(log, "Add a flag"))
    verb = compact(memex, clock=lambda: later(minutes=30))
    assert verb.plan(delay=timedelta(hours=1)).empty
    assert not verb.plan().empty


def test_a_grown_talk_is_made_again_and_the_old_row_kept_as_history(memex, log):
    ingest(memex, talk(log, "Add a flag"))
    run(compact(memex))
    before = served(memex, "talk_summaries")[0]
    log.reply("And I renamed it to --quiet.")
    ingest(memex, log)
    run(compact(memex))
    after = served(memex, "talk_summaries")
    assert len(after) == 1 and "--quiet" in after[0]["summary"]
    history = memex.lake.scan("talk_summaries", None, "NOT served").to_pylist()
    assert [h["id"] for h in history] == [before["id"]] and history[0]["replaced_at"] is not None


def test_only_the_affected_session_is_made_again(memex, log, claude_dir):
    other = ClaudeLog(claude_dir / "projects" / "-src-b" / "22222222-0000-4000-8000-000000000002.jsonl", later())
    ingest(memex, talk(log, "Add a flag"))
    ingest(memex, talk(other, "Remove a flag"))
    run(compact(memex))
    other.reply("One more thing: the tests pass.")
    ingest(memex, other)
    plan = compact(memex).plan()
    assert plan.batches == ((f"claude:{other.session}",),)
    assert plan.pending == {"talks": 1, "sessions": 1}


def test_another_model_makes_everything_pending_and_switching_back_is_free(memex, log):
    ingest(memex, talk(log, "Add a flag"))
    run(compact(memex))
    other = compact(memex, writer=OtherWriter())
    assert other.plan().reasons == {"changed": 3}
    run(other)
    assert {r["model"] for r in served(memex, "talk_summaries")} == {"other"}
    back = compact(memex)
    assert back.plan().pending == {}
    reports = run(back)
    assert sum(sum(r.made.values()) for r in reports) == 0
    assert {r["model"] for r in served(memex, "talk_summaries")} == {"extractive"}
    assert back.plan().empty


def test_force_makes_a_session_again_without_doubling(memex, log):
    ingest(memex, talk(log, "Add a flag"))
    run(compact(memex))
    before = served(memex, "talk_summaries")[0]
    verb = compact(memex)
    report = verb.run([f"claude:{log.session}"], force=True)
    after = served(memex, "talk_summaries")
    assert report.made == {"observations": 1, "talks": 1, "sessions": 1}
    assert len(after) == 1 and after[0]["id"] == before["id"] and after[0]["created_at"] > before["created_at"]


def test_a_talk_that_a_rewrite_dropped_loses_its_summaries(memex, log):
    ingest(memex, talk(talk(log, "Add a flag"), "Document the flag"))
    run(compact(memex))
    log.records = log.records[:4]
    ingest(memex, log)
    run(compact(memex))
    assert [r["prompt_number"] for r in served(memex, "talk_summaries")] == [1]
    assert {r["prompt_number"] for r in served(memex, "observations")} == {1}
    assert compact(memex).plan().empty


def test_a_failure_is_recorded_stops_nothing_and_is_tried_again_later(memex, log):
    ingest(memex, talk(talk(log, "Tame the dragon"), "Document it"))
    now = datetime.now(UTC)
    broken = compact(memex, writer=BrokenWriter(), clock=lambda: now)
    reports = run(broken)
    assert sum(r.failed for r in reports) == 1
    assert [r["prompt_number"] for r in served(memex, "talk_summaries")] == [2]
    assert served(memex, "session_summaries") == [], "a session waits for all its talks"
    failure = memex.lake.scan("failures").to_pylist()[0]
    assert failure["attempts"] == 1 and "dragons" in failure["reason"]
    assert broken.plan().empty, "it rests before it is tried again"
    soon = compact(memex, writer=BrokenWriter(), clock=lambda: now + timedelta(minutes=11))
    run(soon)
    assert memex.lake.scan("failures").to_pylist()[0]["attempts"] == 2
    mended = compact(memex, clock=lambda: now + timedelta(days=2))
    run(mended)
    assert memex.lake.count("failures") == 0
    assert len(served(memex, "session_summaries")) == 1


def test_where_the_new_row_fails_the_old_one_stays_served(memex, log):
    ingest(memex, talk(log, "Feed the dragon"))
    run(compact(memex))
    log.reply("It ate the sheep.")
    ingest(memex, log)
    run(compact(memex, writer=BrokenWriter()))
    assert len(served(memex, "talk_summaries")) == 1


@dataclass
class Case:
    switches: dict
    expected: tuple


@pytest.mark.parametrize(
    "case",
    [
        Case({}, ("observations", "talks", "sessions")),
        Case({"l1_observations": False}, ("talks", "sessions")),
        Case({"l2_talk_summary": False}, ("observations", "talks", "sessions")),
        Case({"l2_talk_summary": False, "l3_session_summary": False}, ("observations",)),
        Case({"provider": "openai"}, ("talks", "sessions")),
        Case({"provider": "openai", "l1_observations": True}, ("observations", "talks", "sessions")),
    ],
)
def test_switches(case):
    assert CompactSettings.model_validate(case.switches).levels == case.expected


def test_a_local_command_and_a_probe_make_no_summary(memex, log, claude_dir):
    log.prompt("<command-name>/model</command-name><command-args>x</command-args>")
    talk(log, "Add a flag")
    ingest(memex, log)
    probe = ClaudeLog(claude_dir / "projects" / "-p" / "33333333-0000-4000-8000-000000000003.jsonl", later())
    probe.prompt("<command-name>/usage</command-name>").reply("You used 3 %.")
    ingest(memex, probe)
    run(compact(memex))
    assert [(r["session_id"], r["prompt_number"]) for r in served(memex, "talk_summaries")] == [
        (f"claude:{log.session}", 2)
    ]


def test_two_runs_at_one_session_take_turns_and_leave_one_row_a_talk(memex, log):
    ingest(memex, talk(log, "Add a flag"))
    mine, writer = [f"claude:{log.session}"], SlowWriter()
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(compact(memex, writer=writer).run, mine)
        assert writer.begun.wait(60)
        log.reply("And I renamed it to --quiet.")
        ingest(memex, log)
        quick = pool.submit(compact(memex).run, mine)
        with pytest.raises(NotDone):
            quick.result(1)
        writer.may_go_on.set()
        assert slow.result(60).made == {"observations": 1, "talks": 1, "sessions": 1}
        assert quick.result(60).made == {"talks": 1, "sessions": 1}
    [row] = served(memex, "talk_summaries")
    assert "--quiet" in row["summary"]
    assert len(served(memex, "session_summaries")) == 1
    assert compact(memex).plan().empty


def test_runs_at_different_sessions_do_not_wait_for_each_other(memex, log, claude_dir):
    other = ClaudeLog(claude_dir / "projects" / "-src-b" / "22222222-0000-4000-8000-000000000002.jsonl", later())
    ingest(memex, talk(log, "Add a flag"))
    ingest(memex, talk(other, "Remove a flag"))
    writer = SlowWriter()
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(compact(memex, writer=writer).run, [f"claude:{log.session}"])
        assert writer.begun.wait(60)
        assert compact(memex).run([f"claude:{other.session}"]).made["talks"] == 1
        writer.may_go_on.set()
        assert slow.result(60).made["talks"] == 1
