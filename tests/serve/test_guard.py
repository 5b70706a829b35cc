"""Who gets in, through a real server: names, origins, tokens, bounds."""

import socket
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from memex import __version__
from memex.serve.token import read_token
from tests.serve.serving import Serving

SECRET = "/api/openapi.json"


@pytest.fixture(scope="module")
def serving(tmp_path_factory):
    home = tmp_path_factory.mktemp("guard") / "memex"
    with Serving(home, MEMEX_EMBED_PROVIDER="none") as service:
        yield service


def test_health_needs_no_token_and_tells_the_version(serving):
    assert serving.ask("/api/health", token=None) == (200, {"name": "memex", "version": __version__, "api": 1})


def test_the_token_is_its_owners_alone(serving):
    assert stat.S_IMODE((serving.home / "serve.token").stat().st_mode) == 0o600
    assert len(serving.token) >= 32


@pytest.mark.parametrize("token", [None, "wrong", "é"])
def test_without_the_token_it_says_where_that_is(serving, token):
    head = "" if token is None else f"Authorization: Bearer {token}\n"
    answer = serving.raw(f"GET {SECRET} HTTP/1.1\nHost: localhost\n{head}\n").decode()
    assert answer.startswith("HTTP/1.1 401") and "application/problem+json" in answer
    assert str(serving.home / "serve.token") in answer and serving.token not in answer
    assert serving.ask(SECRET)[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "a@localhost", "", "[", "10.0.0.1:10013"])
def test_another_host_is_refused(serving, host):
    answer = serving.raw(f"GET /api/health HTTP/1.1\nHost: {host}\n\n")
    assert answer.split(b" ")[1] in (b"421", b"400")


@pytest.mark.parametrize("host", ["localhost:{port}", "127.0.0.1", "[::1]:{port}", "LOCALHOST"])
def test_names_of_loopback_are_taken(serving, host):
    answer = serving.raw(f"GET /api/health HTTP/1.1\nHost: {host.format(port=serving.port)}\n\n")
    assert answer.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://localhost"])
def test_another_origin_is_refused(serving, origin):
    status, problem = serving.ask(SECRET, Origin=origin)
    assert (status, problem["status"]) == (403, 403)


def test_its_own_origin_is_taken_and_no_cors_header_sent(serving):
    assert serving.ask(SECRET, Origin=serving.url)[0] == 200
    answer = serving.raw(f"OPTIONS {SECRET} HTTP/1.1\nHost: localhost\nOrigin: http://localhost\n\n")
    assert b"access-control" not in answer.lower()


def test_a_large_body_is_refused_before_it_is_read(serving):
    head = f"POST /api/inject HTTP/1.1\nHost: localhost\nAuthorization: Bearer {serving.token}\n"
    answer = serving.raw(f"{head}Content-Length: {50 << 20}\n\n")
    assert answer.startswith(b"HTTP/1.1 413")


def test_a_large_body_in_chunks_is_refused(serving):
    head = f"POST /api/inject HTTP/1.1\nHost: localhost\nAuthorization: Bearer {serving.token}\n"
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    answer = serving.raw(f"{head}Transfer-Encoding: chunked\n\n", chunk * 50)
    assert answer.startswith(b"HTTP/1.1 413") or answer == b""
    assert serving.ask("/api/health", token=None)[0] == 200


def test_a_slow_body_is_given_up(serving):
    head = f"POST /api/inject HTTP/1.1\nHost: localhost\nAuthorization: Bearer {serving.token}\n"
    started = time.monotonic()
    answer = serving.raw(f"{head}Content-Length: 100\n\n", b"x")
    assert answer.startswith(b"HTTP/1.1 408") and 8 < time.monotonic() - started < 30


@pytest.mark.parametrize(
    "begun", [b"", b"GET / HTTP/1.1\r\n", b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\nGET"]
)
def test_clients_that_send_half_a_head_do_not_stay(home, begun):
    health = "GET /api/health HTTP/1.1\nHost: localhost\n\n"
    with Serving(home, MEMEX_SERVE_CONNECTIONS="20") as service, ExitStack() as held:
        for _number in range(40):
            client = held.enter_context(socket.create_connection(("127.0.0.1", service.port)))
            client.sendall(begun)
        assert service.raw(health).startswith(b"HTTP/1.1 503")
        time.sleep(7)
        assert service.raw(health).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("path", ["/../serve.token", "/..%2f..%2fserve.token", "/api/%2e%2e/serve.token", "/nothing"])
def test_paths_lead_nowhere_else(serving, path):
    answer = serving.raw(f"GET {path} HTTP/1.1\nHost: localhost\nAuthorization: Bearer {serving.token}\n\n")
    assert answer.startswith(b"HTTP/1.1 404") and serving.token.encode() not in answer


def test_many_ask_at_once_and_nobody_is_lost(serving):
    with ThreadPoolExecutor(64) as pool:
        found = set(pool.map(lambda _: serving.ask(SECRET)[0], range(200)))
    assert found <= {200, 503}
    assert serving.ask(SECRET)[0] == 200


def test_the_first_token_stays_however_many_ask(home):
    home.mkdir(parents=True)
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: read_token(home), range(32)))) == 1
    assert [path.name for path in home.iterdir()] == ["serve.token"]


def test_other_names_are_taken_when_it_is_told(home):
    with Serving(home, MEMEX_SERVE_HOSTS='["memex.lan"]') as service:
        assert service.raw("GET /api/health HTTP/1.1\nHost: memex.lan\n\n").startswith(b"HTTP/1.1 200")
        assert service.raw("GET /api/health HTTP/1.1\nHost: evil.example\n\n").startswith(b"HTTP/1.1 421")


def test_help_loads_no_web_framework():
    heavy = ("fastapi", "mcp", "uvicorn", "httpx")
    show = f"import sys, memex.cli.main; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True).stdout == "[]\n"
