"""The prompt hook: one JSON object or nothing, in time, whatever happens."""

import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from memex.inject.hook import DEFAULTS, MODES, configured
from memex.settings import Settings

EVENT = {"session_id": "1", "hook_event_name": "UserPromptSubmit", "prompt": "修复登录", "cwd": "/src/app"}
ANSWER = json.dumps({"hookSpecificOutput": {"additionalContext": "上次用了 Redis"}}, ensure_ascii=False)
BODY = ANSWER.encode()
LONG = 300
"""Seconds for which a server or stdin hangs: far more than any run of the hook may take."""


class Service(BaseHTTPRequestHandler):
    """Answers as the test says: (status, body, pause before each byte)."""

    answer = (200, ANSWER.encode(), 0.0)
    asked: list[dict]

    def do_POST(self):
        self.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        status, body, pause = self.answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for at in range(len(body)) if pause else ():
            time.sleep(pause)
            self.wfile.write(body[at : at + 1])
            self.wfile.flush()
        if not pause:
            self.wfile.write(body)

    def log_message(self, *_about):
        pass


@pytest.fixture
def serve():
    """Start a service that answers like this; give its port and what it was asked."""
    running = []

    def started(status=200, body=BODY, pause=0.0):
        handler = type("Handler", (Service,), {"answer": (status, body, pause), "asked": []})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        running.append(server)
        return server.server_address[1], handler.asked

    yield started
    for server in running:
        server.shutdown()


def hook(*arguments, given=None, port=1, seconds=10, **environ):
    """Run the hook; return its exit code and output. It must end long before LONG."""
    given = json.dumps(EVENT).encode() if given is None else given
    done = subprocess.run(
        [sys.executable, "-m", "memex.inject.hook", *arguments],
        input=given,
        capture_output=True,
        timeout=LONG / 3,
        env={**os.environ, "MEMEX_SERVE_PORT": str(port), "MEMEX_INJECT_TIMEOUT_SECONDS": str(seconds), **environ},
    )
    assert done.stderr == b""
    return done.returncode, done.stdout.decode()


def test_answer_of_the_service_is_printed(serve):
    port, asked = serve()
    assert hook("--mode=smart", port=port) == (0, ANSWER)
    assert asked == [{"mode": "smart", "event": EVENT}]


def test_hook_is_off_by_default(serve):
    port, asked = serve()
    assert hook(port=port) == (0, "")
    assert hook("--mode", "off", port=port, MEMEX_INJECT_MODE="full") == (0, "")
    assert asked == []


def test_mode_comes_from_the_command_line_then_the_environment_then_the_file(serve, tmp_path):
    port, asked = serve()
    config = tmp_path / "config.toml"
    config.write_text(f'[inject]\nmode = "file"\n[serve]\nport = {port}\n')
    environ = {"MEMEX_CONFIG": str(config), "MEMEX_SERVE_PORT": ""}
    hook(**environ)
    hook(MEMEX_INJECT_MODE="smart", **environ)
    hook("--mode", "full", MEMEX_INJECT_MODE="smart", **environ)
    assert [one["mode"] for one in asked] == ["file", "smart", "full"]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, ANSWER),
        (404, "{}"),
        (200, "not json"),
        (200, "[1]"),
        (200, ""),
        (200, '{"a": 1} {"b": 2}'),
        (200, "\ufeff{}"),
    ],
)
def test_any_other_answer_is_silence(serve, status, body):
    port, _asked = serve(status, body.encode())
    assert hook("--mode=full", port=port) == (0, "")


@pytest.mark.parametrize(
    "given", [b"", b"\xff\x00\xfe", b"[]", b"not json", b"{" * 100_000, b'"' + b"x" * 5_000_000 + b'"']
)
def test_any_other_input_is_silence(serve, given):
    port, asked = serve()
    assert hook("--mode=full", given=given, port=port) == (0, "")
    assert asked == []


@pytest.mark.parametrize("arguments", [["--mode=loud"], ["--mode"], ["--what"], ["--mode=", "x"]])
def test_odd_arguments_are_silence(arguments):
    assert hook(*arguments) == (0, "")


def test_no_service_is_silence():
    assert hook("--mode=full") == (0, "")


@pytest.mark.parametrize(
    "text", ["[inject\nmode=", '[inject]\nmode = "smart"\ntimeout_seconds = "soon"', "inject = 3", "\x00"]
)
def test_broken_configuration_is_silence(tmp_path, text):
    (tmp_path / "config.toml").write_text(text)
    environ = {"MEMEX_CONFIG": str(tmp_path / "config.toml"), "MEMEX_INJECT_TIMEOUT_SECONDS": ""}
    assert hook(**environ) == (0, "")


def test_service_that_hangs_or_drips_holds_nobody_up(serve):
    dripping, _asked = serve(pause=LONG / len(ANSWER.encode()))
    assert hook("--mode=full", port=dripping, seconds=0.5) == (0, "")


def test_input_that_never_ends_holds_nobody_up():
    command = [sys.executable, "-m", "memex.inject.hook", "--mode=full"]
    environ = {**os.environ, "MEMEX_INJECT_TIMEOUT_SECONDS": "0.5"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ) as process:
        assert process.wait(LONG / 3) == 0
        assert process.stdout.read() == b""


def test_hook_imports_the_standard_library_alone():
    code = (
        "import sys; import memex.inject.hook; "
        "print([m for m in sys.modules if m.split('.')[0] not in (*sys.stdlib_module_names, 'memex')])"
    )
    shown = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.strip() in ("[]", "['__main__']")


def test_hook_and_settings_agree():
    settings = Settings()
    assert (
        {
            "mode": settings.inject.mode,
            "timeout_seconds": settings.inject.timeout_seconds,
            "port": settings.serve.port,
        }
        == DEFAULTS
        == configured({"XDG_CONFIG_HOME": "/nowhere"})
    )
    assert all(Settings.model_validate({"inject": {"mode": mode}}) for mode in MODES)
