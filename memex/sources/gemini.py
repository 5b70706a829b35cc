"""Gemini CLI: `tmp/<project>/chats/session-<time>-<id8>.jsonl`, or `.json` as older versions wrote it.

A `.json` is one document, written anew at every change. A `.jsonl` is replayed: a message comes again as it
grows, `$set` merges what is known of the session, `$rewindTo` takes messages back. What was taken back stays
stored, marked superseded. So the reader keeps the messages, and puts them together when the log ends.

The name of a log holds the first eight characters of the session's id, and a session is called by them: a
subagent's folder names its parent by the whole id, and a `.json` and the `.jsonl` that follows it meet.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from memex.model import Session, SessionKind
from memex.sources.base import Adapter, Blob, Found, HistoryPrompt, Relatives, Role
from memex.sources.content import clean, json_object, read_json, read_time
from memex.sources.lines import MAX_LINE, Census, json_lines
from memex.sources.transcript import Answer, Transcript, Usage, token_count
from memex.sources.walk import Entry
from memex.text import one_line

_LOG = re.compile(r"session-\d{4}-\d\d-\d\dT\d\d-\d\d-(?P<id>[^/]+?)\.jsonl?$")
_NOT_TYPED = ("/", "?", "<session_context>", "<hook_context>")
_DAYS = re.compile(r"(\d+)([dhm])$")
_UNITS = {"d": "days", "h": "hours", "m": "minutes"}
_AGAIN = "the same message again"


class GeminiAdapter(Adapter):
    """The adapter of Gemini CLI."""

    cli = "gemini"
    parser_version = 1

    def places(self, root: Path) -> tuple[Path, ...]:
        """Name the folder of logs, and a file that tells which project a folder in it belongs to."""
        return (root / "projects.json", root / "tmp")

    def found(self, entry: Entry, _place: Path) -> Found | None:
        """Tell the session of a log; that of the files about projects is called `projects`."""
        if name := _session_of(entry):
            role: Role = "side" if name == "projects" else "log"
            return Found(self.cli, entry.place, f"{self.cli}:{name}", role, entry.stat, entry.refused)
        if entry.is_folder:
            return Found(self.cli, entry.place, f"{self.cli}:", "log", entry.stat, entry.refused)
        return None

    def reader(self, session_id: str, path: Path, side: Mapping[str, bytes], relatives: Relatives) -> "GeminiReader":
        """Begin a session."""
        return GeminiReader(Transcript(session_id), str(path), side, relatives)

    def records(self, blob: Blob, census: Census, tail: bool) -> Iterator[tuple[int, dict[str, Any]]]:
        """Read lines of JSON, or the messages of a document; one that is not whole yet is left for the next time."""
        if blob.path.suffix != ".json":
            yield from json_lines(blob.pieces(census.read_to), census, tail)
            return
        data = b"".join(blob.pieces())
        document = _document(data)
        if document is None and data.lstrip().partition(b"\n")[0].endswith(b"}"):  # lines, whatever the name says
            yield from json_lines(blob.pieces(census.read_to), census, tail)
        elif document is None:
            census.torn_bytes = len(data)
        elif census.read_to < len(data):
            census.read_to = len(data)
            messages = document.pop("messages", [])
            yield 0, document
            yield from ((0, message) for message in messages if isinstance(message, dict))

    def retention(self, root: Path) -> timedelta | None:
        """Read `general.sessionRetention` of the CLI's settings: nothing is deleted unless it says so."""
        general = read_json(root / "settings.json").get("general")
        retention = general.get("sessionRetention") if isinstance(general, dict) else None
        if not isinstance(retention, dict) or retention.get("enabled") is not True:
            return None
        found = _DAYS.match(str(retention.get("maxAge")))
        return timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else None

    def history(self, _record: dict[str, Any]) -> HistoryPrompt | None:
        """Gemini CLI keeps no history of prompts by session."""
        return None


def _session_of(entry: Entry) -> str:
    """Name the session of a file: by its id8, a subagent by its whole id; "" when it is no log."""
    if entry.is_folder:
        return ""
    if entry.name in (".project_root", "projects.json"):
        return "projects"
    parts = entry.place.split("/")
    if "chats" not in parts or not entry.name.endswith((".json", ".jsonl")):
        return ""
    found = _LOG.search(entry.name)
    return found["id"] if found else entry.name.rsplit(".", 1)[0]


def _document(data: bytes) -> dict[str, Any] | None:
    import orjson

    try:
        value = orjson.loads(data) if len(data) <= 8 * MAX_LINE else None
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) and "messages" in value else None


