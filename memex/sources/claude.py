"""Claude Code: `projects/<folder>/<session>.jsonl`, with subagents and oversized outputs beside it.

Few of its `user` records are typed by a human, one reply is spread over several records, and the result
of a tool call is a `user` record. `prompts.py` tells prompts apart; this module puts the rest together.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from memex.model import Message, MessageKind, Role, Session, SessionKind, ToolCall
from memex.sources.base import Blob, Census, Found, Parsed, ProjectOf, json_lines
from memex.sources.content import clean, flatten, read_time
from memex.sources.prompts import Prompt, read_prompt
from memex.sources.talks import cut_talks
from memex.sources.tools import files_of, may_change, operation_of, says_nothing
from memex.text import digest, one_line, unique

MAX_SIDE = 16 * 1024 * 1024
_PERSISTED = re.compile(r"<persisted-output>.*?Full output saved to:[ \t]*([^\n<]+)", re.DOTALL)
_MAX_COUNT = 2**53

RECORD_USES = {
    "user": "prompts, tool results, notices",
    "message": "prompts (an older version's name)",
    "assistant": "replies, thinking, tool calls",
    "attachment": "notices; queued prompts",
    "queue-operation": "queued prompts that stand nowhere else",
    "system": "notices",
    "summary": "title",
    "ai-title": "title",
    "custom-title": "title",
    "(repeated uuid)": "left out: the same record again",
}
"""What becomes of each type of record; every other type stays in the archive and is counted."""


class ClaudeAdapter:
    """The adapter of Claude Code."""

    cli = "claude"
    parser_version = 1
    record_uses: Mapping[str, str] = RECORD_USES

    def discover(self, root: Path) -> Iterator[Found]:
        """Find logs below `<root>/projects` and `<root>/transcripts`, each with its side files."""
        for base in (root / "projects", root / "transcripts"):
            for path in sorted(base.rglob("*")):
                if path.suffix == ".jsonl":
                    yield Found(self.cli, path, f"{self.cli}:{path.stem}")
                elif path.parent.name == "tool-results" and path.is_file():
                    yield Found(self.cli, path, f"{self.cli}:{path.parent.parent.name}", "side")
                elif path.name.endswith(".meta.json"):
                    yield Found(self.cli, path, f"{self.cli}:{path.name.removesuffix('.meta.json')}", "side")

    def parse(self, session_id: str, blobs: Iterable[Blob], project_of: ProjectOf) -> Parsed:
        """Turn the files of one session into records."""
        assembly = _Assembly(session_id)
        census: dict[str, Census] = {}
        for blob in blobs:
            if blob.role == "side":
                assembly.side[blob.path.name] = blob.data[:MAX_SIDE]
                continue
            census[blob.source_id] = Census()
            assembly.parent_id = assembly.parent_id or _parent_of(blob.path)
            records = list(json_lines(blob.data, census[blob.source_id]))
            assembly.add_file(blob.source_id, records, census[blob.source_id])
        return assembly.finish(self.parser_version, project_of, census)


def _parent_of(path: Path) -> str:
    """Read the parent of a subagent's log from its place: `<parent>/subagents/…/agent-<id>.jsonl`."""
    for folder in path.parents:
        if folder.name == "subagents":
            return f"claude:{folder.parent.name}"
    return ""


@dataclass(slots=True)
class _Reply:
    """One assistant message under assembly."""

    seq: int
    offset: int
    source_id: str
    prompt_number: int
    uuid: str
    ts: datetime | None
    model: str
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    ended: bool = False
    aside: bool = False


@dataclass(slots=True)
class _Call:
    """One tool call under assembly."""

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
    agent: str = ""


