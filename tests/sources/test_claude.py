"""Claude Code's logs, parsed: bytes in, records out."""

from datetime import UTC, datetime

import pytest

from memex.sources.claude import ClaudeAdapter
from tests.conftest import LONG_AGO, later
from tests.logs import talk
from tests.sources.parsing import (
    SESSION,
    answer,
    lines,
    new_log,
    parse,
    prompts,
    texts,
    tool,
    user,
    words,
)


def test_records_of_one_message_make_one_reply(log):
    log.prompt("why?").reply("First part.", {"type": "thinking", "thinking": "hm"}, "Second part.", message="msg_1")
    parsed = parse(log)
    assert texts(parsed) == ["First part.\n\nSecond part."]
    assert texts(parsed, "thinking") == ["hm"]
    assert [m.id for m in parsed.messages if m.kind == "reply"] == [f"claude:{SESSION}#msg_1"]


@pytest.mark.parametrize(
    "snapshots", [("Done", "Done, it works."), ("Done, it works.", "Done"), ("Done, it works.",) * 3]
)
def test_growing_snapshots_keep_the_longest(log, snapshots):
    log.prompt("why?")
    for text in snapshots:
        log.reply(text, message="msg_1", stop=None)
    assert texts(parse(log)) == ["Done, it works."]


def test_growing_thoughts_keep_the_longest(log):
    log.prompt("why?")
    for text in ("Let me", "Let me see"):
        log.reply({"type": "thinking", "thinking": text}, message="msg_1", stop=None)
    assert texts(parse(log), "thinking") == ["Let me see"]


def test_text_after_the_end_of_a_turn_is_added(log):
    log.prompt("why?").reply("Done", message="msg_1").reply("Done", message="msg_1")
    assert texts(parse(log)) == ["Done\n\nDone"]


def test_messages_of_different_ids_stay_apart(log):
    log.prompt("why?").reply("Done", message="msg_1").reply("Done", message="msg_2")
    assert texts(parse(log)) == ["Done", "Done"]


def test_reply_without_an_id_is_kept(log):
    body = {"role": "assistant", "content": "plain string"}
    log.prompt("why?").add("assistant", message=body).add("assistant", message=body)
    assert texts(parse(log)) == ["plain string", "plain string"]


def test_no_call_of_a_split_message_is_lost(log):
    log.prompt("look").reply("Looking.", tool("t1"), tool("t2"), message="msg_1", stop="tool_use")
    log.reply(tool("t3"), message="msg_1", stop="tool_use")
    parsed = parse(log)
    assert [call.id for call in parsed.calls] == [f"claude:{SESSION}#t{n}" for n in (1, 2, 3)]
    assert {call.message_id for call in parsed.calls} == {f"claude:{SESSION}#msg_1"}


def test_repeated_call_replaces_the_first(log):
    log.prompt("look").reply(tool("t1"), message="msg_1").reply(tool("t1", file_path="/a.py"), message="msg_1")
    [call] = parse(log).calls
    assert (call.input, call.files) == ('{"file_path":"/a.py"}', ("/a.py",))


def test_repeated_call_keeps_its_result(log):
    log.prompt("look").reply(tool("t1"), message="msg_1", stop="tool_use")
    answer(log, "t1", "found").reply(tool("t1"), tool("t2"), message="msg_1", stop="tool_use")
    assert [(call.output, call.answered) for call in parse(log).calls] == [("found", True), ("", False)]


def test_usage_of_a_split_message_counts_once(log):
    log.prompt("why?").reply("a", "b", "c", message="msg_1").reply("d", message="msg_2")
    parsed = parse(log)
    assert [m.tokens_output for m in parsed.messages if m.kind == "reply"] == [22, 20]
    session = parsed.session
    assert (session.tokens_input, session.tokens_output, session.tokens_cached) == (20, 42, 10)


def test_largest_usage_is_kept_in_any_order(log):
    log.prompt("why?")
    for output in (7, 50, 3):
        usage = {"input_tokens": output, "output_tokens": output, "service_tier": "standard"}
        log.add("assistant", message={"id": "msg_1", "content": [words("x")], "usage": usage})
    assert (parse(log).session.tokens_output, parse(log).session.tokens_input) == (50, 50)


def test_error_of_the_api_is_no_reply(log):
    log.prompt("why?").add(
        "assistant", isApiErrorMessage=True, message={"id": "e", "content": [words("API Error: 529")]}
    )
    parsed = parse(log)
    assert texts(parsed) == []
    assert texts(parsed, "notice") == ["API Error: 529"]
    assert not parsed.talks[0].answered


def test_models_are_listed_once_without_the_synthetic_one(log):
    log.prompt("why?").reply("a").reply("b")
    log.add("assistant", message={"id": "s", "model": "<synthetic>", "content": "No response requested."})
    assert parse(log).session.models == ("claude-test",)


