"""The loop: read what changed at once, and between two changes do whatever else is pending, a piece at a time.

Nothing is remembered that outlives the process. At the start everything is planned, as `memex run` does; from then
on files that changed say what to read, and the times of last writes say when a session is silent.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from memex.compact.run import Compact
from memex.errors import MemexError, StoreBusy
from memex.live.changes import POLL_SHARE, Changes
from memex.live.under_way import under_way
from memex.search.refresh import refresh_raw, refresh_summaries
from memex.search.text import TextIndex
from memex.sources.ingest import Ingest
from memex.sources.load import IngestReport
from memex.store.lake import Lake

SWEEP_SECONDS = 600.0
"""How often everything is planned again, for what no event told."""
BLIND_SECONDS = 2.0
"""How often at most that is done because something may have changed unseen."""
ROOTS_SECONDS = 10.0
"""How often it is looked whether there are more folders to watch."""
LOOK_SECONDS = 3.0
"""After a change, how long it may take until completed talks are looked for."""
PEEK_SECONDS = 0.5
"""How long the writing of summaries may keep changes waiting."""
AGAIN_SECONDS = 10.0
"""After an error, how long it rests."""
WRITING = timedelta(days=36500)
"""The delay under which no session is over: of one that is being written, only talks that another one followed."""
PIECE = 8
"""Sessions that are summarised at a time."""


class Summarise(Protocol):
    """Has the pending summaries of some sessions written."""

    def __call__(self, sessions: Sequence[str], delay: timedelta, tick: Callable[[int], None], /) -> str:
        """Write, or have written, what is pending; tell what came of it. `tick` is called now and then."""
        ...


@dataclass(frozen=True, slots=True)
class Here:
    """Summaries written in this process, and findable at once."""

    compact: Compact
    lake: Lake
    index: TextIndex

    def __call__(self, sessions: Sequence[str], delay: timedelta, tick: Callable[[int], None]) -> str:
        """Write what is pending.

        Raises:
            StoreBusy: somebody else is at one of these sessions.
        """
        report = self.compact.run(sessions, delay, tick=tick, patience=0)
        refresh_summaries(self.lake, self.index, of=sessions)
        made = ", ".join(f"{count} {level}" for level, count in report.made.items() if count) or "replacements"
        return made + (f"; {report.failed} failed, memex status says why" if report.failed else "")


class _Stopped(Exception):
    """The wish to end, inside a piece of work that may be broken off."""


@dataclass
class Watch:
    """The verb, with its parts. `tell` gets one line about each thing that happened."""

    ingest: Ingest
    lake: Lake
    index: TextIndex
    summary_index: TextIndex
    compact: Compact
    summarise: Summarise
    tell: Callable[[str], None]
    roots: Callable[[], Mapping[str, tuple[Path, ...]]]
    """The folders to watch, when asked: a pattern may match more by now."""
    most_at_start: int | None = None
    """With more sessions than so many pending at the start, they are left to whoever writes summaries by the hour."""
    _changes: Changes = field(init=False)
    _stopping: bool = False
    _unkept: deque[tuple[str, ...]] = field(default_factory=deque)
    _batches: deque[tuple[str, ...]] = field(default_factory=deque)
    _starting: bool = True
    _touched: set[str] = field(default_factory=set)
    _live: dict[str, datetime] = field(default_factory=dict)
    _due: dict[str, bool] = field(default_factory=dict)
    _unread: set[str] = field(default_factory=set)
    _unwritten: set[str] = field(default_factory=set)
    _rests_until: float = 0.0
    _looked_at: float = 0.0
    _sweep_at: float = 0.0
    _swept_at: float = -BLIND_SECONDS
    _renewed_at: float = 0.0
    _roots_at: float = 0.0
    _peeked_at: float = 0.0

    def __post_init__(self) -> None:
        self._changes = Changes(self.ingest.places(), self.tell)

    def run(self) -> None:
        """Watch until `stop` is called."""
        with self._changes:
            self._renewed_at = time.monotonic()
            places = [place for place in self.ingest.places() if place.exists()]
            self.tell("watching " + (", ".join(map(str, places)) or "for the first log to appear"))
            while not self._stopping:
                try:
                    self._step()
                except _Stopped:
                    return
                except MemexError as error:
                    self._rests_until = time.monotonic() + AGAIN_SECONDS
                    self.tell(f"{error}: trying again in {AGAIN_SECONDS:.0f} s")

    def stop(self) -> None:
        """End the watch soon. A signal's handler may call this."""
        self._stopping = True
        self._changes.wake()

    def _step(self) -> None:
        """Read what changed; then do one piece of what else there is to do."""
        paths, blind = self._changes.take(self._seconds_to_wait())
        now = time.monotonic()
        if blind:
            self._sweep_at = min(self._sweep_at, self._swept_at + BLIND_SECONDS)
        if now < self._rests_until or self._stopping:
            self._unread |= paths
            return
        if paths or self._unread:
            self._read(paths)
        if now >= self._roots_at:
            self._find_roots(now)
        if now >= self._sweep_at:
            self._sweep(now)
        elif self._unkept:
            self._keep_batch()
        elif self._batches:
            self._read_batch()
        elif self._starting:
            self._finish_start()
        elif self._must_look(now):
            self._look(now)
        elif self._due:
            self._write()

    def _seconds_to_wait(self) -> float:
        now = time.monotonic()
        if now < self._rests_until:
            return self._rests_until - now
        if self._batches or self._starting or self._due or self._unread:
            return 0.0
        waits = [self._sweep_at - now, self._roots_at - now]
        if self._touched:
            waits.append(self._looked_at + LOOK_SECONDS - now)
        if self._live:
            waits.append((min(self._live.values()) - self.compact.clock()).total_seconds())
        return max(0.0, min(waits))

    def _read(self, paths: set[str]) -> None:
        """Read the files at some paths, so that what is new in them is findable."""
        self._unread |= paths  # until it is done
        paths = self._unread
        if marked := self.ingest.mark_gone(self.ingest.known_at(filter(_is_gone, paths))):
            self.tell(f"gone: {marked} files; what they held is kept")
        for batch in self.ingest.batches_at(paths):
            files = [file for found in batch.values() for file in found]
            self._read_in(list(batch), self.ingest.read_files(batch, files, with_orphans=False))
        self._unread = set()

    def _keep_batch(self) -> None:
        """Archive one batch of several: a copied session must find the one it was copied from."""
        report = self.ingest.keep(self._unkept[0])
        self._unkept.popleft()
        for problem in report.unreadable:
            self.tell(f"cannot read {problem}")

    def _read_batch(self) -> None:
        """Read one batch of what the last plan found."""
        batch = list(self._batches[0])
        self._read_in(batch, self.ingest.read(batch))
        self._batches.popleft()

    def _read_in(self, sessions: list[str], report: IngestReport) -> None:
        """Make findable what was read."""
        refresh_raw(self.lake, self.index, of=sessions)
        self._touched.update(sessions)
        if report.bytes_read:
            self.tell(f"read {_names(sessions)}: {report.bytes_read:,} bytes")
        for problem in report.unreadable:
            self.tell(f"cannot read {problem}")

    def _find_roots(self, now: float) -> None:
        """Watch other folders when there are others to watch."""
        self._roots_at = now + ROOTS_SECONDS
        if (roots := self.roots()) != self.ingest.roots:
            self.ingest = replace(self.ingest, roots=roots)
            self._changes.renew(self.ingest.places())
            self._sweep_at = now

    def _sweep(self, now: float) -> None:
        """Plan everything anew, and watch anew before that when it is long ago: then nothing falls between."""
        self._sweep_at = now + AGAIN_SECONDS
        if now >= self._renewed_at + SWEEP_SECONDS:
            self._changes.renew()
            self._renewed_at = now
        plan = self.ingest.plan()
        self._batches = deque(plan.batches)
        self._unkept = deque(plan.batches if len(plan.batches) > 1 else ())
        self.ingest.mark_gone(plan.gone)
        self._swept_at, self._sweep_at = now, now + SWEEP_SECONDS
        if plan.batches and self._changes.are_looked_for:  # what was found here may be gone before the next look
            self._sweep_at = now + max(BLIND_SECONDS, POLL_SHARE * (time.monotonic() - now))
        if plan.sessions:
            self.tell(f"to read: {plan.sessions} sessions")
        for problem in plan.unreadable if self._starting else ():
            self.tell(f"cannot read {problem}")
        failures = self.lake.frame("failures", ["session_id", "retry_at"])
        self._touched.update(failures.filter(failures["retry_at"] <= self.compact.clock())["session_id"])
        self._touched |= self._unwritten
        self._unwritten = set()

    def _finish_start(self) -> None:
        """Do what a process that was killed may have left undone, once everything is read."""
        refresh_raw(self.lake, self.index)
        refresh_summaries(self.lake, self.summary_index)
        self._live = under_way(self.lake, self.compact.clock(), self._idle)
        pending = [session for batch in self.compact.plan().batches for session in batch]
        self._starting = False
        if self.most_at_start is not None and len(pending) > self.most_at_start:
            self.tell(f"{len(pending)} sessions wait for summaries: the hourly flow writes them")
        elif pending:
            self._due = self._due | {session: session in self._live for session in pending}
            self.tell(f"to summarise: {len(pending)} sessions")

    def _must_look(self, now: float) -> bool:
        silent = bool(self._live) and min(self._live.values()) <= self.compact.clock()
        return silent or (bool(self._touched) and now >= self._looked_at + LOOK_SECONDS)

    def _look(self, now: float) -> None:
        """Find the sessions of which something may be complete: written since the last look, or silent by now."""
        self._looked_at = now
        live = under_way(self.lake, self.compact.clock(), self._idle)
        found = {session: session in live for session in sorted(self._touched | (self._live.keys() - live.keys()))}
        self._due = found | {session: writing for session, writing in self._due.items() if session not in found}
        self._touched, self._live = set(), live

    def _write(self) -> None:
        """Have a few sessions summarised that are all being written, or all silent."""
        writing = next(iter(self._due.values()))
        piece = [session for session, live in self._due.items() if live is writing][:PIECE]
        delay = WRITING if writing else timedelta()
        try:
            for batch in self.compact.plan(piece, delay).batches:
                self.tell(f"summarised {_names(batch)}: {self.summarise(batch, delay, self._peek)}")
        except StoreBusy:  # somebody else may be doing it: looked for again soon, not waited for
            self._touched.update(piece)
        except MemexError as error:  # it must not keep anybody from reading
            self._unwritten.update(piece)
            self.tell(f"{error}: trying again within {SWEEP_SECONDS / 60:.0f} minutes")
        for session in piece:
            if self._due.get(session) is writing:
                del self._due[session]

    def _peek(self, _count: int) -> None:
        """Read what changed in the middle of other work, when that takes long."""
        now = time.monotonic()
        if self._stopping:
            raise _Stopped
        if now >= self._peeked_at + PEEK_SECONDS:
            paths, blind = self._changes.take(0)
            if blind:
                self._sweep_at = now
            if paths:
                self._read(paths)
            self._peeked_at = time.monotonic()

    @property
    def _idle(self) -> timedelta:
        return timedelta(minutes=self.compact.settings.idle_minutes)


def _names(sessions: Sequence[str]) -> str:
    return sessions[0] if len(sessions) == 1 else f"{len(sessions)} sessions"


def _is_gone(path: str) -> bool:
    try:
        os.stat(path)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False
