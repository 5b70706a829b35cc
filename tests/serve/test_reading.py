"""Routes that read answer what the commands answer."""

import json

import pytest
from fastapi import APIRouter

from memex.serve.prefect import PrefectApi
from tests.cli.test_cli import memex as run
from tests.serve.conftest import client_of

SESSION = "claude:5d0c1f52-6c1e-4b8e-9a55-0f4d2f1a7c01"


def plain(value):
    """Times as one text, however they were written."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value.replace("+00:00", "Z") if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/api/sessions", ["sessions"]),
        ("/api/projects", ["projects"]),
        ("/api/memories", ["memories"]),
        ("/api/usage", ["usage"]),
        ("/api/sessions/5d0c1f52?format=raw", ["show", "5d0c1f52", "--level", "raw"]),
        ("/api/timeline/5d0c1f52%232?before=1&after=3", ["timeline", "5d0c1f52#2", "--before", "1", "--after", "3"]),
        ("/api/search?query=export&limit=3", ["search", "export", "--limit", "3"]),
        ("/api/search?query=export&level=talks&role=", ["search", "export", "--level", "talks"]),
        ("/api/search?query=export&level=all&type=bash", ["search", "export", "--level", "all", "--type", "bash"]),
        ("/api/search?query=export&since=90d&until=1d", ["search", "export", "--since", "90d", "--until", "1d"]),
    ],
)  # fmt: skip
def test_it_answers_as_the_command_does(client, path, command):
    answer = client.get(path)
    assert answer.status_code == 200
    assert plain(answer.json()) == plain(json.loads(run(*command, "--json").stdout))


def test_a_session_is_its_summaries_or_its_lines(client):
    found = client.get(f"/api/sessions/{SESSION}").json()
    assert found["session"]["id"] == SESSION and len(found["talks"]) == 3
    assert found["summary"]["summary"] == client.get(f"/api/sessions/{SESSION}/summary").json()["summary"]
    assert "talks" not in client.get(f"/api/sessions/{SESSION}?format=raw").json()


def test_a_memory_is_named_by_its_beginning(client, filled):
    made = filled.maintain.remember("Never deploy on Fridays", "rule", "")
    assert client.get(f"/api/memories/{made.id[:10]}").json()["memory"]["text"] == "Never deploy on Fridays"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/sessions/nobody", 404),
        ("/api/sessions/nobody/summary", 404),
        ("/api/sessions/..%2F..%2Fserve.token", 404),
        ("/api/sessions/' OR true --", 404),
        ("/api/sessions/%00", 404),
        ("/api/memories/%2e%2e", 404),
        ("/api/memories/' OR true --", 404),
        ("/api/memories?project=nobody", 404),
        ("/api/sessions/5d0c1f52?format=html", 422),
        ("/api/search", 422),
        ("/api/search?query=x&level=deep", 422),
        ("/api/search?query=x&since=tomorrow", 422),
        ("/api/sessions?limit=0", 422),
        ("/api/compact/status?run=../x", 422),
        ("/nothing", 404),
    ],
)
def test_trouble_is_a_problem(client, path, status):
    answer = client.get(path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status and answer.json()["detail"]


def test_the_wrong_method_is_a_problem(client):
    answer = client.delete("/api/sessions")
    assert (answer.status_code, answer.headers["content-type"]) == (405, "application/problem+json")


def test_what_nobody_expected_tells_nothing(filled):
    broken = APIRouter()

    @broken.get("/broken")
    def breaks() -> None:
        raise RuntimeError("the innermost secret")

    answer = client_of(filled, PrefectApi("", {}), broken).get("/broken")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert "secret" not in answer.text and "Traceback" not in answer.text


def test_a_lake_that_is_away_is_a_problem(client, filled):
    assert filled.lake.count("sessions")
    (filled.home / "lake").rename(filled.home / "elsewhere")
    assert client.get("/api/sessions").status_code in (500, 503)
