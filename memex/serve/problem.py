"""Errors as application/problem+json (RFC 9457): what is wrong, and under `hint` what to do."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from memex.errors import ConfigError, MemexError, NotFound, Transient

log = logging.getLogger("memex.serve")


class Problem(JSONResponse):
    """One problem.

    >>> Problem(404, "no session is called 'x'").media_type
    'application/problem+json'
    """

    media_type = "application/problem+json"

    def __init__(
        self, status: int, detail: str, hint: str = "", headers: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        about = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
        super().__init__(about | ({"hint": hint} if hint else {}) | more, status, headers)


def status_of(error: MemexError) -> int:
    """Choose the HTTP status of an error of ours."""
    if isinstance(error, NotFound):
        return 404
    if isinstance(error, Transient):
        return 503
    return 409 if isinstance(error, ConfigError) else 500


def answer_errors(app: FastAPI) -> None:
    """Have every error of an app answered as a problem; what nobody expected goes to the log, not to the caller."""

    @app.exception_handler(MemexError)
    async def ours(_request: Request, error: MemexError) -> Problem:
        return Problem(status_of(error), str(error), error.hint)

    @app.exception_handler(HTTPException)
    async def known(_request: Request, error: HTTPException) -> Problem:
        return Problem(error.status_code, str(error.detail), headers=error.headers)

    @app.exception_handler(RequestValidationError)
    async def wrong(_request: Request, error: RequestValidationError) -> Problem:
        faults = [{"where": ".".join(map(str, one["loc"])), "what": one["msg"]} for one in error.errors()]
        return Problem(422, "; ".join(f"{one['where']}: {one['what']}" for one in faults), faults=faults)

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Problem:
        log.error("%s %s", request.method, request.url.path, exc_info=error)
        return Problem(500, "something went wrong here", "the log of memex serve says what")
