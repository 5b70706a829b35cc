"""Claude Code: `projects/<folder>/<session>.jsonl`, with subagents and oversized outputs beside it.

Few of its `user` records are typed by a human, one reply is spread over several records, and the result
of a tool call is a `user` record. `prompts.py` tells prompts apart; this module puts the rest together.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memex.model import Message, MessageKind, Operation, Role, Session, Talk, ToolCall
from memex.sources.base import Blob, Census, Found, Parsed, ProjectOf, json_lines
from memex.sources.prompts import Prompt, read_prompt
from memex.text import digest, estimate_tokens, one_line, plain, storable, unique

MAX_SIDE = 16 * 1024 * 1024

OPERATIONS: dict[str, Operation] = {
    "Read": "read", "NotebookRead": "read", "LS": "search", "Glob": "search", "Grep": "search",
    "ToolSearch": "search", "LSP": "search", "Edit": "edit", "MultiEdit": "edit", "NotebookEdit": "edit",
    "Write": "write", "Bash": "run", "PowerShell": "run", "BashOutput": "read", "KillShell": "other",
    "WebFetch": "fetch", "WebSearch": "fetch", "Task": "delegate", "Agent": "delegate", "Skill": "other",
    "TodoWrite": "plan", "TodoRead": "plan", "TaskCreate": "plan", "TaskUpdate": "plan", "TaskList": "plan",
    "TaskGet": "plan", "TaskOutput": "read", "EnterPlanMode": "plan", "ExitPlanMode": "plan",
    "AskUserQuestion": "ask",
}  # fmt: skip
_FILE_KEYS = ("file_path", "notebook_path", "path", "filePath")
_READ_ONLY = re.compile(
    r"^(?:(?:cd|pushd)\s+\S+\s*&&\s*)*(?:ls|cat|head|tail|grep|rg|ag|find|wc|pwd|which|file|stat|du|df|tree|echo|"
    r"type|env|date|diff|jq|sort|git\s+(?:-C\s+\S+\s+)?(?:status|log|diff|show|branch|blame|rev-parse|remote|ls-files))\b"
)
_REDIRECT = re.compile(r"(?<![0-9&])>{1,2}\s*(?!/dev/null|&)\S|\btee\b|\s-(?:exec|delete|i)\b|\bxargs\b")
_NOTHING = re.compile(
    r"\s*(?:\(no (?:content|output)\)|no (?:matches|files|results)(?: were)? found\.?|"
    r"\(?bash completed with no output\)?|found 0 \w+|\[\]|\{\}|null)\s*\Z",
    re.IGNORECASE,
)
_PERSISTED = re.compile(r"<persisted-output>.*?Full output saved to:\s*(\S+)", re.DOTALL)


class ClaudeAdapter:
    """The adapter of Claude Code."""

    cli = "claude"
    parser_version = 1

    def discover(self, root: Path) -> Iterator[Found]:
        """Find logs below `<root>/projects` and `<root>/transcripts`, each with its side files."""
        for base in (root / "projects", root / "transcripts"):
            for path in sorted(base.rglob("*")):
                if not path.is_file():
                    continue
                if path.suffix == ".jsonl":
                    yield Found(self.cli, path, f"{self.cli}:{path.stem}")
                elif path.parent.name == "tool-results":
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
    parts = path.parts
    return f"claude:{parts[parts.index('subagents') - 1]}" if "subagents" in parts else ""


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


@dataclass(slots=True)
class _Assembly:
    """The state while one session's records are put together, in file order."""

    session_id: str
    side: dict[str, bytes] = field(default_factory=dict)
    parent_id: str = ""
    messages: list[Message] = field(default_factory=list)
    replies: dict[str, _Reply] = field(default_factory=dict)
    calls: dict[str, ToolCall] = field(default_factory=dict)
    prompts: list[Message] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    seq: int = 0
    prompt_number: int = 0
    facts: dict[str, str] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    waiting: Counter[str] = field(default_factory=Counter)
    queue: list[str] = field(default_factory=list)
    first_ts: datetime | None = None
    last_ts: datetime | None = None
    source_id: str = ""

    def add_file(self, source_id: str, records: list[tuple[int, dict[str, Any]]], census: Census) -> None:
        """Take in one log file."""
        self.source_id = source_id
        self.waiting = _delivered(records)
        for offset, record in records:
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

    def _note(self, record: dict[str, Any]) -> None:
        """Remember where, when and with what the session ran."""
        for key in ("cwd", "gitBranch", "version", "agentId", "sessionId"):
            value = record.get(key)
            if value and isinstance(value, str):
                if key == "version":
                    self.facts[key] = value
                else:
                    self.facts.setdefault(key, storable(value))
        if record.get("isSidechain") is True:
            self.facts.setdefault("sidechain", "yes")
        ts = _time(record.get("timestamp"))
        if ts:
            self.first_ts = min(self.first_ts or ts, ts)
            self.last_ts = max(self.last_ts or ts, ts)

    def _add(self, kind: str, offset: int, record: dict[str, Any]) -> None:
        match kind:
            case "user" | "message":
                self._add_user(offset, record)
            case "assistant":
                self._add_assistant(offset, record)
            case "queue-operation":
                self._add_queue(offset, record)
            case "attachment":
                self._add_attachment(offset, record)
            case "system":
                self._add_text(offset, record, "system", "system", _flatten(record.get("content")))
            case "summary":
                self.titles["summary"] = str(record.get("summary") or "")
            case "ai-title" | "custom-title":
                self.titles[kind] = str(record.get("aiTitle") or record.get("customTitle") or record.get("title") or "")
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
            self._add_text(offset, record, "user", "boundary", _flatten(content))
            return
        prompt = read_prompt(record, content)
        if prompt:
            self._add_prompt(offset, record, prompt)
        else:
            self._add_text(offset, record, "user", "notice", _flatten(content, with_results=False))

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
        content = record.get("content")
        match record.get("operation"):
            case "enqueue":
                self.queue.append(content if isinstance(content, str) else _flatten(content))
            case "popAll":
                self.queue.clear()
            case "dequeue" | "remove" if self.queue:
                self._deliver(offset, record, self.queue.pop(0))

    def _deliver(self, offset: int, record: dict[str, Any], text: str) -> None:
        key = one_line(text)
        if self.waiting[key] > 0:
            self.waiting[key] -= 1
            return
        prompt = read_prompt({"type": "user"}, text)
        if prompt:
            self._add_prompt(offset, record, prompt)

    def _add_attachment(self, offset: int, record: dict[str, Any]) -> None:
        body = record.get("attachment")
        body = body if isinstance(body, dict) else {}
        text = _flatten(body.get("prompt") or body.get("content"))
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
            self._add_text(offset, record, "assistant", "notice", _flatten(content))
            return
        key = str(message.get("id") or record.get("uuid") or offset)
        reply = self.replies.get(key)
        if reply is None:
            self.seq += 1
            model = message.get("model")
            reply = self.replies[key] = _Reply(
                self.seq, offset, self.source_id, self.prompt_number, str(record.get("uuid") or ""),
                _time(record.get("timestamp")), model if isinstance(model, str) else "",
            )  # fmt: skip
        for block in blocks:
            if isinstance(block, dict):
                self._add_block(key, reply, block, offset, record)
        _keep_usage(reply.usage, message.get("usage"))
        reply.ended = message.get("stop_reason") == "end_turn"

    def _add_block(self, key: str, reply: _Reply, block: dict[str, Any], offset: int, record: dict[str, Any]) -> None:
        match block.get("type"):
            case "text":
                _merge_text(reply.texts, _clean(block.get("text")), reply.ended)
            case "thinking":
                _merge_text(reply.thoughts, _clean(block.get("thinking")), reply.ended)
            case "tool_use" | "server_tool_use" | "mcp_tool_use":
                self._call(key, block, offset, record)
            case _:
                pass

    def _call(self, key: str, block: dict[str, Any], offset: int, record: dict[str, Any]) -> None:
        import orjson

        native = str(block.get("id") or f"{key}@{offset}")
        name = str(block.get("name") or "unknown")
        given = block.get("input")
        given = given if isinstance(given, dict) else {"input": given}
        old = self.calls.get(native)
        if old is None:
            self.seq += 1
        self.calls[native] = ToolCall(
            id=f"{self.session_id}#{native}",
            session_id=self.session_id,
            prompt_number=old.prompt_number if old else self.prompt_number,
            seq=old.seq if old else self.seq,
            message_id=f"{self.session_id}#{key}",
            name=name,
            operation=operation_of(name),
            input=storable(orjson.dumps(_storable_tree(given)).decode()),
            mutates=_mutates(name, given),
            files=_files_of(given),
            started_at=_time(record.get("timestamp")),
            source_id=self.source_id,
            offset=offset,
        )

    def _answer(self, block: dict[str, Any], record: dict[str, Any]) -> None:
        call = self.calls.get(str(block.get("tool_use_id")))
        if call is None:
            text = _flatten(block.get("content"))
            self._add_text(-1, record, "tool", "notice", text)
            return
        result = record.get("toolUseResult")
        agent = result.get("agentId") if isinstance(result, dict) else None
        self.calls[str(block.get("tool_use_id"))] = replace(
            call,
            output=self._whole_output(_flatten(block.get("content"))),
            answered=True,
            is_error=block.get("is_error") is True,
            ended_at=_time(record.get("timestamp")),
            agent_session_id=f"claude:agent-{agent}" if isinstance(agent, str) and agent else "",
        )

    def _whole_output(self, text: str) -> str:
        """Put an oversized output back, from its file in this session's `tool-results` folder."""
        match = _PERSISTED.search(text)
        if not match:
            return text
        name = re.split(r"[\\/]", match[1])[-1]
        data = self.side.get(name)
        return _clean(data.decode("utf-8", "replace")) if data is not None else text

    def _message(
        self, offset: int, record: dict[str, Any], role: Role, kind: MessageKind, text: str, images: int = 0
    ) -> Message:
        self.seq += 1
        uuid = record.get("uuid")
        uuid = uuid if isinstance(uuid, str) else ""
        return Message(
            id=f"{self.session_id}#{uuid or f'{self.source_id[:8]}@{offset}.{self.seq}'}"
            + (":result" if role == "tool" else ""),
            session_id=self.session_id,
            prompt_number=self.prompt_number,
            seq=self.seq,
            role=role,
            kind=kind,
            text=text,
            ts=_time(record.get("timestamp")),
            uuid=uuid,
            source_id=self.source_id,
            offset=offset,
            images=images,
        )

    def finish(self, parser_version: int, project_of: ProjectOf, census: dict[str, Census]) -> Parsed:
        """Close the session: messages in order, talks cut, everything hashed."""
        messages = [*self.messages, *self._reply_messages()]
        messages = sorted((_with_digest(m) for m in messages), key=lambda m: (m.seq, m.kind == "reply"))
        calls = [_call_with_digest(call) for call in self.calls.values()]
        talks = _talks(self.prompts, messages, calls)
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

    def _reply_messages(self) -> Iterator[Message]:
        for key, reply in self.replies.items():
            common = {
                "session_id": self.session_id, "prompt_number": reply.prompt_number, "seq": reply.seq,
                "ts": reply.ts, "model": reply.model, "uuid": reply.uuid, "source_id": reply.source_id,
                "offset": reply.offset,
            }  # fmt: skip
            identity = f"{self.session_id}#{key}"
            if any(reply.thoughts):
                text = "\n\n".join(filter(None, reply.thoughts))
                yield Message(id=f"{identity}:thinking", role="assistant", kind="thinking", text=text, **common)  # type: ignore[arg-type]
            yield Message(
                id=identity,
                role="assistant",
                kind="reply",
                text="\n\n".join(filter(None, reply.texts)),
                tokens_input=reply.usage.get("input_tokens", 0),
                tokens_output=reply.usage.get("output_tokens", 0),
                tokens_cached=reply.usage.get("cache_read_input_tokens", 0),
                **common,  # type: ignore[arg-type]
            )

    def _title(self) -> str:
        ranked = (self.titles.get(k, "") for k in ("rename", "custom-title", "ai-title", "summary"))
        first = self.prompts[0].text if self.prompts else ""
        return one_line(storable(next(filter(None, ranked), first)))[:200]

    def _is_agent(self) -> bool:
        return "sidechain" in self.facts and "agentId" in self.facts

    def _kind(self) -> Any:
        if self._is_agent():
            return "subagent"
        only = [p.text.split()[0] for p in self.prompts]
        return "probe" if only == ["/usage"] and not self.calls else "main"

    def _parent(self, native: str) -> str:
        if self.parent_id:
            return self.parent_id
        named = self.facts.get("sessionId", "")
        return f"claude:{named}" if self._is_agent() and named and named != native else ""

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


