"""Builds logs of Claude Code, line by line, as the CLI writes them."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any


class Log:
    """A file of JSON lines under construction."""

    path: Path
    records: list[dict[str, Any]]

    def lines(self) -> bytes:
        """The file's bytes."""
        return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in self.records)

    def write(self) -> Path:
        """Write the file, and return its path."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(self.lines())
        return self.path


class ClaudeLog(Log):
    """A session file under construction. Every method adds records and returns the log."""

    def __init__(self, path: Path, start: datetime, cwd: str = "/src/app") -> None:
        self.path = path
        self.session = path.stem
        self.records: list[dict[str, Any]] = []
        self._now = start
        self._cwd = cwd
        self._last: str | None = None

    def prompt(self, text: Any, **fields: Any) -> "ClaudeLog":
        """A `user` record with this content, after a minute."""
        return self.add("user", message={"role": "user", "content": text}, seconds=60, **fields)

    def reply(
        self, *blocks: Any, message: str | None = None, stop: str | None = "end_turn", **fields: Any
    ) -> "ClaudeLog":
        """An assistant message, one record a block, as the CLI splits it. Strings are text blocks."""
        message = message or f"msg_{len(self.records)}"
        for number, block in enumerate(blocks):
            block = {"type": "text", "text": block} if isinstance(block, str) else block
            body = {
                "id": message, "role": "assistant", "model": "claude-test", "content": [block],
                "stop_reason": stop if number == len(blocks) - 1 else None,
                "usage": {"input_tokens": 10, "output_tokens": 20 + number, "cache_read_input_tokens": 5},
            }  # fmt: skip
            self.add("assistant", message=body, requestId=f"req_{message}", **fields)
        return self

    def call(
        self, name: str, given: dict[str, Any], output: Any = "", error: bool = False, **fields: Any
    ) -> "ClaudeLog":
        """A tool call, and its result in the next `user` record."""
        identity = f"toolu_{len(self.records)}"
        self.reply({"type": "tool_use", "id": identity, "name": name, "input": given}, stop="tool_use")
        result = {"type": "tool_result", "tool_use_id": identity, "content": output, "is_error": error}
        fields.setdefault("toolUseResult", {"stdout": output if isinstance(output, str) else ""})
        return self.add("user", message={"role": "user", "content": [result]}, **fields)

    def add(self, kind: str, seconds: float = 1, **fields: Any) -> "ClaudeLog":
        """Any record, with the envelope that the CLI gives it."""
        self._now += timedelta(seconds=seconds)
        uuid = f"{self.session[:8]}-{len(self.records):04}"
        record = {
            "parentUuid": self._last, "isSidechain": False, "userType": "external", "cwd": self._cwd,
            "sessionId": self.session, "version": "2.1.80", "gitBranch": "main", "type": kind, "uuid": uuid,
            "timestamp": self._now.isoformat(timespec="milliseconds").replace("+00:00", "Z"), **fields,
        }  # fmt: skip
        self._last = uuid
        self.records.append({key: value for key, value in record.items() if value is not ...})
        return self


def talk(log: ClaudeLog, request: str, answer: str = "Done, it works now.") -> ClaudeLog:
    """A whole talk: a prompt, an edit, a reply."""
    log.prompt(request)
    log.call(
        "Edit",
        {"file_path": "/src/app/a.py", "old_string": "x = 1", "new_string": f"x = {len(log.records)}"},
        "updated",
    )
    return log.reply(answer)
