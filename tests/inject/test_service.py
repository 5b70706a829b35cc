"""The hook as a CLI runs it, and a real service that answers."""

import json
import os
import subprocess
import sys

from tests.inject.conftest import prompt, said
from tests.serve.serving import Serving

QUESTION = "The login fails again behind the proxy: is SESSION_TTL in session_store read too early?"


def hook(serving: Serving, event: dict[str, object], **environ: str) -> str:
    run = subprocess.run(
        [sys.executable, "-m", "memex.inject.hook", "--mode=smart"],
        input=json.dumps(event).encode(),
        capture_output=True,
        timeout=60,
        check=True,
        env={
            **os.environ,
            "MEMEX_HOME": str(serving.home),
            "MEMEX_SERVE_PORT": str(serving.port),
            "MEMEX_INJECT_TIMEOUT_SECONDS": "30",
            **environ,
        },
    )
    return run.stdout.decode()


def test_a_prompt_gets_what_helps_once_and_nothing_else_does(knowing):
    home = knowing().home
    with Serving(home, MEMEX_INJECT_TIMEOUT_SECONDS="20") as serving:
        assert "SESSION_TTL" in said(json.loads(hook(serving, prompt(QUESTION))))
        assert hook(serving, prompt(QUESTION)) == ""
        assert hook(serving, prompt("Tell me a joke about penguins", "other")) == ""
        assert "SESSION_TTL" in said(json.loads(hook(serving, prompt(QUESTION, "other"))))


def test_without_its_token_a_hook_is_silent(knowing, tmp_path):
    home = knowing().home
    with Serving(home, MEMEX_INJECT_TIMEOUT_SECONDS="20") as serving:
        assert hook(serving, prompt(QUESTION), MEMEX_HOME=str(tmp_path / "another")) == ""
        assert serving.ask("/api/inject", {"mode": "smart", "event": prompt(QUESTION)}, token="wrong")[0] == 401


def test_what_is_no_hook_is_refused_or_answered_with_silence(knowing):
    with Serving(knowing().home) as serving:
        assert serving.ask("/api/inject", {"mode": "smart"})[0] == 422
        assert serving.ask("/api/inject", ["smart"])[0] == 422
        for event in ({}, {"hook_event_name": 3, "prompt": ["x"]}, prompt("", cwd="\x00"), prompt("x" * 100_000)):
            assert serving.ask("/api/inject", {"mode": "smart", "event": event}) == (200, {})
