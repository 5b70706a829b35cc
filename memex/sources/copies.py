"""What a session wrote that also stands elsewhere: in forks, in its parent's log, in the history of prompts.

A fork begins with the records of its original. Claude Code gives a copy the id and the time of the record; Codex
gives it a new time, and records have no ids, so there it is the content that tells, as long as one copy follows
another. A parent's log may repeat what its subagent said; a history tells the session of each prompt.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from memex.sources.base import HistoryReader
from memex.text import digest, mark, one_line

_ENVELOPE = frozenset(("timestamp", "sessionId", "sessionKind", "ordinal"))
"""Keys whose values a copy has of its own."""


def name_mark(session_id: str) -> str:
    """Hash the name of a session: it may say what it was about."""
    return digest("session", session_id)


def prompt_mark(text: str) -> int:
    """Mark a prompt by what was typed."""
    return mark(f"prompt {one_line(text)}")


def record_mark(record: dict[str, Any]) -> int:
    """Mark a record so that a copy has the same mark: by its id and time, else by its content."""
    if isinstance(record.get("uuid"), str):
        return mark(f"{record['uuid']} {record.get('timestamp')}")
    body = {key: value for key, value in record.items() if key not in _ENVELOPE}
    return mark(orjson.dumps(body, option=orjson.OPT_SORT_KEYS).decode())


def records_on(line: bytes) -> list[dict[str, Any]]:
    """Read the records of a line; one that cannot be read has none."""
    if not line.strip():
        return []
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return []
    return [value] if isinstance(value, dict) else []


def history_name(cli: str, session: str, cwd: str) -> str:
    """Name the session of a prompt in a history; older ones tell only the folder."""
    return f"{cli}:{session or f'history-{digest(cwd)[:12]}'}"


@dataclass
class Copies:
    """Goes through the lines of one file in order, and tells which of them are a forgotten session's.

    names: hashed names of the forgotten sessions; marks: of their records and prompts. `history` is given for a
    history of prompts. `copying` tells whether the line before was a copy; None at the start of a file.
    """

    cli: str
    names: Collection[str]
    marks: Collection[int]
    history: HistoryReader | None = None
    copying: bool | None = None

    def holds(self, line: bytes) -> bool:
        """Tell it of the next line."""
        records = records_on(line)
        return bool(records) and (self._typed(records[0]) if self.history else self._copied(records[0]))

    def _typed(self, record: dict[str, Any]) -> bool:
        assert self.history is not None
        prompt = self.history(record)
        if prompt is None:
            return False
        named = name_mark(history_name(self.cli, prompt.session, prompt.cwd)) in self.names
        return named or (not prompt.session and prompt_mark(prompt.text) in self.marks)

    def _copied(self, record: dict[str, Any]) -> bool:
        if any(name_mark(name) in self.names for name in _said_by(self.cli, record)):
            return True
        known = record_mark(record) in self.marks
        if isinstance(record.get("uuid"), str):
            self.copying = known
        elif known and self.copying is False:  # the session's own, though it says the same
            return False
        elif known or self.copying:
            self.copying = known
        return known


def _said_by(cli: str, record: dict[str, Any]) -> Iterator[str]:
    """Name the subagent whose words a record of its parent repeats."""
    data = record.get("data")
    if record.get("type") == "progress" and isinstance(data, dict) and data.get("agentId"):
        yield f"{cli}:agent-{data['agentId']}"
