"""The hooks of three CLIs, as their documentation has them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memex.inject.event import Event, output, read_event

CLAUDE = {"session_id": "c1", "transcript_path": "/home/me/.claude/projects/-src/c1.jsonl", "cwd": "/src"}
CODEX = {
    "session_id": "x1", "transcript_path": "/home/me/.codex/sessions/2026/09/01/rollout-2026-09-01T10-00-00-x1.jsonl",
    "cwd": "/src", "model": "gpt-5", "permission_mode": "default",
}  # fmt: skip
GEMINI = {
    "session_id": "g1",
    "transcript_path": "/home/me/.gemini/tmp/h/chats/g1.json",
    "cwd": "/src",
    "timestamp": "2026",
}
PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: b.md\n+z\n*** End Patch"


EDIT = {"tool_name": "Edit", "tool_input": {"file_path": "/src/a.py"}, "agent_id": "a"}
APPLY = {"tool_name": "apply_patch", "tool_input": {"command": PATCH}}
REPLACE = {"tool_name": "replace", "tool_input": {"file_path": "a.py"}}
ASKS, TURN = {"prompt": "hi"}, {"turn_id": "t"}


@pytest.mark.parametrize(
    ("base", "name", "more", "told"),
    [
        (CLAUDE, "UserPromptSubmit", ASKS, ("hi",)),
        (CLAUDE, "SessionStart", {"source": "startup", "model": "opus"}, ()),
        (CLAUDE, "PreToolUse", EDIT, ("", ("/src/a.py",), True)),
        (CODEX, "UserPromptSubmit", ASKS | TURN, ("hi",)),
        (CODEX, "UserPromptSubmit", ASKS | TURN | {"transcript_path": None}, ("hi",)),
        (CODEX, "SessionStart", {"source": "startup"}, ()),
        (CODEX, "PreToolUse", APPLY | TURN, ("", ("src/a.py", "b.md"))),
        (GEMINI, "BeforeAgent", ASKS, ("hi",)),
        (GEMINI, "SessionStart", {"source": "startup"}, ()),
        (GEMINI, "AfterTool", REPLACE, ("", ("a.py",))),
    ],
)
def test_events_of_the_clis(base, name, more, told):
    cli = {"c1": "claude", "x1": "codex", "g1": "gemini"}[base["session_id"]]
    event = read_event({**base, "hook_event_name": name, **more})
    assert event == Event(cli, name, f"{cli}:{base['session_id']}", "/src", *told)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=()), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["session_id", "transcript_path", "cwd", "hook_event_name", "prompt", "tool_input", "agent_id", "turn_id"]
)


@given(st.dictionaries(KEYS, JSON))
def test_any_object_is_an_event(raw):
    event = read_event(raw)
    event.prompt.encode(), event.cwd.encode(), event.session_id.encode()
    assert output(event, "") == {}


def test_output_is_what_the_clis_read():
    for name in ("UserPromptSubmit", "SessionStart", "PreToolUse", "BeforeAgent", "AfterTool"):
        assert output(Event("claude", name, "claude:1"), "text") == {
            "hookSpecificOutput": {"hookEventName": name, "additionalContext": "text"}
        }
