"""Ingest: bytes into the archive, records into the lake. Unchanged files cause no write.

What is pending is computed, never remembered: a file that differs from the archive, or an archived file
that the lake's `sources` table does not have in its present size, generation and parser version.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path

from filelock import FileLock

from memex.errors import translated_os_errors
from memex.model import Source
from memex.sources.archive import Archive, Kept
from memex.sources.base import Adapter, Blob, Census, Found, Parsed
from memex.sources.commit import commit
from memex.sources.project import project_of
from memex.store.lake import Lake, in_list
from memex.store.schemas import to_arrow

BATCH_BYTES = 24 * 1024 * 1024
BATCH_SESSIONS = 200


@dataclass(frozen=True, slots=True)
class SessionFiles:
    """A session that has something to read, and its files that are still there."""

    cli: str
    session_id: str
    files: tuple[Found, ...]


@dataclass(frozen=True, slots=True)
class IngestPlan:
    """What an ingest would do, and why: `batches` to read, sources that are `gone`, files `unchanged`."""

    batches: tuple[tuple[SessionFiles, ...], ...] = ()
    gone: tuple[Kept, ...] = field(default=(), repr=False)
    unchanged: int = 0
    unreadable: tuple[str, ...] = ()

    @property
    def sessions(self) -> int:
        """Sessions to read."""
        return sum(map(len, self.batches))


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
        found: dict[tuple[str, str], list[Found]] = {}
        pending: set[tuple[str, str]] = set()
        seen: set[tuple[str, str]] = set()
        unreadable = []
        for file in self._discovered():
            seen.add((file.cli, str(file.path)))
            found.setdefault((file.cli, file.session_id), []).append(file)
            source = kept.get((file.cli, str(file.path)))
            try:
                current = self.archive.is_current(source, file.path)
            except OSError as error:
                unreadable.append(f"{file.path}: {error.strerror}")
                continue
            if source is None or not current or not self._is_parsed(source, parsed):
                pending.add((file.cli, file.session_id))
        absent = [source for key, source in kept.items() if key not in seen and source.cli in self.adapters]
        pending |= {(s.cli, s.session_id) for s in absent if not self._is_parsed(s, parsed)}
        sessions = [SessionFiles(*key, tuple(found.get(key, ()))) for key in sorted(pending)]
        gone = tuple(s for s in absent if not s.gone and s.cli in self.roots and not Path(s.path).exists())
        return IngestPlan(tuple(_batches(sessions)), gone, len(found) - len(pending), tuple(unreadable))

    def run(self, plan: IngestPlan) -> IngestReport:
        """Carry a plan out, batch by batch."""
        report = IngestReport(gone=len(plan.gone), unreadable=plan.unreadable)
        self.mark_gone(plan.gone)
        for batch in plan.batches:
            report += self.read(batch)
        return report

    def mark_gone(self, sources: Iterable[Kept]) -> None:
        """Note the sources that are no longer on disk; nothing of them is removed."""
        for source in sources:
            self.archive.mark_gone(source)

    def read(self, batch: Sequence[SessionFiles]) -> IngestReport:
        """Archive and parse one batch of sessions. Two processes take turns, and see each other's work."""
        self.archive.root.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with translated_os_errors(self.archive.root.parent), FileLock(self.archive.root.parent / "ingest.lock"):
            return self._read(batch)

    def _read(self, batch: Sequence[SessionFiles]) -> IngestReport:
        before = self._parsed(in_list("session_id", [s.session_id for s in batch]))
        kept: dict[tuple[str, str], list[Kept]] = {}
        wanted = {(s.cli, s.session_id) for s in batch}
        known = {s.id: s for s in self.archive.sources() if (s.cli, s.session_id) in wanted}
        unreadable: list[str] = []
        bytes_read = 0
        for session in batch:
            for file in session.files:
                old = self.archive.find(file.cli, file.path)
                try:
                    if self.archive.is_current(old, file.path):
                        continue
                    new = self.archive.take(file.cli, file.path, file.session_id, file.role)
                except (PermissionError, FileNotFoundError, IsADirectoryError) as error:
                    unreadable.append(f"{file.path}: {error.strerror}")
                    continue
                bytes_read += new.size - (old.size if old and old.generation == new.generation else 0)
                known[new.id] = new
        for source in known.values():
            kept.setdefault((source.cli, source.session_id), []).append(source)
        stale = {key: sources for key, sources in kept.items() if not all(self._is_parsed(s, before) for s in sources)}
        parsed = [self._parse(key, sources) for key, sources in stale.items()]
        commit(self.lake, parsed)
        rows = [
            self._source_row(source, result.census.get(source.id))
            for sources, result in zip(stale.values(), parsed, strict=True)
            for source in sources
        ]
        self.lake.upsert("sources", to_arrow("sources", rows))
        return IngestReport(
            sessions=len(parsed),
            files=len(rows),
            bytes_read=bytes_read,
            messages=sum(len(p.messages) for p in parsed),
            tool_calls=sum(len(p.calls) for p in parsed),
            talks=sum(len(p.talks) for p in parsed),
            bad_lines=sum(len(c.bad) for p in parsed for c in p.census.values()),
            unreadable=tuple(unreadable),
        )

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

    def _discovered(self) -> Iterator[Found]:
        for cli, root in self.roots.items():
            for file in self.adapters[cli].discover(root):
                if not any(fnmatch(str(file.path), pattern) for pattern in self.exclude):
                    yield file


def _batches(sessions: list[SessionFiles]) -> Iterator[tuple[SessionFiles, ...]]:
    """Cut the sessions into batches of bounded size; a session larger than the bound is one alone."""
    batch: list[SessionFiles] = []
    size = 0
    for session in sessions:
        grown = sum(file.path.stat().st_size for file in session.files if file.path.exists())
        if batch and (size + grown > BATCH_BYTES or len(batch) >= BATCH_SESSIONS):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(session)
        size += grown
    if batch:
        yield tuple(batch)
