"""Sessions that were copied, rewound, or run inside another one."""

import json

import pytest

from tests.conftest import LONG_AGO, ingest, rows
from tests.logs import ClaudeLog, talk
from tests.sources.parsing import Family, census, counted, new_log, parse, prompts, texts

ORIGINAL = "claude:22222222-0000-4000-8000-000000000002"


def family(log):
    """The original of a copy: it began with the first message of `log`."""
    root = next(r["uuid"] for r in log.records if r["type"] in ("user", "assistant"))
    return Family(claude_22222222_0000_4000_8000_000000000002=(root, log.lines()))


class TestForks:
    def test_copied_records_are_left_out_and_counted(self, log):
        talk(talk(log, "fix the login"), "and the docs")
        copied = len(log.records)
        original = family(log)
        fork = parse(talk(log, "try another way"), family=original)
        assert prompts(fork) == ["try another way"]
        assert (fork.session.kind, fork.session.parent_id) == ("fork", ORIGINAL)
        assert sum(uses.get(f"copied from {ORIGINAL}", 0) for uses in census(fork).records.values()) == copied
        assert sum(counted(fork).values()) == len(log.records)
        assert fork.session.tokens_output == 2 * 20

    def test_copied_records_without_an_id_are_left_out_too(self, log):
        log.prompt("fix the login").add("queue-operation", uuid=..., operation="enqueue", content="copied").reply("ok")
        original = family(log)
        fork = parse(log.prompt("another way").reply("done"), family=original)
        assert prompts(fork) == ["another way"]

    def test_same_id_at_another_time_is_no_copy(self, log):
        talk(log, "fix the login")
        other = new_log(log.path)
        talk(other, "unrelated")
        other.records = [{**record, "timestamp": "2020-01-01T00:00:00Z"} for record in other.records]
        parsed = parse(log, family=family(other))
        assert prompts(parsed) == ["fix the login"]

    def test_unknown_original_leaves_all_in(self, log):
        assert prompts(parse(talk(talk(log, "one"), "two"))) == ["one", "two"]

    def test_fork_is_told_from_its_original_whatever_is_read_first(self, memex, log):
        """The one that was written first is the original, though its name comes last."""
        talk(log, "fix the login").write()
        ingest(memex)
        fork = ClaudeLog(log.path.with_name("00000000-0000-4000-8000-000000000000.jsonl"), LONG_AGO)
        fork.records = [{**record, "sessionId": fork.session, "sessionKind": "bg"} for record in log.records]
        talk(fork, "another way").write()
        talk(log, "the usual way").write()
        ingest(memex)
        sessions = {row["native_id"]: row for row in rows(memex, "sessions")}
        assert (sessions[log.session]["kind"], sessions[fork.session]["kind"]) == ("main", "fork")
        assert sessions[fork.session]["parent_id"] == f"claude:{log.session}"
        asked = [row["prompt"] for row in rows(memex, "talks")]
        assert sorted(asked) == ["another way", "fix the login", "the usual way"]

    def test_fork_goes_on_growing(self, memex, log):
        talk(log, "fix the login").write()
        fork = ClaudeLog(log.path.with_name("44444444-0000-4000-8000-000000000004.jsonl"), LONG_AGO)
        fork.records = [{**record, "sessionId": fork.session} for record in log.records]
        fork.write()
        for request in ("another way", "and on"):
            ingest(memex)
            talk(fork, request).write()
        ingest(memex)
        assert sorted(row["prompt"] for row in rows(memex, "talks")) == ["and on", "another way", "fix the login"]


class TestRewinds:
    def rewound(self, log, talks, back_to):
        """A log of some talks, then a prompt typed in place of an earlier one."""
        parents = []
        for number in range(talks):
            parents.append(log._last)
            talk(log, f"way {number}")
        log.prompt("better", parentUuid=parents[back_to]).reply("Better indeed.")
        return parse(log)

    def test_prompt_typed_again_takes_back_the_one_before(self, log):
        parsed = self.rewound(log, 3, 2)
        assert prompts(parsed) == ["way 0", "way 1", "better"]
        assert [m.text for m in parsed.messages if m.superseded and m.kind == "prompt"] == ["way 2"]
        assert all(c.superseded == (c.prompt_number == 3) for c in parsed.calls)
        assert (parsed.session.talks, parsed.talks[-1].prompt_number) == (3, 4)

    def test_going_back_three_prompts_takes_back_three(self, log):
        assert prompts(self.rewound(log, 4, 1)) == ["way 0", "better"]

    def test_going_back_far_keeps_both_ways_and_says_so(self, log):
        parsed = self.rewound(log, 6, 1)
        assert prompts(parsed) == [*(f"way {number}" for number in range(6)), "better"]
        assert census(parsed).records["user"]["prompt after going back far: both ways are kept"] == 1

    def test_first_prompt_has_nothing_to_hang_on(self, log):
        log.prompt("one", parentUuid=None).reply("1").prompt("two", parentUuid=None).reply("2")
        assert prompts(parse(log)) == ["one", "two"]

    def test_command_and_shell_escape_replace_nothing(self, log):
        log.add("user", message={"content": "Caveat: x"}, isMeta=True)
        caveat = log._last
        log.prompt("one", parentUuid=caveat).reply("1")
        log.prompt("<bash-input>ls</bash-input>", parentUuid=caveat).prompt("two").reply("2")
        assert prompts(parse(log)) == ["one", "! ls", "two"]

    def test_what_was_taken_back_stays_findable_and_marked(self, memex, log):
        log.prompt("use the redis cache").reply("Redis it is.")
        first = log.records[0]["parentUuid"]
        assert first is None
        parent = log._last
        log.prompt("store sessions in memcached").reply("Memcached it is.").write()
        ingest(memex)
        log.prompt("store sessions in postgres", parentUuid=parent).reply("Postgres it is.").write()
        ingest(memex)
        live = [row["prompt"] for row in rows(memex, "talks", "NOT superseded")]
        assert live == ["use the redis cache", "store sessions in postgres"]
        gone = rows(memex, "messages", "superseded")
        assert sorted(row["text"] for row in gone) == ["Memcached it is.", "store sessions in memcached"]