@dataclass(slots=True)
class _Assembly:
    """The state while one session's records are put together, in file order."""

    session_id: str
    side: dict[str, bytes] = field(default_factory=dict)
    parent_id: str = ""
    messages: list[Message] = field(default_factory=list)
    replies: dict[str, _Reply] = field(default_factory=dict)
    calls: dict[str, _Call] = field(default_factory=dict)
    prompts: list[Message] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    seq: int = 0
    prompt_number: int = 0
    facts: dict[str, str] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    places: dict[str, list[int]] = field(default_factory=dict)
    place: int = 0
    queue: list[tuple[int, int, dict[str, Any]]] = field(default_factory=list)
    first_ts: datetime | None = None
    last_ts: datetime | None = None
    source_id: str = ""

    def add_file(self, source_id: str, records: list[tuple[int, dict[str, Any]]], census: Census) -> None:
        """Take in one log file."""
        self.source_id = source_id
        self.places = _delivered(records)
        for self.place, (offset, record) in enumerate(records):
            kind = record.get("type")
            census.count(kind if isinstance(kind, str) else "(no type)")
            uuid = record.get("uuid")
            if isinstance(uuid, str) and kind != "file-history-snapshot":
                if uuid in self.seen:
                    census.count("(repeated uuid)")
                    continue
                self.seen.add(uuid)
            self._note(record)
            self._add(str(kind), offset, record)
        for place, offset, record in self.queue:  # typed, and never withdrawn
            self._deliver(place, offset, record, record)
        self.queue.clear()

    def _note(self, record: dict[str, Any]) -> None:
        """Remember where, when and with what the session ran: the first folder, the last version."""
        facts = self.facts
        for key in ("cwd", "gitBranch", "agentId", "sessionId"):
            if key not in facts and (value := record.get(key)) and isinstance(value, str):
                facts[key] = value
        version = record.get("version")
        if isinstance(version, str):
            facts["version"] = version
        ts = read_time(record.get("timestamp"))
        if ts:
            if self.first_ts is None or ts < self.first_ts:
                self.first_ts = ts
            if self.last_ts is None or ts > self.last_ts:
                self.last_ts = ts

    def _add(self, kind: str, offset: int, record: dict[str, Any]) -> None:
        match kind:
            case "assistant":
                self._add_assistant(offset, record)
            case "message" if _role_of(record) == "assistant":
                self._add_assistant(offset, record)
            case "user" | "message":
                self._add_user(offset, record)
            case "queue-operation":
                self._add_queue(offset, record)
            case "attachment":
                self._add_attachment(offset, record)
            case "system":
                self._add_text(offset, record, "system", "system", flatten(record.get("content")))
            case "summary":
                self.titles["summary"] = clean(record.get("summary"))
            case "ai-title" | "custom-title":
                named = (clean(record.get(key)) for key in ("aiTitle", "customTitle", "title"))
                self.titles[kind] = next(filter(None, named), "")
            case _:
                pass

    def _add_user(self, offset: int, record: dict[str, Any]) -> None:
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else record.get("content")
        blocks = content if isinstance(content, list) else []
        for block in blocks:
            if isinstance(block, dict) and block.get("type") == "tool_result":
                self._answer(block, record)
        if record.get("isCompactSummary") is True:
            self._add_text(offset, record, "user", "boundary", flatten(content))
            return
        prompt = read_prompt(record, content, self.is_agent)
        if prompt:
            self._add_prompt(offset, record, prompt)
        else:
            kind: MessageKind = "sidechain" if self._is_aside(record) else "notice"
            self._add_text(offset, record, "user", kind, flatten(content, with_results=False))

    def _add_prompt(self, offset: int, record: dict[str, Any], prompt: Prompt) -> None:
        self.prompt_number += 1
        if prompt.title:
            self.titles["rename"] = prompt.title
        text = prompt.text or "[image]"
        message = self._message(offset, record, "user", "prompt", text, images=prompt.images)
        self.messages.append(message)
        self.prompts.append(message)

    def _add_text(self, offset: int, record: dict[str, Any], role: Role, kind: MessageKind, text: str) -> None:
        if text.strip():
            self.messages.append(self._message(offset, record, role, kind, text))

    def _add_queue(self, offset: int, record: dict[str, Any]) -> None:
        """Follow the prompt queue: what was delivered and stands nowhere else is a prompt of its own."""
        match record.get("operation"):
            case "enqueue":
                self.queue.append((self.place, offset, record))
            case "popAll":
                self.queue.clear()
            case "dequeue" | "remove" if self.queue:
                place, _offset, queued = self.queue.pop(0)
                self._deliver(place, offset, record, queued)

    def _deliver(self, place: int, offset: int, record: dict[str, Any], queued: dict[str, Any]) -> None:
        """Make a prompt of what was queued at `place`, unless a later record holds it."""
        text = flatten(queued.get("content"))
        later = self.places.get(one_line(text), [])
        while later and later[0] < place:
            later.pop(0)
        if later:
            later.pop(0)
            return
        prompt = read_prompt({"type": "user"}, text)
        if prompt:
            self._add_prompt(offset, record, prompt)

    def _add_attachment(self, offset: int, record: dict[str, Any]) -> None:
        body = record.get("attachment")
        body = body if isinstance(body, dict) else {}
        text = flatten(body.get("prompt") or body.get("content"))
        if body.get("type") == "queued_command":
            prompt = read_prompt({"type": "user", **_origin_of(body)}, body.get("prompt"))
            if prompt:
                self._add_prompt(offset, record, prompt)
                return
        self._add_text(offset, record, "system", "notice", text)

    def _add_assistant(self, offset: int, record: dict[str, Any]) -> None:
        message = record.get("message")
        message = message if isinstance(message, dict) else {}
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        if record.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
            self._add_text(offset, record, "assistant", "notice", flatten(content))
            return
        key = str(message.get("id") or record.get("uuid") or offset)
        reply = self.replies.get(key)
        if reply is None:
            self.seq += 1
            model = message.get("model")
            reply = self.replies[key] = _Reply(
                self.seq, offset, self.source_id, self.prompt_number, str(record.get("uuid") or ""),
                read_time(record.get("timestamp")), model if isinstance(model, str) else "",
                aside=self._is_aside(record),
            )  # fmt: skip
        for block in blocks:
            block = {"type": "text", "text": block} if isinstance(block, str) else block
            if isinstance(block, dict):
                self._add_block(key, reply, block, offset, record)
        _keep_usage(reply.usage, message.get("usage"))
        reply.ended = reply.ended or message.get("stop_reason") == "end_turn"

    def _add_block(self, key: str, reply: _Reply, block: dict[str, Any], offset: int, record: dict[str, Any]) -> None:
        match block.get("type"):
            case "text":
                _merge_text(reply.texts, clean(block.get("text")), reply.ended)
            case "thinking":
                _merge_text(reply.thoughts, clean(block.get("thinking")), reply.ended)
            case "tool_use" | "server_tool_use" | "mcp_tool_use":
                self._call(key, block, offset, record)
            case _:
                pass

    def _call(self, key: str, block: dict[str, Any], offset: int, record: dict[str, Any]) -> None:
        native = str(block.get("id") or f"{key}@{offset}")
        given = block.get("input")
        given = given if isinstance(given, dict) else {"input": given}
        old = self.calls.get(native)
        if old:
            old.given = given
            return
        self.seq += 1
        self.calls[native] = _Call(
            self.seq, offset, self.source_id, self.prompt_number, key, str(block.get("name") or "unknown"), given,
            read_time(record.get("timestamp")),
        )  # fmt: skip

    def _answer(self, block: dict[str, Any], record: dict[str, Any]) -> None:
        call = self.calls.get(str(block.get("tool_use_id")))
        output = flatten(block.get("content"))
        if call is None:
            if output.strip():
                self.messages.append(
                    self._message(-1, record, "tool", "notice", output, of=str(block.get("tool_use_id")))
                )
            return
        result = record.get("toolUseResult")
        agent = result.get("agentId") if isinstance(result, dict) else None
        named = result.get("persistedOutputPath") if isinstance(result, dict) else None
        call.output = self._whole_output(output, named if isinstance(named, str) else "")
        call.answered = True
        call.is_error = block.get("is_error") is True
        call.ended_at = read_time(record.get("timestamp"))
        call.agent = agent if isinstance(agent, str) else ""

    def _whole_output(self, text: str, path: str) -> str:
        """Put an oversized output back, from its file in this session's `tool-results` folder."""
        match = _PERSISTED.search(text)
        if not match:
            return text
        name = re.split(r"[\\/]", (path or match[1]).strip())[-1]
        data = self.side.get(name)
        return clean(data.decode("utf-8", "replace")) if data is not None else text

    def _message(
        self,
        offset: int,
        record: dict[str, Any],
        role: Role,
        kind: MessageKind,
        text: str,
        images: int = 0,
        of: str = "",
    ) -> Message:
        self.seq += 1
        uuid = record.get("uuid")
        uuid = uuid if isinstance(uuid, str) else ""
        native = uuid or f"{self.source_id[:8]}@{offset}.{self.seq}"
        ts = read_time(record.get("timestamp"))
        return Message(
            id=f"{self.session_id}#{native}" + (f":{of}" if of else ""),
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
            digest=digest(text, kind, f"{self.prompt_number} {self.seq} {self.source_id} {offset} {ts} {images}"),
        )

    def finish(self, parser_version: int, project_of: ProjectOf, census: dict[str, Census]) -> Parsed:
        """Close the session: messages in order, talks cut, everything hashed."""
        messages = sorted([*self.messages, *self._reply_messages()], key=lambda m: (m.seq, m.kind == "reply"))
        calls = [self._tool_call(native, call) for native, call in self.calls.items()]
        talks = cut_talks(self.prompts, messages, calls)
        project_id, project = project_of(self.facts.get("cwd", ""))
        native = self.session_id.split(":", 1)[1]
        session = Session(
            id=self.session_id,
            cli="claude",
            native_id=native,
            project_id=project_id,
            project=project,
            cwd=self.facts.get("cwd", ""),
            git_branch=self.facts.get("gitBranch", ""),
            title=self._title(),
            kind=self._kind(),
            parent_id=self._parent(native),
            agent_type=self._agent_type(),
            cli_version=self.facts.get("version", ""),
            models=unique(r.model for r in self.replies.values()),
            started_at=self.first_ts,
            ended_at=self.last_ts,
            talks=len(talks),
            messages=len(messages),
            tool_calls=len(calls),
            tokens_raw=sum(t.tokens_raw for t in talks),
            tokens_input=sum(r.usage.get("input_tokens", 0) for r in self.replies.values()),
            tokens_output=sum(r.usage.get("output_tokens", 0) for r in self.replies.values()),
            tokens_cached=sum(r.usage.get("cache_read_input_tokens", 0) for r in self.replies.values()),
            parser_version=parser_version,
        )
        mark = digest(repr(session), *(m.digest for m in messages), *(c.digest for c in calls))
        return Parsed(replace(session, digest=mark), talks, tuple(messages), tuple(calls), census)

    def _tool_call(self, native: str, call: _Call) -> ToolCall:
        import orjson

        try:
            given = orjson.dumps(call.given, default=str).decode()
        except TypeError:  # nested too deep, or a number too large: keep the text of it
            given = orjson.dumps({"input": _text_of(call.given)}).decode()
        operation = operation_of(call.name)
        content = digest(call.name, given, call.output, str(call.is_error))
        place = f"{call.prompt_number} {call.seq} {call.source_id} {call.offset} {call.started_at} {call.ended_at}"
        return ToolCall(
            id=f"{self.session_id}#{native}",
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
            agent_session_id=f"claude:agent-{call.agent}" if call.agent else "",
            source_id=call.source_id,
            offset=call.offset,
            content=content,
            digest=digest(content, place, call.agent),
        )

    def _reply_messages(self) -> Iterator[Message]:
        for key, reply in self.replies.items():
            identity = f"{self.session_id}#{key}"
            thoughts = "\n\n".join(filter(None, reply.thoughts))
            if thoughts:
                yield self._reply_message(f"{identity}:thinking", "thinking", thoughts, reply, {})
            text = "\n\n".join(filter(None, reply.texts))
            yield self._reply_message(identity, "sidechain" if reply.aside else "reply", text, reply, reply.usage)

    def _reply_message(
        self, identity: str, kind: MessageKind, text: str, reply: _Reply, usage: dict[str, int]
    ) -> Message:
        place = f"{reply.prompt_number} {reply.seq} {reply.source_id} {reply.offset} {reply.ts} {usage}"
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
            tokens_input=usage.get("input_tokens", 0),
            tokens_output=usage.get("output_tokens", 0),
            tokens_cached=usage.get("cache_read_input_tokens", 0),
            digest=digest(text, kind, place),
        )

    @property
    def is_agent(self) -> bool:
        """Whether the session is a subagent's: its files are called agent-<id>."""
        return self.session_id.split(":", 1)[1].startswith("agent-")

    def _is_aside(self, record: dict[str, Any]) -> bool:
        """Tell whether a record is a subagent's, written into the file of its parent as older versions did."""
        return record.get("isSidechain") is True and not self.is_agent

    def _title(self) -> str:
        ranked = (self.titles.get(k, "") for k in ("rename", "custom-title", "ai-title", "summary"))
        first = self.prompts[0].text[:1000] if self.prompts else ""
        return next(filter(None, map(one_line, ranked)), one_line(first))[:200]

    def _kind(self) -> SessionKind:
        if self.is_agent:
            return "subagent"
        only = [p.text.split()[0] for p in self.prompts]
        return "probe" if only == ["/usage"] and not self.calls else "main"

    def _parent(self, native: str) -> str:
        if self.parent_id:
            return self.parent_id
        named = self.facts.get("sessionId", "")
        return f"claude:{named}" if self.is_agent and named not in ("", native) else ""

    def _agent_type(self) -> str:
        import orjson

        for name, data in self.side.items():
            if name.endswith(".meta.json"):
                try:
                    meta = orjson.loads(data)
                except orjson.JSONDecodeError:
                    continue
                if isinstance(meta, dict):
                    return str(meta.get("agentType") or "")
        return ""