@dataclass(slots=True)
class GeminiReader:
    """One session under way: `messages` in the order in which they came, `dropped` those taken back."""

    transcript: Transcript
    place: str
    side: Mapping[str, bytes]
    relatives: Relatives
    missing: set[str] = field(default_factory=set)
    about: dict[str, Any] = field(default_factory=dict)
    messages: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)

    def read(self, offset: int, record: dict[str, Any], census: Census) -> None:
        """Take in one record."""
        if "$rewindTo" in record:
            self._rewind(str(record["$rewindTo"]))
            census.count("$rewindTo", "messages taken back")
        elif isinstance(record.get("$set"), dict):
            self._set(offset, record["$set"])
            census.count("$set", "session facts")
        elif "type" in record:
            kind = str(record["type"])
            census.count(kind, self._keep(offset, record))
        elif "sessionId" in record:
            self._set(offset, record)
            census.count("(session)", "session facts")
        else:
            census.count("(no type)", "in the archive only")

    def close(self, _census: Census) -> None:
        """Put the messages together: only now it is known which of them stand."""
        before = 0
        for name, (offset, record) in self.messages.items():
            gone = name in self.dropped
            match record.get("type"):
                case "user":
                    self._add_user(name, offset, record, gone)
                case "gemini":
                    before = self._add_reply(name, offset, record, gone, before)
                case _:
                    self._say(name, offset, record, "system", _text(record.get("content")), gone)

    def session(self) -> Session:
        """Tell what the records say of the session."""
        for _offset, record in self.messages.values():
            self.transcript.note_time(read_time(record.get("timestamp")))
        started, native = read_time(self.about.get("startTime")), self.about.get("sessionId")
        first, last = self.transcript.times or (started, started)
        return self.transcript.session(
            **({"native_id": native} if isinstance(native, str) else {}),
            cwd=self._folder(),
            title=one_line(clean(self.about.get("summary")) or self.transcript.first_prompt)[:200],
            kind=self._kind(),
            parent_id=self._parent(),
            started_at=min(filter(None, (started, first)), default=None),
            ended_at=last,
        )

    def _keep(self, offset: int, record: dict[str, Any]) -> str:
        """Keep a message, or the message that it is now; tell what it will become."""
        name = record.get("id")
        name = (
            name if isinstance(name, str) and name else f"{self.transcript.source_id[:8]}@{offset}.{len(self.messages)}"
        )
        again = name in self.messages and name not in self.dropped
        if name in self.dropped:  # taken back, and now said again
            self.dropped.discard(name)
            del self.messages[name]
        self.messages[name] = (self.messages[name][0] if again else offset, record)
        if again:
            return _AGAIN
        if record["type"] == "user":
            return "prompt" if _is_prompt(record) else "notice"
        return "reply" if record["type"] == "gemini" else "notice"

    def _set(self, offset: int, facts: dict[str, Any]) -> None:
        """Merge facts; a list of messages replaces all that there were."""
        self.about |= {key: value for key, value in facts.items() if key != "messages"}
        messages = facts.get("messages")
        if isinstance(messages, list):
            named = [m for m in messages if isinstance(m, dict) and "type" in m]
            stay = {str(m.get("id")) for m in named}
            self.dropped |= self.messages.keys() - stay
            for message in named:
                self._keep(offset, message)

    def _rewind(self, target: str) -> None:
        """Take back a message and all after it; an unknown one takes everything back."""
        names = [name for name in self.messages if name not in self.dropped]
        self.dropped.update(names[names.index(target) if target in names else 0 :])

    def _add_user(self, name: str, offset: int, record: dict[str, Any], gone: bool) -> None:
        typed = _typed(record)
        whole = _text(record.get("content"))
        if not _is_prompt(record):
            self._say(name, offset, record, "user", whole, gone)
            return
        ts = read_time(record.get("timestamp"))
        images = _images(record.get("content"))
        self.transcript.prompt(typed or "[image]", offset=offset, ts=ts, uuid=name, images=images, superseded=gone)
        if whole.strip() not in ("", typed):  # with the files that the prompt named
            self._say(f"{name}:sent", offset, record, "user", whole, gone)

    def _say(self, name: str, offset: int, record: dict[str, Any], role: Any, text: str, gone: bool) -> None:
        if text.strip():
            ts = read_time(record.get("timestamp"))
            self.transcript.say(role, "notice", text, offset=offset, ts=ts, native=name, superseded=gone)

    def _add_reply(self, name: str, offset: int, record: dict[str, Any], gone: bool, before: int) -> int:
        """Add a reply with its calls; return the size of the input that it answered."""
        ts, model = read_time(record.get("timestamp")), record.get("model")
        reply = self.transcript.reply(
            name, offset=offset, ts=ts, uuid=name, model=model if isinstance(model, str) else ""
        )
        reply.superseded = gone
        reply.texts.append(_text(record.get("content")))
        reply.thoughts += [_thought(t) for t in _list(record.get("thoughts"))]
        for number, call in enumerate(_list(record.get("toolCalls"))):
            self._add_call(f"{call.get('id') or f'{name}.{number}'}", name, offset, call, gone)
        tokens = record.get("tokens")
        tokens = tokens if isinstance(tokens, dict) else {}
        given, cached = token_count(tokens, "input"), token_count(tokens, "cached")
        said = token_count(tokens, "output") + token_count(tokens, "thoughts")
        # Each answer counts everything said before as its input again: what is new is the difference.
        reply.usage = Usage(max(0, given - before), said, cached)
        return given or before

    def _add_call(self, native: str, reply: str, offset: int, call: dict[str, Any], gone: bool) -> None:
        ts = read_time(call.get("timestamp"))
        self.transcript.call(
            native, reply, str(call.get("name") or "unknown"), _given(call.get("args")), offset=offset, ts=ts
        )
        if native in self.transcript.calls:
            self.transcript.calls[native].superseded = gone
        if call.get("result") is None and call.get("status") not in ("success", "error", "cancelled"):
            return
        output = _output(call.get("result")) or _display(call.get("resultDisplay"))
        agent = call.get("agentId")
        linked = f"gemini:{agent}" if isinstance(agent, str) and agent else ""
        self.transcript.answer(native, Answer(output, call.get("status") == "error", ts, linked))

    def _kind(self) -> SessionKind:
        return "subagent" if self.about.get("kind") == "subagent" or self._parent() else "main"

    def _parent(self) -> str:
        folder = Path(self.place).parent
        return f"gemini:{folder.name[:8]}" if folder.parent.name == "chats" else ""

    def _folder(self) -> str:
        """Find out where the session ran: it says so, or its folder does, or the hash of the folder is known."""
        named = [path for path in _list_of_text(self.about.get("directories")) if path]
        folder = next((p.parent for p in Path(self.place).parents if p.name == "chats"), Path(self.place).parent)
        root = self.relatives.file(str(folder / ".project_root")).decode("utf-8", "replace").strip()
        return (named or [root])[0] or self._known(folder)

    def _known(self, folder: Path) -> str:
        listed = json_object(self.relatives.file(str(folder.parent.parent / "projects.json")))
        projects = listed.get("projects", listed)
        hashed = str(self.about.get("projectHash") or folder.name)
        for path, slug in projects.items() if isinstance(projects, dict) else ():
            if slug == folder.name or hashlib.sha256(path.encode()).hexdigest() == hashed:
                return str(path)
        return self.relatives.folder(hashed)


