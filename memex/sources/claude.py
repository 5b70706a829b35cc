"""Claude Code: `projects/<folder>/<session>.jsonl`, with subagents and oversized outputs beside it.

Few of its `user` records are typed by a human, one reply is spread over several records, and the result
of a tool call is a `user` record. `prompts.py` tells prompts apart; this module puts the rest together.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from memex.model import MessageKind, Session, SessionKind
from memex.model import Role as Speaker
from memex.sources.base import Adapter, Blob, Found, HistoryPrompt, Relatives, Role
from memex.sources.content import clean, flatten, json_object, read_json, read_time
from memex.sources.copies import record_mark
from memex.sources.lines import Census, json_lines
from memex.sources.prompts import Prompt, read_prompt
from memex.sources.transcript import Answer, Reply, Transcript, Usage, token_count
from memex.sources.walk import Entry
from memex.text import mark, one_line

_PERSISTED = re.compile(r"<persisted-output>.*?Full output saved to:[ \t]*([^\n<]+)", re.DOTALL)
_LOOK_AHEAD = 500
"""Records within which a prompt that left the queue must show up, if it stands in a record of its own."""
_NOWHERE = -1
_RETRY_PROMPTS = 3
"""Going back over so many prompts is another try at them; over more, both ways are kept."""


class ClaudeAdapter(Adapter):
    """The adapter of Claude Code."""

    cli = "claude"
    parser_version = 2

    def places(self, root: Path) -> tuple[Path, ...]:
        """Name the history of prompts, and the folders of logs with their side files."""
        return (root / "history.jsonl", root / "projects", root / "transcripts")

    def found(self, entry: Entry, place: Path) -> Found | None:
        """Tell the session of a log or side file."""
        if place.name == "history.jsonl":
            return Found(self.cli, entry.place, f"{self.cli}:history", "history", entry.stat)
        if belongs := _session_of(entry):
            name, role = belongs
            return Found(self.cli, entry.place, f"{self.cli}:{name}", role, entry.stat, entry.refused)
        return None

    def reader(self, session_id: str, path: Path, side: Mapping[str, bytes], relatives: Relatives) -> "ClaudeReader":
        """Begin a session."""
        return ClaudeReader(Transcript(session_id), _parent_of(path), side, relatives)

    def records(self, blob: Blob, census: Census, tail: bool) -> Iterator[tuple[int, dict[str, Any]]]:
        """Read lines of JSON."""
        return json_lines(blob.pieces(census.read_to), census, tail)

    def retention(self, root: Path) -> timedelta | None:
        """Read `cleanupPeriodDays` of the CLI's settings: 30 days unless it says otherwise."""
        days = read_json(root / "settings.json").get("cleanupPeriodDays", 30)
        return timedelta(days=days) if isinstance(days, int | float) and 0 <= days < 100_000 else timedelta(days=30)

    def history(self, record: dict[str, Any]) -> HistoryPrompt | None:
        """Read a line of `history.jsonl`, pasted text put back in its place."""
        text, session, cwd = clean(record.get("display")), record.get("sessionId"), record.get("project")
        pasted = record.get("pastedContents")
        for number, paste in pasted.items() if isinstance(pasted, dict) else ():
            if isinstance(paste, dict) and paste.get("content"):
                text = re.sub(rf"\[Pasted text #{re.escape(number)}[^\]]*\]", lambda _: clean(paste["content"]), text)  # noqa: B023
        return HistoryPrompt(
            session if isinstance(session, str) else "",
            text,
            read_time(record.get("timestamp")),
            cwd if isinstance(cwd, str) else "",
        )


def _session_of(entry: Entry) -> tuple[str, Role] | None:
    """Name the session that a file belongs to, and what it is to it."""
    name = entry.name
    if name.endswith(".jsonl") and not entry.is_folder:
        return name.removesuffix(".jsonl"), "log"
    if entry.is_folder:
        return "", "log"
    if name.endswith(".meta.json"):
        return name.removesuffix(".meta.json"), "side"
    folder = entry.path.parent
    return (folder.parent.name, "side") if folder.name == "tool-results" else None


