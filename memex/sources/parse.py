"""Read one session from the archive: from where the last read ended when that is safe, else from its start.

What the end of a file decides (a line without its end, a prompt that still waits in the queue) may turn out
otherwise once the file grows. So the reader is set aside *before* it looks at the end, and the rows that only
the end made are named: the next read begins at that reader and takes those rows back.
"""

import pickle
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import zstandard

from memex.model import Session
from memex.sources.base import Adapter, Blob, Reader, Relatives
from memex.sources.lines import Census
from memex.sources.transcript import Rows
from memex.text import digest

SLICE = 16 * 1024 * 1024
"""Characters of finished rows that are held before they are handed on."""

SideState = Mapping[str, tuple[int, int]]
"""Generation and size of each side file, by name."""


@dataclass(slots=True)
class Checkpoint:
    """A reader set aside, pickled with the census of its log, after `size` bytes of the log were kept.

    It is of use for the same parser, the same log and unchanged side files; `missing` are side files that
    it looked for in vain, `provisional` the ids that the end of the file made.
    """

    parser_version: int
    source_id: str
    generation: int
    size: int
    side: SideState
    missing: frozenset[str]
    state: bytes
    provisional: frozenset[str] = frozenset()


@dataclass(slots=True)
class Outcome:
    """What came of reading a session.

    whole: read from the start, so that what is not among `ids` is no longer there.
    taken_back: ids that the end of the file made the last time and that are not there any more.
    """

    session: Session
    ids: set[str]
    whole: bool = True
    taken_back: set[str] = field(default_factory=set)
    abandoned: set[int] = field(default_factory=set)


@dataclass(slots=True)
class SessionParse:
    """One read of a session; after `rows` is exhausted, `outcome`, `censuses` and `saved` tell of it."""

    adapter: Adapter
    session_id: str
    logs: Sequence[Blob]
    generation: int
    size: int
    side: Mapping[str, bytes]
    side_state: SideState
    relatives: Relatives
    checkpoint: Checkpoint | None = None
    outcome: Outcome | None = None
    ids: set[str] = field(default_factory=set)
    censuses: dict[str, Census] = field(default_factory=dict)
    saved: Checkpoint | None = None

    def rows(self) -> Iterator[Rows]:
        """Read on, a slice of finished rows at a time."""
        before = self.checkpoint
        if before:
            census, reader = pickle.loads(before.state)
            self.censuses[before.source_id] = census
            reader.side, reader.relatives = self.side, self.relatives
        else:
            reader = self.adapter.reader(self.session_id, self.logs[0].path, self.side, self.relatives)
        for number, log in enumerate(self.logs, 1):
            census = self.censuses.setdefault(log.source_id, Census())
            census.torn_bytes = 0
            reader.transcript.source_id = log.source_id
            yield from self._read(reader, log, census, tail=False)
            if number < len(self.logs):
                yield from self._read(reader, log, census, tail=True)
        yield self._noted(reader.transcript.drain())
        settled = set(self.ids)
        if len(self.logs) == 1:
            self._set_aside(reader, self.logs[0], census)
        census.torn_bytes = 0
        yield from self._read(reader, self.logs[-1], census, tail=True)
        reader.close(census)
        yield self._noted(reader.transcript.drain())
        if self.saved:
            self.saved.provisional = frozenset(self.ids - settled)
        self.outcome = Outcome(
            replace(reader.session(), parser_version=self.adapter.parser_version),
            self.ids,
            before is None,
            set(before.provisional) - self.ids if before else set(),
            reader.transcript.abandoned,
        )

    def _read(self, reader: Reader, log: Blob, census: Census, tail: bool) -> Iterator[Rows]:
        for offset, record in self.adapter.records(log, census, tail):
            reader.read(offset, record, census)
            if reader.transcript.buffered > SLICE:
                yield self._noted(reader.transcript.drain())

    def _noted(self, rows: Rows) -> Rows:
        self.ids.update(m.id for m in rows.messages)
        self.ids.update(c.id for c in rows.calls)
        return rows

    def _set_aside(self, reader: Reader, log: Blob, census: Census) -> None:
        reader.side, reader.relatives = {}, _NO_RELATIVES
        try:
            state = pickle.dumps((census, reader))
        except RecursionError:  # an open call with arguments nested hundreds deep: begin anew the next time
            return
        finally:
            reader.side, reader.relatives = self.side, self.relatives
        self.saved = Checkpoint(
            self.adapter.parser_version,
            log.source_id,
            self.generation,
            self.size,
            self.side_state,
            frozenset(reader.missing),
            state,
        )


class _NoRelatives:
    """No other session is known."""

    def original(self, _session_id: str, _root: str) -> str:
        return ""

    def logs(self, _session_id: str) -> Sequence[Blob]:
        return ()

    def file(self, _place: str) -> bytes:
        return b""

    def folder(self, _sha256: str) -> str:
        return ""


_NO_RELATIVES = _NoRelatives()


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The readers set aside, one file a session. All of them may be lost without harm.

    A log of less than `from_bytes` is read again in less time than its reader takes to set aside.
    """

    root: Path
    from_bytes: int

    def load(self, parse: SessionParse) -> Checkpoint | None:
        """Give the reader with which a read can go on; None when it must begin at the start."""
        try:
            packed = self._path(parse.session_id).read_bytes()
            saved = pickle.loads(zstandard.ZstdDecompressor().decompress(packed))
        except Exception:  # no file, a torn one, or one of another version: it is only a short cut
            return None
        if not isinstance(saved, Checkpoint) or len(parse.logs) != 1:
            return None
        same = (saved.parser_version, saved.source_id, saved.generation) == (
            parse.adapter.parser_version,
            parse.logs[0].source_id,
            parse.generation,
        )
        unchanged = all(parse.side_state.get(name) == state for name, state in saved.side.items())
        return saved if same and unchanged and not saved.missing & parse.side.keys() else None

    def save(self, session_id: str, saved: Checkpoint | None) -> None:
        """Keep a reader, or drop the one that was kept."""
        path = self._path(session_id)
        if saved is None or saved.size < self.from_bytes:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        aside = path.with_suffix(".aside")
        aside.write_bytes(zstandard.ZstdCompressor(level=1).compress(pickle.dumps(saved)))
        aside.replace(path)

    def clear(self) -> None:
        """Drop all of them."""
        shutil.rmtree(self.root, ignore_errors=True)

    def _path(self, session_id: str) -> Path:
        name = digest(session_id)
        return self.root / name[:2] / f"{name}.zst"
