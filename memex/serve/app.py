"""The app: its routes behind the guard."""

from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp

from memex import __version__
from memex.serve.guard import LOOPBACK, Guard, Limits
from memex.serve.problem import answer_errors
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


def make_app(memex: Memex, *more: APIRouter, limits: Limits = BOUNDS) -> ASGIApp:
    """Build the guarded app over one home; `more` are routers that get in like the others.

    Raises:
        HomeError: the token cannot be read or made.
    """
    app = FastAPI(title="Memex", version=__version__, docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    answer_errors(app)
    app.state.memex = memex
    for router in (health, *more):
        app.include_router(router)
    hosts = LOOPBACK | frozenset(name.lower() for name in memex.settings.serve.hosts)
    return Guard(app, read_token(memex.home), token_path(memex.home), hosts, limits)
