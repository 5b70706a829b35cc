"""The entries around one place of a session."""

import json
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from memex.errors import NotFound
from memex.store.timeline import show_around
from memex.store.views import raw_rows
from tests.conftest import ingest
from tests.logs import ClaudeLog, talk

LATER = datetime(2026, 2, 1, tzinfo=UTC)


@pytest.fixture
def session(filled):
    rows = filled.lake.scan("sessions", ["id", "talks"]).to_pylist()
    return max(rows, key=lambda row: row["talks"])["id"]


@pytest.fixture
def whole(filled, session):
    return [row["id"] for row in raw_rows(filled.lake, f"session_id = '{session}'") if not row["superseded"]]


def test_each_entry_has_its_neighbours(filled, session, whole):
    for at, name in enumerate(whole):
        found = show_around(filled.lake, name, 2, 3)
        assert (found["session_id"], found["anchor"]) == (session, name)
        assert [row["id"] for row in found["rows"]] == whole[max(at - 2, 0) : at + 4]


def test_a_prompt_is_found_by_its_number(filled, session):
    row = show_around(filled.lake, f"{session}#2", 0, 0)["rows"][0]
    assert (row["prompt_number"], row["kind"]) == (2, "prompt")
    assert show_around(filled.lake, session, 0, 0)["rows"][0]["prompt_number"] == 1


def test_an_observation_stands_where_its_first_call_does(filled, session):
    where = f"session_id = '{session}' AND served"
    observation = filled.lake.scan("observations", ["id", "sources"], where).to_pylist()[0]
    found = show_around(filled.lake, observation["id"], 0, 0)
    assert found["anchor"] == observation["sources"][0]
    assert found["rows"][0]["role"] == "tool"


@pytest.mark.parametrize("name", ["", "nothing", "#1", "x#y", "'; --", "nothing#1"])
def test_what_is_not_there_is_not_found(filled, name):
    with pytest.raises(NotFound):
        show_around(filled.lake, name, 1, 1)


def test_a_prompt_that_is_not_there_is_not_found(filled, session):
    with pytest.raises(NotFound, match="no text"):
        show_around(filled.lake, f"{session}#999", 1, 1)


def test_what_a_rewrite_dropped_stands_by_itself_only(memex, log):
    talk(log, "Please keep the old way").write()
    ingest(memex)
    old = memex.lake.scan("messages", ["id"], "kind = 'prompt'")["id"].to_pylist()[0]
    ClaudeLog(log.path, LATER).prompt("Please take the new way", uuid="another").reply("Done.").write()
    ingest(memex)
    assert [row["text"] for row in show_around(memex.lake, old, 0, 0)["rows"]] == ["Please keep the old way"]
    first = show_around(memex.lake, log.session, 9, 99)["rows"]
    assert first and not any(row["superseded"] for row in first)


def test_the_command_marks_the_place(filled, session, whole):
    command = [sys.executable, "-m", "memex.cli.main", "timeline", whole[3], "--before", "1", "--after", "1"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert shown.startswith(session) and shown.count(">>> #") == 1
    rows = json.loads(subprocess.run([*command, "--json"], capture_output=True, timeout=120, check=True).stdout)["rows"]
    assert [row["id"] for row in rows] == whole[2:5]
