"""Which records of Claude Code were typed by a human.

Only about one in sixteen `user` records is: the rest are tool results, injected context, command output,
notifications, interruptions and summaries of an earlier conversation.
"""

import re
from dataclasses import dataclass
from typing import Any

from memex.text import plain

_REMINDER = re.compile(r"\s*<(system-reminder|ide_opened_file|ide_selection|ide_diagnostics)>.*?</\1>", re.DOTALL)
_COMMAND = re.compile(r"<command-name>\s*/?(?P<name>[^<]*?)\s*</command-name>")
_ENVELOPE = re.compile(r"<(command-(?:name|message|args|contents))>.*?</\1>", re.DOTALL)
_SHELL = re.compile(r"<bash-input>(?P<command>.*?)</bash-input>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>(?P<args>.*?)</command-args>", re.DOTALL)
_NOT_TYPED = (
    "<local-command-", "Caveat:", "<bash-stdout>", "<bash-stderr>", "<task-notification>",
    "<teammate-message", "Stop hook feedback:", "[Request interrupted", "This session is being continued",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a human asked: its text without injected context, and how many images came with it.

    A slash command reads `/name arguments`, a shell escape `! command`; `title` is what `/rename` set.
    """

    text: str
    images: int = 0
    title: str = ""


def read_prompt(record: dict[str, Any], content: Any, in_agent: bool = False) -> Prompt | None:
    """Return the prompt in a `user` record with this content, or None when no human typed it.

    `in_agent` tells that the file is a subagent's own: there the task it was given counts as its prompt.
    """
    if any(record.get(flag) is True for flag in ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")):
        return None
    if record.get("isSidechain") is True and not in_agent:
        return None
    blocks = content if isinstance(content, list) else []
    types = {str(block.get("type")) for block in blocks if isinstance(block, dict)}
    if "tool_result" in types and "text" not in types:
        return None
    if record.get("toolUseResult") and "text" not in types:
        return None
    origin = record.get("origin")
    if record.get("promptSource") in ("system", "hook"):
        return None
    if isinstance(origin, dict) and origin.get("kind") not in (None, "human"):
        return None
    text = _without_injections(_text_of(content))
    images = sum(isinstance(b, dict) and b.get("type") in ("image", "document") for b in blocks)
    if text.startswith(_NOT_TYPED):
        return None
    if text.startswith(("<command-name>", "<command-message>")):
        return _command(text)
    if shell := _SHELL.match(text):
        return Prompt(f"! {shell['command'].strip()}\n{text[shell.end() :].strip()}".strip())
    return Prompt(text, images) if text or images else None


def _command(text: str) -> Prompt | None:
    name = _COMMAND.search(text)
    if not name:
        return None
    found = _ARGUMENTS.search(text)
    arguments = found["args"].strip() if found else ""
    rest = _ENVELOPE.sub("", text).strip()
    prompt = f"/{name['name']} {arguments}".strip() + (f"\n{rest}" if rest else "")
    return Prompt(prompt, title=arguments if name["name"] == "rename" else "")


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        parts = [content]
    elif isinstance(content, list):
        parts = [_block_text(block) for block in content]
    else:
        parts = []
    return plain("\n".join(part for part in parts if part))


def _block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
        return str(block["text"])
    return ""


def _without_injections(text: str) -> str:
    """Strip the context that the CLI or an editor put before the words of the human."""
    text = text.lstrip("\ufeff \t\r\n")
    while match := _REMINDER.match(text):
        text = text[match.end() :].lstrip("\ufeff \t\r\n")
    return text.strip()
