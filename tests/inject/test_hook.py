"""The prompt hook: one JSON object or nothing, in time, whatever happens."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.inject.hook import DEFAULTS, MODES, NOTICES, PROTOCOL, TOKEN_FILE, configured
from memex.settings import Settings, load_settings

EVENT = {"session_id": "1", "hook_event_name": "UserPromptSubmit", "prompt": "修复登录", "cwd": "/src/app"}
ANSWER = json.dumps({"hookSpecificOutput": {"additionalContext": "上次用了 Redis"}}, ensure_ascii=False)
BODY = ANSWER.encode()
LONG = 300
"""Seconds for which a server or stdin hangs: far more than any run of the hook may take."""


class Service(BaseHTTPRequestHandler):
    """Answers as the test says: (status, body, pause before each byte)."""

    answer = (200, ANSWER.encode(), 0.0)
    asked: list[dict]
    heads: list[dict]
    fields: dict

    def do_POST(self):
        self.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.heads.append(dict(self.headers))
        status, body, pause = self.answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in self.fields.items():
            self.send_header(name, value)
        self.end_headers()
        for at in range(len(body)) if pause else ():
            time.sleep(pause)
            self.wfile.write(body[at : at + 1])
            self.wfile.flush()
        if not pause:
            self.wfile.write(body)

    def log_message(self, *_about):
        pass


handlers: list[type[Service]] = []
"""Of the services that were started, the newest last."""


@pytest.fixture
def serve():
    """Start a service that answers like this; give its port and what it was asked."""
    running = []

    def started(status=200, body=BODY, pause=0.0, **fields):
        made = {"answer": (status, body, pause), "asked": [], "heads": [], "fields": fields}
        handler = type("Handler", (Service,), made)
        handlers.append(handler)
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


def test_the_token_of_the_service_is_sent(serve, home):
    port, asked = serve()
    hook("--mode=smart", port=port)
    home.mkdir(parents=True)
    (home / TOKEN_FILE).write_text("s3cret\n")
    hook("--mode=smart", port=port)
    assert [head.get("Authorization") for head in handlers[-1].heads] == [None, "Bearer s3cret"]
    assert len(asked) == 2


@pytest.mark.parametrize("token", [b"", b"\xff\xfe", b"a\r\nX-Other: b", b"x" * 100_000])
def test_an_odd_token_is_not_sent_on(serve, home, token):
    port, _asked = serve()
    home.mkdir(parents=True)
    (home / TOKEN_FILE).write_bytes(token)
    code, out = hook("--mode=smart", port=port)
    assert code == 0 and out in ("", ANSWER)
    assert all("X-Other" not in head for head in handlers[-1].heads)


def test_a_service_of_another_version_is_not_understood(serve):
    assert hook("--mode=smart", port=serve(**{"X-Memex-Protocol": "2"})[0]) == (0, "")
    assert hook("--mode=smart", port=serve(**{"X-Memex-Protocol": PROTOCOL})[0]) == (0, ANSWER)
    assert handlers[-1].heads[0]["X-Memex-Protocol"] == PROTOCOL


@pytest.mark.parametrize("value", ["off", "OFF", "0", "false", " no "])
def test_a_variable_switches_it_off(serve, value):
    port, asked = serve()
    assert hook("--mode=smart", port=port, MEMEX_INJECT=value) == (0, "")
    assert asked == []
    assert hook("--mode=smart", port=port, MEMEX_INJECT="on") == (0, ANSWER)


def test_nothing_to_say_is_no_output(serve):
    assert hook("--mode=smart", port=serve(body=b"{}")[0]) == (0, "")


@pytest.mark.parametrize("mode", NOTICES)
def test_a_notice_is_sent_and_answered_by_silence(serve, mode):
    port, asked = serve()
    assert hook(f"--mode={mode}", port=port) == (0, "")
    assert [one["mode"] for one in asked] == [mode]


GARBAGE = st.binary(max_size=300) | st.text(max_size=100).map(str.encode) | st.just(json.dumps(EVENT).encode()[:-1])


@settings(max_examples=50)
@given(GARBAGE, st.sampled_from(["off", "smart", "full", "file", "stop", "", "loud"]))
def test_garbage_in_many_processes(garbage, mode):
    """Nothing listens on the port."""
    assert hook("--mode", mode, given=garbage, seconds=1) == (0, "")


def test_whatever_the_service_does_the_hook_ends_in_time(serve):
    """Many at once: a service that is down, hangs, drips, breaks off, or speaks something else."""
    silent = socket.create_server(("127.0.0.1", 0))
    ports = [1, silent.getsockname()[1], serve(pause=LONG / len(BODY))[0], serve(500)[0], serve(body=b"\x00\xff")[0]]

    def timed(port):
        started = time.monotonic()
        return hook("--mode=smart", port=port, seconds=1), time.monotonic() - started

    with silent, ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(timed, ports * 4))
    assert {result for result, _took in ended} == {(0, "")}
    assert max(took for _result, took in ended) < 10  # the machine may be busy; the hook waits for 1 s at most


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


@pytest.mark.parametrize(
    "text",
    ["", 'home = "~/kept"', 'home = "${WHERE}/kept"\n[inject]\nmode = "${HOW}"', "[inject]\ntimeout_seconds = 3"],
)
def test_hook_reads_the_configuration_as_memex_does(tmp_path, monkeypatch, text):
    (tmp_path / "config.toml").write_text(text)
    monkeypatch.delenv("MEMEX_HOME")
    environ = {"MEMEX_CONFIG": str(tmp_path / "config.toml"), "WHERE": str(tmp_path), "HOW": "smart"}
    read, found = load_settings(environ), configured(environ)
    assert Path(str(found["home"])).expanduser() == read.home
    assert (found["mode"], found["timeout_seconds"], found["port"]) == (
        read.inject.mode,
        read.inject.timeout_seconds,
        read.serve.port,
    )


def test_hook_and_settings_agree():
    settings = Settings()
    assert {
        "mode": settings.inject.mode,
        "timeout_seconds": settings.inject.timeout_seconds,
        "port": settings.serve.port,
    } == DEFAULTS
    found = configured({"XDG_CONFIG_HOME": "/nowhere"})
    assert found == {**DEFAULTS, "home": str(settings.home)}
    assert all(Settings.model_validate({"inject": {"mode": mode}}) for mode in MODES)