def _is_prompt(record: dict[str, Any]) -> bool:
    """Tell whether a human typed a user message."""
    typed = _typed(record)
    responses = any("functionResponse" in part for part in _list(record.get("content")))
    return not responses and not typed.startswith(_NOT_TYPED) and bool(typed or _images(record.get("content")))


def _typed(record: dict[str, Any]) -> str:
    """Give a prompt as it was typed, before the files it names were put in."""
    return (_text(record.get("displayContent")) or _text(record.get("content"))).strip("\ufeff \t\r\n")


def _text(content: Any) -> str:
    """Join the text of a string, a part or parts."""
    if isinstance(content, str):
        return clean(content)
    parts = content if isinstance(content, list) else [content]
    return "\n".join(filter(None, (clean(p) if isinstance(p, str) else _part(p) for p in parts)))


def _part(part: Any) -> str:
    if not isinstance(part, dict):
        return ""
    if isinstance(part.get("functionResponse"), dict):
        return _response(part["functionResponse"])
    if "inlineData" in part or "fileData" in part:
        return "[image]"
    return clean(part.get("text"))


def _images(content: Any) -> int:
    return sum("inlineData" in part or "fileData" in part for part in _list(content))


def _thought(thought: dict[str, Any]) -> str:
    return "\n".join(filter(None, (clean(thought.get("subject")), clean(thought.get("description")))))


def _output(result: Any) -> str:
    """Read what a tool returned: text, parts of functionResponse, or anything else as JSON."""
    return _text(result) if isinstance(result, str | list) else "" if result is None else _part(result) or _dump(result)


def _response(response: dict[str, Any]) -> str:
    body = response.get("response")
    if not isinstance(body, dict):
        return _dump(body) if body else ""
    said = next((body[key] for key in ("output", "error", "result") if isinstance(body.get(key), str)), None)
    return clean(said) if said is not None else _dump(body)


def _display(shown: Any) -> str:
    """Read the output as it was shown: text, or a file's difference."""
    if isinstance(shown, dict):
        return clean(shown.get("fileDiff")) or _dump(shown)
    return clean(shown)


def _dump(value: Any) -> str:
    return clean(json.dumps(value, ensure_ascii=False, default=str))


def _given(arguments: Any) -> dict[str, Any]:
    return arguments if isinstance(arguments, dict) else {"input": arguments}


def _list(value: Any) -> list[dict[str, Any]]:
    value = value if isinstance(value, list) else [value]
    return [item for item in value if isinstance(item, dict)]


def _list_of_text(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
