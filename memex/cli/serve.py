"""`memex serve` and `memex mcp`."""

from memex.cli.app import app
from memex.cli.output import note


@app.command()
def serve() -> None:
    """Answer HTTP on this machine: search, sessions, memories, summaries, MCP at /mcp. Ctrl-C ends it."""
    import uvicorn

    from memex.serve.app import make_app
    from memex.serve.token import token_path
    from memex.setup import open_memex

    memex = open_memex()
    given = memex.settings.serve
    guarded = make_app(memex)
    note(f"http://{given.host}:{given.port}; the token is in {token_path(memex.home)}")
    uvicorn.run(
        guarded,
        host=given.host,
        port=given.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=given.connections,
        timeout_keep_alive=5,
    )
