"""Ingest: bytes into the archive, records into the lake. Unchanged files cause no write.

What is pending is computed, never remembered: a file whose state differs from that in the lake's `sources`
table, or an archived file that the table does not have in its present generation, size and parser version.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path

from filelock import FileLock

from memex.errors import translated_os_errors
from memex.model import Source
from memex.sources.acts import Acts
from memex.sources.archive import Archive, UnreadableSource, source_id
from memex.sources.base import Adapter, Found
from memex.sources.frames import Kept
from memex.sources.lines import Census
from memex.sources.load import IngestReport, Load, State, collector_paused, source_row
from memex.sources.parse import Checkpoints
from memex.sources.project import Projects
from memex.sources.settle import is_settled, settle
from memex.sources.tombstones import Tombstones
from memex.store.lake import Lake, in_list
from memex.store.schemas import RAW_TABLES, to_arrow
from memex.text import storable

BATCH_BYTES = 32 * 1024 * 1024
BATCH_SESSIONS = 200


@dataclass(frozen=True, slots=True)
class IngestPlan:
    """What an ingest would do: session ids to read in batches, paths that are gone, sessions unchanged.

    `forgotten` sessions have files on disk that are left alone.
    """

    batches: tuple[tuple[str, ...], ...] = ()
    gone: tuple[str, ...] = ()
    unchanged: int = 0
    unreadable: tuple[str, ...] = ()
    forgotten: int = 0

    @property
    def sessions(self) -> int:
        """Sessions to read."""
        return sum(map(len, self.batches))

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.batches and not self.gone


@dataclass(frozen=True)
class Ingest:
    """The verb, with its parts. `roots` names the folders of each CLI that are read."""

    archive: Archive
    lake: Lake
    adapters: Mapping[str, Adapter]
    roots: Mapping[str, tuple[Path, ...]]
    exclude: tuple[str, ...] = ()
    checkpoint_from: int = 128 * 1024
    _settled: dict[str, tuple[int, int, int]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def checkpoints(self) -> Checkpoints:
        """Where readers are set aside between two reads of a growing log."""
        return Checkpoints(self.archive.root.parent / "cache" / "readers", self.checkpoint_from)

    @cached_property
    def projects(self) -> Projects:
        """The projects there are."""
        return Projects(Acts(self.archive.root), lambda text: Tombstones.of(self.archive.root).text(text))

    @property
    def _load(self) -> Load:
        return Load(self.archive, self.lake, self.adapters, self.checkpoints, self.projects)

    def plan(self) -> IngestPlan:
        """Compare disk, lake and archive."""
        with collector_paused():
            return self._plan()

    def _plan(self) -> IngestPlan:
        known, tombstones = self._states(), Tombstones.of(self.archive.root)
        forgotten: set[str] = set()
        pending: dict[str, _Pending] = {}
        seen: set[tuple[str, str]] = set()
        unchanged: set[str] = set()
        unreadable = []
        for file in self.discover():
            if tombstones.covers(file.cli, file.session_id, file.place):
                forgotten.add(file.session_id)
                continue
            key = (file.cli, tombstones.place(file.place) if tombstones else file.place)
            seen.add(key)
            if problem := _problem(file):
                unreadable.append(f"{storable(key[1])}: {problem}")
                continue
            state = known.get(key)
            if state and not state.gone and state.file == file.stat and self._is_current(file.cli, state):
                unchanged.add(file.session_id)
            else:
                pending.setdefault(file.session_id, _Pending()).add(file.stat[0], file.stat[1])
        gone = []
        for (cli, path), state in known.items():
            if cli not in self.adapters or (cli, path) in seen:
                continue
            if not self._is_current(cli, state):
                pending.setdefault(state.session_id, _Pending()).add(state.parsed[1], state.file[1])
            if not state.gone and cli in self.roots and not Path(path).exists():
                gone.append(path)
        for kept in self._orphans({state.id for state in known.values()}):
            if (kept.cli, kept.path) not in seen:
                pending.setdefault(kept.session_id, _Pending()).add(kept.size, kept.stat[1])
        return IngestPlan(
            tuple(_batches(pending)),
            tuple(gone),
            len(unchanged - pending.keys()),
            tuple(unreadable),
            len(forgotten),
        )

    def run(self, plan: IngestPlan, tick: Callable[[int], None] = lambda _sessions: None) -> IngestReport:
        """Carry a plan out: everything into the archive, then batch by batch into the lake.

        `tick` gets the sessions read so far.
        """
        report = IngestReport(gone=self.mark_gone(plan.gone), unreadable=plan.unreadable)
        files: dict[str, list[Found]] = {}
        for file in self.discover() if plan.batches else ():
            files.setdefault(file.session_id, []).append(file)
        several = len(plan.batches) > 1
        if several:
            report += self.keep([session for batch in plan.batches for session in batch])
        with self.lake.in_bulk() if several else nullcontext():
            for batch in plan.batches:
                report += self.read_files(batch, [file for session in batch for file in files.get(session, ())])
                tick(report.sessions)
        return report

    def mark_gone(self, paths: Collection[str]) -> int:
        """Note the sources that are no longer on disk; nothing of them is removed."""
        if not paths:
            return 0
        with self._locked():
            rows = self.lake.scan("sources", None, in_list("path", sorted(paths)) + " AND NOT gone").to_pylist()
            for row in rows:
                if kept := self.archive.load(row["cli"], row["id"]):
                    self.archive.mark_gone(kept)
            self.lake.upsert("sources", to_arrow("sources", [Source(**{**row, "gone": True}) for row in rows]))
        return len(rows)

    def known_at(self, paths: Iterable[str]) -> list[str]:
        """Name the known sources at some paths, and below them; those that are gone already are left out."""
        wanted = set(paths)
        if not wanted:
            return []
        beginnings = tuple(f"{path}{os.sep}" for path in wanted)
        known = self.lake.scan("sources", ["path"], "NOT gone")["path"].to_pylist()
        return [path for path in known if path in wanted or path.startswith(beginnings)]

    def keep(self, sessions: Collection[str]) -> IngestReport:
        """Archive what is new of some sessions, and parse nothing yet."""
        wanted = frozenset(sessions)
        with self._locked():
            files = [file for file in self.discover() if file.session_id in wanted and not _problem(file)]
            bytes_read, unreadable = self._keep(files, self._kept(sorted(wanted), files))
        return IngestReport(bytes_read=bytes_read, unreadable=unreadable)

    def read(self, sessions: Collection[str]) -> IngestReport:
        """Archive and parse some sessions. Two processes take turns, and see each other's work."""
        wanted = frozenset(sessions)
        return self.read_files(wanted, (file for file in self.discover() if file.session_id in wanted))

    def read_files(self, sessions: Collection[str], files: Iterable[Found], with_orphans: bool = True) -> IngestReport:
        """Archive and parse some sessions, given their files that may have changed.

        What a crash left of them in the archive alone is read, too; to find that, the whole archive is listed.
        """
        with self._locked():
            ids, files = sorted(set(sessions)), [file for file in files if not _problem(file)]
            kept = self._kept(ids, files, with_orphans)
            bytes_read, unreadable = self._keep(files, kept)
            before = {state.id: state for state in self._states(in_list("session_id", ids)).values()}
            groups: dict[str, list[Kept]] = {}
            for source in kept.values():
                groups.setdefault(source.session_id, []).append(source)
            stale, touched = {}, []
            for session, group in groups.items():
                if not all(self._is_parsed(source, before.get(source.id)) for source in group):
                    stale[session] = group
                else:
                    touched += [source for source in group if before[source.id].file != source.stat]
            self._note_state(touched)
            report = self._load.sessions(stale, before)
            self._settle()
        return report + IngestReport(bytes_read=bytes_read, unreadable=unreadable)

    def rebuild(self, tick: Callable[[int], None] = lambda _sessions: None) -> IngestReport:
        """Make sources, sessions, talks, messages and calls anew from the archive alone.

        Every generation is read, oldest first, so what a rewrite dropped is stored again as superseded.
        """
        with self._locked():
            for table in RAW_TABLES:
                self.lake.clear(table)
            kept: dict[str, list[Kept]] = {}
            for source in self.archive.sources():
                if source.cli in self.adapters:
                    kept.setdefault(source.session_id, []).append(source)
            unread = [source_row(k, Census(), parser_version=0, size=0) for group in kept.values() for k in group]
            self.lake.upsert("sources", to_arrow("sources", unread))
            report = self.reread(kept, tick)
            settle(self.lake, self.projects)
        return report

    def reread(
        self, groups: Mapping[str, list[Kept]], tick: Callable[[int], None] = lambda _sessions: None
    ) -> IngestReport:
        """Read sessions from the archive as if for the first time. The caller holds the lock."""
        self.checkpoints.clear()
        order = sorted(groups, key=lambda session: min((k.first_at, k.stat[1], session) for k in groups[session]))
        report = IngestReport()
        with self.lake.in_bulk():
            for start in range(0, len(order), BATCH_SESSIONS):
                batch = {session: groups[session] for session in order[start : start + BATCH_SESSIONS]}
                report += self._load.sessions(batch, {})
                tick(report.sessions)
        return report

    def merge_projects(self, source: str, target: str) -> int:
        """Make a project part of another, for all that is kept and all that comes; return the sessions moved.

        Raises:
            DiskFull, HomeError: it could not be noted, and nothing has changed.
        """
        with self._locked():
            self.projects.merge(source, target)
            return settle(self.lake, self.projects)

    def forget_projects(self) -> None:
        """Forget the projects of which no session is left. The caller holds the lock."""
        self.projects.forget_all_but(set(self.lake.scan("sessions", ["project_id"])["project_id"].to_pylist()))
        settle(self.lake, self.projects)

    def expiring(self, now: datetime, within: timedelta) -> Iterator[tuple[Found, datetime]]:
        """Find the files that their CLI will delete within some time, each with when."""
        for cli, roots in self.roots.items():
            for root in roots:
                kept_for = self.adapters[cli].retention(root)
                if kept_for is None:
                    continue
                for file in self.adapters[cli].discover(root):
                    end = datetime.fromtimestamp(file.stat[1] / 1e9, UTC) + kept_for
                    if file.role == "log" and not file.refused and end <= now + within:
                        yield file, end

    def discover(self) -> Iterator[Found]:
        """Find every log file that is not excluded."""
        for cli, roots in self.roots.items():
            for root in roots:
                for file in self.adapters[cli].discover(root):
                    if not self._is_excluded(file):
                        yield file

    def batches_at(self, paths: Collection[str]) -> Iterator[dict[str, list[Found]]]:
        """Find the files at some paths, and below those that are folders; give them by session, in batches.

        The work grows with what is there, not with all that there is.
        """
        files: dict[str, list[Found]] = {}
        pending: dict[str, _Pending] = {}
        roots = [(self.adapters[cli], root) for cli, roots in self.roots.items() for root in roots]
        for file in {file for adapter, root in roots for file in adapter.discover_at(root, paths)}:
            if not self._is_excluded(file) and not _problem(file):
                files.setdefault(file.session_id, []).append(file)
                pending.setdefault(file.session_id, _Pending()).add(file.stat[0], file.stat[1])
        for batch in _batches(pending):
            yield {session: files[session] for session in batch}

    def places(self) -> list[Path]:
        """Name every file and folder that is read, whether it exists or not."""
        found = (self.adapters[cli].places(root) for cli, roots in self.roots.items() for root in roots)
        return list(dict.fromkeys(place for places in found for place in places))

    def _is_excluded(self, file: Found) -> bool:
        return any(fnmatch(file.place, pattern) for pattern in self.exclude)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        home = self.archive.root.parent
        with translated_os_errors(home):
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            with ingest_lock(home):
                yield

    def _settle(self) -> None:
        """Bring rows to what is known of projects by now; cheap, as long as no more is known than before."""
        if self.projects.state != self._settled.get("state"):
            if not is_settled(self.lake, self.projects):
                settle(self.lake, self.projects)
            self._settled["state"] = self.projects.state

    def _kept(self, sessions: list[str], files: list[Found], with_orphans: bool = True) -> dict[str, Kept]:
        """Look up what the archive has of some sessions and files, by source id."""
        rows = self.lake.scan("sources", ["id", "cli"], in_list("session_id", sessions)).to_pylist()
        wanted = {row["id"]: row["cli"] for row in rows} | {_id(file): file.cli for file in files}
        found = {key: kept for key, cli in wanted.items() if (kept := self.archive.load(cli, key))}
        orphans = self._orphans() if with_orphans else ()
        return found | {kept.id: kept for kept in orphans if kept.session_id in set(sessions)}

    def _keep(self, files: list[Found], kept: dict[str, Kept]) -> tuple[int, tuple[str, ...]]:
        """Archive what is new of some files, into `kept` too; return the bytes read and what could not be."""
        bytes_read, unreadable, added = 0, [], []
        changed = [file for file in files if not _has(kept.get(_id(file)), file)]
        for new in self.archive.take(changed):
            if isinstance(new, UnreadableSource):
                unreadable.append(storable(str(new)))
                continue
            old = kept.get(new.id)
            if old is None:
                added.append(source_row(new, Census(), parser_version=0, size=0))
            bytes_read += new.size - (old.size if old and old.generation == new.generation else 0)
            kept[new.id] = new
        self.lake.upsert("sources", to_arrow("sources", added))
        return bytes_read, tuple(unreadable)

    def _states(self, where: str | None = None) -> dict[tuple[str, str], State]:
        """Read what the lake knows of sources, by CLI and path."""
        rows = self.lake.scan("sources", State._fields, where)
        states = map(State._make, zip(*(rows[name].to_pylist() for name in State._fields), strict=True))
        return {state[:2]: state for state in states}

    def _orphans(self, known: Collection[str] | None = None) -> Iterator[Kept]:
        """Find what the archive has and the lake has not: a crash, or a lake made anew."""
        known = set(self.lake.scan("sources", ["id"])["id"].to_pylist()) if known is None else known
        for cli, key in self.archive.others(known):
            if cli in self.adapters and (kept := self.archive.load(cli, key)):
                yield kept

    def _is_current(self, cli: str, state: State) -> bool:
        return state.parsed[2] == self.adapters[cli].parser_version

    def _is_parsed(self, source: Kept, state: State | None) -> bool:
        version = self.adapters[source.cli].parser_version
        return state is not None and state.parsed == (source.generation, source.size, version)

    def _note_state(self, sources: list[Kept]) -> None:
        """Record the file state of sources that were touched and hold what they held."""
        states = {source.id: source.stat for source in sources}
        rows = self.lake.scan("sources", None, in_list("id", sorted(states))).to_pylist()
        for row in rows:
            row["file_size"], row["file_mtime_ns"], row["file_ctime_ns"] = states[row["id"]]
            row["gone"] = False
        self.lake.upsert("sources", to_arrow("sources", [Source(**row) for row in rows]))


