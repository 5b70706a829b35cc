"""Which files changed: the operating system tells, or, where it cannot, a look at all of them every few seconds."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from watchfiles.main import FileChange

TICK_MS = 500
"""How often it is looked whether a place appeared, vanished, or is another one by now."""
STEP_MS = 100
"""Changes are handed on when none came for so long, …"""
DEBOUNCE_MS = 400
"""… or when the first of them is so old."""
POLL_MS = 2000

Identity = tuple[int, int]


class Changes:
    """Files that changed in or below some places since they were last asked for; use as a context manager.

    A place may be missing; once it appears, it counts as changed itself. A path that changes often counts once.
    """

    def __init__(self, places: Sequence[Path], tell: Callable[[str], None]) -> None:
        self._places = tuple(places)
        self._tell = tell
        self._guard = threading.Lock()
        self._paths: set[str] = set()
        self._fresh: set[str] = set()
        self._signals: SimpleQueue[None] = SimpleQueue()  # may be put to by a signal's handler, unlike an Event
        self._again = threading.Event()
        self._waiting: list[threading.Event] = []
        self._ended = False
        self._polling = False
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

    def take(self, seconds: float) -> set[str]:
        """Give the paths that changed; wait for the first of them for up to `seconds`, or until somebody wakes it."""
        try:
            self._signals.get(timeout=max(0.001, seconds))
            while True:
                self._signals.get_nowait()
        except Empty:
            pass
        self._check()
        with self._guard:
            paths, self._paths = self._paths, set()
        return paths

    def wake(self) -> None:
        """End the wait of `take`. A signal's handler may call this."""
        self._signals.put(None)

    def renew(self) -> None:
        """Watch everything anew; what the operating system has lost sight of is seen from here on."""
        watched = threading.Event()
        with self._guard:
            self._waiting.append(watched)
        self._again.set()
        while not watched.wait(TICK_MS / 1000):
            self._check()

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
                self._again.clear()
                self._watch(self._present())
        except BaseException as error:  # raised where the changes are asked for
            self._failure = error
            self.wake()

    def _watch(self, present: dict[Path, Identity]) -> None:
        """Watch the places that there are, until there are others."""
        with self._guard:
            waiting, self._waiting = self._waiting, []
        for changes in self._stream(list(present)):
            self._put(self._fresh)  # only now that they are watched: nothing falls between
            self._fresh = set()
            while waiting:
                waiting.pop().set()
            self._put(path for _kind, path in changes)
            now = self._present()
            if now != present:
                self._fresh = {str(place) for place in now if now[place] != present.get(place)}
                break
        with self._guard:
            self._waiting += waiting

    def _stream(self, places: list[Path]) -> "Iterator[set[FileChange]]":
        if not places:
            yield set()
            while not self._again.wait(TICK_MS / 1000):
                yield set()
            return
        from watchfiles import watch

        options: dict[str, Any] = {"force_polling": True, "poll_delay_ms": POLL_MS} if self._polling else {}
        try:
            yield from watch(
                *places,
                watch_filter=None,
                debounce=DEBOUNCE_MS,
                step=STEP_MS,
                rust_timeout=TICK_MS,
                yield_on_timeout=True,
                ignore_permission_denied=True,
                stop_event=self._again,
                **options,
            )
        except FileNotFoundError:
            return  # it vanished just now
        except (OSError, RuntimeError) as error:
            if self._polling:
                raise
            self._polling = True
            self._tell(
                f"the system cannot watch so many folders ({error}): looking at every file each {POLL_MS // 1000} s "
                "instead, which costs more; on Linux, raise fs.inotify.max_user_watches"
            )

    def _present(self) -> dict[Path, Identity]:
        found = {}
        for place in self._places:
            try:
                stat = place.stat()
            except OSError:
                continue
            found[place] = (stat.st_dev, stat.st_ino)
        return found
