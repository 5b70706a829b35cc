"""The calls of Codex: their arguments, outputs and failures, and what the free writer makes of them."""

import json

import pytest

from memex.llm import salient
from memex.llm.base import OperationInput
from memex.llm.extractive import ExtractiveWriter
from tests.codex_logs import CodexLog
from tests.sources.parsing import census, parse, texts

PATCH = """*** Begin Patch
*** Update File: src/login.py
@@ def login
-    return None
+    return token
*** Add File: docs/login.md
+# Login
+By token.
*** Delete File: src/old.py
*** End Patch"""
ADDED = "*** Begin Patch\n*** Add File: a.py\n+x = 1\n+y = 2\n*** End Patch"
SCRIPT = """const r = await tools.exec_command({cmd:"go test ./... | tail -5",workdir:"/src"});
const s = await tools.exec_command({"cmd": 'echo \\'a\\nb\\'', yield_time_ms:1000});
text(r.output);"""


@pytest.fixture
def log():
    return CodexLog().meta().turn().typed("Fix the login.")


def read(log):
    return parse(log, cli="codex", session_id=log.session)


def only(log):
    (call,) = read(log).calls
    return call


# Arguments


@pytest.mark.parametrize(
    ("name", "given", "command", "kept"),
    [
        ("shell", {"command": ["bash", "-lc", "ls | wc"], "workdir": "/src"}, "ls | wc", {"shell": "bash -lc"}),
        ("shell", {"command": ["/bin/zsh", "-lc", "ls"]}, "ls", {"shell": "/bin/zsh -lc"}),
        ("shell", {"command": ["powershell.exe", "-NoProfile", "-Command", "dir"]}, "dir", {}),
        ("shell", {"command": ["git", "commit", "-m", "a b"]}, "git commit -m 'a b'", {}),
        ("container.exec", {"command": ["ls", 3]}, "ls 3", {}),
        ("shell_command", {"command": "ls -l", "workdir": "/src"}, "ls -l", {"workdir": "/src"}),
        ("exec_command", {"cmd": "ls -l", "yield_time_ms": 1000}, "ls -l", {"yield_time_ms": 1000}),
        ("exec_command", {"cmd": ["sh", "-c", "ls"]}, "ls", {}),
    ],
)
def test_a_shell_command_is_text(log, name, given, command, kept):
    arguments = salient.arguments(only(log.call(name, given)))
    assert arguments["command"] == command
    assert kept.items() <= arguments.items()
    assert "cmd" not in arguments


def test_a_script_is_known_by_the_commands_in_it(log):
    call = only(log.custom("exec", SCRIPT))
    assert salient.arguments(call) == {"input": SCRIPT, "command": "go test ./... | tail -5\necho 'a\nb'"}
    assert (call.operation, call.mutates) == ("run", True)


def test_a_script_whose_commands_are_not_written_out_may_change_something(log):
    log.custom("exec", "for (const cmd of cmds) await tools.exec_command({cmd});")
    log.custom("exec", 'await tools.exec_command({cmd:"ls"}); await tools.exec_command({cmd: other});')
    hidden, partly = read(log).calls
    assert (hidden.operation, hidden.mutates, salient.command_of(hidden)) == ("run", True, "")
    assert (partly.operation, partly.mutates, salient.command_of(partly)) == ("run", True, "ls …")


@pytest.mark.parametrize("arguments", ["{", "[1]", "text", "", None, 7, ["a"], {"path": "a"}])
def test_odd_arguments_are_kept(log, arguments):
    call = only(log.item("function_call", name="f", arguments=arguments, call_id="c1"))
    expected = {"path": "a"} if isinstance(arguments, dict) else {"input": arguments}
    assert salient.arguments(call) == ({} if arguments is None else expected)


