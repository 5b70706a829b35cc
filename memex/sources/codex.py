"""Codex: `sessions/YYYY/MM/DD/rollout-<time>-<uuid>.jsonl`, later compressed (`.zst`) or moved to `archived_sessions`.

A log says most things twice, as a `response_item` (what the model was sent and answered) and as an event; the
items are read, and of the events those that say more. A fork or a subagent begins with its parent's records.
`codex_records.py` takes records out of their wrappers, `codex_prompts.py` tells prompts apart, `codex_calls.py` reads
calls and their outputs.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from memex.model import MessageKind, Role, Session, SessionKind
from memex.sources.base import Adapter, Blob, Found, HistoryPrompt, Relatives
from memex.sources.codex_calls import call_in_script, call_of, has_failed, output_of, polled_by
from memex.sources.codex_prompts import Pairing, folder_of, is_interruption
from memex.sources.codex_records import Record, record_of, turns_of, usage_of
from memex.sources.content import clean, flatten, read_time
from memex.sources.lines import Census, json_lines
from memex.sources.prompts import Prompt
from memex.sources.transcript import Answer, Reply, Transcript
from memex.sources.walk import Entry
from memex.text import mark, one_line

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_RUNNING = 32
"""Processes that are remembered, to tell what a later call asks for more output."""
_KEPT = "in the archive only"
_SAME = "the same as its response_item"


class CodexAdapter(Adapter):
    """The adapter of Codex."""

    cli = "codex"
    parser_version = 1

    def places(self, root: Path) -> tuple[Path, ...]:
        """Name the history of prompts, and the folders of logs."""
        return (root / "history.jsonl", root / "sessions", root / "archived_sessions")

    def found(self, entry: Entry, place: Path) -> Found | None:
        """Tell the session of a log."""
        if place.name == "history.jsonl":
            return Found(self.cli, entry.place, f"{self.cli}:history", "history", entry.stat)
        name = entry.name.removesuffix(".zst")
        if entry.is_folder or name.endswith(".jsonl"):
            session = f"{self.cli}:{'' if entry.is_folder else _native_id(name)}"
            return Found(self.cli, entry.place, session, "log", entry.stat, entry.refused)
        return None

    def reader(self, session_id: str, _path: Path, side: Mapping[str, bytes], relatives: Relatives) -> "CodexReader":
        """Begin a session."""
        return CodexReader(Transcript(session_id), side, relatives)

    def records(self, blob: Blob, census: Census, tail: bool) -> Iterator[tuple[int, dict[str, Any]]]:
        """Read lines of JSON."""
        return json_lines(blob.pieces(census.read_to), census, tail)

    def retention(self, _root: Path) -> timedelta | None:
        """Codex compresses old logs and deletes none."""
        return None

    def history(self, record: dict[str, Any]) -> HistoryPrompt | None:
        """Read a line of `history.jsonl`."""
        session = record.get("session_id")
        return HistoryPrompt(
            session if isinstance(session, str) else "", clean(record.get("text")), read_time(record.get("ts"))
        )


def _native_id(name: str) -> str:
    """Read the id of a session from the name of its log: the UUID in it, else the whole name."""
    found = _UUID.findall(name)
    return found[-1].lower() if found else name.removesuffix(".jsonl")


@dataclass(slots=True)
class CodexReader:
    """One session under way.

    `reply` is the key of the reply that the next item adds to, if it goes on; `timed` and `placed` are the last
    names of rows by time and by place, and how often each was given; `totals` marks the token counts that were seen
    last, for they come again and again; `running` maps processes to their commands.
    """

    transcript: Transcript
    side: Mapping[str, bytes]
    relatives: Relatives
    missing: set[str] = field(default_factory=set)
    facts: dict[str, str] = field(default_factory=dict)
    pairing: Pairing = field(default_factory=Pairing)
    model: str = ""
    reply: str = ""
    last_reply: str = ""
    timed: tuple[str, int] = ("", 0)
    placed: tuple[str, int] = ("", 0)
    totals: int = 0
    copying: bool = False
    parent_turns: set[int] = field(default_factory=set)
    first_prompt: int = 0
    interrupted: bool = False
    running: dict[str, str] = field(default_factory=dict)

    def read(self, offset: int, record: dict[str, Any], census: Census) -> None:
        """Take in one record, or hold it back."""
        self.pairing.window.append(record_of(offset, record))
        self._settle(census, ended=False)

    def close(self, census: Census) -> None:
        """Decide about the user messages whose event may have been to come."""
        self._settle(census, ended=True)

    def session(self) -> Session:
        """Tell what the records say of the session."""
        facts = self.facts
        return self.transcript.session(
            cwd=facts.get("cwd", ""),
            git_branch=facts.get("branch", ""),
            title=one_line(facts.get("title") or self.transcript.first_prompt)[:200],
            kind=self._kind(),
            parent_id=facts.get("parent", ""),
            agent_type=facts.get("agent_type", ""),
            cli_version=facts.get("version", ""),
        )

    def _kind(self) -> SessionKind:
        if "agent_type" in self.facts:
            return "subagent"
        return "fork" if "parent" in self.facts else "main"

    def _settle(self, census: Census, ended: bool) -> None:
        for record in self.pairing.settled(ended):
            if self._is_copied(record):
                census.count(record.label, f"copied from {self.facts['parent']}")
                continue
            self.transcript.note_time(record.ts)
            census.count(record.label, self._became(record))

    def _is_copied(self, record: Record) -> bool:
        """Tell whether a record was copied from the parent: all are, up to the first turn that the parent has not."""
        if self.copying:
            self.copying = not record.turn or mark(record.turn) in self.parent_turns
            if not self.copying:
                self.parent_turns = set()
            elif record.name == "token_count":
                self._have_moved(record)  # the child repeats the last count of its parent as if it were its own
        return self.copying

    def _became(self, record: Record) -> str:
        match record.kind:
            case "response_item":
                return self._add_item(record)
            case "event_msg":
                return self._add_event(record)
            case "session_meta":
                return self._meet(record.payload)
            case "turn_context":
                self._note("cwd", record.payload.get("cwd"))
                self.model = clean(record.payload.get("model")) or self.model
                return "session facts"
            case "compacted":  # its replacement_history repeats what was said
                self.reply = ""
                text = clean(record.payload.get("message")) or "[context compacted]"
                return self._say(record, "system", "boundary", text)
            case "inter_agent_communication":
                return self._add_agent_message(record)
            case _:
                return _KEPT

    def _meet(self, payload: dict[str, Any]) -> str:
        """Read the facts of the session: the first are its own, later ones repeat them, or its parent's."""
        if "met" in self.facts:
            return "session facts again"
        self.facts["met"] = "yes"
        git, source = payload.get("git"), payload.get("source")
        self._note("cwd", payload.get("cwd"))
        self._note("version", payload.get("cli_version"))
        self._note("branch", git.get("branch") if isinstance(git, dict) else "")
        parent = payload.get("forked_from_id")
        agent = source.get("subagent") if isinstance(source, dict) else None
        if agent:
            spawn = agent.get("thread_spawn", agent.get("other")) if isinstance(agent, dict) else agent
            spawn = spawn if isinstance(spawn, dict) else {"agent_role": spawn}
            self.facts["agent_type"] = clean(spawn.get("agent_role")) or clean(payload.get("agent_role"))
            self._note("agent_path", spawn.get("agent_path"))
            parent = spawn.get("parent_thread_id") or parent
        return self._find_parent(parent) if isinstance(parent, str) and parent else "session facts"

    def _find_parent(self, native: str) -> str:
        self.facts["parent"] = f"codex:{native}"
        self.parent_turns = turns_of(self.relatives, self.facts["parent"])
        self.copying = bool(self.parent_turns)
        return "session facts" if self.copying else "session facts; without a log of the parent nothing is left out"

    def _note(self, name: str, value: Any) -> None:
        """Keep a fact; the first one counts."""
        if name not in self.facts and isinstance(value, str) and value:
            self.facts[name] = value

    def _add_item(self, record: Record) -> str:
        payload, name = record.payload, record.name
        match name:
            case "message" if payload.get("role") == "user":
                return self._add_user(record)
            case "message" if payload.get("role") == "assistant":
                return self._add_reply(record, "reply", flatten(payload.get("content")))
            case "message":
                return self._say(record, "system", "notice", flatten(payload.get("content")))
            case "reasoning":
                parts = map(flatten, (payload.get("summary"), payload.get("content")))
                return self._add_reply(record, "thinking", "\n\n".join(filter(None, parts)))
            case "agent_message":
                return self._add_agent_message(record)
            case _ if name.endswith("_output"):
                return self._answer(record)
            case _ if name.endswith("_call"):
                return self._call(record)
            case _:
                return _KEPT

    def _add_event(self, record: Record) -> str:
        payload = record.payload
        match record.name:
            case "user_message":
                event = self.pairing.from_event(record)
                return event if isinstance(event, str) else self._add_prompt(record, event)
            case "token_count":
                return self._add_usage(record)
            case "thread_rolled_back":
                return self._roll_back(payload.get("num_turns"))
            case "turn_aborted":
                self.interrupted = True
                return _KEPT
            case "thread_name_updated":
                self.facts["title"] = clean(payload.get("thread_name"))
                return "title"
            case "error":
                return self._say(record, "system", "notice", clean(payload.get("message")))
            case "item_completed":  # a plan stands in no item
                item = payload.get("item")
                text = clean(item.get("text")) if isinstance(item, dict) else ""
                return self._add_reply(record, "reply", text) if text else _KEPT
            case "sub_agent_activity" | "collab_agent_spawn_end":
                return self._link_agent(payload)
            case "mcp_tool_call_end" | "exec_command_end" | "patch_apply_end" | "web_search_end":
                return self._end_call(record)
            case "agent_message" | "agent_reasoning" | "agent_reasoning_raw_content" | "context_compacted":
                return _SAME
            case _:
                return _KEPT

    def _add_user(self, record: Record) -> str:
        message = self.pairing.from_message(record)
        if isinstance(message, Prompt):
            return self._add_prompt(record, message)
        if message != "notice":
            return message
        text = flatten(record.payload.get("content"))
        self.interrupted = self.interrupted or is_interruption(text)
        self._note("cwd", folder_of(text))
        return self._say(record, "user", "notice", text)

    def _add_prompt(self, record: Record, prompt: Prompt) -> str:
        self.reply = ""
        asked = mark(prompt.text)
        alone = self.transcript.prompt_number == 1 and 1 not in self.transcript.abandoned
        again = self.interrupted and alone and asked == self.first_prompt
        self.interrupted = False
        if again:
            return "left out: the first prompt again after an interruption"
        self.first_prompt = self.first_prompt or asked
        self.transcript.prompt(prompt.text or "[image]", images=prompt.images, **self._place(record))
        return "prompt"

    def _add_agent_message(self, record: Record) -> str:
        """Take in what agents tell each other; the task that this one was given first is its prompt."""
        text = flatten(record.payload.get("content"))
        mine = record.payload.get("recipient") == self.facts.get("agent_path", ())
        if mine and text and not self.transcript.prompt_number:
            return self._add_prompt(record, Prompt(text))
        self.reply = ""
        return self._say(record, "assistant", "sidechain", text)

    def _add_reply(self, record: Record, kind: MessageKind, text: str) -> str:
        reply = self._current(record)
        (reply.texts if kind == "reply" else reply.thoughts).append(text)
        return kind if text else "no text"

    def _current(self, record: Record) -> Reply:
        """Give the reply under way. One ends with its token count, and with the output of a call."""
        if self.reply not in self.transcript.replies:
            self.reply = self.last_reply = self._name(record)
        return self.transcript.reply(self.reply, offset=record.offset, ts=record.ts, model=self.model)

    def _name(self, record: Record) -> str:
        """Name a row by its time, which stays when the log is moved or written anew; else by its place."""
        time = record.ts.isoformat(timespec="microseconds") if record.ts else ""
        if time and time >= self.timed[0]:
            self.timed = name, again = time, self.timed[1] + 1 if time == self.timed[0] else 0
        else:
            place = f"{self.transcript.source_id[:8]}-{record.offset}"
            self.placed = name, again = place, self.placed[1] + 1 if place == self.placed[0] else 0
        return f"{name}.{again}" if again else name

    def _place(self, record: Record) -> dict[str, Any]:
        return {"offset": record.offset, "ts": record.ts, "native": self._name(record)}

    def _add_usage(self, record: Record) -> str:
        """Add the tokens of one answer of the model to its reply."""
        info = record.payload.get("info")
        usage = usage_of(info) if isinstance(info, dict) else None
        if usage is None:
            return "no token counts"
        if not self._have_moved(record):
            return "the same token counts again"
        self.reply = ""
        reply = self.transcript.replies.get(self.last_reply)
        if reply is None:
            return "token counts of no reply"
        reply.usage.input += usage.input
        reply.usage.output += usage.output
        reply.usage.cached += usage.cached
        return "token counts of a reply"

    def _have_moved(self, record: Record) -> bool:
        """Tell whether token counts changed: they are told without a new answer as well."""
        info = record.payload.get("info")
        if not isinstance(info, dict):
            return False
        totals = mark(repr(info.get("total_token_usage") or info.get("last_token_usage")))
        moved, self.totals = totals != self.totals, totals
        return moved

    def _call(self, record: Record) -> str:
        name, given = call_of(record.payload)
        native = record.call_id or f"{self._name(record)}:call"
        if "command" not in given and (command := self.running.get(polled_by(given))):
            given = {"command": command, **given}
        self._open_call(record, native, name, given)
        if record.name in ("web_search_call", "image_generation_call"):  # the provider runs these: no output follows
            output = "[image]" if record.payload.get("result") else ""
            self.transcript.answer(native, Answer(output, has_failed(record.payload), record.ts))
        return "tool call"

    def _open_call(self, record: Record, native: str, name: str, given: dict[str, Any]) -> None:
        reply = self._current(record).key
        self.transcript.call(native, reply, name, given, offset=record.offset, ts=record.ts)

    def _answer(self, record: Record) -> str:
        output, call = output_of(record.payload), self.transcript.calls.get(record.call_id)
        self.reply = ""
        if call is None:
            return self._say(record, "tool", "notice", output.text)
        command = call.given.get("command")
        if output.running and isinstance(command, str):
            self.running[output.running] = command
            self.running = dict(list(self.running.items())[-_RUNNING:])
        agent = call.agent_session_id
        if call.name == "spawn_agent" and not agent and (found := _UUID.search(output.text)):
            agent = f"codex:{found[0]}"
        failed = output.is_error or call.is_error
        self.transcript.answer(record.call_id, Answer(output.text, failed, record.ts, agent))
        return "tool result"

    def _end_call(self, record: Record) -> str:
        """Take from the event of a call what no item says: that it failed, or that a script made it."""
        native, failed = record.call_id, has_failed(record.payload)
        if call := self.transcript.calls.get(native):
            call.is_error = call.is_error or failed
            return _SAME
        inside = record.name == "mcp_tool_call_end" or (record.name == "web_search_end" and native.startswith("exec-"))
        if not inside or not native:
            return _SAME
        name, given, output = call_in_script(record.payload)
        self._open_call(record, native, name, given)
        joined = self.transcript.answer(native, Answer(output.text, failed, record.ts))
        return "tool call inside a script" if joined else _SAME

    def _link_agent(self, payload: dict[str, Any]) -> str:
        """Link the call that started a subagent with the subagent's session."""
        call = self.transcript.calls.get(clean(payload.get("event_id")) or clean(payload.get("call_id")))
        agent = payload.get("agent_thread_id") or payload.get("new_thread_id")
        if call is None or call.name != "spawn_agent" or not isinstance(agent, str):
            return _KEPT
        call.agent_session_id = f"codex:{agent}"
        return "link to a subagent"

    def _roll_back(self, turns: Any) -> str:
        """Take back the last prompts that still hold."""
        live = [n for n in range(1, self.transcript.prompt_number + 1) if n not in self.transcript.abandoned]
        count = min(turns, len(live)) if isinstance(turns, int) else 0
        if count > 0:
            self.transcript.abandon(live[-count:])
        self.reply = ""
        return "prompts taken back"

    def _say(self, record: Record, role: Role, kind: MessageKind, text: str) -> str:
        if not text.strip():
            return "no text"
        self.transcript.say(role, kind, text, **self._place(record))
        return kind
