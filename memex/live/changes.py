"""Which files changed: the operating system tells, or, where it cannot, a look at all of them every few seconds."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue

from memex.sources.walk import Stat, walk

TICK_MS = 500
"""How often it is looked whether a place appeared, vanished, or is another one by now."""
STEP_MS = 100
"""Changes are handed on when none came for so long, …"""
DEBOUNCE_MS = 400
"""… or when the first of them is so old."""
REFUSALS = 3
"""Refusals in a row, a tick apart, after which the system is believed: it gives back what was watched before only a
while after that was closed."""
POLL_SECONDS = 2.0
POLL_SHARE = 20
"""Looking at all files takes at most one part in so many of the time."""
EACH_FOLDER = sys.platform == "linux"
"""inotify watches single folders. Left to itself, watchfiles follows links out of the folder of logs, and is silent
about new folders for which the system has no watch left."""

Identity = tuple[int, int]


class Changes:
    """Files that changed in or below some places since they were last asked for; use as a context manager.

    A place may be missing. A path that changes often counts once.
    """

    def __init__(self, places: Sequence[Path], tell: Callable[[str], None]) -> None:
        self._places = tuple(places)
        self._tell = tell
        self._guard = threading.Lock()
        self._paths: set[str] = set()
        self._blind = False
        self._signals: SimpleQueue[None] = SimpleQueue()  # may be put to by a signal's handler, unlike an Event
        self._again = threading.Event()
        self._waiting: list[threading.Event] = []
        self._ended = False
        self._polling = False
        self._refusals = 0
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="changes", daemon=True)

    def __enter__(self) -> "Changes":
        self._thread.start()
        self.renew()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended = True
        self._again.set()
        self._thread.join()

    def take(self, seconds: float) -> tuple[set[str], bool]:
        """Give the paths that changed, and whether others may have changed unseen.

        Waits for the first of them for up to `seconds`, or until somebody wakes it.
        """
        try:
            self._signals.get(timeout=max(0.001, seconds))
            while True:
                self._signals.get_nowait()
        except Empty:
            pass
        self._check()
        with self._guard:
            paths, self._paths = self._paths, set()
            blind, self._blind = self._blind, False
        return paths, blind

    @property
    def are_looked_for(self) -> bool:
        """Whether a file that came and went between two looks at all files is not told of."""
        return self._polling

    def wake(self) -> None:
        """End the wait of `take`. A signal's handler may call this."""
        self._signals.put(None)

    def renew(self, places: Sequence[Path] = ()) -> None:
        """Watch everything anew, from now on these places, if any are given: what changes from here on is seen."""
        self._places = tuple(places) or self._places
        watched = threading.Event()
        with self._guard:
            self._waiting.append(watched)
            self._again.set()
        while not watched.wait(TICK_MS / 1000):
            self._check()
        with self._guard:
            self._blind = False

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _put(self, paths: Iterable[str]) -> None:
        with self._guard:
            self._paths.update(paths)
            changed = bool(self._paths)
        if changed:
            self.wake()

    def _run(self) -> None:
        try:
            while not self._ended:
                self._watch()
        except BaseException as error:  # raised where the changes are asked for
            self._failure = error
            self.wake()

    def _watch(self) -> None:
        """Watch the places that there are, until there are others."""
        with self._guard:
            waiting, self._waiting = self._waiting, []
            self._again.clear()
        if self._ended:
            return
        present, watched = self._present(), False
        for paths in self._stream(list(present)):
            if not watched:
                self._began(waiting)
                watched = True
            self._put(paths)
            if self._present() != present:
                break
        if not watched:
            with self._guard:
                self._waiting += waiting

    def _began(self, waiting: Iterable[threading.Event]) -> None:
        """Note that from now on changes are seen, and that those since the last watch ended were not."""
        with self._guard:
            self._blind = True
        for watched in waiting:
            watched.set()
        self.wake()

    def _stream(self, places: list[Path]) -> Iterator[set[str]]:
        """Yield what changed, at first nothing, once it is watched; end when it has to be watched anew."""
        if self._polling:
            yield from self._polled()
            return
        try:
            yield from self._notified(places)
        except FileNotFoundError:
            return  # it vanished just now
        except (OSError, RuntimeError) as error:
            self._refusals += 1
            if self._refusals < REFUSALS:
                time.sleep(TICK_MS / 1000)
                return
            self._polling = True
            self._tell(
                f"the system cannot watch so many folders ({error}): looking at every file every few seconds instead, "
                "which costs more; on Linux, raise fs.inotify.max_user_watches and fs.inotify.max_user_instances"
            )

    def _notified(self, places: list[Path]) -> Iterator[set[str]]:
        from watchfiles import Change
        from watchfiles._rust_notify import RustNotify

        watched = _folders(places) if EACH_FOLDER else {str(place) for place in places}
        # Told to ignore what it may not read, it ignores the limits of the system as well.
        with RustNotify(sorted(watched), False, False, 0, not EACH_FOLDER, not EACH_FOLDER) as notify:
            self._refusals = 0
            if EACH_FOLDER and _folders(places) - watched:
                return  # one that was made before its parent was watched
            yield set()
            while (told := notify.watch(DEBOUNCE_MS, STEP_MS, TICK_MS, self._again)) != "stop":
                changes = told if isinstance(told, set) else set()
                yield {path for _kind, path in changes}
                if EACH_FOLDER and any(kind == Change.added and _is_folder(path) for kind, path in changes):
                    return

    def _polled(self) -> Iterator[set[str]]:
        before = self._states()
        yield set()
        pause = POLL_SECONDS
        while not self._again.wait(pause):
            started = time.monotonic()
            now = self._states()
            pause = max(POLL_SECONDS, POLL_SHARE * (time.monotonic() - started))
            yield {path for path, _stat in before.items() ^ now.items()}
            before = now

    def _states(self) -> dict[str, Stat]:
        return {entry.place: entry.stat for place in self._places for entry in walk(place)}

    def _present(self) -> dict[Path, Identity]:
        found = {}
        for place in self._places:
            try:
                stat = place.stat()
            except OSError:
                continue
            found[place] = (stat.st_dev, stat.st_ino)
        return found


def _folders(places: Iterable[Path]) -> set[str]:
    """List the places, and the folders below them, that may be read; no link is followed but a place itself."""
    found = {str(place) for place in places if os.access(place, os.R_OK)}
    return found | {folder for place in places for folder, _names, _files in os.walk(place)}


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)  # noqa: PTH112, PTH114 - of every path that changes