class TestProgress:
    def progress(self, log, agent, text, kind="assistant", number=1):
        inner = {
            "type": kind,
            "uuid": f"inner-{agent}-{number}",
            "message": {"role": kind, "content": [{"type": "text", "text": text}]},
        }
        data = {"type": "agent_progress", "agentId": agent, "message": inner}
        return log.add("progress", data=data, parentToolUseID="toolu_9")

    def test_subagent_without_a_log_is_kept_in_its_parent(self, log):
        log.prompt("explore").reply({"type": "tool_use", "id": "toolu_9", "name": "Task", "input": {}})
        self.progress(log, "a1", "look around", "user")
        self.progress(log, "a1", "found it", number=2)
        self.progress(log, "a1", "found it", number=2)
        parsed = parse(log)
        assert texts(parsed, "sidechain") == ["look around", "found it"]
        assert parsed.calls[0].agent_session_id == "claude:agent-a1"
        assert prompts(parsed) == ["explore"]

    def test_subagent_with_a_log_is_not_doubled(self, log):
        log.prompt("explore").reply({"type": "tool_use", "id": "toolu_9", "name": "Task", "input": {}})
        self.progress(log, "a1", "found it")
        known = Family(**{"claude_agent-a1": ("", b"")})
        known.others = {"claude:agent-a1": ("", b"")}
        assert texts(parse(log, family=known), "sidechain") == []

    def test_output_of_a_running_command_is_counted_only(self, log):
        log.prompt("run it").add("progress", data={"type": "bash_progress", "output": "1 of 2"})
        parsed = parse(log)
        assert census(parsed).records["progress"] == {"in the archive only": 1}


class TestEarlyResults:
    def test_result_that_stands_before_its_call_is_joined(self, log):
        log.prompt("read it")
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x = 1"}
        log.add("user", message={"role": "user", "content": [result]})
        log.reply({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "a.py"}})
        [call] = parse(log).calls
        assert (call.output, call.answered) == ("x = 1", True)

    def test_result_without_a_call_is_kept(self, log):
        log.prompt("read it")
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x = 1"}
        log.add("user", message={"role": "user", "content": [result]})
        assert [(m.role, m.text) for m in parse(log).messages if m.kind == "notice"] == [("tool", "x = 1")]

    @pytest.mark.parametrize("second", ["x = 1", "x = 2"])
    def test_second_result_of_a_call_does_not_replace_the_first(self, log, second):
        log.prompt("read it").call("Read", {"file_path": "a.py"}, "x = 1")
        identity = log.records[-1]["message"]["content"][0]["tool_use_id"]
        result = {"type": "tool_result", "tool_use_id": identity, "content": second}
        parsed = parse(log.add("user", message={"role": "user", "content": [result]}))
        assert parsed.calls[0].output == "x = 1"
        assert second in texts(parsed, "notice")


def test_late_prompt_is_placed_by_its_time(log):
    """Typed while the model was at work: what it did after that moment follows the prompt."""
    log.prompt("fix it").reply({"type": "text", "text": "Looking."}, message="m1", stop=None)
    typed = log._now
    log.reply({"type": "text", "text": "Then this."}, message="m2", stop=None)
    log.add(
        "attachment",
        uuid=...,
        timestamp=typed.isoformat(),
        attachment={"type": "queued_command", "prompt": "mind the tests"},
    )
    log.reply("Done.", message="m3")
    parsed = parse(log)
    assert prompts(parsed) == ["fix it", "mind the tests"]
    assert [(m.text, m.prompt_number) for m in parsed.messages if m.kind == "reply"] == [
        ("Looking.", 1), ("Then this.", 2), ("Done.", 2),
    ]  # fmt: skip
    assert json.dumps(census(parsed).records["attachment"]) == '{"prompt": 1}'
