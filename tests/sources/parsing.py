"""Short ways to write a log of Claude Code and to read what was parsed."""

import json
from pathlib import Path

from memex.sources.base import Blob
from memex.sources.claude import ClaudeAdapter
from tests.conftest import LONG_AGO
from tests.logs import ClaudeLog

FOLDER = Path("/home/u/.claude/projects/-src-app")
SESSION = "11111111-0000-4000-8000-000000000001"
AGENT = FOLDER / SESSION / "subagents" / "agent-7be41c02.jsonl"


def new_log(path=FOLDER / f"{SESSION}.jsonl"):
    return ClaudeLog(path, LONG_AGO)


def parse(log, *side, path=FOLDER / f"{SESSION}.jsonl"):
    """Parse a log (or its bytes) with side files given as (name, bytes)."""
    data, path = (log.lines(), log.path) if isinstance(log, ClaudeLog) else (log, path)
    results = path.with_suffix("") / "tool-results"
    blobs = [Blob(f"side{n}", results / name, "side", given) for n, (name, given) in enumerate(side)]
    return ClaudeAdapter().parse(f"claude:{path.stem}", [*blobs, Blob("log0", path, "log", data)], project_of)


def project_of(cwd):
    return f"dir:{cwd}", cwd.rsplit("/", 1)[-1]


def lines(*records):
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def user(text, **fields):
    return {"type": "user", "message": {"role": "user", "content": text}, **fields}


def census(parsed):
    return parsed.census["log0"]


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