def operation_of(name: str) -> Operation:
    """Tell what kind of operation a tool performs, from its name."""
    return OPERATIONS.get(name, "other")


def _mutates(name: str, given: dict[str, Any]) -> bool:
    """Tell whether a call may change something. A shell command counts unless it is known to only read."""
    operation = operation_of(name)
    if operation in ("edit", "write"):
        return True
    if operation == "run":
        command = str(given.get("command") or "").strip()
        parts = re.split(r"&&|\|\||[;|\n]", command)
        return bool(_REDIRECT.search(command)) or not all(
            _READ_ONLY.match(part.strip()) or part.strip().startswith("cd ") for part in parts if part.strip()
        )
    return operation in ("delegate", "other")


def _files_of(given: dict[str, Any]) -> tuple[str, ...]:
    return unique(storable(str(given[key])) for key in _FILE_KEYS if isinstance(given.get(key), str))


def _delivered(records: list[tuple[int, dict[str, Any]]]) -> Counter[str]:
    """Count the texts that user and attachment records hold, to match the prompt queue against."""
    texts: Counter[str] = Counter()
    if not any(record.get("type") == "queue-operation" for _offset, record in records):
        return texts
    for _offset, record in records:
        kind = record.get("type")
        if kind == "user":
            message = record.get("message")
            texts[one_line(_flatten(message.get("content") if isinstance(message, dict) else ""))] += 1
        elif kind == "attachment" and isinstance(record.get("attachment"), dict):
            texts[one_line(_flatten(record["attachment"].get("prompt")))] += 1
    return texts


