"""Short ways to write a log and to read what was parsed, without archive or lake."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from memex.model import Message, Session, Talk, ToolCall
from memex.sources.lines import Census
from memex.sources.parse import SessionParse
from memex.sources.registry import ADAPTERS
from memex.sources.talks import View, complete, cut_talks
from memex.store.schemas import to_arrow
from tests.conftest import LONG_AGO
from tests.logs import ClaudeLog

FOLDER = Path("/home/u/.claude/projects/-src-app")
SESSION = "11111111-0000-4000-8000-000000000001"
AGENT = FOLDER / SESSION / "subagents" / "agent-7be41c02.jsonl"


@dataclass(frozen=True)
class MemoryBlob:
    """A log in memory, handed out in pieces."""

    source_id: str
    path: Path
    data: bytes
    size: int = 8 * 1024 * 1024

    def pieces(self, start=0):
        for at in range(start, len(self.data), self.size):
            yield self.data[at : at + self.size]


class Family:
    """Other sessions that a reader may ask about: id → (root, bytes of the log)."""

    def __init__(self, **others: tuple[str, bytes]) -> None:
        self.files: dict[str, bytes] = {}
        self.others = {name.replace("_", ":", 1).replace("_", "-"): other for name, other in others.items()}

    def original(self, session_id, root):
        return next((name for name, (known, _data) in self.others.items() if known == root), "")

    def file(self, place):
        return self.files.get(place, b"")

    def folder(self, sha256):
        return ""

    def logs(self, session_id):
        if session_id not in self.others:
            return []
        return [MemoryBlob("other", Path(f"/{session_id}.jsonl"), self.others[session_id][1])]


@dataclass(frozen=True)
class Parsed:
    """A session as its files tell it, as the lake would show it."""

    session: Session
    talks: tuple[Talk, ...]
    messages: tuple[Message, ...]
    calls: tuple[ToolCall, ...]
    census: dict[str, Census]


def new_log(path=FOLDER / f"{SESSION}.jsonl"):
    return ClaudeLog(path, LONG_AGO)


def reading(data, path, *side, cli="claude", family=None, session_id=None, more=()):
    """Prepare to read a log."""
    blobs = [MemoryBlob(f"log{n}", path, data) for n, data in enumerate((data, *more))]
    name = session_id or f"{cli}:{path.stem}"
    return SessionParse(ADAPTERS[cli], name, blobs, 1, len(data), dict(side), {}, family or Family())


def parse_in_pieces(data, cuts, path=FOLDER / f"{SESSION}.jsonl", cli="claude", family=None):
    """Parse a log that grew: each read goes on from where the one before ended."""
    before, saved = None, None
    for end in [*sorted(cuts), len(data)]:
        part = reading(data[:end], path, cli=cli, family=family)
        part.checkpoint = saved
        before = parsed(part, before)
        saved = part.saved
    return before


def parse(log, *side, path=FOLDER / f"{SESSION}.jsonl", cli="claude", family=None, session_id=None, more=()):
    """Parse a log (or its bytes) with side files given as (name, bytes)."""
    data, path = (log, path) if isinstance(log, bytes) else (log.lines(), log.path)
    return parsed(reading(data, path, *side, cli=cli, family=family, session_id=session_id, more=more))


def parsed(read: SessionParse, before: Parsed | None = None) -> Parsed:
    """Carry a read out; `before` is what an earlier part of the log gave."""
    messages = {m.id: m for m in before.messages} if before else {}
    calls = {c.id: c for c in before.calls} if before else {}
    for rows in read.rows():
        messages |= {m.id: m for m in rows.messages}
        calls |= {c.id: c for c in rows.calls}
    for gone in read.outcome.taken_back:
        messages.pop(gone, None)
        calls.pop(gone, None)
    for rows in (messages, calls):  # as a commit does for what was taken back after it was stored
        rows |= {k: replace(r, superseded=True) for k, r in rows.items() if r.prompt_number in read.outcome.abandoned}
    view = view_of(messages.values(), calls.values())
    talks = cut_talks(view)
    session = complete([read.outcome.session], view, talks, {}, project_of)[0]
    ordered = sorted(messages.values(), key=lambda m: (m.seq, m.kind == "reply"))
    live = tuple(talk for talk in talks if not talk.superseded)
    return Parsed(session, live, tuple(ordered), tuple(sorted(calls.values(), key=lambda c: c.seq)), read.censuses)


def view_of(messages, calls):
    messages = pl.from_arrow(to_arrow("messages", list(messages)))
    return View(
        messages, pl.from_arrow(to_arrow("tool_calls", list(calls))), messages.filter(pl.col("kind") == "prompt")
    )


def project_of(cwd):
    return f"dir:{cwd}", cwd.rsplit("/", 1)[-1]


def lines(*records):
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def user(text, **fields):
    return {"type": "user", "message": {"role": "user", "content": text}, **fields}


def census(parsed):
    return parsed.census["log0"]


def counted(parsed):
    """Count records by type."""
    return {kind: sum(uses.values()) for kind, uses in census(parsed).records.items()}


def prompts(parsed):
    return [talk.prompt for talk in parsed.talks]


def texts(parsed, *kinds):
    return [m.text for m in parsed.messages if m.kind in (kinds or ("reply",))]


def words(text):
    return {"type": "text", "text": text}


def tool(identity, name="Read", **given):
    return {"type": "tool_use", "id": identity, "name": name, "input": given}


def answer(log, identity, content, **fields):
    block = {"type": "tool_result", "tool_use_id": identity, "content": content}
    return log.add("user", message={"role": "user", "content": [{**block, **fields.pop("block", {})}]}, **fields)


def queue(log, operation, text=...):
    return log.add("queue-operation", uuid=..., operation=operation, content=text)
