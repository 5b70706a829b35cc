"""What a session is told when it starts, and before a file is changed."""

import json
from pathlib import Path

import pytest

from memex.llm.tokens import count_tokens
from tests.conftest import LONG_AGO
from tests.inject.conftest import APP, NOW, SITE, fill, prompt, said
from tests.logs import ClaudeLog


def start(session: str = "new", cwd: str = APP, source: str = "startup") -> dict[str, object]:
    """The start of a session of Claude Code."""
    event = {key: value for key, value in prompt("", session, cwd).items() if key != "prompt"}
    return {**event, "hook_event_name": "SessionStart", "source": source}


def edit(path: str, session: str = "new", **more: object) -> dict[str, object]:
    """Claude Code is about to edit a file."""
    event = {key: value for key, value in prompt("", session).items() if key != "prompt"}
    return {**event, "hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": {"file_path": path}, **more}


class TestFull:
    """SessionStart."""

    @pytest.fixture
    def memex(self, knowing):
        memex = knowing(max_results=1)
        memex.maintain.remember("Always run the linter before a commit", "rule", f"dir:{APP}")
        memex.maintain.remember("I prefer short functions", "preference", "")
        memex.maintain.remember("The upload of covers is not yet retried", "thread", f"dir:{APP}")
        memex.maintain.remember("Never touch the thumbnails by hand", "rule", f"dir:{SITE}")
        return memex

    def test_what_matters_in_the_project_is_told_in_order(self, memex):
        answer = memex.inject.answer("full", start())
        assert answer["hookSpecificOutput"]["hookEventName"] == "SessionStart"
        text = said(answer)
        places = [
            text.index(part) for part in ("run the linter", "short functions", "covers", "a session", "the project")
        ]
        assert places == sorted(places)
        assert "thumbnails" not in text and "confidence" not in text
        assert "since 2026-09-01" in text

    def test_it_is_told_once_and_another_project_hears_its_own(self, memex):
        assert memex.inject.answer("full", start())
        assert memex.inject.answer("full", start(source="resume")) == {}
        assert "thumbnails by hand" in said(memex.inject.answer("full", start("other", SITE)))
        assert "short functions" in said(memex.inject.answer("full", start("third", "/src/unknown")))

    def test_what_is_always_told_is_no_recall(self, memex, home):
        memex.inject.answer("full", start())
        (line,) = [
            json.loads(text) for path in home.glob("journal/recalls-*") for text in path.read_text().splitlines()
        ]
        assert line["how"] == "always" and len(line["memories"]) >= 3

    @pytest.mark.parametrize("most", [0, 100, 150, 300])
    def test_never_more_than_max_tokens(self, knowing, most):
        text = said(knowing(max_tokens=most).inject.answer("full", start()))
        assert count_tokens(text) <= most


class TestFile:
    """PreToolUse of a tool that edits."""

    @pytest.fixture
    def memex(self, knowing, claude_dir: Path):
        name = "00000099-0000-4000-8000-000000000001.jsonl"
        log = ClaudeLog(claude_dir / "projects" / "p" / name, LONG_AGO, APP).prompt("Make the exporter stream")
        change = {"old_string": "rows = []", "new_string": "rows = iter()"}
        log.call("Edit", {"file_path": f"{APP}/export/writer.py", **change})
        output = "E  RuntimeError: rows\n1 failed in 0.1s"
        log.call("Bash", {"command": "pytest tests/test_writer.py"}, output, error=True)
        log.reply("The root cause was a second pass over rows, which iter() cannot give.").write()
        memex = knowing()
        fill(memex)
        return memex

    def test_what_is_known_of_the_file_is_told(self, memex):
        text = said(memex.inject.answer("file", edit(f"{APP}/export/writer.py")))
        assert "fetch_many" in text  # decided
        assert "second pass over rows" in text  # learnt
        assert "pytest tests/test_writer.py` failed: " in text and "RuntimeError" in text
        assert "`rows = []`" in text  # changed
        assert "SESSION_TTL" not in text

    def test_it_is_told_once_a_file(self, memex):
        assert memex.inject.answer("file", edit(f"{APP}/export/writer.py"))
        assert memex.inject.answer("file", edit(f"{APP}/export/writer.py")) == {}
        assert "SESSION_TTL" in said(memex.inject.answer("file", edit("auth/session_store.py")))
        assert memex.inject.answer("file", edit(f"{APP}/export/writer.py", "another"))

    def test_a_session_is_not_told_of_its_own_changes(self, memex):
        own = "00000099-0000-4000-8000-000000000001"
        text = said(memex.inject.answer("file", edit(f"{APP}/export/writer.py", own)))
        assert "fetch_many" in text and "RuntimeError" not in text and "rows = []" not in text

    @pytest.mark.parametrize("path", ["export/reader.py", "writer.pyc", "", "/", "x" * 5000, "a'; DROP TABLE x.py"])
    def test_of_other_files_nothing_is_told(self, memex, path):
        assert memex.inject.answer("file", edit(path)) == {}

    def test_other_clis_say_the_file_in_their_own_way(self, memex):
        patch = f"*** Begin Patch\n*** Update File: {APP}/export/writer.py\n@@\n-x\n+y\n*** End Patch"
        codex = edit("", "c", tool_name="apply_patch", tool_input={"command": patch}, turn_id="1", transcript_path=None)
        assert "fetch_many" in said(memex.inject.answer("file", codex))
        gemini = edit(f"{APP}/export/writer.py", "g", hook_event_name="AfterTool", tool_name="replace")
        assert memex.inject.answer("file", gemini)["hookSpecificOutput"]["hookEventName"] == "AfterTool"

    def test_max_results(self, memex):
        memex.inject.settings = memex.inject.settings.model_copy(update={"max_results": 2})
        assert said(memex.inject.answer("file", edit(f"{APP}/export/writer.py"))).count("\n- ") == 2


@pytest.mark.parametrize("mode", ["off", "stop", "end", "", "loud"])
def test_other_modes_are_silent(knowing, mode):
    memex = knowing()
    assert memex.inject.answer(mode, prompt("session_store.py SESSION_TTL load_config")) == {}


def test_a_mode_answers_its_own_events_alone(knowing):
    memex = knowing(similarity_threshold=0.0)
    asked = "session_store.py SESSION_TTL load_config"
    assert memex.inject.answer("full", prompt(asked)) == memex.inject.answer("file", prompt(asked)) == {}
    assert memex.inject.answer("smart", start()) == {}
    assert memex.inject.clock() == NOW