def _origin_of(body: dict[str, Any]) -> dict[str, Any]:
    """Carry over what a queued command says of its origin."""
    return {key: body[key] for key in ("origin", "promptSource", "isMeta") if key in body}


def _flatten(content: Any, with_results: bool = True) -> str:
    """Join the text of a content field: a string, or blocks of text and tool results."""
    if isinstance(content, str):
        return _clean(content)
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return ""
    parts = []
    for block in content:
        if isinstance(block, str):
            parts.append(_clean(block))
        elif isinstance(block, dict):
            match block.get("type"):
                case "text":
                    parts.append(_clean(block.get("text")))
                case "tool_result" if with_results:
                    parts.append(_flatten(block.get("content")))
                case "image" | "document" as kind:
                    parts.append(f"[{kind}]")
    return "\n".join(part for part in parts if part)


def _clean(text: Any) -> str:
    return storable(plain(text)) if isinstance(text, str) else ""


def _storable_tree(value: Any) -> Any:
    """Replace lone surrogates anywhere inside a JSON value."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(str(k)): _storable_tree(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_storable_tree(item) for item in value]
    return value


def _merge_text(parts: list[str], text: str, ended: bool) -> None:
    """Add a block to a reply: a snapshot that grew replaces the shorter one, anything else is appended."""
    if not text:
        return
    if parts and not ended:
        if text.startswith(parts[-1]):
            parts[-1] = text
            return
        if parts[-1].startswith(text):
            return
    parts.append(text)


def _keep_usage(kept: dict[str, int], usage: Any) -> None:
    """Keep the snapshot with the most output tokens: each record of a message repeats its usage."""
    if not isinstance(usage, dict):
        return
    numbers = {key: value for key, value in usage.items() if isinstance(value, int)}
    if numbers.get("output_tokens", 0) >= kept.get("output_tokens", -1):
        kept.clear()
        kept.update(numbers)


def _time(value: Any) -> datetime | None:
    """Read RFC 3339, or epoch seconds or milliseconds; anything else is no time."""
    try:
        if isinstance(value, str):
            ts = datetime.fromisoformat(value)
            return ts.astimezone(UTC) if ts.tzinfo else ts.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def _with_digest(message: Message) -> Message:
    return replace(message, digest=digest(repr(message)))


def _call_with_digest(call: ToolCall) -> ToolCall:
    content = digest(call.name, call.input, call.output, str(call.is_error))
    return replace(
        call,
        empty=not call.output.strip() or bool(_NOTHING.match(call.output)),
        content=content,
        digest=digest(content, repr(call)),
    )


def _talks(prompts: list[Message], messages: list[Message], calls: list[ToolCall]) -> tuple[Talk, ...]:
    """Cut the session at its prompts. The digest of a talk covers what was said and done, not where it stands."""
    spoken: dict[int, list[Message]] = {}
    for message in messages:
        spoken.setdefault(message.prompt_number, []).append(message)
    done: dict[int, list[ToolCall]] = {}
    for call in sorted(calls, key=lambda c: c.seq):
        done.setdefault(call.prompt_number, []).append(call)
    return tuple(_talk(p, spoken.get(p.prompt_number, []), done.get(p.prompt_number, [])) for p in prompts)


def _talk(prompt: Message, messages: list[Message], calls: list[ToolCall]) -> Talk:
    words = [m for m in messages if m.kind in ("prompt", "reply") and m.text]
    times = [t for t in (*(m.ts for m in messages), *(c.started_at for c in calls), *(c.ended_at for c in calls)) if t]
    seqs = [*(m.seq for m in messages), *(c.seq for c in calls)]
    said = [part for m in words for part in (m.kind, m.text)]
    done = [part for c in calls for part in (c.name, c.input, c.output)]
    talk = Talk(
        id=f"{prompt.session_id}#{prompt.prompt_number}",
        session_id=prompt.session_id,
        prompt_number=prompt.prompt_number,
        prompt=prompt.text,
        started_at=prompt.ts or (min(times) if times else None),
        ended_at=max(times) if times else prompt.ts,
        seq_from=min(seqs),
        seq_to=max(seqs),
        messages=len(messages),
        tool_calls=len(calls),
        tokens_raw=sum(map(estimate_tokens, [*said, *done])),
        answered=bool(calls) or any(m.kind == "reply" for m in words),
        content=digest(*said, *(c.content for c in calls)),
    )
    return replace(talk, digest=digest(repr(talk)))
