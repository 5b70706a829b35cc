"""The app: its routes behind the guard."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp

from memex import __version__
from memex.serve.compacting import compacting
from memex.serve.guard import LOOPBACK, Guard, Limits
from memex.serve.injecting import injecting
from memex.serve.mcp import make_mcp
from memex.serve.prefect import PrefectApi
from memex.serve.problem import answer_errors
from memex.serve.reading import reading
from memex.serve.token import read_token, token_path
from memex.setup import Memex

API = 1
"""Raised by what an older client does not understand."""
BOUNDS = Limits()

health = APIRouter()


@health.get("/api/health")
async def tell_health() -> dict[str, Any]:
    """Tell that this is Memex, and which: clients compare `api` before they rely on anything."""
    return {"name": "memex", "version": __version__, "api": API}


def make_app(memex: Memex, prefect: PrefectApi, *more: APIRouter, limits: Limits = BOUNDS) -> ASGIApp:
    """Build the guarded app over one home, with runs by one server; `more` routers get in like the others.

    Raises:
        HomeError: the token cannot be read or made.
    """
    mcp = make_mcp(memex)
    inside = mcp.streamable_http_app(json_response=True, stateless_http=True, transport_security=_guarded())

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with mcp.session_manager.run():
            yield

    app = FastAPI(
        title="Memex",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=lifespan,
    )
    answer_errors(app)
    app.state.memex = memex
    app.state.prefect = prefect
    for router in (health, reading, compacting, injecting, *more):
        app.include_router(router)
    app.router.routes.extend(inside.routes)  # a mount at "/" would take what no route answers
    hosts = LOOPBACK | frozenset(name.lower() for name in memex.settings.serve.hosts)
    return Guard(app, read_token(memex.home), token_path(memex.home), hosts, limits)


def _guarded() -> Any:
    """Leave Host and Origin to the guard, which is stricter."""
    from mcp.server.transport_security import TransportSecuritySettings

    return TransportSecuritySettings(enable_dns_rebinding_protection=False)