def compacted(log, *, boundary):
    talk(log, "fix the login")
    if boundary:
        log.add("system", subtype="compact_boundary", content="Conversation compacted")
        log.prompt("This session is being continued: OLD STORY", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    return log.reply("One more thing.")


def test_compaction_is_a_boundary_and_no_prompt(log):
    parsed = parse(compacted(log, boundary=True))
    assert prompts(parsed) == ["fix the login"]
    assert texts(parsed, "boundary") == ["This session is being continued: OLD STORY"]


def test_compaction_adds_nothing_to_the_talk():
    [plain] = parse(compacted(new_log(), boundary=False)).talks
    [with_boundary] = parse(compacted(new_log(), boundary=True)).talks
    assert with_boundary.content == plain.content
    assert with_boundary.tokens_raw == plain.tokens_raw


def test_talk_covers_all_that_answers_its_prompt(log):
    talk(talk(log, "one"), "two").add("system", content="done")
    first, second = parse(log).talks
    assert (first.messages, first.tool_calls, first.answered) == (3, 1, True)
    assert (second.prompt_number, second.messages, second.tool_calls) == (2, 4, 1)
    assert (first.seq_from, first.seq_to + 1) == (1, second.seq_from)
    assert (first.started_at, first.ended_at) == (later(seconds=60), later(seconds=63))
    assert first.id == f"claude:{SESSION}#1"


def test_image_alone_is_a_talk(log):
    parsed = parse(log.prompt([{"type": "image", "source": {}}]).reply("A cat."))
    assert prompts(parsed) == ["[image]"]
    assert [m.images for m in parsed.messages] == [1, 0]


def test_unanswered_prompt_is_a_talk_without_an_answer(log):
    [first] = parse(log.prompt("anyone?")).talks
    assert (first.answered, first.messages, first.tool_calls) == (False, 1, 0)


def test_content_of_a_talk_changes_with_a_result(log):
    before = parse(talk(log, "one")).talks[0]
    log.records[2]["message"]["content"][0]["content"] = "other output"
    assert parse(log).talks[0].content != before.content


def test_content_of_a_talk_does_not_tell_where_it_stands():
    alone = parse(talk(new_log(), "fix it")).talks[0]
    moved = talk(new_log(), "fix it")
    moved.records[1:1] = [{"type": "system", "content": "hook ran"}]
    again = parse(moved).talks[0]
    assert again.content == alone.content
    assert again.digest != alone.digest


def test_records_name_their_file(log):
    parsed = parse(talk(log, "fix it"))
    assert {record.source_id for record in (*parsed.messages, *parsed.calls)} == {"log0"}


def test_blank_text_is_no_message(log):
    log.prompt("fix it").add("system", content=" \n").add("user", isMeta=True, message={"content": "\t"})
    assert texts(parse(log), "prompt", "system", "notice") == ["fix it"]


def test_session_sums_up_its_records(log):
    session = parse(talk(talk(log, "one"), "two")).session
    assert (session.talks, session.messages, session.tool_calls) == (2, 6, 2)
    assert (session.cwd, session.git_branch, session.cli_version) == ("/src/app", "main", "2.1.80")
    assert (session.project_id, session.project) == ("dir:/src/app", "app")
    assert (session.started_at, session.ended_at) == (later(seconds=60), later(seconds=126))


def test_project_is_that_of_the_first_folder(log):
    log.prompt("one", cwd="/src/first").prompt("two", cwd="/src/second")
    assert parse(log).session.cwd == "/src/first"


TITLES = [
    ("rename", "<command-name>/rename</command-name><command-args>renamed</command-args>"),
    ("custom-title", "custom"),
    ("ai-title", "by the model"),
    ("summary", "summed up"),
]


@pytest.mark.parametrize(
    ("first", "expected"), list(enumerate(["renamed", "custom", "by the model", "summed up", "fix the login"]))
)
def test_best_title_wins(log, first, expected):
    log.prompt("fix the\nlogin")
    for kind, text in reversed(TITLES[first:]):
        match kind:
            case "rename":
                log.prompt(text)
            case "custom-title":
                log.add(kind, customTitle=text)
            case "ai-title":
                log.add(kind, aiTitle=text)
            case _:
                log.add(kind, summary=text, leafUuid="x")
    assert parse(log).session.title == expected


def test_last_title_of_a_kind_wins(log):
    log.prompt("fix it").add("ai-title", aiTitle="first").add("ai-title", aiTitle="second")
    assert parse(log).session.title == "second"


def test_long_title_is_cut(log):
    assert parse(log.prompt("word " * 100)).session.title == ("word " * 100)[:200]


def test_usage_alone_is_a_probe(log):
    assert parse(log.prompt("<command-name>/usage</command-name>")).session.kind == "probe"


def test_usage_beside_a_prompt_is_no_probe(log):
    assert parse(log.prompt("<command-name>/usage</command-name>").prompt("fix it")).session.kind == "main"


def test_empty_log_is_an_empty_session():
    parsed = parse(b"")
    assert (parsed.talks, parsed.messages, parsed.calls) == ((), (), ())
    assert (parsed.session.kind, parsed.session.title, parsed.session.started_at) == ("main", "", None)


def test_missing_times_keep_the_order(log):
    log.prompt("one", timestamp=...).reply("two", timestamp=...).prompt("three", timestamp="yesterday")
    parsed = parse(log)
    assert texts(parsed, "prompt", "reply") == ["one", "two", "three"]
    assert (parsed.session.started_at, parsed.talks[0].started_at) == (None, None)


def test_backward_times_keep_the_order(log):
    log.prompt("one").reply("two", timestamp="2026-08-31T00:00:00Z").prompt("three", timestamp="2026-08-30T00:00:00Z")
    parsed = parse(log)
    assert texts(parsed, "prompt", "reply") == ["one", "two", "three"]
    assert parsed.session.started_at == datetime(2026, 8, 30, tzinfo=UTC)
    assert parsed.session.ended_at == later(minutes=1)
    first, second = parsed.talks
    assert (first.started_at, second.started_at) == (later(minutes=1), datetime(2026, 8, 30, tzinfo=UTC))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026-09-01T08:00:00.000Z", LONG_AGO),
        ("2026-09-01T10:00:00+02:00", LONG_AGO),
        ("2026-09-01T08:00:00", LONG_AGO),
        (LONG_AGO.timestamp(), LONG_AGO),
        (int(LONG_AGO.timestamp() * 1000), LONG_AGO),
        (1e300, None),
        (True, None),
        ("", None),
        ([], None),
    ],
)
def test_times_are_read_in_every_form(written, expected):
    assert parse(lines(user("one", timestamp=written))).messages[0].ts == expected