def _role_of(record: dict[str, Any]) -> Any:
    message = record.get("message")
    return message.get("role") if isinstance(message, dict) else record.get("role")


def _text_of(given: dict[str, Any]) -> str:
    """Write arguments that JSON cannot hold as text; what is nested beyond reach stays in the archive."""
    try:
        return json.dumps(given, ensure_ascii=False, default=str)
    except RecursionError:
        return "(nested too deep)"


def _delivered(records: list[tuple[int, dict[str, Any]]]) -> dict[str, list[int]]:
    """List, by text, the positions of the records that are prompts themselves, to match the queue against."""
    places: dict[str, list[int]] = {}
    if not any(record.get("type") == "queue-operation" for _offset, record in records):
        return places
    for place, (_offset, record) in enumerate(records):
        text = _queueable(record)
        if text:
            places.setdefault(one_line(text), []).append(place)
    return places


def _queueable(record: dict[str, Any]) -> str:
    """Give the text of a record as which a queued prompt may have been delivered."""
    body = record.get("attachment")
    if record.get("type") == "attachment" and isinstance(body, dict) and body.get("type") == "queued_command":
        return flatten(body.get("prompt"))
    message = record.get("message")
    if record.get("type") != "user" or not isinstance(message, dict):
        return ""
    return flatten(message.get("content"), with_results=False)


def _origin_of(body: dict[str, Any]) -> dict[str, Any]:
    """Carry over what a queued command says of its origin."""
    return {key: body[key] for key in ("origin", "promptSource", "isMeta") if key in body}


def _merge_text(parts: list[str], text: str, ended: bool) -> None:
    """Add a block to a reply: a snapshot that grew replaces the shorter one, anything else is appended."""
    if not text:
        return
    if not ended:
        for number, part in enumerate(parts):
            if part.startswith(text):
                return
            if text.startswith(part):
                parts[number] = text
                return
    parts.append(text)


def _keep_usage(kept: dict[str, int], usage: Any) -> None:
    """Keep the snapshot with the most output tokens: each record of a message repeats its usage."""
    if not isinstance(usage, dict):
        return
    numbers = {key: value for key, value in usage.items() if isinstance(value, int) and 0 <= value < _MAX_COUNT}
    if numbers.get("output_tokens", 0) >= kept.get("output_tokens", -1):
        kept.clear()
        kept.update(numbers)
