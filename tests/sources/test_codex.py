"""The Codex adapter on small logs, one behaviour each: sessions, prompts, replies, tokens, forks."""

import os
from pathlib import Path

import pytest
import zstandard

from memex.sources.codex import CodexAdapter
from memex.sources.ingest import Ingest
from memex.sources.parse import SessionParse
from memex.sources.registry import ADAPTERS
from tests.codex_logs import NATIVE, CodexLog, turn_id
from tests.sources.parsing import Family, MemoryBlob, census, counted, parse, parsed, prompts, texts

ABORTED = "<turn_aborted>\nThe user interrupted the previous turn on purpose.\n</turn_aborted>"
ENVIRONMENT = "<environment_context>\n  <cwd>/src/app</cwd>\n</environment_context>"
SAMPLES = Path(__file__).parents[2] / "data" / "codex"
PARENT = "0199f000-0000-7000-8000-0000000000ff"


@pytest.fixture
def log():
    return CodexLog().meta()


def read(log, **options):
    return parse(log, cli="codex", session_id=log.session, **options)


def family(parent):
    return Family(**{f"codex_{parent.native.replace('-', '_')}": ("", parent.lines())})


def became(parsed, kind):
    return census(parsed).records.get(kind, {})


# Where logs are


def test_every_log_is_found_and_belongs_to_the_uuid_in_its_name(tmp_path):
    other, old = "01990000-2222-7000-8000-00000000000b", "9f5f6c1b-0000-4000-8000-0123456789ab"
    for name, native in {
        f"sessions/2026/09/01/rollout-2026-09-01T08-00-00-{NATIVE}.jsonl": NATIVE,
        f"sessions/2026/09/01/rollout-2026-09-01T09-00-00-{other}.jsonl.zst": other,
        f"archived_sessions/rollout-2026-08-01T08-00-00-{NATIVE}.jsonl": NATIVE,
        f"sessions/rollout-2025-05-07-{old.upper()}.jsonl": old,
        "sessions/2026/notes.jsonl": "notes",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}\n")
        found = {f.path: f for f in CodexAdapter().discover(tmp_path)}
        assert (found[path].session_id, found[path].role, found[path].refused) == (f"codex:{native}", "log", "")
        assert found[path].stat[0] == 3
    for name in ("history.jsonl", "session_index.jsonl", "sessions/2026/rollout.json", "log/codex.log"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}\n")
    assert len(list(CodexAdapter().discover(tmp_path))) == 6


def test_what_may_not_be_read_is_named(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "home" / "sessions").mkdir(parents=True)
    (tmp_path / "home" / "sessions" / "2026").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "home" / "sessions" / "rollout-x.jsonl").symlink_to(tmp_path / "elsewhere" / "gone.jsonl")
    found = list(CodexAdapter().discover(tmp_path / "home"))
    assert [f.path.name for f in found if f.refused] == ["2026", "rollout-x.jsonl"]


def test_a_log_that_is_compressed_or_moved_stays_one_session(memex, tmp_path):
    home = tmp_path / "codex"
    log = CodexLog(home).meta().turn().typed("Fix the login.").reply("Fixed.")
    ingest = Ingest(memex.archive, memex.lake, ADAPTERS, {"codex": (home,)})
    path = log.write()
    ingest.run(ingest.plan())
    packed = path.with_name(path.name + ".zst")
    packed.write_bytes(zstandard.ZstdCompressor().compress(path.read_bytes()))
    ingest.run(ingest.plan())
    path.unlink()
    ingest.run(ingest.plan())
    packed.rename(tmp_path / "packed")
    moved = home / "archived_sessions" / path.name
    moved.parent.mkdir()
    moved.write_bytes(log.typed("And the logout?").reply("Done, too.").lines())
    os.utime(moved, ns=(0, 10**18))
    ingest.run(ingest.plan())
    assert ingest.plan().empty
    assert memex.lake.scan("sessions", ["id", "talks"]).to_pylist() == [{"id": log.session, "talks": 2}]
    talks = memex.lake.scan("talks", ["prompt", "superseded"]).to_pylist()
    assert sorted(talk["prompt"] for talk in talks if not talk["superseded"]) == ["And the logout?", "Fix the login."]


