"""One watcher a home: a second one is told who the first is."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from memex.errors import AlreadyRunning, translated_os_errors


@contextmanager
def only_one(home: Path) -> Iterator[None]:
    """Be the only watcher of a home. The claim ends with the process, however that ends.

    Raises:
        AlreadyRunning: another process watches this home.
    """
    about = home / "watch.json"
    lock = FileLock(home / "watch.lock", timeout=0)
    with translated_os_errors(home):
        try:
            lock.acquire()
        except Timeout as error:
            raise AlreadyRunning(f"memex watch runs already{_who(about)}", f"it watches for {home}") from error
    try:
        with suppress(OSError):  # a full disk: then a second one is told less
            _introduce(about)
        yield
    finally:
        about.unlink(missing_ok=True)
        lock.release()


def _introduce(about: Path) -> None:
    about.unlink(missing_ok=True)
    aside = about.with_suffix(".aside")
    aside.write_text(json.dumps({"pid": os.getpid(), "since": datetime.now().astimezone().isoformat()}))
    aside.replace(about)


def _who(about: Path) -> str:
    try:
        holder = json.loads(about.read_text())
        since = datetime.fromisoformat(holder["since"]).astimezone()
        return f": process {int(holder['pid'])}, since {since:%Y-%m-%d %H:%M:%S}"
    except (OSError, ValueError, KeyError, TypeError):  # it is just beginning, or ending
        return ""
