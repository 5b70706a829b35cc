"""Who gets in: a check of Host, Origin and token before anything is read, and bounds on what is read.

A page in a browser reaches loopback, too: by a name of its own that it points here (so Host is checked), or by a
request across origins (so Origin is checked, no CORS header is ever sent, and the token is in no cookie).
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from secrets import compare_digest
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memex.serve.problem import Problem

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
OPEN = frozenset({"/api/health"})
"""Paths without a token; they tell nothing of what is remembered."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request may take: bytes of its body, seconds until that is there, and how many at once."""

    body_bytes: int = 8 * 1024 * 1024
    body_seconds: float = 10.0
    at_once: int = 32


class _Refused(Exception):
    def __init__(self, problem: Problem) -> None:
        self.problem = problem


class Guard:
    """The outermost layer of the app; `hosts` are the names it may be called by."""

    def __init__(
        self, app: ASGIApp, token: str, token_file: Path, hosts: frozenset[str] = LOOPBACK, limits: Limits = Limits()
    ) -> None:
        self._app = app
        self._token = token.encode()
        self._file = token_file
        self._hosts = hosts
        self._limits = limits
        self._now = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer what is wrong with it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        try:
            self._admit(scope, Headers(scope=scope))
        except _Refused as refused:
            await refused.problem(scope, receive, send)
            return
        self._now += 1
        try:
            body = await self._body(receive)
            await self._app(scope, _replayed(body, receive), send)
        except _Refused as refused:
            await refused.problem(scope, receive, send)
        finally:
            self._now -= 1

    def _admit(self, scope: Scope, headers: Headers) -> None:
        host = headers.get("host", "")
        if _name(host) not in self._hosts:
            raise _Refused(Problem(421, "this service is not called by that name", "use http://127.0.0.1"))
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            raise _Refused(Problem(403, "requests from other origins are refused"))
        if scope["path"] not in OPEN and not self._knows(headers.get("authorization", "")):
            hint = f"send it as `Authorization: Bearer …`; it is in {self._file}"
            raise _Refused(Problem(401, "the token is missing or wrong", hint, {"WWW-Authenticate": "Bearer"}))
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > self._limits.body_bytes:
            raise _Refused(self._too_large())
        if self._now >= self._limits.at_once:
            raise _Refused(Problem(503, "too many requests at once", headers={"Retry-After": "1"}))

    def _knows(self, given: str) -> bool:
        scheme, _, token = given.partition(" ")
        return scheme.lower() == "bearer" and compare_digest(token.strip().encode(), self._token)

    async def _body(self, receive: Receive) -> bytes:
        """Read the whole body, within its bounds, also where no length was announced."""
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                while True:
                    message = await receive()
                    body += message.get("body", b"")
                    if len(body) > self._limits.body_bytes:
                        raise _Refused(self._too_large())
                    if message["type"] == "http.disconnect" or not message.get("more_body"):
                        return bytes(body)
        except TimeoutError:
            raise _Refused(Problem(408, "the body took too long", headers={"Connection": "close"})) from None

    def _too_large(self) -> Problem:
        return Problem(413, f"a body may have {self._limits.body_bytes:,} bytes", headers={"Connection": "close"})


def _name(host: str) -> str:
    """Take the port off a Host header; "" for what is none.

    >>> _name("[::1]:10013"), _name("LOCALHOST:1"), _name("a@localhost")
    ('::1', 'localhost', '')
    """
    try:
        parts = urlsplit(f"//{host}")
    except ValueError:
        return ""
    return "" if "@" in host or parts.path or parts.query or parts.fragment else parts.hostname or ""


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Give the body once, then what comes after it: that the client went away."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