def test_a_log_that_is_written_anew_keeps_its_rows(log):
    log.turn().typed("Fix it.").call("exec_command", {"cmd": "ls"}, "a").reply("Done.").message("developer", "x")
    before = read(log)
    log.records[0]["payload"]["dynamic_tools"] = ["something that moves every later line"]
    after = read(log)
    assert [m.id for m in after.messages] == [m.id for m in before.messages]
    assert [m.offset for m in after.messages] != [m.offset for m in before.messages]
    assert len({m.id for m in after.messages}) == 4


# What a session is


def test_the_first_facts_count(log):
    log.turn(cwd="/src/app/sub").typed("Hi").reply("Hello.")
    log.meta(id="another", cwd="/elsewhere", cli_version="0.1.0", git=None).turn(cwd="/later")
    parsed = read(log)
    session = parsed.session
    assert (session.id, session.native_id, session.cli) == (f"codex:{NATIVE}", NATIVE, "codex")
    assert (session.cwd, session.git_branch, session.cli_version) == ("/src/app", "main", "0.144.0")
    assert (session.kind, session.parent_id, session.title, session.models) == ("main", "", "Hi", ("gpt-test",))
    assert session.started_at < session.ended_at
    assert became(parsed, "session_meta") == {"session facts": 1, "session facts again": 1}


def test_a_name_given_to_the_session_is_its_title(log):
    log.typed("Hi").event("thread_name_updated", thread_name="Greeting\nthe machine")
    assert read(log).session.title == "Greeting the machine"


def test_a_session_without_facts_is_read_all_the_same():
    parsed = read(CodexLog().turn(cwd="/src/other").typed("Hi").reply("Hello."))
    assert (parsed.session.cwd, parsed.session.kind, prompts(parsed)) == ("/src/other", "main", ["Hi"])


# Items without a wrapper, as until the autumn of 2025


def test_bare_items_without_times_are_read():
    def message(role, text):
        return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}

    output = '{"output":"a.py\\n","metadata":{"exit_code":0,"duration_seconds":0.1}}'
    log = CodexLog()
    log.bare(id=NATIVE, timestamp="2025-06-01T10:00:00.000Z", instructions=None, git={"branch": "dev"})
    log.bare(record_type="state")
    log.bare(**message("user", "<environment_context>\n\nCurrent working directory: /src/old\n</environment_context>"))
    log.bare(**message("user", "List the files.")).bare(record_type="state")
    log.bare(type="reasoning", id="rs_1", summary=[{"type": "summary_text", "text": "A listing."}])
    log.bare(type="function_call", name="shell", arguments='{"command":["bash","-lc","ls"]}', call_id="c1")
    log.bare(type="function_call_output", call_id="c1", output=output)
    log.bare(**message("assistant", "There is a.py."))
    parsed = read(log)
    assert (prompts(parsed), texts(parsed)) == (["List the files."], ["", "There is a.py."])
    assert texts(parsed, "thinking") == ["A listing."]
    assert [(c.name, c.output, c.is_error, c.answered) for c in parsed.calls] == [("shell", "a.py\n", False, True)]
    assert (parsed.session.cwd, parsed.session.git_branch) == ("/src/old", "dev")
    assert str(parsed.session.started_at) == "2025-06-01 10:00:00+00:00"
    assert counted(parsed) == {
        "session_meta": 1, "(no type)": 2, "response_item/message": 3, "response_item/reasoning": 1,
        "response_item/function_call": 1, "response_item/function_call_output": 1,
    }  # fmt: skip


# Which messages are prompts


@pytest.mark.parametrize("order", ["message event", "event message", "message", "event"])
def test_a_prompt_is_one_whichever_way_it_is_said(log, order):
    for text in ("Fix the login.", "Fix the login.", "And the logout?"):
        log.turn()
        for half in order.split():
            if half == "message":
                log.message("user", text)
            else:
                log.event("user_message", message=text + "\n", images=[])
        log.reply("Done.")
    parsed = read(log)
    assert prompts(parsed) == ["Fix the login.", "Fix the login.", "And the logout?"]
    assert [m.prompt_number for m in parsed.messages if m.kind == "reply"] == [1, 2, 3]


