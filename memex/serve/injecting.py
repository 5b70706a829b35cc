"""The route that hooks ask: what helps with a prompt, a new session or a file."""

from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel

from memex.inject.hook import PROTOCOL
from memex.serve.asked import Home

injecting = APIRouter(prefix="/api")


class Hooked(BaseModel):
    """What a hook was told by its CLI, and what it is asked for."""

    mode: str
    event: dict[str, Any]


@injecting.post("/inject")
def inject(memex: Home, hooked: Hooked, response: Response) -> dict[str, Any]:
    """Answer a hook with what its CLI expects; `{}` is silence."""
    response.headers["X-Memex-Protocol"] = PROTOCOL
    return memex.inject.answer(hooked.mode, hooked.event)
