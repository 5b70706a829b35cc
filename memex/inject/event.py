"""What a hook of an AI CLI is told, and how it answers: one form for all three.

The fields are those of the public documentation: Claude Code, "Hooks reference" (code.claude.com/docs/en/hooks: common
input fields, `agent_id` inside subagents, `hookSpecificOutput.additionalContext`); Codex, "Hooks"
(developers.openai.com/codex/hooks) and the JSON schemas in openai/codex, `codex-rs/hooks/schema/generated`, which let
no other key through; Gemini CLI, `docs/hooks/reference.md` (BeforeAgent, SessionStart and AfterTool take
`additionalContext`, BeforeTool does not).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

from memex.text import storable

Cli = Literal["claude", "codex", "gemini"]

ANSWERED: Mapping[str, tuple[str, ...]] = {
    "smart": ("UserPromptSubmit", "BeforeAgent"),
    "full": ("SessionStart",),
    "file": ("PreToolUse", "AfterTool"),
}
"""The events of each mode: to all others the answer is silence."""
MOST_PROMPT = 20_000
"""Characters of a prompt that are looked at."""
_GEMINI = frozenset(("BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool", "BeforeModel", "AfterModel"))
_PATHS = ("file_path", "notebook_path", "absolute_path", "path")
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Event:
    """One call of a hook. `session_id` is Memex's own (`claude:…`), `files` are those that a tool will change."""

    cli: Cli
    name: str
    session_id: str
    cwd: str = ""
    prompt: str = ""
    files: tuple[str, ...] = ()
    is_subagent: bool = False


def read_event(raw: Mapping[str, Any]) -> Event:
    """Read the JSON of a hook; what is missing, or of another type than documented, is empty."""
    cli = _cli(raw)
    native = _text(raw, "session_id")
    return Event(
        cli,
        _text(raw, "hook_event_name"),
        f"{cli}:{native}" if native else "",
        _text(raw, "cwd"),
        _text(raw, "prompt")[:MOST_PROMPT],
        _files(raw.get("tool_input")),
        bool(_text(raw, "agent_id")),
    )


def output(event: Event, text: str) -> dict[str, Any]:
    """Give what the CLI reads on the hook's standard output; {} says nothing."""
    if not text:
        return {}
    return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}}


def _cli(raw: Mapping[str, Any]) -> Cli:
    """Tell which CLI asks: by the events that only one has, else by where it keeps its log."""
    path = _text(raw, "transcript_path").replace("\\", "/")
    if _text(raw, "hook_event_name") in _GEMINI or "/.gemini/" in path:
        return "gemini"
    if "turn_id" in raw or PurePosixPath(path).name.startswith("rollout-") or ("model" in raw and not path):
        return "codex"
    return "claude"


def _files(given: Any) -> tuple[str, ...]:
    """List the files in the arguments of a tool: named by a path, or in the patch of Codex's `apply_patch`."""
    if not isinstance(given, Mapping):
        return ()
    named = [_text(given, key) for key in _PATHS]
    patched = _PATCHED.findall(_text(given, "command") or _text(given, "input"))
    return tuple(dict.fromkeys(path.strip() for path in (*named, *patched) if path.strip()))


def _text(raw: Mapping[str, Any], key: str) -> str:
    value = raw.get(key)
    return storable(value) if isinstance(value, str) else ""