def _parent_of(path: Path) -> str:
    """Read the parent of a subagent's log from its place: `<parent>/subagents/…/agent-<id>.jsonl`."""
    for folder in path.parents:
        if folder.name == "subagents":
            return f"claude:{folder.parent.name}"
    return ""


@dataclass(slots=True)
class _Queued:
    """A prompt in the queue; `seen` when a record of its own came before it left the queue."""

    offset: int
    record: dict[str, Any]
    text: str
    seen: bool = False


@dataclass(slots=True)
class ClaudeReader:
    """One session under way.

    `window` holds records back while it is open whether a prompt that left the queue stands in one of them;
    `early` are results that stand before their calls.
    """

    transcript: Transcript
    parent_id: str
    side: Mapping[str, bytes]
    relatives: Relatives
    missing: set[str] = field(default_factory=set)
    facts: dict[str, str] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    copied: set[int] = field(default_factory=set)
    copying: bool = False
    original: str = ""
    root: str = ""
    queue: list[_Queued] = field(default_factory=list)
    window: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    early: dict[str, tuple[Answer, dict[str, Any]]] = field(default_factory=dict)
    delivered: set[int] = field(default_factory=set)
    prompt_parents: dict[int, int] = field(default_factory=dict)

    def read(self, offset: int, record: dict[str, Any], census: Census) -> None:
        """Take in one record, or hold it back."""
        if self.window or self._leaves_queue(record):
            self.window.append((offset, record))
            self._settle(census, ended=False)
        else:
            self._take(offset, record, census)

    def close(self, census: Census) -> None:
        """Decide about prompts that left the queue last, and take those still in it as typed."""
        self._settle(census, ended=True)
        for queued in self.queue:
            if not queued.seen:
                became = self._add_queued(queued, queued.offset, queued.record)
                census.recount("queue-operation", "prompt queue", became)
        self.queue.clear()
        for result in self.early.values():
            self._add_result(result)
        self.early.clear()

    def session(self) -> Session:
        """Tell what the records say of the session."""
        native = self.transcript.session_id.split(":", 1)[1]
        named = self.facts.get("sessionId", "")
        parent = self.parent_id or (f"claude:{named}" if self.is_agent and named not in ("", native) else "")
        return self.transcript.session(
            cwd=self.facts.get("cwd", ""),
            git_branch=self.facts.get("gitBranch", ""),
            title=self._title(),
            kind=self._kind(),
            parent_id=parent or self.original,
            root=self.root,
            agent_type=self._agent_type(),
            cli_version=self.facts.get("version", ""),
        )

    def _take(self, offset: int, record: dict[str, Any], census: Census) -> None:
        kind = record.get("type")
        kind = kind if isinstance(kind, str) else "(no type)"
        census.count(kind, self._repeats(kind, record) or self._became(kind, offset, record))

    def _became(self, kind: str, offset: int, record: dict[str, Any]) -> str:
        self._note(record)
        match kind:
            case "assistant":
                return self._add_assistant(offset, record)
            case "message" if _role_of(record) == "assistant":
                return self._add_assistant(offset, record)
            case "user" | "message":
                return self._add_user(offset, record)
            case "queue-operation":
                return self._add_queue(offset, record)
            case "attachment":
                return self._add_attachment(offset, record)
            case "system":
                return self._add_text(offset, record, "system", "system", flatten(record.get("content")))
            case "progress":
                return self._add_progress(offset, record)
            case "summary":
                self.titles["summary"] = clean(record.get("summary"))
                return "title"
            case "ai-title" | "custom-title":
                named = (clean(record.get(key)) for key in ("aiTitle", "customTitle", "title"))
                self.titles[kind] = next(filter(None, named), "")
                return "title"
            case _:
                return "in the archive only"

    def _repeats(self, kind: str, record: dict[str, Any]) -> str:
        """Tell whether a record stands in this session already, or was copied from the one it continues."""
        uuid = record.get("uuid")
        if not isinstance(uuid, str) or kind == "file-history-snapshot":
            return f"copied from {self.original}" if self.copying else ""
        if not self.root and kind in ("user", "assistant"):
            self._find_original(uuid)
        if self.copied:
            self.copying = record_mark(record) in self.copied
            if self.copying:
                return f"copied from {self.original}"
        known = mark(uuid)
        if known in self.seen:
            return "left out: the same record again"
        self.seen.add(known)
        return ""

    def _find_original(self, uuid: str) -> None:
        """Find the session that this one was forked or resumed from: both begin with the same record."""
        self.root = uuid
        self.original = "" if self.is_agent else self.relatives.original(self.transcript.session_id, uuid)
        if self.original:
            self.copied = {
                record_mark(record)
                for blob in self.relatives.logs(self.original)
                for _offset, record in json_lines(blob.pieces(), Census())
                if isinstance(record.get("uuid"), str)
            }

    def _note(self, record: dict[str, Any]) -> None:
        """Remember where, when and with what the session ran: the first folder, the last version."""
        facts = self.facts
        for key in ("cwd", "gitBranch", "agentId", "sessionId"):
            if key not in facts and (value := record.get(key)) and isinstance(value, str):
                facts[key] = value
        version = record.get("version")
        if isinstance(version, str):
            facts["version"] = version
        self.transcript.note_time(read_time(record.get("timestamp")))

    def _add_user(self, offset: int, record: dict[str, Any]) -> str:
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else record.get("content")
        blocks = content if isinstance(content, list) else []
        results = [b for b in blocks if isinstance(b, dict) and b.get("type") == "tool_result"]
        for block in results:
            self._answer(block, offset, record)
        if record.get("isCompactSummary") is True:
            return self._add_text(offset, record, "user", "boundary", flatten(content))
        prompt = read_prompt(record, content, self.is_agent)
        if prompt:
            became = self._note_rewind(record, prompt)
            self._add_prompt(offset, record, prompt)
            return became
        kind: MessageKind = "sidechain" if self._is_aside(record) else "notice"
        became = self._add_text(offset, record, "user", kind, flatten(content, with_results=False))
        return "tool result" if results else became

    def _add_prompt(self, offset: int, record: dict[str, Any], prompt: Prompt, late: bool = False) -> None:
        if prompt.title:
            self.titles["rename"] = prompt.title
        about = _place(offset, record)
        about["images"] = prompt.images
        if late:
            self.transcript.late_prompt(prompt.text or "[image]", about.pop("ts"), **about)
        else:
            self.transcript.prompt(prompt.text or "[image]", **about)
        for queued in self.queue:
            if offset not in self.delivered and not queued.seen and one_line(queued.text) == one_line(prompt.text):
                queued.seen = True
                break

    def _note_rewind(self, record: dict[str, Any], prompt: Prompt) -> str:
        """Take back the prompts that this one was typed instead of: it hangs on the record that they hung on.

        Shell escapes and commands hang on a shared caveat and replace nothing.
        """
        parent = record.get("parentUuid")
        if not isinstance(parent, str) or prompt.text.startswith(("!", "/")):
            return "prompt"
        number = self.transcript.prompt_number
        replaced = self.prompt_parents.get(mark(parent))
        self.prompt_parents[mark(parent)] = number + 1
        if replaced is None:
            return "prompt"
        if number - replaced >= _RETRY_PROMPTS:
            return "prompt after going back far: both ways are kept"
        self.transcript.abandon(range(replaced, number + 1))
        return "prompt instead of earlier ones"

    def _add_text(self, offset: int, record: dict[str, Any], role: Speaker, kind: MessageKind, text: str) -> str:
        if not text.strip():
            return "no text"
        self.transcript.say(role, kind, text, **_place(offset, record))
        return kind

    def _add_queue(self, offset: int, record: dict[str, Any]) -> str:
        """Follow the prompt queue; what leaves it is for `_settle`."""
        match record.get("operation"):
            case "enqueue":
                self.queue.append(_Queued(offset, record, flatten(record.get("content"))))
            case "popAll":
                self.queue.clear()
        return "prompt queue"

    def _leaves_queue(self, record: dict[str, Any]) -> bool:
        leaves = record.get("type") == "queue-operation" and record.get("operation") in ("dequeue", "remove")
        return leaves and bool(self.queue)

    def _settle(self, census: Census, ended: bool) -> None:
        """Work the window off, up to a prompt of which it is not yet known whether a later record holds it."""
        while self.window:
            offset, record = self.window[0]
            if self._leaves_queue(record):
                queued = self._next_queued(record)
                place = offset if queued.seen else self._delivery(queued.text, ended)
                if place is None:
                    return
                self.queue.remove(queued)
                self._note(record)
                became = self._add_queued(queued, offset, record) if place == _NOWHERE else "prompt queue"
                self.delivered.add(place)
                census.count("queue-operation", became)
            else:
                self._take(offset, record, census)
            self.delivered.discard(offset)
            del self.window[0]

    def _next_queued(self, record: dict[str, Any]) -> _Queued:
        """Tell which prompt an operation takes out of the queue: the one it names, else the first."""
        named = one_line(flatten(record.get("content")))
        return next((q for q in self.queue if named and one_line(q.text) == named), self.queue[0])

    def _delivery(self, text: str, ended: bool) -> int | None:
        """Find the offset of the record that holds a prompt, or _NOWHERE; None when it may yet come.

        It stands before the second reply that follows.
        """
        wanted = one_line(text)
        replies = set()
        for offset, record in self.window[1:]:
            if record.get("type") == "assistant":
                message = record.get("message")
                replies.add(str(message.get("id") if isinstance(message, dict) else offset))
            elif offset not in self.delivered and one_line(_queueable(record)) == wanted:
                return offset
        return _NOWHERE if ended or len(replies) > 1 or len(self.window) > _LOOK_AHEAD else None

    def _add_queued(self, queued: _Queued, offset: int, record: dict[str, Any]) -> str:
        """Make a prompt of one that stands nowhere but in the queue."""
        prompt = read_prompt({"type": "user"}, queued.record.get("content"))
        if prompt is None:
            return "prompt queue"
        self._add_prompt(offset, record, prompt)
        return "prompt that stands nowhere else"

    def _add_attachment(self, offset: int, record: dict[str, Any]) -> str:
        body = record.get("attachment")
        body = body if isinstance(body, dict) else {}
        if body.get("type") == "queued_command":
            prompt = read_prompt({"type": "user", **_origin_of(body)}, body.get("prompt"))
            if prompt:
                self._add_prompt(offset, record, prompt, late=True)
                return "prompt"
        return self._add_text(offset, record, "system", "notice", flatten(body.get("prompt") or body.get("content")))

    def _add_progress(self, offset: int, record: dict[str, Any]) -> str:
        """Take in what a subagent without a log of its own said; the rest of progress comes with results."""
        data = record.get("data")
        inner = data.get("message") if isinstance(data, dict) and data.get("type") == "agent_progress" else None
        if not isinstance(data, dict) or not isinstance(inner, dict):
            return "in the archive only"
        agent = f"claude:agent-{data.get('agentId')}"
        call = self.transcript.calls.get(str(record.get("parentToolUseID")))
        if call:
            call.agent_session_id = agent
        if any(True for _ in self.relatives.logs(agent)):
            return "in the subagent's own log"
        message = inner.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        role: Speaker = "assistant" if inner.get("type") == "assistant" else "user"
        inner = {"timestamp": record.get("timestamp"), **inner}
        known = mark(str(inner.get("uuid")))
        if known in self.seen:
            return "left out: the same record again"
        self.seen.add(known)
        return self._add_text(offset, inner, role, "sidechain", flatten(content, with_calls=True))

    def _add_assistant(self, offset: int, record: dict[str, Any]) -> str:
        message = record.get("message")
        message = message if isinstance(message, dict) else {}
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        if record.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
            return self._add_text(offset, record, "assistant", "notice", flatten(content))
        model = message.get("model")
        reply = self.transcript.reply(
            str(message.get("id") or record.get("uuid") or offset),
            offset=offset,
            ts=read_time(record.get("timestamp")),
            uuid=str(record.get("uuid") or ""),
            model=model if isinstance(model, str) else "",
            aside=self._is_aside(record),
        )
        for block in blocks:
            block = {"type": "text", "text": block} if isinstance(block, str) else block
            if isinstance(block, dict):
                self._add_block(reply, block, offset, record)
        if not self.transcript.is_repeated(reply):
            _keep_usage(reply.usage, message.get("usage"))
        reply.ended = reply.ended or message.get("stop_reason") == "end_turn"
        return "reply"

    def _add_block(self, reply: Reply, block: dict[str, Any], offset: int, record: dict[str, Any]) -> None:
        match block.get("type"):
            case "text":
                _merge_text(reply.texts, clean(block.get("text")), reply.ended)
            case "thinking":
                _merge_text(reply.thoughts, clean(block.get("thinking")), reply.ended)
            case "tool_use" | "server_tool_use" | "mcp_tool_use":
                native = str(block.get("id") or f"{reply.key}@{offset}")
                name = str(block.get("name") or "unknown")
                ts = read_time(record.get("timestamp"))
                self.transcript.call(native, reply.key, name, block.get("input"), offset=offset, ts=ts)
                if native in self.early:
                    self.transcript.answer(native, self.early.pop(native)[0])
            case _:
                pass

    def _answer(self, block: dict[str, Any], offset: int, record: dict[str, Any]) -> None:
        native = str(block.get("tool_use_id"))
        result = record.get("toolUseResult")
        result = result if isinstance(result, dict) else {}
        agent, named = result.get("agentId"), result.get("persistedOutputPath")
        output = self._whole_output(flatten(block.get("content")), named if isinstance(named, str) else "")
        answer = Answer(
            output,
            block.get("is_error") is True,
            read_time(record.get("timestamp")),
            f"claude:agent-{agent}" if isinstance(agent, str) and agent else "",
        )
        if self.transcript.answer(native, answer):
            return
        place = _place(offset, record)
        place["native"] = f"{place['uuid'] or f'{self.transcript.source_id[:8]}@{offset}'}:{native}"
        if self.transcript.is_closed(native) or native in self.early:
            self._add_result((answer, place))
        else:
            self.early[native] = answer, place

    def _add_result(self, result: tuple[Answer, dict[str, Any]]) -> None:
        """Keep a result that no call asked for as a message of its own."""
        answer, place = result
        if answer.output.strip():
            self.transcript.say("tool", "notice", answer.output, **place)

    def _whole_output(self, text: str, path: str) -> str:
        """Put an oversized output back, from its file in this session's `tool-results` folder."""
        match = _PERSISTED.search(text)
        if not match:
            return text
        name = re.split(r"[\\/]", (path or match[1]).strip())[-1]
        if name not in self.side:
            self.missing.add(name)
            return text
        return clean(self.side[name].decode("utf-8", "replace"))

    @property
    def is_agent(self) -> bool:
        """Whether the session is a subagent's: its files are called agent-<id>."""
        return self.transcript.session_id.split(":", 1)[1].startswith("agent-")

    def _is_aside(self, record: dict[str, Any]) -> bool:
        """Tell whether a record is a subagent's, written into the file of its parent as older versions did."""
        return record.get("isSidechain") is True and not self.is_agent

    def _title(self) -> str:
        ranked = (self.titles.get(k, "") for k in ("rename", "custom-title", "ai-title", "summary"))
        return next(filter(None, map(one_line, ranked)), one_line(self.transcript.first_prompt))[:200]

    def _kind(self) -> SessionKind:
        if self.is_agent:
            return "subagent"
        first = self.transcript.first_prompt.split(maxsplit=1)
        if first[:1] == ["/usage"] and self.transcript.prompt_number == 1 and not self.transcript.called:
            return "probe"
        return "fork" if self.original else "main"

    def _agent_type(self) -> str:
        for name in self.side:
            if name.endswith(".meta.json") and (meta := json_object(self.side[name])):
                return str(meta.get("agentType") or "")
        return ""


def _place(offset: int, record: dict[str, Any]) -> dict[str, Any]:
    """Say where and when a message was written."""
    uuid = record.get("uuid")
    return {
        "offset": offset,
        "ts": read_time(record.get("timestamp")),
        "uuid": uuid if isinstance(uuid, str) else "",
    }


def _role_of(record: dict[str, Any]) -> Any:
    message = record.get("message")
    return message.get("role") if isinstance(message, dict) else record.get("role")


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


def _keep_usage(kept: Usage, given: Any) -> None:
    """Keep the snapshot with the most output tokens: each record of a message repeats its usage."""
    if not isinstance(given, dict):
        return
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens")
    input_, output, cached = (token_count(given, name) for name in names)
    if output >= kept.output:
        kept.input, kept.output, kept.cached = input_, output, cached