def test_prompts_said_in_blocks_are_paired(log):
    log.message("user", "one").message("user", "two").event("user_message", message="one")
    log.event("user_message", message="two").reply("Both.")
    log.event("user_message", message="three").event("user_message", message="four")
    log.message("user", "three").message("user", "four")
    assert prompts(read(log)) == ["one", "two", "three", "four"]


@pytest.mark.parametrize(
    ("story", "typed"),
    [
        ("message message event event", 2), ("event event message message", 2), ("event message event message", 2),
        ("event message message", 2), ("message model event event", 2), ("event model message message", 2),
        ("message model message event", 2), ("message model event model message", 2), ("message event message", 2),
    ],
)  # fmt: skip
def test_the_same_words_typed_twice_are_two_prompts(log, story, typed):
    for step in story.split():
        if step == "message":
            log.message("user", "Go on.")
        elif step == "event":
            log.event("user_message", message="Go on.")
        else:
            log.item("reasoning", summary=[])
    assert len(prompts(read(log))) == typed


def test_the_halves_of_a_prompt_stand_close_together(log):
    log.message("user", "Go on.").reply("Yes.")
    for _number in range(100):
        log.add("world_state", {})
    assert len(prompts(read(log.event("user_message", message="Go on.").reply("Yes.")))) == 2


def test_a_message_is_a_prompt_as_soon_as_the_model_speaks(log):
    def provisional():
        reading = SessionParse(
            ADAPTERS["codex"], log.session, [MemoryBlob("log0", log.path, log.lines())], 1, 0, {}, {}, Family()
        )
        parsed(reading)
        return len(reading.saved.provisional)

    log.message("user", "Fix it.")
    assert provisional() == 1
    log.item("reasoning", summary=[])
    assert provisional() == 0


def test_an_event_that_comes_late_or_early_is_no_second_prompt(log):
    log.message("user", "Fix it.").item("reasoning", summary=[]).event("user_message", message="Fix it.").reply("Yes.")
    log.event("user_message", message="Now test it.").reply("I do.").message("user", "Now test it.")
    assert prompts(read(log)) == ["Fix it.", "Now test it."]


def test_the_event_tells_what_was_typed_of_a_longer_message(log):
    log.message("user", "Use the skill below.\nFix the login, please.")
    log.event("user_message", message="Fix the login, please.", images=["data:image/png;base64,AA"]).reply("Done.")
    parsed = read(log)
    assert prompts(parsed) == ["Fix the login, please."]
    assert [m.images for m in parsed.messages if m.kind == "prompt"] == [1]


def test_a_prompt_at_the_end_of_a_log_counts(log):
    assert prompts(read(log.message("user", "Still here?"))) == ["Still here?"]


@pytest.mark.parametrize(
    "text",
    [
        "# AGENTS.md instructions for /src\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>", ENVIRONMENT, ABORTED,
        "<user_instructions>\nUse <b>tags</b>.\n</user_instructions>", "<INSTRUCTIONS>x</INSTRUCTIONS>",
        "<skill>\n<name>review</name>\n</skill>", "<SUBAGENT_NOTIFICATION>{}</SUBAGENT_NOTIFICATION>",
        "<goal_context>go on</goal_context>", '<codex_internal_context source="goal">go on</codex_internal_context>',
        "<user_shell_command>\n<command>ls</command>\n</user_shell_command>", "<recommended_plugins>\n- X\n",
        f"<recommended_plugins>- X</recommended_plugins>\n{ENVIRONMENT}", "Warning: apply_patch was requested via exec",
    ],
)  # fmt: skip
def test_what_nobody_typed_is_a_notice(log, text):
    text = text.replace("via exec", "via exec_command. Use the tool.")
    parsed = read(log.message("user", text).message("developer", "<permissions instructions>").reply("Hello."))
    assert (prompts(parsed), texts(parsed, "notice")) == ([], [text, "<permissions instructions>"])
    assert became(parsed, "response_item/message") == {"notice": 2, "reply": 1}


