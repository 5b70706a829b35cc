"""Prompts of sessions whose logs are gone, recovered from the history of a CLI."""

import json

import pytest

from tests.conftest import ingest, rows
from tests.logs import talk

GONE = "99999999-0000-4000-8000-000000000009"


def typed(text, session=GONE, number=1, **more):
    entry = {"display": text, "timestamp": 1788249600000 + 60_000 * number, "project": "/src/app", **more}
    return json.dumps(entry | ({"sessionId": session} if session else {}), ensure_ascii=False).encode() + b"\n"


@pytest.fixture
def history(claude_dir):
    return claude_dir / "history.jsonl"


def test_prompts_of_a_deleted_session_are_recovered(memex, history):
    history.write_bytes(typed("fix the login") + typed("修复登录", number=2))
    assert ingest(memex).sessions == 1
    [session] = rows(memex, "sessions")
    assert (session["id"], session["kind"], session["cwd"]) == (f"claude:{GONE}", "history", "/src/app")
    assert session["title"] == "fix the login"
    assert [t["prompt"] for t in rows(memex, "talks")] == ["fix the login", "修复登录"]
    assert not any(t["answered"] for t in rows(memex, "talks"))
    assert memex.ingest.plan().empty


def test_pasted_text_is_put_back(memex, history):
    pasted = {"1": {"id": 1, "type": "text", "content": "Traceback: boom"}}
    history.write_bytes(typed("why? [Pasted text #1 +3 lines]", pastedContents=pasted))
    ingest(memex)
    assert [t["prompt"] for t in rows(memex, "talks")] == ["why? Traceback: boom"]


def test_session_with_a_log_is_not_doubled(memex, log, history):
    talk(log, "fix the login").write()
    history.write_bytes(typed("fix the login", log.session) + typed("another"))
    ingest(memex)
    assert sorted(t["prompt"] for t in rows(memex, "talks")) == ["another", "fix the login"]
    assert sorted(s["kind"] for s in rows(memex, "sessions")) == ["history", "main"]
    counts = {json.dumps(json.loads(row["records"])) for row in rows(memex, "sources", "path LIKE '%history.jsonl'")}
    assert counts == {json.dumps({"history": {"in the session's own log": 1, "prompt": 1}})}


def test_recovered_session_gives_way_to_its_log(memex, log, history):
    history.write_bytes(typed("fix the login", log.session))
    ingest(memex)
    talk(log, "fix the login").write()
    ingest(memex)
    [session] = rows(memex, "sessions")
    assert (session["kind"], session["talks"], session["messages"]) == ("main", 1, 3)
    assert [m["text"] for m in rows(memex, "messages", "kind = 'prompt'")] == ["fix the login"]


def test_history_without_sessions_adds_only_what_no_log_has(memex, log, history):
    talk(log, "fix the login").write()
    history.write_bytes(typed("fix the login", "") + typed("older than any log", "", 2))
    ingest(memex)
    [session] = rows(memex, "sessions", "kind = 'history'")
    assert session["id"].startswith("claude:history-")
    assert [t["prompt"] for t in rows(memex, "talks", f"session_id = '{session['id']}'")] == ["older than any log"]


def test_growing_history_adds_to_its_sessions(memex, history):
    history.write_bytes(typed("one"))
    ingest(memex)
    history.write_bytes(typed("one") + typed("two", number=2) + b'{"display": "tor')
    ingest(memex)
    assert [t["prompt"] for t in rows(memex, "talks")] == ["one", "two"]


@pytest.mark.parametrize(
    "line", [b"garbage", b"7", b"{}", b'{"display": 3}', b'{"display": "  ", "pastedContents": []}']
)
def test_odd_line_costs_no_other(memex, history, line):
    history.write_bytes(typed("one") + line + b"\n" + typed("two", number=2))
    ingest(memex)
    assert [t["prompt"] for t in rows(memex, "talks")] == ["one", "two"]


def test_prompts_of_codex_are_recovered_too(memex, tmp_path):
    history = tmp_path / "user" / ".codex" / "history.jsonl"
    history.parent.mkdir()
    history.write_bytes(json.dumps({"session_id": GONE, "ts": 1788249600, "text": "修复登录"}).encode() + b"\n")
    ingest(memex)
    [session] = rows(memex, "sessions")
    assert (session["id"], session["kind"], session["title"]) == (f"codex:{GONE}", "history", "修复登录")


def test_prompts_that_were_cut_off_stay(memex, history):
    history.write_bytes(typed("one") + typed("two", number=2) + typed("three", number=3))
    ingest(memex)
    history.write_bytes(typed("two", number=2) + typed("three", number=3) + typed("four", number=4))
    ingest(memex)
    assert [t["prompt"] for t in rows(memex, "talks")] == ["one", "two", "three", "four"]
    before = [rows(memex, table) for table in ("messages", "talks", "sessions")]
    memex.ingest.rebuild()
    assert [rows(memex, table) for table in ("messages", "talks", "sessions")] == before
