"""The records of a Codex log, whichever year wrote them: what kind each is, when it was written, what it holds."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memex.sources.base import Relatives
from memex.sources.content import clean, read_time
from memex.sources.lines import Census, json_lines
from memex.sources.prompts import Prompt
from memex.sources.transcript import Usage, token_count
from memex.text import mark

_KINDS = ("session_meta", "turn_context", "response_item", "event_msg", "compacted", "inter_agent_communication")
_NO_TYPE = "(no type)"


@dataclass(slots=True)
class Record:
    """One record. `name` is the type of its payload; `twin` the prompt that its event, or its message, holds."""

    offset: int
    kind: str
    name: str
    payload: dict[str, Any]
    ts: datetime | None
    twin: Prompt | None = None

    @property
    def label(self) -> str:
        """What it is counted as."""
        return f"{self.kind}/{self.name}" if self.kind in ("response_item", "event_msg") else self.kind

    @property
    def call_id(self) -> str:
        """The call that it is, answers or tells of; "" when it has none."""
        return clean(self.payload.get("call_id")) or clean(self.payload.get("id"))

    @property
    def turn(self) -> str:
        """The id of the turn that it begins, or ""."""
        begins = self.kind == "turn_context" or self.label in ("event_msg/task_started", "event_msg/turn_started")
        return clean(self.payload.get("turn_id")) if begins else ""


def record_of(offset: int, record: dict[str, Any]) -> Record:
    """Take a record out of its wrapper.

    Until the autumn of 2025 items stood there without a wrapper, and the first line was the session's facts.
    """
    kind, payload, ts = record.get("type"), record.get("payload"), read_time(record.get("timestamp"))
    if isinstance(kind, str) and (isinstance(payload, dict) or kind in _KINDS):
        payload = payload if isinstance(payload, dict) else {}
        name = payload.get("type")
        return Record(offset, kind, name if isinstance(name, str) else _NO_TYPE, payload, ts)
    if isinstance(kind, str):
        return Record(offset, "response_item", kind, record, ts)
    if "id" in record and "timestamp" in record:
        return Record(offset, "session_meta", "", record, ts)
    return Record(offset, _NO_TYPE, "", {}, ts)


def turns_of(relatives: Relatives, session_id: str) -> set[int]:
    """Mark the turns in the logs of a session."""
    records = (r for blob in relatives.logs(session_id) for r in json_lines(blob.pieces(), Census()))
    turns = (record_of(offset, record).turn for offset, record in records)
    return {mark(turn) for turn in turns if turn}


def usage_of(info: dict[str, Any]) -> Usage | None:
    """Read the tokens of the last answer of the model.

    Codex counts cached tokens as input as well; input is what was billed as such, so they are taken off.
    """
    last = info.get("last_token_usage")
    if not isinstance(last, dict):
        return None
    names = ("input_tokens", "output_tokens", "cached_input_tokens")
    input_, output, cached = (token_count(last, name) for name in names)
    return Usage(max(0, input_ - cached), output, cached)