@pytest.mark.parametrize(
    ("parts", "typed"),
    [
        (["<recommended_plugins>\n- X\n</recommended_plugins>\nFix the login."], "Fix the login."),
        ([ENVIRONMENT, "Fix the login."], "Fix the login."),
        ([f"{ENVIRONMENT}\n\ufeffFix the <b>login</b>."], "Fix the <b>login</b>."),
        (["# AGENTS.md\n<INSTRUCTIONS>a</INSTRUCTIONS> b </INSTRUCTIONS>", "Fix it."], "Fix it."),
        (["# Context from my IDE setup:\n## Open tabs: a\n\n## My request for Codex:\nFix it.\n"], "Fix it."),
        (["<div> is broken"], "<div> is broken"),
        (["# Fix the login\nIt fails."], "# Fix the login\nIt fails."),
    ],
)
def test_context_before_the_words_of_a_human_is_stripped(log, parts, typed):
    assert prompts(read(log.message("user", *parts).reply("Done."))) == [typed]


def test_an_unknown_envelope_is_no_prompt_where_prompts_have_events(log):
    log.message("user", "<new_context>x</new_context>").typed("Fix it.").reply("Done.")
    log.message("user", "<newer_context>y</newer_context>").reply("Noted.").message("user", "No event for me?")
    parsed = read(log)
    assert prompts(parsed) == ["Fix it.", "No event for me?"]
    assert texts(parsed, "notice") == ["<new_context>x</new_context>", "<newer_context>y</newer_context>"]


def test_events_of_2025_say_which_are_context(log):
    log.event("user_message", message="# Rules", kind="user_instructions").typed("Hi").reply("Hello.")
    parsed = read(log)
    assert prompts(parsed) == ["Hi"]
    assert became(parsed, "event_msg/user_message") == {"in the archive only": 1, "the same as its response_item": 1}


def test_images_are_counted_and_not_kept(log):
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    log.message("user", "<image name=[Image #1]>", picture, "</image>", "What is this?").reply("A cat.")
    log.message("user", picture).reply("A dog.")
    log.event("user_message", message="", images=[], local_images=["/tmp/a.png"]).message("user", picture)
    parsed = read(log)
    assert prompts(parsed) == ["What is this?", "[image]", "[image]"]
    assert [m.images for m in parsed.messages if m.kind == "prompt"] == [1, 1, 1]


def test_the_first_prompt_again_after_an_interruption_is_left_out_once(log):
    log.typed("Fix the login.").message("user", ABORTED).event("turn_aborted", reason="interrupted")
    log.typed("Fix the login.").reply("Done.").typed("Fix the login.").reply("Again.")
    parsed = read(log)
    assert prompts(parsed) == ["Fix the login.", "Fix the login."]
    assert became(parsed, "response_item/message")["left out: the first prompt again after an interruption"] == 1


@pytest.mark.parametrize("between", ["Something else.", None])
def test_other_prompts_said_twice_are_two(log, between):
    log.typed("Fix the login.")
    if between:
        log.message("user", ABORTED).typed(between).typed("Fix the login.")
    else:
        log.typed("Fix the login.").message("user", ABORTED).typed("Fix the login.")
    assert prompts(read(log)).count("Fix the login.") == (2 if between else 3)


def test_prompts_that_were_taken_back_leave_the_talks(log):
    for number in range(1, 5):
        log.turn().typed(f"Prompt {number}").call("exec_command", {"cmd": "ls"}, "a").reply(f"Reply {number}")
    log.event("thread_rolled_back", num_turns=2).typed("Prompt 5").reply("Reply 5")
    log.event("thread_rolled_back", num_turns=1).event("thread_rolled_back", num_turns=1).typed("Prompt 6")
    parsed = read(log)
    assert prompts(parsed) == ["Prompt 1", "Prompt 6"]
    assert [m.text for m in parsed.messages if m.superseded and m.kind == "prompt"] == [
        "Prompt 2", "Prompt 3", "Prompt 4", "Prompt 5",
    ]  # fmt: skip
    assert became(parsed, "event_msg/thread_rolled_back") == {"prompts taken back": 3}


