"""How many requests are under way at a provider, over all processes: one file lock for each."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from memex.errors import translated_os_errors

LOOK_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Slots:
    """The places at one provider. A process that dies gives its place back."""

    folder: Path
    provider: str
    count: int

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold a place; wait for one when all are taken."""
        lock = self._next_free()
        try:
            yield
        finally:
            lock.release()

    def _next_free(self) -> FileLock:
        with translated_os_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            while True:
                for number in random.sample(range(self.count), self.count):
                    lock = FileLock(self.folder / f"{self.provider}-{number}.lock", thread_local=False)
                    try:
                        lock.acquire(blocking=False)
                    except Timeout:
                        continue
                    return lock
                time.sleep(LOOK_SECONDS)
