"""Who reads for longer than a moment: each such reader holds a lock on a file of its own, which ends with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout

from memex.errors import translated_os_errors

GRACE_SECONDS = 10.0
"""A reader has so long between making its file and locking it."""


class Readers:
    """The readers of one lake, as files below a folder. A reader that was killed leaves a file without a lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def announced(self) -> Iterator[None]:
        """Be known as a reader from now on."""
        path = self.folder / f"{uuid4().hex}.lock"
        with translated_os_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = FileLock(path, thread_local=False)  # a generator may be closed by another thread
            lock.acquire()
        try:
            yield
        finally:
            lock.release()
            path.unlink(missing_ok=True)

    def oldest(self, now: float) -> float:
        """Tell when the reader that reads longest began, in seconds since 1970; `now` when nobody reads.

        One that began at a time to come did so before the clock was put back: at 0, for all we know.
        """
        began = [at for path in self.folder.glob("*.lock") if (at := _began(path, now)) is not None]
        return min(began, default=now)


def _began(path: Path, now: float) -> float | None:
    """Tell when a reader began; None when it is gone, and then its file goes, too."""
    try:
        at = path.stat().st_mtime
    except FileNotFoundError:
        return None
    if 0 <= now - at < GRACE_SECONDS:
        return at
    try:
        with FileLock(path, timeout=0):
            path.unlink(missing_ok=True)
    except Timeout:
        return at if at <= now else 0.0
    return None
