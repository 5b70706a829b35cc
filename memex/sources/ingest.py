"""Ingest: bytes into the archive, records into the lake. Unchanged files cause no write.

What is pending is computed, never remembered: a file that differs from the archive, or an archived file
that the lake's `sources` table does not have in its present size, generation and parser version.
"""

import gc
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

from filelock import FileLock

from memex.errors import MemexError, translated_os_errors
from memex.model import Source
from memex.sources.archive import Archive, Kept, UnreadableSource, source_id
from memex.sources.base import Adapter, BadLine, Blob, Census, Found, Parsed
from memex.sources.commit import commit
from memex.sources.project import project_of
from memex.store.lake import Lake, in_list
from memex.store.schemas import to_arrow
from memex.text import storable

BATCH_BYTES = 32 * 1024 * 1024
BATCH_SESSIONS = 200


@dataclass(frozen=True, slots=True)
class IngestPlan:
    """What an ingest would do: session ids to read in batches, paths that are gone, sessions unchanged."""

    batches: tuple[tuple[str, ...], ...] = ()
    gone: tuple[str, ...] = ()
    unchanged: int = 0
    unreadable: tuple[str, ...] = ()

    @property
    def sessions(self) -> int:
        """Sessions to read."""
        return sum(map(len, self.batches))

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.batches and not self.gone


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What an ingest did. `unreadable` lists files that could not be opened, with the reason."""

    sessions: int = 0
    files: int = 0
    bytes_read: int = 0
    messages: int = 0
    tool_calls: int = 0
    talks: int = 0
    bad_lines: int = 0
    gone: int = 0
    unreadable: tuple[str, ...] = ()

    def __add__(self, other: "IngestReport") -> "IngestReport":
        return IngestReport(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Ingest:
    """The verb, with its parts. `roots` names the folder of each CLI that is read."""

    archive: Archive
    lake: Lake
    adapters: Mapping[str, Adapter]
    roots: Mapping[str, Path]
    exclude: tuple[str, ...] = ()

    def plan(self) -> IngestPlan:
        """Compare disk, archive and lake."""
        kept = {(source.cli, source.path): source for source in self.archive.sources()}
        parsed = self._parsed()
        sizes: dict[str, int] = {}
        unchanged: set[str] = set()
        seen: set[tuple[str, str]] = set()
        unreadable = []
        for file in self.discover():
            seen.add((file.cli, str(file.path)))
            source = kept.get((file.cli, str(file.path)))
            try:
                str(file.path).encode()
                size = file.path.stat().st_size
                if not file.path.is_file():
                    unreadable.append(f"{file.path}: not a file")
                    continue
                current = source is not None and self.archive.is_current(source, file.path)
            except (OSError, UnicodeEncodeError) as error:
                unreadable.append(_why(file.path, error))
                continue
            if source is not None and current and self._is_parsed(source, parsed):
                unchanged.add(file.session_id)
            else:
                sizes[file.session_id] = sizes.get(file.session_id, 0) + size
        absent = [source for key, source in kept.items() if key not in seen and source.cli in self.adapters]
        for source in absent:
            if not self._is_parsed(source, parsed):
                sizes[source.session_id] = sizes.get(source.session_id, 0) + source.size
        gone = tuple(s.path for s in absent if not s.gone and s.cli in self.roots and not Path(s.path).exists())
        return IngestPlan(tuple(_batches(sizes)), gone, len(unchanged - sizes.keys()), tuple(unreadable))

    def run(self, plan: IngestPlan, tick: Callable[[int], None] = lambda _sessions: None) -> IngestReport:
        """Carry a plan out, batch by batch; `tick` gets the sessions read so far."""
        report = IngestReport(gone=self.mark_gone(plan.gone), unreadable=plan.unreadable)
        for batch in plan.batches:
            report += self.read(batch)
            tick(report.sessions)
        return report

    def mark_gone(self, paths: Collection[str]) -> int:
        """Note the sources that are no longer on disk; nothing of them is removed."""
        gone = [source for source in self.archive.sources() if source.path in paths and not source.gone]
        for source in gone:
            self.archive.mark_gone(source)
        return len(gone)

    def read(self, sessions: Collection[str]) -> IngestReport:
        """Archive and parse some sessions. Two processes take turns, and see each other's work."""
        home = self.archive.root.parent
        with translated_os_errors(home):
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            with FileLock(home / "ingest.lock"):
                return self._read(frozenset(sessions))

    def _read(self, sessions: frozenset[str]) -> IngestReport:
        before = self._parsed(in_list("session_id", sorted(sessions)))
        kept = {source.id: source for source in self.archive.sources() if source.session_id in sessions}
        bytes_read, unreadable = self._keep(sessions, kept)
        groups: dict[tuple[str, str], list[Kept]] = {}
        for source in kept.values():
            groups.setdefault((source.cli, source.session_id), []).append(source)
        stale = {key: group for key, group in groups.items() if not all(self._is_parsed(s, before) for s in group)}
        parsed: list[Parsed] = []
        rows: list[Source] = []
        with collector_paused():
            for key, group in stale.items():
                try:
                    result = self._parse(key, group)
                except MemexError:
                    raise
                except Exception as error:  # one session that the parser cannot take must not stop the others
                    census = Census(bad=[BadLine(0, f"the parser failed: {type(error).__name__}: {error}"[:300])])
                    rows += [self._source_row(source, census) for source in group]
                    continue
                parsed.append(result)
                rows += [self._source_row(source, result.census.get(source.id)) for source in group]
        rewritten = {s.session_id for s in kept.values() if s.id in before and before[s.id][0] != s.generation}
        commit(self.lake, parsed, rewritten)
        self.lake.upsert("sources", to_arrow("sources", rows))
        return IngestReport(
            sessions=len(parsed),
            files=len(rows),
            bytes_read=bytes_read,
            messages=sum(len(p.messages) for p in parsed),
            tool_calls=sum(len(p.calls) for p in parsed),
            talks=sum(len(p.talks) for p in parsed),
            bad_lines=sum(row.bad_lines.count('"offset"') for row in rows),
            unreadable=tuple(unreadable),
        )

    def _keep(self, sessions: frozenset[str], kept: dict[str, Kept]) -> tuple[int, list[str]]:
        """Archive what is new of some sessions; return the bytes read and the files that could not be."""
        changed = []
        unreadable = []
        for file in self.discover():
            try:
                str(file.path).encode()
                if file.session_id in sessions and not self.archive.is_current(self._kept(kept, file), file.path):
                    changed.append(file)
            except (OSError, UnicodeEncodeError) as error:
                unreadable.append(_why(file.path, error))
        bytes_read = 0
        for new in self.archive.take(changed):
            if isinstance(new, UnreadableSource):
                unreadable.append(str(new))
                continue
            old = kept.get(new.id)
            bytes_read += new.size - (old.size if old and old.generation == new.generation else 0)
            kept[new.id] = new
        return bytes_read, unreadable

    def _kept(self, kept: Mapping[str, Kept], file: Found) -> Kept | None:
        return kept.get(source_id(file.cli, file.path))

    def _parse(self, key: tuple[str, str], sources: list[Kept]) -> Parsed:
        cli, session_id = key
        ordered = sorted(sources, key=lambda s: (s.role != "side", s.path))
        blobs = (Blob(s.id, Path(s.path), "side" if s.role == "side" else "log", self.archive.read(s)) for s in ordered)
        return self.adapters[cli].parse(session_id, blobs, project_of)

    def _source_row(self, source: Kept, census: Census | None) -> Source:
        import orjson

        row = Source(
            id=source.id,
            cli=source.cli,
            path=source.path,
            session_id=source.session_id,
            generation=source.generation,
            size=source.size,
            parser_version=self.adapters[source.cli].parser_version,
        )
        if census is None:
            return row
        return replace(
            row,
            lines=census.lines,
            records=orjson.dumps(census.records).decode(),
            bad_lines=orjson.dumps(census.bad).decode(),
            torn_bytes=census.torn_bytes,
        )

    def _parsed(self, where: str | None = None) -> dict[str, tuple[int, int, int]]:
        columns = ("id", "generation", "size", "parser_version")
        rows = self.lake.scan("sources", columns, where).to_pydict()
        states = zip(rows["generation"], rows["size"], rows["parser_version"], strict=True)
        return dict(zip(rows["id"], states, strict=True))

    def _is_parsed(self, source: Kept, parsed: Mapping[str, tuple[int, int, int]]) -> bool:
        version = self.adapters[source.cli].parser_version
        return parsed.get(source.id) == (source.generation, source.size, version)

    def discover(self) -> Iterator[Found]:
        """Find every log file that is not excluded."""
        for cli, root in self.roots.items():
            for file in self.adapters[cli].discover(root):
                if not any(fnmatch(str(file.path), pattern) for pattern in self.exclude):
                    yield file


def _why(path: Path, error: OSError | UnicodeEncodeError) -> str:
    reason = error.strerror if isinstance(error, OSError) else "its name is not UTF-8: rename it"
    return f"{storable(str(path))}: {reason}"


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the garbage collector from walking the many small objects of a batch again and again.

    A batch is bounded and holds no cycles; pausing saves a quarter of the time of parsing.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _batches(sizes: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """Cut sessions (id → bytes) into batches of bounded size; one larger than the bound is alone."""
    batch: list[str] = []
    room = BATCH_BYTES
    for session, size in sorted(sizes.items()):
        if batch and (size > room or len(batch) >= BATCH_SESSIONS):
            yield tuple(batch)
            batch, room = [], BATCH_BYTES
        batch.append(session)
        room -= size
    if batch:
        yield tuple(batch)
