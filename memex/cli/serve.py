"""`memex serve` and `memex mcp`."""

import os
from base64 import b64encode
from typing import TYPE_CHECKING

from memex.cli.app import app
from memex.cli.output import note

if TYPE_CHECKING:
    from memex.serve.prefect import PrefectApi

HEAD_SECONDS = 5
"""A connection without a request, or with half the head of one, is kept for so long."""


@app.command()
def serve() -> None:
    """Answer HTTP on this machine: search, sessions, memories, summaries, MCP at /mcp. Ctrl-C ends it."""
    import uvicorn

    from memex.serve.app import make_app
    from memex.serve.patience import impatient
    from memex.serve.token import token_path
    from memex.setup import open_memex

    memex = open_memex()
    given = memex.settings.serve
    guarded = make_app(memex, _prefect())
    note(f"http://{given.host}:{given.port}; the token is in {token_path(memex.home)}")
    uvicorn.run(
        guarded,
        host=given.host,
        port=given.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=given.connections,
        timeout_keep_alive=HEAD_SECONDS,
        http=impatient(HEAD_SECONDS),
        ws="none",
    )


@app.command()
def mcp() -> None:
    """Speak MCP on standard input and output, for an AI CLI that starts this as one of its servers."""
    from memex.serve.mcp import make_mcp
    from memex.setup import open_memex

    make_mcp(open_memex()).run("stdio")  # the SDK moves all else that is printed to standard error


def _prefect() -> "PrefectApi":
    """Know the server of PREFECT_API_URL, and what it wants to see, as Prefect's own client does."""
    from memex.serve.prefect import PrefectApi

    key, login = os.environ.get("PREFECT_API_KEY"), os.environ.get("PREFECT_API_AUTH_STRING")
    proof = f"Bearer {key}" if key else f"Basic {b64encode(login.encode()).decode()}" if login else ""
    url = os.environ.get("PREFECT_API_URL", "").rstrip("/")
    return PrefectApi(url, {"Authorization": proof} if proof else {})
