"""Which user messages of Codex were typed by a human.

About a fifth of them were not: Codex puts instructions, the environment, skills and notifications into the same
role. An event `user_message` is the cleaner sign of a prompt, but some logs have the message alone, and most say
each prompt twice, in either order. `Pairing` makes one prompt of the two.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from memex.sources.codex_records import Record
from memex.sources.content import clean
from memex.sources.prompts import Prompt
from memex.text import one_line

_INJECTED = re.compile(
    r"\s*(?:"
    # Written by Codex alone, so the first end tag is its end, and what follows was typed.
    r"<(environment_context|recommended_plugins)\b[^>]*>(?:.*?</\1\s*>|.*)|"
    # These hold text from anywhere, end tags included: the last one counts.
    r"<(user_instructions|instructions|skill|turn_aborted|subagent_notification|goal_context|codex_internal_context|"
    r"user_shell_command|user_action|hook_prompt)\b[^>]*>(?:.*</\2\s*>|.*)|"
    r"#\ AGENTS\.md(?:.*</INSTRUCTIONS>|.*)|"
    # An editor puts what it has open before the words of the human.
    r"#\ (?:Context\ from\ my\ IDE\ setup|Files\ mentioned\ by\ the\ user):.*?^\#\#\ My\ request\ for\ Codex:"
    r")",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_NOT_TYPED = (
    "Warning: apply_patch was requested via exec_command",
    "Warning: The maximum number of unified exec processes",
)
_IMAGE_TAG = re.compile(r"\s*</?image\b[^>]*>\s*")
_INTERRUPTED = re.compile(r"\s*<turn_aborted>", re.IGNORECASE)
_FOLDER = re.compile(r"<cwd>([^<]+)</cwd>|Current working directory: (\S.*)")
_SHORT = 8
"""Characters. A longer text with which a message begins or ends is what was typed of it."""
_LOOK_AHEAD = 20
"""Records within which the event of a message must follow, unless the model speaks before."""
_LOOK_BACK = 100
"""Records within which the same words, as a message and as an event, are one prompt."""
_ENDS = ("agent_message", "agent_reasoning", "task_complete", "turn_complete", "turn_aborted")


@dataclass(slots=True)
class _Half:
    """A prompt of which one half was seen, the event or the message, and after how many records."""

    prompt: Prompt
    at: int


@dataclass(slots=True)
class Pairing:
    """Finds the event of every user message, looking a little ahead and back.

    `window` holds records back while it is open whether a message has an event. `events` and `messages` are the
    prompts of which only that half was seen so far.
    """

    window: list[Record] = field(default_factory=list)
    taken: int = 0
    has_events: bool = False
    events: list[_Half] = field(default_factory=list)
    messages: list[_Half] = field(default_factory=list)

    def settled(self, ended: bool) -> Iterator[Record]:
        """Take the records out of which it is known what they are; all of them when the log has `ended`."""
        while self.window:
            record = self.window[0]
            message = None if record.twin else prompt_of_message(record)
            if message and not self._half(self.events, message):
                event = next((e for e in self.window[1:] if _is_event_of(message, e)), None)
                if event:
                    record.twin, event.twin = prompt_of_event(event), message
                elif not (ended or len(self.window) > _LOOK_AHEAD or any(map(_is_output, self.window))):
                    return
            del self.window[0]
            self.taken += 1
            yield record

    def from_message(self, record: Record) -> Prompt | str:
        """Give the prompt that a user message makes, or what it is instead."""
        message = prompt_of_message(record)
        if message is None:
            return "notice"
        if half := self._half(self.events, message):
            self.events.remove(half)
            return "the same as its event"
        if record.twin:
            return Prompt(record.twin.text, max(record.twin.images, message.images))
        if message.text.startswith("<") and (self.has_events or any(map(prompt_of_event, self.window))):
            return "notice"  # what is typed has an event in this log, and this has none
        self.messages = [_Half(message, self.taken)]
        return message

    def from_event(self, record: Record) -> Prompt | str:
        """Give the prompt that an event makes, or what it is instead."""
        event = prompt_of_event(record)
        if event is None:
            return "in the archive only"
        self.has_events = True
        if record.twin or self._half(self.messages, event):
            self.messages = []
            return "the same as its response_item"
        self.events = [half for half in self.events if self._is_near(half)] + [_Half(event, self.taken)]
        return event

    def _half(self, halves: list[_Half], prompt: Prompt) -> _Half | None:
        """Find the other half of a prompt among those seen lately."""
        for half in halves:
            event, message = (half.prompt, prompt) if halves is self.events else (prompt, half.prompt)
            if self._is_near(half) and _is_same(event, message):
                return half
        return None

    def _is_near(self, half: _Half) -> bool:
        return self.taken - half.at <= _LOOK_BACK


def prompt_of_message(record: Record) -> Prompt | None:
    """Return what a human typed according to a user message; None when it is none, or nobody typed it."""
    if record.label != "response_item/message" or record.payload.get("role") != "user":
        return None
    content = record.payload.get("content")
    blocks = content if isinstance(content, list) else [content]
    images = sum(isinstance(block, dict) and block.get("type") == "input_image" for block in blocks)
    return _prompt([_text_of(block) for block in blocks], images)


def prompt_of_event(record: Record) -> Prompt | None:
    """Return what a human typed according to an event; None when it is of another kind, or nobody typed it."""
    payload = record.payload
    if record.label != "event_msg/user_message" or payload.get("kind") not in (None, "plain"):
        return None  # in 2025 kinds were `environment_context` and `user_instructions`, too
    images = (payload.get("images"), payload.get("local_images"))
    return _prompt([clean(payload.get("message"))], sum(len(given) for given in images if isinstance(given, list)))


def is_interruption(text: str) -> bool:
    """Tell whether a user message says that a turn was interrupted."""
    return bool(_INTERRUPTED.match(text))


def folder_of(text: str) -> str:
    """Read the working folder from an `<environment_context>`, which is all that the logs of 2025 have of it."""
    found = _FOLDER.search(text)
    return (found[1] or found[2]).strip() if found else ""


def _is_event_of(message: Prompt, record: Record) -> bool:
    event = None if record.twin else prompt_of_event(record)
    return event is not None and _is_same(event, message)


def _is_same(event: Prompt, message: Prompt) -> bool:
    """Tell whether an event and a message are the same prompt: the message may hold more around it."""
    told, said = one_line(event.text), one_line(message.text)
    return told == said or (len(told) >= _SHORT and (said.startswith(told) or said.endswith(told)))


def _is_output(record: Record) -> bool:
    """Tell whether the model speaks, or a turn ends: no event follows for what was typed before."""
    if record.kind == "event_msg":
        return record.name in _ENDS
    if record.kind == "response_item" and record.name == "message":
        return record.payload.get("role") == "assistant"
    return record.kind == "compacted" or (record.kind == "response_item" and record.name != "ghost_snapshot")


def _prompt(parts: list[str], images: int) -> Prompt | None:
    text = "\n".join(filter(None, map(_without_injections, parts))).strip()
    if text.startswith(_NOT_TYPED):
        return None
    return Prompt(text, images) if text or images else None


def _without_injections(text: str) -> str:
    text = text.lstrip("\ufeff \t\r\n")
    while match := _INJECTED.match(text):
        text = text[match.end() :].lstrip("\ufeff \t\r\n")
    return "" if _IMAGE_TAG.fullmatch(text) else text.strip()


def _text_of(block: Any) -> str:
    return clean(block.get("text")) if isinstance(block, dict) else clean(block)
