"""A standing Prefect server and a process worker, as a team runs them."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.conftest import LONG_AGO
from tests.live.watching import Watching, long_ago, until
from tests.logs import ClaudeLog, talk

pytestmark = [pytest.mark.flow, pytest.mark.long]
ROOT = Path(__file__).parents[2]
PORT = "42191"


@pytest.fixture
def environment(tmp_path, filled, claude_dir):
    return {
        **os.environ,
        "CLAUDE_CONFIG_DIR": str(claude_dir),
        "PREFECT_HOME": str(tmp_path / "prefect"),
        "PREFECT_API_URL": f"http://127.0.0.1:{PORT}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }


def prefect(environment, *arguments):
    command = [sys.executable, "-m", "prefect", "--no-prompt", *arguments]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)


def api(path, body=None):
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}/api/{path}", headers={"Content-Type": "application/json"}
    )
    data = json.dumps(body).encode() if body is not None else None
    with urllib.request.urlopen(request, data, timeout=30) as answer:
        return json.load(answer)


@pytest.fixture
def server(environment):
    command = [sys.executable, "-m", "prefect", "server", "start", "--port", PORT]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _attempt in range(180):
        try:
            api("health")
            break
        except OSError:
            time.sleep(1)
    yield
    process.terminate()
    process.wait(30)


@pytest.fixture
def worker(environment, server):
    prefect(environment, "work-pool", "create", "memex", "--type", "process")
    prefect(environment, "deploy", "--all")
    process = subprocess.Popen(
        [sys.executable, "-m", "prefect", "worker", "start", "--pool", "memex"],
        env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    yield
    process.terminate()
    process.wait(60)


def test_a_watch_leaves_summaries_to_the_deployment(environment, worker, filled, claude_dir):
    log = ClaudeLog(claude_dir / "projects" / "-src-app" / "11111111.jsonl", LONG_AGO)
    long_ago(talk(log, "Where is the kettle?").write())
    with Watching(**environment) as watching:
        watching.told("left to session/session")
        mine = "session_id = 'claude:11111111' AND served"
        until(lambda: filled.lake.count("session_summaries", mine) == 1, patience=400)
        assert filled.lake.count("talk_summaries", mine) == 1
        assert watching.end() == 0


def test_a_deployment_remakes_exactly_one_session(environment, worker, filled):
    deployments = {d["name"]: d for d in api("deployments/filter", {})}
    assert set(deployments) == {"nightly", "ingest", "compact", "index", "session"}
    schema = deployments["session"]["parameter_openapi_schema"]
    assert schema["required"] == ["session_id"]
    assert "such as claude:" in schema["properties"]["session_id"]["description"]
    assert schema["properties"]["force"]["type"] == "boolean"

    before = {r["id"]: r["created_at"] for r in filled.lake.scan("talk_summaries").to_pylist()}
    prefect(environment, "deployment", "run", "session/session", "-p", "session_id=claude:5d0c1f52", "--watch")
    rows = filled.lake.scan("talk_summaries", None, "served").to_pylist()
    remade = {r["session_id"] for r in rows if r["created_at"] != before[r["id"]]}
    assert remade == {"claude:5d0c1f52-6c1e-4b8e-9a55-0f4d2f1a7c01"}
    assert len(rows) == len(before)
