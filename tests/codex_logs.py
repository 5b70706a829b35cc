"""Builds logs of Codex, line by line, as the CLI writes them."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.conftest import LONG_AGO
from tests.logs import Log

NATIVE = "0199f000-1111-7000-8000-00000000000a"


def turn_id(number: int, of: int = 1) -> str:
    """The id of a turn: the CLI takes it from a clock, so ids grow."""
    return f"0199f000-{of:04}-7000-8000-{number:012}"


class CodexLog(Log):
    """A session file under construction. Every method adds records and returns the log."""

    def __init__(self, home: Path = Path("/home/u/.codex"), native: str = NATIVE, start: datetime = LONG_AGO) -> None:
        self.native = native
        self.path = home / "sessions" / "2026" / "09" / "01" / f"rollout-{start:%Y-%m-%dT%H-%M-%S}-{native}.jsonl"
        self.session = f"codex:{native}"
        self.records: list[dict[str, Any]] = []
        self._now = start
        self._total = 0

    def meta(self, **fields: Any) -> "CodexLog":
        """The session's facts, as the first line has them."""
        facts = {
            "id": self.native, "cwd": "/src/app", "originator": "codex_cli_rs", "cli_version": "0.144.0",
            "source": "cli", "git": {"commit_hash": "1a2b3c4", "branch": "main"},
        }  # fmt: skip
        return self.add("session_meta", {**facts, **fields})

    def turn(self, identity: str = "", **fields: Any) -> "CodexLog":
        """The beginning of a turn: an event, and its context."""
        identity = identity or turn_id(len(self.records))
        self.event("task_started", turn_id=identity)
        context = {"turn_id": identity, "cwd": "/src/app", "model": "gpt-test", "effort": "medium"}
        return self.add("turn_context", {**context, **fields})

    def typed(self, text: str) -> "CodexLog":
        """A prompt, said twice: by a message and by an event."""
        return self.message("user", text, seconds=60).event("user_message", message=text, images=[])

    def message(self, role: str, *parts: Any, seconds: float = 1) -> "CodexLog":
        """A message; parts that are text become blocks of text."""
        kind = "output_text" if role == "assistant" else "input_text"
        content = [{"type": kind, "text": part} if isinstance(part, str) else part for part in parts]
        return self.item("message", role=role, content=content, seconds=seconds)

    def reply(self, text: str, tokens: bool = True) -> "CodexLog":
        """An answer of the model, said twice, and its token count."""
        self.event("agent_message", message=text).message("assistant", text)
        return self.counted() if tokens else self

    def call(self, name: str, given: Any, output: Any = "", identity: str = "") -> "CodexLog":
        """A function call with its output."""
        identity = identity or f"call_{len(self.records)}"
        self.item("function_call", name=name, arguments=json.dumps(given), call_id=identity)
        return self.item("function_call_output", call_id=identity, output=output)

    def custom(self, name: str, text: str, output: Any = "") -> "CodexLog":
        """A call whose input is text, with its output."""
        identity = f"call_{len(self.records)}"
        self.item("custom_tool_call", name=name, input=text, call_id=identity, status="completed")
        return self.item("custom_tool_call_output", call_id=identity, output=output)

    def counted(self, input_: int = 100, cached: int = 60, output: int = 7) -> "CodexLog":
        """A token count: of the last answer, and of the session so far."""
        last = {"input_tokens": input_, "cached_input_tokens": cached, "output_tokens": output}
        self._total += 1000
        return self.event(
            "token_count", info={"total_token_usage": {"total_tokens": self._total}, "last_token_usage": last}
        )

    def item(self, name: str, /, seconds: float = 1, **fields: Any) -> "CodexLog":
        """Any `response_item`."""
        return self.add("response_item", {"type": name, **fields}, seconds)

    def event(self, name: str, /, **fields: Any) -> "CodexLog":
        """Any `event_msg`."""
        return self.add("event_msg", {"type": name, **fields}, 0.01)

    def add(self, kind: str, payload: Any, seconds: float = 1) -> "CodexLog":
        """Any record in its wrapper."""
        self._now += timedelta(seconds=seconds)
        stamp = self._now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return self.bare(timestamp=stamp, type=kind, payload=payload)

    def bare(self, **record: Any) -> "CodexLog":
        """Any record as it is."""
        self.records.append(record)
        return self

    def copy_of(self, other: "CodexLog", records: int) -> "CodexLog":
        """The first records of another session, stamped anew, as a fork begins with them."""
        for record in other.records[:records]:
            self.add(record["type"], record["payload"], 0.001)
        return self
