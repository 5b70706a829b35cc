"""Records in are records out: every record of a real log is stored, or counted as what it is."""

import json
from collections import Counter
from pathlib import Path

import pytest

from memex.search.query import Query
from memex.search.refresh import refresh_raw
from memex.settings import Settings
from memex.setup import Memex, open_memex

pytestmark = pytest.mark.corpus

STORED = {
    "prompt", "prompt instead of earlier ones", "prompt after going back far: both ways are kept",
    "prompt that stands nowhere else", "reply", "tool result", "notice", "boundary", "system", "sidechain",
}  # fmt: skip
ELSEWHERE = {
    "title", "prompt queue", "no text", "in the archive only", "in the subagent's own log",
    "left out: the same record again",
}  # fmt: skip


def wired(home: Path, logs: Path) -> Memex:
    return open_memex(
        Settings.model_validate({"home": home, "sources": {"claude_config_dir": logs}, "embed": {"provider": "none"}})
    )


def read(memex: Memex) -> Memex:
    memex.ingest.run(memex.ingest.plan())
    return memex


def records_of(path: Path) -> list[dict]:
    """Read a log in the plainest way there is."""
    decoder, records = json.JSONDecoder(), []
    for line in path.read_bytes().decode("utf-8", "replace").split("\n"):
        text = line.strip("\ufeff\x00 \t\r")
        while text:
            try:
                value, end = decoder.raw_decode(text)
            except ValueError:
                break
            records += [value] if isinstance(value, dict) else []
            text = text[end:].strip("\x00 \t\r,")
    return records


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory) -> Memex:
    return read(wired(tmp_path_factory.mktemp("conservation") / "memex", corpus / ".claude"))


def test_every_record_is_counted_under_its_type(whole, corpus):
    counted = {row["path"]: json.loads(row["records"]) for row in whole.lake.scan("sources").to_pylist()}
    logs = sorted((corpus / ".claude" / "projects").rglob("*.jsonl"))
    assert len(logs) == 69
    for path in logs:
        wanted = Counter(str(record.get("type") or "(no type)") for record in records_of(path))
        assert {kind: sum(uses.values()) for kind, uses in counted[str(path)].items()} == wanted, path


def test_every_use_is_a_known_one(whole):
    uses = {
        became
        for row in whole.lake.scan("sources", ["records"]).to_pylist()
        for counts in json.loads(row["records"]).values()
        for became in counts
    }
    assert uses <= STORED | ELSEWHERE


def test_what_is_counted_as_stored_is_stored(whole):
    """Prompts, notices and the like are one message a record; replies and results are checked by their ids."""
    counted: Counter[str] = Counter()
    for row in whole.lake.scan("sources", ["records"]).to_pylist():
        for counts in json.loads(row["records"]).values():
            counted.update(counts)
    kinds = Counter(whole.lake.scan("messages", ["kind"])["kind"].to_pylist())
    assert kinds["prompt"] == sum(
        count for became, count in counted.items() if became.startswith("prompt") and "queue" not in became
    )
    for kind in ("boundary", "system"):
        assert kinds[kind] == counted[kind]


def test_every_reply_and_every_call_is_stored_once(whole, corpus):
    """Counted by id, without the parser: nothing is lost when a reply is merged, nothing is doubled."""
    calls, replies, results = set(), set(), set()
    for path in (corpus / ".claude" / "projects").rglob("*.jsonl"):
        session = f"claude:{path.stem}"
        for record in records_of(path):
            message = record.get("message")
            content = message.get("content") if isinstance(message, dict) else None
            blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
            if (
                record.get("type") == "assistant"
                and not record.get("isApiErrorMessage")
                and message.get("model") != "<synthetic>"
            ):
                replies.add(f"{session}#{message['id']}")
                calls |= {f"{session}#{b['id']}" for b in blocks if b["type"].endswith("tool_use")}
            if record.get("type") == "user":
                results |= {f"{session}#{b['tool_use_id']}" for b in blocks if b["type"] == "tool_result"}
    stored = whole.lake.scan("tool_calls", ["id", "answered"]).to_pylist()
    assert sorted(row["id"] for row in stored) == sorted(calls)
    assert {row["id"] for row in stored if row["answered"]} == calls & results
    rows = whole.lake.scan("messages", ["id"], "role = 'assistant' AND kind != 'thinking' AND kind != 'notice'")
    assert {i for i in rows["id"].to_pylist() if i in replies} == replies


@pytest.mark.parametrize(
    "growth", ["ClusterCockpit__cc-backend", "FSM1__cipher-box", "JanDeDobbeleer__oh-my-posh", "entireio__git-sync"]
)
def test_what_earlier_steps_had_is_still_found(growth, shared, tmp_path):
    """A rewrite drops records; their text stays stored, findable, and marked."""
    for session in sorted((shared / "corpus" / "growth" / "claude" / growth).iterdir()):
        memex = wired(tmp_path / session.name / "memex", tmp_path / session.name / "claude")
        log = tmp_path / session.name / "claude" / "projects" / "-p" / f"{session.name}.jsonl"
        log.parent.mkdir(parents=True)
        seen: dict[str, str] = {}
        for step in sorted(session.glob("*.jsonl")):
            log.write_bytes(step.read_bytes())
            read(memex)
            rows = memex.lake.scan("messages", ["id", "text"], "NOT superseded").to_pylist()
            seen |= {row["id"]: row["text"] for row in rows if row["text"].strip()}
        refresh_raw(memex.lake, memex.raw_index)
        stored = {row["id"]: row for row in memex.lake.scan("messages", ["id", "text", "superseded"]).to_pylist()}
        texts = [row["text"] for row in stored.values()]
        live = {row["id"] for row in stored.values() if not row["superseded"]}
        for key, text in seen.items():
            assert any(text in kept for kept in texts), key
        for key in [key for key in seen if key not in live][:20]:
            words = " ".join(seen[key].split()[:12])
            assert any(seen[key] in hit["content"] for hit in memex.raw_index.search(Query(words), 5000)), key
