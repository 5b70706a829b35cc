"""Tool calls of Claude Code, their results and their subagents."""

import json
from datetime import timedelta

import pytest

from memex.sources.tools import may_change
from tests.logs import talk
from tests.sources.parsing import (
    AGENT,
    FOLDER,
    SESSION,
    answer,
    new_log,
    parse,
    prompts,
    texts,
    tool,
    words,
)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("3 passed", "3 passed"),
        ([words("3 passed"), words("0 failed")], "3 passed\n0 failed"),
        ([words("a shot"), {"type": "image", "source": {}}], "a shot\n[image]"),
        ("\x1b[32m3 passed\x1b[0m\x00", "3 passed"),
        ([], ""),
        (None, ""),
    ],
)
def test_result_joins_its_call(log, output, expected):
    log.prompt("test").call("Bash", {"command": "pytest"}, output)
    [call] = parse(log).calls
    assert (call.output, call.answered, call.is_error) == (expected, True, False)
    assert json.loads(call.input) == {"command": "pytest"}
    assert (call.prompt_number, call.ended_at - call.started_at) == (1, timedelta(seconds=1))


def test_failed_call_is_marked(log):
    log.prompt("test").call("Bash", {"command": "pytest"}, "exit code 1", error=True)
    assert parse(log).calls[0].is_error


def test_results_find_their_calls_in_any_order(log):
    log.prompt("look").reply(tool("t1"), tool("t2"), stop="tool_use")
    answer(log, "t2", "second")
    answer(log, "t1", "first")
    assert [call.output for call in parse(log).calls] == ["first", "second"]


def test_two_results_in_one_record_both_count(log):
    log.prompt("look").reply(tool("t1"), tool("t2"), stop="tool_use")
    results = [{"type": "tool_result", "tool_use_id": f"t{n}", "content": f"out {n}"} for n in (1, 2)]
    log.add("user", message={"role": "user", "content": results}, toolUseResult={"stdout": ""})
    assert [call.output for call in parse(log).calls] == ["out 1", "out 2"]


def test_call_without_a_result_is_unanswered(log):
    log.prompt("test").reply(tool("t1", "Bash", command="sleep 99"), stop="tool_use")
    [call] = parse(log).calls
    assert (call.answered, call.output, call.ended_at) == (False, "", None)


def test_result_without_a_call_is_kept_as_text(log):
    answer(log.prompt("test"), "toolu_gone", "42 passed")
    parsed = parse(log)
    assert parsed.calls == ()
    assert [(m.role, m.text) for m in parsed.messages if m.kind == "notice"] == [("tool", "42 passed")]


@pytest.mark.parametrize("output", ["", "  \n", "(no output)", "No matches found", "No files found", "[]"])
def test_call_that_returned_nothing_is_empty(log, output):
    log.prompt("look").call("Grep", {"pattern": "x"}, output)
    assert parse(log).calls[0].empty


def test_call_that_returned_something_is_not_empty(log):
    log.prompt("look").call("Grep", {"pattern": "x"}, "No matches found in a.py, 1 in b.py")
    assert not parse(log).calls[0].empty


@pytest.mark.parametrize(
    ("name", "call_input", "mutates"),
    [
        ("Edit", {"file_path": "/a.py"}, True),
        ("Write", {"file_path": "/a.py"}, True),
        ("Read", {"file_path": "/a.py"}, False),
        ("Grep", {"pattern": "x"}, False),
        ("Bash", {"command": "git status && git log --oneline | head"}, False),
        ("Bash", {"command": "cd /src && ls -la 2>/dev/null"}, False),
        ("Bash", {"command": "ls; rm -rf build"}, True),
        ("Bash", {"command": "echo x > a.txt"}, True),
        ("Bash", {"command": "git commit -m x"}, True),
        ("Bash", {"command": "find . -name '*.pyc' -delete"}, True),
        ("mcp__db__query", {"sql": "drop table t"}, True),
    ],
)
def test_call_tells_whether_it_changes_something(log, name, call_input, mutates):
    log.prompt("go").call(name, call_input)
    assert parse(log).calls[0].mutates is mutates


def test_operation_follows_the_tool(log):
    names = ("Read", "Grep", "WebFetch", "Edit", "Write", "Bash", "Task", "TodoWrite", "AskUserQuestion", "mcp__x__y")
    log.prompt("go").reply(*(tool(f"t{name}", name) for name in names), stop="tool_use")
    operations = ["read", "search", "fetch", "edit", "write", "run", "delegate", "plan", "ask", "other"]
    assert [call.operation for call in parse(log).calls] == operations


def test_files_are_those_that_the_arguments_name(log):
    log.prompt("go").call("Read", {"file_path": "/a.py", "path": "/src", "pattern": "/x"})
    log.call("NotebookEdit", {"notebook_path": "/n.ipynb", "file_path": 7, "path": ["/b"]})
    assert [call.files for call in parse(log).calls] == [("/a.py", "/src"), ("/n.ipynb",)]


@pytest.mark.parametrize("call_input", [None, "text", ["a"], 7])
def test_input_that_is_no_object_is_kept(log, call_input):
    log.prompt("go").reply({**tool("t1"), "input": call_input}, stop="tool_use")
    assert json.loads(parse(log).calls[0].input) == {"input": call_input}


