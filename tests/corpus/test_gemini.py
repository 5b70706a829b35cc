"""Real logs of Gemini CLI."""

import csv
import json
from pathlib import Path

import pytest

from memex.settings import Settings
from memex.setup import Memex, open_memex

pytestmark = pytest.mark.corpus


@pytest.fixture(scope="module")
def read(corpus, tmp_path_factory) -> Memex:
    logs = {"claude": False, "codex": False, "gemini_home": corpus}
    home = tmp_path_factory.mktemp("gemini") / "memex"
    memex = open_memex(Settings.model_validate({"home": home, "sources": logs, "embed": {"provider": "none"}}))
    memex.ingest.run(memex.ingest.plan())
    return memex


def messages_of(path: Path) -> list[dict]:
    text = path.read_text("utf-8")
    try:
        return json.loads(text)["messages"]
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


def test_prompts_are_those_that_humans_typed(read, shared):
    with (shared / "corpus" / "SOURCES.tsv").open() as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["file"].startswith(".gemini")]
    talks = read.lake.scan("talks", ["session_id"], "NOT superseded")["session_id"].to_pylist()
    assert len(rows) == 4
    for row in rows:
        name = Path(row["file"]).stem.rsplit("-", 1)[1]
        assert talks.count(f"gemini:{name}") == int(row["prompts"]), row["file"]


def test_every_message_and_every_call_is_stored(read, corpus):
    counted = {row["path"]: json.loads(row["records"]) for row in read.lake.scan("sources").to_pylist()}
    stored = set(read.lake.scan("messages", ["uuid"])["uuid"].to_pylist())
    calls = set()
    for path in (corpus / ".gemini" / "tmp").rglob("session-*.json"):
        messages = messages_of(path)
        kinds = {kind: sum(uses.values()) for kind, uses in counted[str(path)].items() if kind != "(session)"}
        assert sum(kinds.values()) == len(messages), path
        assert {m["id"] for m in messages if m.get("type") in ("user", "gemini")} <= stored
        calls |= {call["id"] for m in messages for call in m.get("toolCalls") or []}
    rows = read.lake.scan("tool_calls", ["id", "answered", "output"]).to_pylist()
    assert {row["id"].split("#", 1)[1] for row in rows} == calls
    assert read.lake.count("sources", "torn_bytes > 0 OR bad_lines != '[]'") == 0