def test_every_kind_of_call_is_one(log):
    shell = {"type": "exec", "command": ["bash", "-lc", "ls"], "working_directory": "/src"}
    log.item("local_shell_call", call_id="c1", status="completed", action=shell)
    log.item("function_call_output", call_id="c1", output="a.py")
    log.item("web_search_call", id="ws_1", status="completed", action={"type": "search", "query": "rust"})
    log.item("web_search_call", status="failed")
    log.item("tool_search_call", call_id="c2", arguments={"query": "wiki"}, status="completed")
    log.item("tool_search_output", call_id="c2", tools=[{"type": "namespace", "name": "mcp__wiki"}])
    log.item("image_generation_call", id="ig_1", status="completed", revised_prompt="a cat", result="AAAA")
    log.item("from_the_future_call", call_id="c3", target={"x": 1})
    log.item("function_call", name="ask", namespace="mcp__wiki", arguments='{"q":"x"}', call_id="c4")
    calls = read(log).calls
    assert [(c.name, c.operation, c.answered, c.is_error) for c in calls] == [
        ("local_shell", "run", True, False), ("web_search", "fetch", True, False), ("web_search", "fetch", True, True),
        ("tool_search", "search", True, False), ("image_generation", "other", True, False),
        ("from_the_future", "other", False, False), ("mcp__wiki__ask", "other", False, False),
    ]  # fmt: skip
    assert [json.loads(c.input) for c in calls] == [
        {"command": "ls", "shell": "bash -lc", "type": "exec", "working_directory": "/src"},
        {"type": "search", "query": "rust"}, {}, {"query": "wiki"}, {"revised_prompt": "a cat"}, {"target": {"x": 1}},
        {"q": "x"},
    ]  # fmt: skip
    assert [c.output for c in calls[3:5]] == ['{"type": "namespace", "name": "mcp__wiki"}', "[image]"]


# What a call does


