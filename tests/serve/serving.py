"""A real `memex serve` on a free port."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

PATIENCE = 60.0


class Serving:
    """A process that serves a home; use as a context manager."""

    def __init__(self, home: Path, **environ: str) -> None:
        self.port = free_port()
        self.home = home
        self.process = subprocess.Popen(
            [sys.executable, "-m", "memex.cli.main", "serve"],
            stderr=subprocess.DEVNULL,
            env={**os.environ, "MEMEX_HOME": str(home), "MEMEX_SERVE_PORT": str(self.port), **environ},
        )

    def __enter__(self) -> "Serving":
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if self.ask("/api/health", token=None)[0] == 200:
                    return self
            except OSError:
                time.sleep(0.1)
        raise AssertionError("memex serve did not start")

    def __exit__(self, *_error: object) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE)

    @property
    def token(self) -> str:
        return (self.home / "serve.token").read_text().strip()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, body: Any = None, token: str | None = "", **headers: str) -> tuple[int, Any]:
        """Ask with the token, unless another or None is given; return status and JSON."""
        request = urllib.request.Request(self.url + path, headers=headers)
        if token is not None:
            request.add_header("Authorization", f"Bearer {token or self.token}")
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, data, timeout=PATIENCE) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def raw(self, head: str, body: bytes = b"", then: float = 0.0) -> bytes:
        """Send these bytes, wait, and return all that comes back."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall(head.replace("\n", "\r\n").encode())
            try:
                for at in range(0, len(body), 1 << 16):
                    connection.sendall(body[at : at + (1 << 16)])
            except OSError:
                pass  # it closed while we still sent, as it should
            time.sleep(then)
            answer = b""
            try:
                while part := connection.recv(1 << 16):
                    answer += part
                    connection.settimeout(0.3)  # the rest, if any, is on its way
            except OSError:
                pass
            return answer


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
