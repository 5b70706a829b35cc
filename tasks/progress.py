"""How a long task shows where it is: a progress artifact in Prefect, and a log line on the terminal."""

import logging
import time
from uuid import UUID

from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.context import TaskRunContext

SECONDS_BETWEEN = 5.0

log = logging.getLogger("memex.progress")


class ProgressArtifact:
    """A progress bar of the task that runs now, updated every few seconds."""

    def __init__(self, what: str, total: int, offset: int = 0) -> None:
        self._what = what
        self._total = max(1, total)
        self._done = offset
        self._last = time.monotonic()
        self._id: UUID | None = None

    def advance(self, count: int, note: str = "") -> None:
        """Note that `count` more are done."""
        self._done += count
        now = time.monotonic()
        if now - self._last < SECONDS_BETWEEN and self._done < self._total:
            return
        self._last = now
        log.info("%s: %d of %d%s", self._what, self._done, self._total, note)
        if self._id is None and self._done >= self._total:
            return
        if TaskRunContext.get() is None:
            return
        percent = 100.0 * min(self._done, self._total) / self._total
        if self._id is None:
            self._id = create_progress_artifact(progress=percent, description=self._what)  # type: ignore[assignment]
        else:
            update_progress_artifact(self._id, progress=percent)