@pytest.mark.parametrize(
    ("name", "given", "operation", "mutates"),
    [
        ("shell_command", {"command": "sed -n '1,240p' src/a.py"}, "run", False),
        ("shell_command", {"command": "sed -i s/a/b/ src/a.py"}, "run", True),
        ("shell_command", {"command": "nl -ba src/a.py | sed -n '5,9p'"}, "run", False),
        ("shell", {"command": ["bash", "-lc", "rg --files | head"]}, "run", False),
        ("shell", {"command": ["bash", "-lc", "make install"]}, "run", True),
        ("shell", {"command": []}, "run", True),
        ("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]}, "edit", True),
        ("write_stdin", {"session_id": 1}, "read", False),
        ("write_stdin", {"session_id": 1, "chars": "y\n"}, "run", True),
        ("wait", {"cell_id": "1"}, "read", False),
        ("update_plan", {"plan": []}, "plan", False),
        ("view_image", {"path": "/a.png"}, "read", False),
        ("spawn_agent", {"message": "x"}, "delegate", True),
        ("from_the_future", {}, "other", True),
    ],
)
def test_what_a_call_does(log, name, given, operation, mutates):
    call = only(log.call(name, given))
    assert (call.operation, call.mutates) == (operation, mutates)


@pytest.mark.parametrize(
    ("code", "operation"),
    [
        (f"const p = {json.dumps(PATCH)}; text(await tools.apply_patch(p));", "edit"),
        ('await tools.update_plan({"plan":[]});', "plan"),
        ("await tools.write_stdin({session_id:1,yield_time_ms:100}); await tools.write_stdin({session_id:2})", "read"),
        ("await tools.web__run({open:[]})", "fetch"),
        ("await tools.update_plan({}); await tools.mcp__x__y({})", "other"),
        ("text(1 + 1)", "other"),
    ],
)
def test_what_a_script_does(log, code, operation):
    assert only(log.custom("exec", code)).operation == operation


@pytest.mark.parametrize("name", ["apply_patch", "exec"])
def test_a_patch_names_the_files_that_it_changes(log, name):
    text = PATCH if name == "apply_patch" else f"text(await tools.apply_patch({json.dumps(PATCH)}))"
    call = only(log.custom(name, text, "Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSuccess."))
    assert (call.operation, call.files) == ("edit", ("src/login.py", "docs/login.md", "src/old.py"))
    assert salient.change_of(call) == ("    return None", "    return token\n# Login\nBy token.")


def test_a_patch_that_only_adds_files_writes_them(log):
    call = only(log.custom("apply_patch", ADDED, "Success."))
    assert (call.operation, call.files) == ("write", ("a.py",))


# Outputs


@pytest.mark.parametrize(
    ("output", "text", "is_error"),
    [
        ("plain", "plain", False),
        ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\na\nb\n", "a\nb\n", False),
        ("Exit code: 2\nWall time: 0.1 seconds\nTotal output lines: 9\nOutput:\nbad\n", "Exit code 2\nbad\n", True),
        ("Chunk ID: 1f\nWall time: 0.7 s\nProcess exited with code 0\nOriginal token count: 0\nOutput:\n", "", False),
        ("Command: /bin/zsh -lc 'a\nb'\nChunk ID: 1f\nWall time: 1 seconds\nProcess exited with code 1\nOutput:\nx",
         "Exit code 1\nx", True),
        ("Wall time: 1 seconds\nProcess exited with code -9\nOutput:\n", "Exit code -9\n", True),
        ("It says\nProcess exited with code 3\n", "It says\nProcess exited with code 3\n", True),
        ('{"output":"a\\n","metadata":{"exit_code":0,"duration_seconds":1.0}}', "a\n", False),
        ('{"output":"a","metadata":{"exit_code":1}}', "Exit code 1\na", True),
        ('{"output":"a","exit_code":1,"more":1}', '{"output": "a", "exit_code": 1, "more": 1}', True),
        ('{"a": 1}', '{"a": 1}', False), ("{not json", "{not json", False), ("[]", "[]", False),
        ({"content": "a", "success": True}, "a", False), ({"content": "a", "success": False}, "a", True),
        ({"content": [{"type": "input_text", "text": "a"}], "isError": True}, "a", True),
        ({"x": 1}, '{"x": 1}', False), (None, "", False), (7, "7", False),
        ([{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:"}], "a\n[image]", False),
        ([{"type": "input_text", "text": "Script completed\nWall time 0.2 seconds\nOutput:\n"},
          {"type": "input_text", "text": '{"chunk_id":"1","wall_time_seconds":1,"exit_code":1,"output":"bad\\n"}'},
          {"type": "input_text", "text": ""}], "Exit code 1\nbad\n", True),
        ("Script failed\nWall time 0.1 seconds\nOutput:\nScript error: x", "Script failed\nScript error: x", True),
        ("apply_patch verification failed: no such line", "apply_patch verification failed: no such line", True),
        ("aborted by user after 1.2s", "aborted by user after 1.2s", True), ("abortedly", "abortedly", False),
    ],
)  # fmt: skip
def test_outputs_of_every_shape_are_joined(log, output, text, is_error):
    call = only(log.call("exec_command", {"cmd": "x"}, output))
    assert (call.output, call.is_error, call.answered) == (text, is_error, True)


def test_outputs_find_their_calls_by_call_id(log):
    log.item("function_call", name="shell", arguments="{}", call_id="c1", id="fc_1")
    log.item("custom_tool_call", name="apply_patch", input=PATCH, call_id="c2", id="fc_1")
    log.item("custom_tool_call_output", call_id="c2", output="two").item(
        "function_call_output", call_id="c1", output="one"
    )
    log.item("function_call_output", call_id="c9", output="of a call that is not there")
    log.item("function_call_output", call_id="c1", output="again")
    parsed = read(log)
    assert [c.output for c in parsed.calls] == ["one", "two"]
    assert texts(parsed, "notice") == ["of a call that is not there", "again"]


def test_a_call_without_an_output_stays_open(log):
    call = only(log.item("function_call", name="shell", arguments="{}", call_id="c1"))
    assert (call.answered, call.output) == (False, "")


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ("patch_apply_end", {"success": False}), ("exec_command_end", {"exit_code": 3}),
        ("mcp_tool_call_end", {"result": {"Err": "no"}}), ("mcp_tool_call_end", {"result": {"Ok": {"isError": True}}}),
        ("exec_command_end", {"status": "failed"}),
    ],
)  # fmt: skip
def test_an_event_tells_of_a_failure_that_the_output_hides(log, event, fields):
    log.item("function_call", name="x", arguments="{}", call_id="c1").event(event, call_id="c1", **fields)
    call = only(log.item("function_call_output", call_id="c1", output="Something."))
    assert (call.is_error, call.output) == (True, "Something.")


def test_calls_that_a_script_made_are_calls(log):
    made = {"server": "wiki", "tool": "ask", "arguments": {"q": "x"}}
    done = {"Ok": {"content": [{"type": "text", "text": "An answer."}], "isError": False}}
    log.item("custom_tool_call", name="exec", input="tools.mcp__wiki__ask({})", call_id="c1")
    log.event("mcp_tool_call_end", call_id="exec-1", invocation=made, result=done)
    log.event(
        "web_search_end", call_id="exec-2", query="q", action={"type": "search", "query": "q"}, results=[{"n": 1}]
    )
    log.event("patch_apply_end", call_id="exec-3", success=True)
    log.item("custom_tool_call_output", call_id="c1", output="Script completed\nWall time 1 seconds\nOutput:\nok")
    log.event("web_search_end", call_id="ws_1", query="r").item("web_search_call", id="ws_1", status="completed")
    parsed = read(log)
    assert [(c.name, c.output, json.loads(c.input)) for c in parsed.calls] == [
        ("exec", "ok", {"input": "tools.mcp__wiki__ask({})"}), ("mcp__wiki__ask", "An answer.", {"q": "x"}),
        ("web_search", '{"n": 1}', {"type": "search", "query": "q"}), ("web_search", "", {}),
    ]  # fmt: skip
    assert census(parsed).records["event_msg/mcp_tool_call_end"] == {"tool call inside a script": 1}


def test_asking_a_running_process_for_more_is_more_of_its_command(log):
    running = "Wall time: 1 seconds\nProcess running with session ID 42\nOutput:\nbuilding"
    log.call("exec_command", {"cmd": "go test ./..."}, running).call("write_stdin", {"session_id": 42}, running)
    log.call("write_stdin", {"session_id": 42}, "Wall time: 9 seconds\nProcess exited with code 1\nOutput:\nFAIL x")
    log.custom(
        "exec", 'await tools.exec_command({cmd:"make test"})', "Script running with cell ID 7\nWall time 1 s\nOutput:\n"
    )
    log.call(
        "wait", {"cell_id": "7"}, [{"type": "input_text", "text": '{"session_id": 9, "output": ".", "chunk_id": "a"}'}]
    )
    log.custom("exec", "text(await tools.write_stdin({session_id: 9}))", "3 passed").call("wait", {"cell_id": "8"}, "?")
    calls = read(log).calls
    assert [salient.command_of(c) for c in calls] == ["go test ./..."] * 3 + ["make test"] * 3 + [""]
    assert [c.operation for c in calls] == ["run"] * 6 + ["read"]
    assert calls[0].output == "Process running with session ID 42\nbuilding"
    assert [salient.has_failed_tests(c) for c in calls[2:6]] == [True, False, False, False]


# What the free writer makes of them


def observed(log):
    parsed = read(log)
    return ExtractiveWriter().observation(OperationInput("Fix the login.", parsed.calls, "/src/app"))


def test_an_edit_is_told_by_its_files_and_lines(log):
    answer = observed(log.custom("apply_patch", PATCH.replace("src/login.py", "/src/app/login.py"), "Success."))
    assert answer.title == "Edited login.py, docs/login.md, src/old.py"
    assert answer.facts == ("login.py, docs/login.md, src/old.py: `return None` → `return token`",)
    assert answer.type == "bugfix"


def test_a_new_file_is_told_by_its_size(log):
    assert observed(log.custom("apply_patch", ADDED, "Success.")).facts == ("a.py: 2 lines",)


def test_a_test_run_is_told_by_its_command_and_result(log):
    output = "Exit code: 1\nWall time: 2 seconds\nOutput:\nFAILED test_login.py\n1 failed, 2 passed in 0.1s\n"
    answer = observed(log.call("shell", {"command": ["bash", "-lc", "pytest -q"]}, output))
    assert answer.title == "Failed: `pytest -q` (1 failed, 2 passed in 0.1s)"
    assert answer.facts[0] == "$ pytest -q"