@pytest.mark.parametrize("turns", [0, -3, None, "2", 10**9])
def test_odd_counts_of_turns_to_take_back_do_no_harm(log, turns):
    log.typed("Fix it.").reply("Done.").event("thread_rolled_back", num_turns=turns).typed("Thanks.")
    assert prompts(read(log)) == (["Thanks."] if turns == 10**9 else ["Fix it.", "Thanks."])


# Replies, thoughts, context


def test_an_answer_of_the_model_is_one_reply_with_thoughts_and_calls(log):
    log.typed("Fix it.")
    log.event("agent_reasoning", text="**Reading**").item(
        "reasoning", summary=[{"type": "summary_text", "text": "**Reading**"}], encrypted_content="x"
    )
    log.message("assistant", "I look.").call("shell_command", {"command": "ls"}, "a.py").counted()
    log.item("reasoning", summary=[]).reply("Fixed.")
    parsed = read(log)
    assert texts(parsed, "reply", "thinking") == ["**Reading**", "I look.", "Fixed."]
    reply = next(m for m in parsed.messages if m.text == "I look.")
    assert [c.message_id for c in parsed.calls] == [reply.id]
    assert reply.model == "" and parsed.session.tool_calls == 1
    assert became(parsed, "event_msg/agent_reasoning") == {"the same as its response_item": 1}
    assert became(parsed, "response_item/reasoning") == {"thinking": 1, "no text": 1}


def test_a_compaction_is_a_boundary_and_its_history_is_not_read_again(log):
    log.typed("Fix it.").reply("Done.")
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it."}]}]
    log.add("compacted", {"message": "We fixed it.", "replacement_history": history}).event("context_compacted")
    log.add("compacted", {"message": "", "replacement_history": history}).reply("Going on.")
    parsed = read(log)
    assert (prompts(parsed), texts(parsed)) == (["Fix it."], ["Done.", "Going on."])
    assert texts(parsed, "boundary") == ["We fixed it.", "[context compacted]"]


def test_a_plan_and_an_error_that_stand_in_events_alone_are_kept(log):
    log.typed("Plan it.").event("item_completed", item={"type": "Plan", "id": "p", "text": "1. Look\n2. Fix"})
    log.event("item_completed", item={"type": "Sleep"}).event("error", message="You've hit your usage limit.")
    parsed = read(log)
    assert (texts(parsed), texts(parsed, "notice")) == (["1. Look\n2. Fix"], ["You've hit your usage limit."])


def test_unknown_records_are_counted_and_stop_nothing(log):
    log.add("world_state", {"full": True}).add("realtime_item", {}).bare(type="security_risk_score", payload=3)
    log.item("ghost_snapshot", ghost_commit={}).item("other").item("compaction", encrypted_content="x")
    log.event("from_the_future", x=1).bare(type=None).bare(payload={"type": []}).bare(type="event_msg", payload=None)
    log.item(["odd"]).typed("Hi").reply("Hello.", tokens=False)
    parsed = read(log)
    kept = {kind for kind, uses in census(parsed).records.items() if uses.get("in the archive only")}
    assert kept == {
        "world_state", "realtime_item", "response_item/ghost_snapshot", "response_item/other", "event_msg/(no type)",
        "response_item/compaction", "response_item/security_risk_score", "event_msg/from_the_future", "(no type)",
        "response_item/(no type)",
    }  # fmt: skip
    assert sum(counted(parsed).values()) == len(log.records)
    assert prompts(parsed) == ["Hi"]


# Tokens


