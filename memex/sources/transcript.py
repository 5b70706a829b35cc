"""A session under assembly: what every adapter builds, whatever its CLI writes.

Messages that are whole leave at once. Replies and calls stay open for a while, since later records may add
to them: a reply until OPEN_REPLIES others followed it, a call until it is answered. `drain` hands out what
changed; an open item is handed out as it stands and may come again, under the same id.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from memex.model import Message, MessageKind, Role, Session, ToolCall
from memex.sources.tools import files_of, may_change, operation_of, says_nothing
from memex.text import digest, estimate_tokens, mark

OPEN_REPLIES = 16
MAX_COUNT = 2**53
"""Larger token counts are nonsense and are left out."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Messages and calls in order, each with its final content or as it stands."""

    messages: list[Message]
    calls: list[ToolCall]


@dataclass(slots=True)
class Usage:
    """Tokens of one reply, as its provider counted them."""

    input: int = 0
    output: int = 0
    cached: int = 0


@dataclass(slots=True)
class Reply:
    """One assistant message; `texts` and `thoughts` are its blocks."""

    key: str
    seq: int
    offset: int
    source_id: str
    prompt_number: int
    uuid: str
    ts: datetime | None
    model: str
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    ended: bool = False
    aside: bool = False
    superseded: bool = False