def test_logs_are_found_with_their_side_files(tmp_path):
    session = tmp_path / "projects" / "-src-app" / SESSION
    agent = session / "subagents" / "agent-7be41c02.jsonl"
    files = {
        session.with_suffix(".jsonl"): (f"claude:{SESSION}", "log"),
        session / "tool-results" / "b1.txt": (f"claude:{SESSION}", "side"),
        agent: ("claude:agent-7be41c02", "log"),
        agent.with_suffix(".meta.json"): ("claude:agent-7be41c02", "side"),
        tmp_path / "transcripts" / "old.jsonl": ("claude:old", "log"),
        tmp_path / "history.jsonl": ("claude:history", "history"),
    }
    others = [session.parent / "sessions-index.json", session / "notes.txt"]
    for path in [*files, *others]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")
    assert {f.path: (f.session_id, f.role) for f in ClaudeAdapter().discover(tmp_path)} == files


def test_missing_folder_holds_no_logs(tmp_path):
    assert list(ClaudeAdapter().discover(tmp_path / "nowhere")) == []


def test_snapshots_that_grow_by_a_block_are_merged(log):
    log.prompt("go").reply("A", message="m", stop=None)
    log.reply("A", "B", message="m")
    [reply] = [m for m in parse(log).messages if m.kind == "reply"]
    assert reply.text == "A\n\nB"


def test_what_follows_the_end_of_a_turn_is_added(log):
    log.prompt("go").reply("Done", message="m").reply("Done", message="m", stop=None).reply(
        "Done.", message="m", stop=None
    )
    [reply] = [m for m in parse(log).messages if m.kind == "reply"]
    assert reply.text == "Done\n\nDone\n\nDone."


def test_two_results_without_calls_are_both_kept(log):
    results = [{"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": f"output {n}"} for n in range(2)]
    log.prompt("go").prompt(results)
    assert {m.text for m in parse(log).messages if m.role == "tool"} == {"output 0", "output 1"}
    assert len({m.id for m in parse(log).messages}) == len(parse(log).messages)


def test_sidechain_in_a_main_file_is_aside_even_with_an_agent_id(log):
    log.prompt("go").prompt("look around", isSidechain=True, agentId="a1").reply(
        "Found it.", isSidechain=True, agentId="a1"
    )
    parsed = parse(log)
    assert parsed.session.kind == "main"
    assert [talk.prompt for talk in parsed.talks] == ["go"]
    assert [m.kind for m in parsed.messages] == ["prompt", "sidechain", "sidechain"]


def test_legacy_record_of_the_assistant_is_a_reply(log):
    log.prompt("go").add("message", message={"role": "assistant", "content": "Gone."})
    assert [(m.kind, m.text) for m in parse(log).messages] == [("prompt", "go"), ("reply", "Gone.")]