def test_tokens_belong_to_their_reply_and_are_counted_once(log):
    def again():
        return log.event("token_count", info=counts)

    log.turn().typed("Fix it.").event("token_count", info=None).counted(100, 60, 1)  # before any reply: of none
    log.call("shell_command", {"command": "ls"}, "a").counted(100, 60, 7)
    counts = log.records[-1]["payload"]["info"]
    again().turn()
    again().reply("Done.", tokens=False).counted(200, 150, 9).typed("Thanks.")
    parsed = read(log)
    replies = [m for m in parsed.messages if m.kind == "reply"]
    assert [(m.text, m.tokens_input, m.tokens_cached, m.tokens_output) for m in replies] == [
        ("", 40, 60, 7), ("Done.", 50, 150, 9),
    ]  # fmt: skip
    assert (parsed.session.tokens_input, parsed.session.tokens_cached, parsed.session.tokens_output) == (90, 210, 16)
    assert became(parsed, "event_msg/token_count") == {
        "no token counts": 1, "token counts of no reply": 1, "token counts of a reply": 2,
        "the same token counts again": 2,
    }  # fmt: skip


@pytest.mark.parametrize("odd", ["x", -1, None, 2**60, 1.5])
def test_odd_token_counts_are_nothing(log, odd):
    usage = {"input_tokens": odd, "cached_input_tokens": 3, "output_tokens": odd}
    log.typed("Hi").reply("Hello.", tokens=False).event("token_count", info={"last_token_usage": usage})
    parsed = read(log)
    assert (parsed.session.tokens_input, parsed.session.tokens_cached, parsed.session.tokens_output) == (0, 3, 0)


# Forks and subagents


def parent_log():
    parent = CodexLog(native=PARENT).meta()
    for number in (1, 2):
        parent.turn(turn_id(number)).typed(f"Parent prompt {number}").call("exec_command", {"cmd": "ls"}, "a")
        parent.reply(f"Parent reply {number}")
    return parent


def child_log(parent, source="cli", **facts):
    child = CodexLog().meta(forked_from_id=PARENT, source=source, **facts).copy_of(parent, len(parent.records))
    child.turn(turn_id(3)).typed("Child prompt").item("reasoning", summary=[])
    child.event("token_count", info=parent.records[-1]["payload"]["info"])  # as if it were the child's own
    return child.reply("Child reply")


SPAWN = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1, "agent_role": "explorer"}}}


@pytest.mark.parametrize(("source", "kind", "role"), [("cli", "fork", ""), (SPAWN, "subagent", "explorer")])
def test_what_was_copied_from_the_parent_is_left_out(source, kind, role):
    parent = parent_log()
    child = child_log(parent, source)
    parent.turn(turn_id(4)).typed("Parent prompt 3").reply("Parent reply 3")
    parsed = read(child, family=family(parent))
    assert (prompts(parsed), texts(parsed)) == (["Child prompt"], ["Child reply"])
    assert parsed.calls == ()
    session = parsed.session
    assert (session.id, session.parent_id, session.kind, session.agent_type) == (
        child.session,
        parent.session,
        kind,
        role,
    )
    assert session.tokens_output == 7
    assert sum(counted(parsed).values()) == len(child.records)
    assert became(parsed, "response_item/message")[f"copied from codex:{PARENT}"] == 4
    assert str(session.started_at) == str(read(child).session.started_at)


def test_without_the_parents_log_nothing_is_left_out():
    child = child_log(parent_log(), SPAWN)
    parsed = read(child)
    assert prompts(parsed) == ["Parent prompt 1", "Parent prompt 2", "Child prompt"]
    assert (parsed.session.parent_id, parsed.session.kind) == (f"codex:{PARENT}", "subagent")
    assert became(parsed, "session_meta") == {
        "session facts; without a log of the parent nothing is left out": 1, "session facts again": 1,
    }  # fmt: skip


def test_a_subagent_that_copied_nothing_is_read_whole():
    parent = parent_log()
    child = CodexLog().meta(source=SPAWN).turn(turn_id(3)).typed("Look around.").reply("Seen.")
    parsed = read(child, family=family(parent))
    assert (prompts(parsed), texts(parsed)) == (["Look around."], ["Seen."])
    assert (parsed.session.parent_id, parsed.session.kind) == (parent.session, "subagent")


