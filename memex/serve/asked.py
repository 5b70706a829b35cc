"""What routes ask for: the home that is served."""

from typing import Annotated

from fastapi import Depends, Request

from memex.setup import Memex


def _memex(request: Request) -> Memex:
    memex: Memex = request.app.state.memex
    return memex


Home = Annotated[Memex, Depends(_memex)]
