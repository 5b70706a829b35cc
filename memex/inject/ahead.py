"""Work that may be late: it runs in a thread of its own, and whoever needs it waits until a deadline and no longer."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from threading import Lock
from typing import Generic, TypeVar

Result = TypeVar("Result")
MOST_WAITING = 2
"""So many pieces of work queue up; more are turned away, since they would be late for sure."""


class Ahead(Generic[Result]):
    """One worker, since a model is used by one thread at a time; the queue before it is short."""

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(1, "memex-inject")
        self._lock = Lock()
        self._waiting = 0

    def start(self, work: Callable[[], Result]) -> "Future[Result] | None":
        """Begin some work; None when too much is waiting already."""
        with self._lock:
            if self._waiting >= MOST_WAITING:
                return None
            self._waiting += 1
        future = self._worker.submit(work)
        future.add_done_callback(self._done)
        return future

    def wait(self, future: "Future[Result] | None", until: float) -> Result | None:
        """Give the result, or None when it is not there at `until` (of `time.monotonic`).

        Raises:
            Exception: what the work raised.
        """
        if future is None:
            return None
        try:
            return future.result(max(0.0, until - time.monotonic()))
        except Late:
            return None

    def _done(self, _future: "Future[Result]") -> None:
        with self._lock:
            self._waiting -= 1