@pytest.mark.parametrize(
    ("source", "role"), [({"subagent": "review"}, "review"), ({"subagent": {"other": "guardian"}}, "guardian")]
)
def test_agents_of_the_cli_itself_are_subagents(source, role):
    session = read(CodexLog().meta(source=source).typed("Review it.")).session
    assert (session.kind, session.agent_type, session.parent_id) == ("subagent", role, "")


def test_calls_are_linked_with_the_subagents_that_they_started(log):
    log.typed("Look around.").call("spawn_agent", {"message": "look"}, f'{{"agent_id":"{PARENT}","nickname":"B"}}')
    log.item("function_call", name="spawn_agent", namespace="collaboration", arguments="{}", call_id="c2")
    log.event("sub_agent_activity", event_id="c2", agent_thread_id="0199-b", kind="started")
    log.item("function_call_output", call_id="c2", output='{"task_name":"/root/b"}')
    log.event("sub_agent_activity", event_id="c2", agent_thread_id="0199-b", kind="interacted")
    parsed = read(log)
    assert [c.agent_session_id for c in parsed.calls] == [f"codex:{PARENT}", "codex:0199-b"]
    assert became(parsed, "event_msg/sub_agent_activity") == {"link to a subagent": 1, "in the archive only": 1}


def test_the_task_that_an_agent_was_sent_is_its_prompt():
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "agent_path": "/root/look", "agent_role": None}}}
    log = CodexLog().meta(source=spawn)
    for author, recipient, text in (
        ("/root", "/root/look", "Look around."), ("/root", "/root/look", "Hurry."), ("/root/look", "/root", "Seen."),
    ):  # fmt: skip
        content = [{"type": "input_text", "text": text}, {"type": "encrypted_content", "encrypted_content": "x"}]
        log.item("agent_message", author=author, recipient=recipient, content=content)
    parsed = read(log)
    assert (prompts(parsed), texts(parsed, "sidechain")) == (["Look around."], ["Hurry.", "Seen."])


def test_messages_of_other_agents_are_no_prompts(log):
    log.typed("Go.").item(
        "agent_message", author="/root/a", recipient="/root", content=[{"type": "input_text", "text": "x"}]
    )
    log.add("inter_agent_communication", {"author": "/root/a", "recipient": "/root", "content": "y"})
    parsed = read(log)
    assert (prompts(parsed), texts(parsed, "sidechain")) == (["Go."], ["x", "y"])


# The sample logs, and what is made of them


def test_the_samples_are_read_and_summarised(memex):
    ingest = Ingest(memex.archive, memex.lake, ADAPTERS, {"codex": (SAMPLES,)})
    report = ingest.run(ingest.plan())
    assert (report.sessions, report.talks, report.bad_lines) == (2, 4, 0)
    for batch in memex.compact.plan().batches:
        memex.compact.run(batch)
    told = {row["user_request"][:6]: row["completed"] for row in memex.lake.scan("talk_summaries").to_pylist()}
    assert told["Import"] == (
        "Edited tests/test_importer.py, shelf/models.py, shelf/importer.py; passed: `uv run pytest -q` "
        "(40 passed in 0.92s); committed 7c41d0e Treat ISBNs with dashes as the same book"
    )
    assert told["网关在高峰期"] == (
        "修改了 src/forward.ts, test/forward.test.ts, src/post.ts；通过：`pnpm test` (Tests 18 passed (18))"
    )
    failed = memex.lake.scan("tool_calls", ["name", "output"], "is_error").to_pylist()
    assert sorted(call["name"] for call in failed) == ["exec", "exec_command"]
    assert all(call["output"].startswith("Exit code 1\n") for call in failed)


def test_a_talk_that_was_interrupted_says_so(memex, tmp_path):
    log = CodexLog(tmp_path / "codex").meta().turn().typed("Fix the login.").reply("I look.").message("user", ABORTED)
    log.write()
    ingest = Ingest(memex.archive, memex.lake, ADAPTERS, {"codex": (tmp_path / "codex",)})
    ingest.run(ingest.plan())
    for batch in memex.compact.plan().batches:
        memex.compact.run(batch)
    assert memex.lake.scan("talk_summaries", ["completed"])["completed"].to_pylist() == ["Stopped by the user"]