def ingest_lock(home: Path) -> FileLock:
    """Give the lock of whoever writes to the archive and the tables made of it."""
    return FileLock(home / "ingest.lock")


@dataclass(slots=True)
class _Pending:
    """What there is to read of a session: bytes, and when it was last written."""

    bytes: int = 0
    written: int = 0

    def add(self, size: int, mtime: int) -> None:
        self.bytes += size
        self.written = max(self.written, mtime)


def _batches(pending: Mapping[str, _Pending]) -> Iterator[tuple[str, ...]]:
    """Cut sessions into batches of bounded size, oldest first; one larger than the bound is alone."""
    batch: list[str] = []
    room = BATCH_BYTES
    for session in sorted(pending, key=lambda s: (pending[s].written, s)):
        size = pending[session].bytes
        if batch and (size > room or len(batch) >= BATCH_SESSIONS):
            yield tuple(batch)
            batch, room = [], BATCH_BYTES
        batch.append(session)
        room -= size
    if batch:
        yield tuple(batch)


def _id(file: Found) -> str:
    return source_id(file.cli, file.place)


def _has(kept: Kept | None, file: Found) -> bool:
    return kept is not None and not kept.gone and kept.stat == file.stat


def _problem(file: Found) -> str:
    """Say why a file cannot be read; nothing when it can."""
    if file.refused:
        return file.refused
    try:
        file.place.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8: rename it"
    return ""
