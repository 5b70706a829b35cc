"""Forgetting in the logs of other CLIs: copies without ids, packed logs, documents, lists of projects."""

import hashlib
import json

import pytest
import zstandard

from memex.forget.target import Target
from memex.sources.verify import verify
from tests.codex_logs import NATIVE, CodexLog, turn_id
from tests.forget.home import CHINESE, NEEDLES, WORD, holding, refresh, story

PARENT = "0199f000-1111-7000-8000-00000000000f"
BOTH = Target(matching=f"{WORD}|{CHINESE}")


@pytest.fixture
def codex(tmp_path):
    return tmp_path / "user" / ".codex"


@pytest.fixture
def gemini(tmp_path):
    return tmp_path / "user" / ".gemini"


def parent_log(codex):
    parent = CodexLog(codex, PARENT).meta()
    for number, prompt in enumerate((f"the parent says {WORD}", "go on", CHINESE), 1):
        parent.turn(turn_id(number)).typed(prompt).call("exec_command", {"cmd": "ls"}, f"out of {WORD}")
        parent.reply(f"It is {CHINESE}")
    return parent


def prompts(memex):
    return sorted(row["text"] for row in memex.lake.scan("messages").to_pylist() if row["kind"] == "prompt")


@pytest.mark.parametrize("late", [False, True], ids=["known fork", "fork that turns up later"])
def test_copies_in_a_fork_go_and_what_it_says_itself_stays(memex, codex, late):
    parent = parent_log(codex)
    parent.write()
    child = CodexLog(codex).meta(forked_from_id=PARENT).copy_of(parent, len(parent.records))
    child.event("token_count", info=parent.records[-1]["payload"]["info"])
    child.turn(turn_id(9)).typed("go on").reply("The child goes on")
    if not late:
        child.write()
    refresh(memex)
    before = story(memex, frozenset((f"codex:{PARENT}",)))
    memex.forget.run(Target(session=PARENT))
    child.write()
    refresh(memex)
    assert holding(memex.home, *NEEDLES) == []
    assert prompts(memex) == ["go on"]
    if not late:
        assert story(memex)["messages"] == before["messages"]
    memex.ingest.rebuild()
    assert prompts(memex) == ["go on"]


def test_history_of_codex(memex, codex):
    codex.mkdir(parents=True)
    lines = [{"session_id": PARENT, "ts": 1788249600, "text": f"typed {WORD}"}]
    lines += [{"session_id": NATIVE, "ts": 1788249700, "text": "typed elsewhere"}]
    (codex / "history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    refresh(memex)
    memex.forget.run(Target(session=PARENT))
    assert prompts(memex) == ["typed elsewhere"]
    assert holding(memex.home, WORD) == []


@pytest.mark.parametrize("order", ["read, then forgotten", "forgotten, then read"])
def test_packed_log(memex, codex, order):
    parent = parent_log(codex)
    path = parent.path.with_name(parent.path.name + ".zst")
    path.parent.mkdir(parents=True)
    packed = zstandard.ZstdCompressor(19).compress(parent.lines())
    if order.startswith("forgotten"):
        CodexLog(codex).meta().turn(turn_id(1)).typed(f"{WORD} {CHINESE}").write()
        refresh(memex)
        memex.forget.run(BOTH)
    path.write_bytes(packed)
    refresh(memex)
    if order.startswith("read"):
        memex.forget.run(BOTH)
    refresh(memex)
    assert holding(memex.home, *NEEDLES) == []
    assert memex.lake.count("messages", f"session_id = 'codex:{PARENT}' AND kind = 'prompt'") == 3
    assert memex.ingest.plan().empty
    assert verify(memex.archive, disk=True).differs == verify(memex.archive).damaged == ()


def chat(folder, name, text, cwd=""):
    """A conversation as older versions wrote it: one document."""
    path = folder / "chats" / f"session-2026-09-01T08-00-{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    messages = [
        {"id": f"{name}-1", "timestamp": "2026-09-01T08:01:00Z", "type": "user", "content": text},
        {"id": f"{name}-2", "timestamp": "2026-09-01T08:02:00Z", "type": "gemini", "content": f"About {text}"},
    ]
    about = {
        "sessionId": f"{name}-0000-4000-8000-000000000001",
        "projectHash": hashlib.sha256(cwd.encode()).hexdigest(),
    }
    path.write_text(json.dumps({**about, "messages": messages}, indent=2, ensure_ascii=False))


def test_documents_are_cleaned_as_a_whole(memex, gemini):
    chat(gemini / "tmp" / "app", "0a1b2c3d", f"please {WORD} 和{CHINESE}")
    refresh(memex)
    memex.forget.run(BOTH)
    refresh(memex)
    assert holding(memex.home, *NEEDLES) == []
    assert prompts(memex) == ["please [forgotten...] 和[forgotten....]"]


def test_project_goes_from_the_lists_of_projects(memex, gemini):
    projects = {f"/src/{WORD}": WORD, "/src/app": "app"}
    for cwd, slug in projects.items():
        chat(gemini / "tmp" / slug, f"{len(cwd):08}", f"in {slug}", cwd)
        (gemini / "tmp" / slug / ".project_root").write_text(cwd)
    (gemini / "projects.json").write_text(json.dumps({"projects": projects}))
    refresh(memex)
    assert sorted(row["cwd"] for row in story(memex)["sessions"]) == sorted(projects)
    memex.forget.run(Target(project=WORD))
    refresh(memex)
    memex.ingest.rebuild()
    assert holding(memex.home, WORD) == []
    assert [row["cwd"] for row in story(memex)["sessions"]] == ["/src/app"]


def test_folder_known_from_another_cli_goes_with_its_name(memex, gemini, codex):
    CodexLog(codex).meta(cwd=f"/src/{WORD}").turn(turn_id(1), cwd=f"/src/{WORD}").typed("hello").reply("hi").write()
    refresh(memex)
    chat(gemini / "tmp" / hashlib.sha256(f"/src/{WORD}".encode()).hexdigest(), "0a1b2c3d", "hello", f"/src/{WORD}")
    refresh(memex)
    assert [row["cwd"] for row in story(memex)["sessions"]] == [f"/src/{WORD}"] * 2
    memex.forget.run(Target(matching=WORD))
    assert holding(memex.home, WORD) == []
    memex.ingest.rebuild()
    assert holding(memex.home, WORD) == []
