"""`memex watch`: logs are read while they are written."""

import os
import signal
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from memex.cli.app import app
from memex.cli.output import note

if TYPE_CHECKING:
    from memex.live.watch import Summarise
    from memex.setup import Memex


@app.command()
def watch() -> None:
    """Read logs while they are written, and summarise what is complete. Ctrl-C ends it."""
    from memex.live.only import only_one
    from memex.setup import open_memex

    memex = open_memex()
    with only_one(memex.home):
        memex.forget.finish()
        watching = memex.watch(_tell, _elsewhere(memex))

        def stop(_signal: int, _frame: object) -> None:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)  # the second time it ends at once
            watching.stop()

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        watching.run()
    _tell("stopped; what was read is kept, and the next watch goes on from there")


def _tell(text: str) -> None:
    with suppress(OSError):  # nobody listens any more, or the disk of the log is full: no reason to stop reading
        note(f"{datetime.now():%H:%M:%S} {text}")


def _elsewhere(memex: "Memex") -> "Summarise | None":
    """Have summaries written by flow runs when there is a server, or when they cost money."""
    free = memex.settings.compact.provider == "extractive"
    if free and not os.environ.get("PREFECT_API_URL"):
        return None
    from memex.cli.deployed import Deployed, WhileThereIsAServer

    deployed = Deployed(memex.lake, memex.writer)
    return WhileThereIsAServer(deployed, memex.here) if free else deployed
