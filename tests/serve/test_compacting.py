"""Summaries through the service: what is pending, and runs of a real Prefect server."""

import httpx
import pytest

from memex.serve.prefect import PrefectApi
from tests.conftest import ingest
from tests.flows.conftest import prefect  # noqa: F401
from tests.serve.conftest import client_of

SESSION = "claude:5d0c1f52-6c1e-4b8e-9a55-0f4d2f1a7c01"
NOBODY = "00000000-0000-4000-8000-000000000000"


def test_pending_is_counted_without_a_server(sample):
    ingest(sample)
    found = client_of(sample, PrefectApi("", {})).get("/api/compact/status").json()
    assert found["pending"]["talks"] == 11 and found["pending"]["sessions"] == 5
    assert found["runs"] == [] and "PREFECT_API_URL" in found["note"]


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:9/api"])
@pytest.mark.parametrize("path", ["trigger", "session/5d0c1f52"])
def test_without_a_server_it_says_what_to_do(filled, url, path):
    answer = client_of(filled, PrefectApi(url, {})).post(f"/api/compact/{path}")
    assert answer.status_code == 503
    assert "prefect server start" in answer.json()["hint"]


def test_a_session_that_is_not_there_starts_nothing(client):
    assert client.post("/api/compact/session/nobody").status_code == 404
    assert client.post("/api/compact/trigger", json={"sessions": ["nobody"]}).status_code == 404
    assert client.post("/api/compact/trigger", json={"levels": ["deep"]}).status_code == 422
    assert client.post("/api/compact/trigger", json={"lvels": []}).status_code == 422


@pytest.mark.flow
def test_a_run_is_started_and_followed(filled, prefect):  # noqa: F811
    from prefect.settings import PREFECT_API_URL

    from flows.compact import compact
    from flows.session import session

    client = client_of(filled, PrefectApi(PREFECT_API_URL.value(), {}))
    missing = client.post("/api/compact/trigger")
    assert missing.status_code == 404 and "prefect deploy --all" in missing.json()["hint"]

    for flow in (compact, session):
        flow.to_deployment(flow.name).apply()
    wanted = {"levels": ["talks"], "force": True}
    answer = client.post("/api/compact/session/5d0c1f52", json=wanted)
    assert answer.status_code == 202
    run = client.get(answer.json()["follow"]).json()["run"]
    assert run["id"] == answer.json()["run_id"] and run["state_type"] == "SCHEDULED" and run["progress"] == []
    assert run["parameters"] == {"session_id": SESSION, "delay_minutes": None, **wanted}
    bar = {"type": "progress", "data": 40.0, "description": "summaries", "flow_run_id": run["id"]}
    httpx.post(f"{PREFECT_API_URL.value()}/artifacts/", json=bar).raise_for_status()
    followed = client.get(answer.json()["follow"]).json()["run"]
    assert followed["progress"] == [{"what": "summaries", "percent": 40.0}]
    every = client.post("/api/compact/trigger").json()["run_id"]
    assert {one["id"] for one in client.get("/api/compact/status").json()["runs"]} == {run["id"], every}
    assert client.get(f"/api/compact/status?run={NOBODY}").status_code == 404