def persisted(path):
    return f"<persisted-output>\nToo large (2MB). Full output saved to: {path}\n\nPreview:\nfirst\n</persisted-output>"


def test_persisted_output_is_read_back(log):
    log.prompt("test").call("Bash", {"command": "pytest"}, persisted(f"{FOLDER}/{SESSION}/tool-results/b1.txt"))
    assert parse(log, ("b1.txt", b"first\nsecond\n"), ("b2.txt", b"other")).calls[0].output == "first\nsecond\n"


def test_persisted_output_with_a_windows_path_is_read_back(log):
    log.prompt("test").call("Bash", {"command": "pytest"}, persisted(rf"C:\u\{SESSION}\tool-results\b1.txt"))
    assert parse(log, ("b1.txt", b"whole")).calls[0].output == "whole"


def test_persisted_output_is_never_read_from_elsewhere(log, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    log.prompt("test").call("Bash", {"command": "pytest"}, persisted(tmp_path / "secret.txt"))
    assert parse(log, ("b1.txt", b"whole")).calls[0].output == persisted(tmp_path / "secret.txt")


def agent_log():
    log = new_log(AGENT)
    fields = {"isSidechain": True, "agentId": "7be41c02", "sessionId": SESSION}
    return log.prompt("Look for the bug.", **fields).reply("It is in a.py.", **fields)


def test_subagent_is_a_session_of_its_own():
    parsed = parse(agent_log(), ("agent-7be41c02.meta.json", b'{"agentType": "Explore"}'))
    session = parsed.session
    assert (session.id, session.native_id) == ("claude:agent-7be41c02", "agent-7be41c02")
    assert (session.kind, session.agent_type, session.parent_id) == ("subagent", "Explore", f"claude:{SESSION}")
    assert prompts(parsed) == ["Look for the bug."]
    assert texts(parsed) == ["It is in a.py."]


def test_subagent_beside_its_session_names_its_parent():
    log = agent_log()
    log.path = FOLDER / "agent-7be41c02.jsonl"
    session = parse(log).session
    assert (session.kind, session.parent_id) == ("subagent", f"claude:{SESSION}")


def test_subagent_without_a_session_id_is_placed_by_its_folder():
    log = agent_log()
    for record in log.records:
        del record["sessionId"]
    assert parse(log).session.parent_id == f"claude:{SESSION}"


def test_no_session_is_its_own_parent():
    log = new_log(FOLDER / "agent-7be41c02.jsonl")
    log.prompt("Look.", isSidechain=True, agentId="7be41c02")
    assert parse(log).session.parent_id == ""


def test_subagent_of_a_workflow_names_its_parent():
    log = agent_log()
    log.path = FOLDER / SESSION / "subagents" / "workflows" / "wf1" / "agent-7be41c02.jsonl"
    assert parse(log).session.parent_id == f"claude:{SESSION}"


def test_call_names_the_session_of_its_subagent(log):
    log.prompt("find it").call("Task", {"prompt": "Look."}, "Found.", toolUseResult={"agentId": "7be41c02"})
    log.call("Read", {"file_path": "/a.py"}, "x = 1")
    assert [call.agent_session_id for call in parse(log).calls] == ["claude:agent-7be41c02", ""]


def test_main_session_has_no_parent(log):
    session = parse(talk(log, "fix it")).session
    assert (session.kind, session.parent_id, session.agent_type) == ("main", "", "")


@pytest.mark.parametrize("meta", [b"{torn", b"[]", b'{"agentType": null}'])
def test_meta_file_that_says_nothing_is_ignored(meta):
    assert parse(agent_log(), ("agent-7be41c02.meta.json", meta)).session.agent_type == ""


def nested(depth):
    value = "needle"
    for _level in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("given", [{"a": nested(300)}, {"a": nested(900)}, {"a": float("nan"), "b": 10**30}])
def test_arguments_that_json_cannot_hold_stop_nothing(log, given):
    log.prompt("go").call("Tool", given, "done")
    [call] = parse(log).calls
    assert call.output == "done"
    assert json.loads(call.input)


def test_absurd_usage_is_left_out(log):
    log.prompt("go").reply("Done.")
    log.records[-1]["message"]["usage"] = {"output_tokens": 2**64 - 1, "input_tokens": -4}
    session = parse(log).session
    assert (session.tokens_output, session.tokens_input) == (0, 0)


@pytest.mark.parametrize(
    "command",
    [
        "git branch -D main",
        "git remote add o x",
        "env F=1 rm -rf b",
        "ls & rm -rf b",
        "echo $(rm -rf b)",
        "sort -o a a",
        "date -s 10:00",
        "git diff --output=x",
        "find . -fprint x",
        "tree -o x",
        "cat a | xargs rm",
        "ls > list",
        "make",
    ],
)
def test_command_that_may_change_something(command):
    assert may_change("run", {"command": command})


@pytest.mark.parametrize(
    "command",
    [
        "ls -la",
        "git status",
        "git branch -a",
        "cd src && grep -rn x . | head -3",
        "git log 2>&1 | tail",
        "cat a 2>/dev/null",
    ],
)
def test_command_that_only_reads(command):
    assert not may_change("run", {"command": command})
