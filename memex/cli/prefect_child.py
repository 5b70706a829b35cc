"""The child process of `TemporaryServer`: python -m memex.cli.prefect_child PORT FOLDER.

It ends, and removes its folder, when its standard input closes: also when the parent was killed.
"""

import os
import shutil
import sys
import threading


def serve(port: int, folder: str) -> None:
    """Serve the Prefect API until the parent is gone."""
    import uvicorn

    threading.Thread(target=_end_with_parent, args=(folder,), daemon=True).start()
    uvicorn.run("prefect.server.api.server:create_app", factory=True, host="127.0.0.1", port=port, log_level="error")


def _end_with_parent(folder: str) -> None:
    sys.stdin.buffer.read()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2])