@dataclass(slots=True)
class Call:
    """One tool call."""

    native: str
    seq: int
    offset: int
    source_id: str
    prompt_number: int
    reply: str
    name: str
    given: dict[str, Any]
    started_at: datetime | None
    output: str = ""
    answered: bool = False
    is_error: bool = False
    ended_at: datetime | None = None
    agent_session_id: str = ""
    superseded: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a tool call."""

    output: str
    is_error: bool = False
    ts: datetime | None = None
    agent_session_id: str = ""


@dataclass(slots=True)
class Transcript:
    """All that was said and done in a session, in order. `abandoned` are the prompts that were taken back."""

    session_id: str
    source_id: str = ""
    seq: int = 0
    prompt_number: int = 0
    first_prompt: str = ""
    called: bool = False
    abandoned: set[int] = field(default_factory=set)
    replies: dict[str, Reply] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    times: tuple[datetime, datetime] | None = None
    buffered: int = 0
    named_last: tuple[int, int] = (-1, 0)
    _messages: list[Message] = field(default_factory=list)
    _done_replies: list[Reply] = field(default_factory=list)
    _done_calls: list[Call] = field(default_factory=list)

    def note_time(self, ts: datetime | None) -> None:
        """Note that something happened then: the session lasts from the first to the last such time."""
        if ts:
            first, last = self.times or (ts, ts)
            self.times = min(first, ts), max(last, ts)

    def session(self, **about: Any) -> Session:
        """Describe the session as far as its records tell; counts and project come later."""
        cli, native = self.session_id.split(":", 1)
        first, last = self.times or (None, None)
        frame = {"id": self.session_id, "cli": cli, "native_id": native, "project_id": "", "project": ""}
        return Session(**{**frame, "started_at": first, "ended_at": last, **about})

    def prompt(self, text: str, **about: Any) -> None:
        """Add what a human asked; a talk begins."""
        self.prompt_number += 1
        self.first_prompt = self.first_prompt or text[:1000]
        self.say("user", "prompt", text, **about)

    def late_prompt(self, text: str, ts: datetime | None, **about: Any) -> None:
        """Add a prompt that was typed while something ran: what came after it, and is still open, follows it."""
        moved: list[Reply | Call] = sorted(
            (
                *(r for r in self.replies.values() if ts and r.ts and r.ts > ts),
                *(c for c in self.calls.values() if ts and c.started_at and c.started_at > ts),
            ),
            key=lambda item: item.seq,
        )
        self.prompt(text, ts=ts, **about)
        for item in moved:
            self.seq += 1
            item.seq, item.prompt_number = self.seq, self.prompt_number

    def say(
        self,
        role: Role,
        kind: MessageKind,
        text: str,
        *,
        offset: int,
        ts: datetime | None = None,
        uuid: str = "",
        native: str = "",
        images: int = 0,
        superseded: bool = False,
    ) -> None:
        """Add a whole message. `native` names it within the session: by default its uuid, else its place."""
        self.seq += 1
        native = native or uuid or self._place_name(offset)
        place = f"{self.prompt_number} {self.seq} {self.source_id} {offset} {ts} {images}"
        self.buffered += len(text)
        self._messages.append(
            Message(
                id=f"{self.session_id}#{native}",
                session_id=self.session_id,
                prompt_number=self.prompt_number,
                seq=self.seq,
                role=role,
                kind=kind,
                text=text,
                ts=ts,
                uuid=uuid,
                source_id=self.source_id,
                offset=offset,
                images=images,
                tokens=estimate_tokens(text),
                superseded=superseded,
                content=digest(kind, text) if kind == "prompt" else "",
                digest=digest(text, kind, place),
            )
        )

    def _place_name(self, offset: int) -> str:
        """Name a message by its place: the first of a line, or a later one."""
        last, count = self.named_last
        self.named_last = (offset, count + 1 if offset == last else 0)
        nth = f".{self.named_last[1]}" if self.named_last[1] else ""
        return f"{self.source_id[:8]}@{offset}{nth}"

    def reply(
        self, key: str, *, offset: int, ts: datetime | None, uuid: str = "", model: str = "", aside: bool = False
    ) -> Reply:
        """Open an assistant message, or find the open one of this key.

        One whose key was closed long ago is another one, with a key of its own and without usage.
        """
        if key in self.replies:
            return self.replies[key]
        if mark(key) in self.closed:
            key = f"{key}@{offset}"
            if key in self.replies:
                return self.replies[key]
        self.seq += 1
        opened = Reply(key, self.seq, offset, self.source_id, self.prompt_number, uuid, ts, model, aside=aside)
        self.replies[key] = opened
        if len(self.replies) > OPEN_REPLIES:
            self._close_reply(next(iter(self.replies)))
        return opened

    def is_repeated(self, reply: Reply) -> bool:
        """Tell whether a reply continues one that was closed: its usage is counted there."""
        key, at, _offset = reply.key.rpartition("@")
        return bool(at) and mark(key) in self.closed

    def call(self, native: str, reply: str, name: str, given: Any, *, offset: int, ts: datetime | None) -> None:
        """Add a tool call, or replace the arguments of the open one of this id."""
        self.called = True
        arguments = given if isinstance(given, dict) else {"input": given}
        if native in self.calls:
            self.calls[native].given = arguments
        elif mark(native) not in self.closed:
            self.seq += 1
            self.calls[native] = Call(
                native, self.seq, offset, self.source_id, self.prompt_number, reply, name, arguments, ts
            )

    def answer(self, native: str, answer: Answer) -> bool:
        """Join a result with its call; False when no such call waits for one."""
        call = self.calls.pop(native, None)
        if call is None:
            return False
        call.output, call.answered, call.is_error, call.ended_at = answer.output, True, answer.is_error, answer.ts
        call.agent_session_id = answer.agent_session_id or call.agent_session_id
        self._done_calls.append(call)
        self.closed.add(mark(native))
        self.buffered += len(answer.output)
        return True

    def is_closed(self, native: str) -> bool:
        """Tell whether a call has its answer."""
        return mark(native) in self.closed

    def abandon(self, prompts: Iterable[int]) -> None:
        """Take prompts back: what follows them stays stored, marked superseded, out of the talks."""
        self.abandoned.update(prompts)

    def drain(self) -> Rows:
        """Hand out everything that changed since the last time, and what is still open as it stands."""
        replies = [*self._done_replies, *self.replies.values()]
        calls = [*self._done_calls, *self.calls.values()]
        messages = [*self._messages, *(m for reply in replies for m in self._reply_messages(reply))]
        self._messages, self._done_replies, self._done_calls, self.buffered = [], [], [], 0
        rows = [replace(m, superseded=True) if m.prompt_number in self.abandoned else m for m in messages]
        rows.sort(key=lambda m: (m.seq, m.kind == "reply"))
        return Rows(rows, sorted(map(self._tool_call, calls), key=lambda c: c.seq))

    def _close_reply(self, key: str) -> None:
        reply = self.replies.pop(key)
        self.closed.add(mark(key))
        self._done_replies.append(reply)
        self.buffered += sum(map(len, reply.texts)) + sum(map(len, reply.thoughts))

    def _reply_messages(self, reply: Reply) -> Iterable[Message]:
        identity = f"{self.session_id}#{reply.key}"
        thoughts = "\n\n".join(filter(None, reply.thoughts))
        if thoughts:
            yield self._reply_message(f"{identity}:thinking", "thinking", thoughts, reply, Usage())
        text = "\n\n".join(filter(None, reply.texts))
        yield self._reply_message(identity, "sidechain" if reply.aside else "reply", text, reply, reply.usage)

    def _reply_message(self, identity: str, kind: MessageKind, text: str, reply: Reply, usage: Usage) -> Message:
        place = f"{reply.prompt_number} {reply.seq} {reply.source_id} {reply.offset} {reply.ts} {usage} {reply.model}"
        return Message(
            id=identity,
            session_id=self.session_id,
            prompt_number=reply.prompt_number,
            seq=reply.seq,
            role="assistant",
            kind=kind,
            text=text,
            ts=reply.ts,
            model=reply.model,
            uuid=reply.uuid,
            source_id=reply.source_id,
            offset=reply.offset,
            tokens_input=usage.input,
            tokens_output=usage.output,
            tokens_cached=usage.cached,
            tokens=estimate_tokens(text),
            superseded=reply.superseded,
            content=digest(kind, text) if kind == "reply" and text else "",
            digest=digest(text, kind, place),
        )

    def _tool_call(self, call: Call) -> ToolCall:
        given = _json_of(call.given)
        operation = operation_of(call.name, call.given)
        content = digest(call.name, given, call.output, str(call.is_error))
        place = f"{call.prompt_number} {call.seq} {call.source_id} {call.offset} {call.started_at} {call.ended_at}"
        return ToolCall(
            id=f"{self.session_id}#{call.native}",
            session_id=self.session_id,
            prompt_number=call.prompt_number,
            seq=call.seq,
            message_id=f"{self.session_id}#{call.reply}",
            name=call.name,
            operation=operation,
            input=given,
            output=call.output,
            answered=call.answered,
            is_error=call.is_error,
            empty=says_nothing(call.output),
            mutates=may_change(operation, call.given),
            files=files_of(call.given),
            started_at=call.started_at,
            ended_at=call.ended_at,
            agent_session_id=call.agent_session_id,
            source_id=call.source_id,
            offset=call.offset,
            superseded=call.superseded or call.prompt_number in self.abandoned,
            tokens=estimate_tokens(given) + estimate_tokens(call.output),
            content=content,
            digest=digest(content, place, call.agent_session_id, str(call.answered)),
        )


def token_count(given: Mapping[str, Any], name: str) -> int:
    """Read how many tokens a provider counted; what is no such number is none."""
    value = given.get(name)
    return value if isinstance(value, int) and 0 <= value < MAX_COUNT else 0


def _json_of(given: dict[str, Any]) -> str:
    """Write arguments as JSON; what JSON cannot hold is kept as its text, and stands in the archive anyway."""
    import orjson

    try:
        return orjson.dumps(given, default=str).decode()
    except TypeError:  # nested too deep, or a number too large
        pass
    try:
        text = json.dumps(given, ensure_ascii=False, default=str)
    except RecursionError:
        text = "(nested too deep)"
    return orjson.dumps({"input": text}).decode()
