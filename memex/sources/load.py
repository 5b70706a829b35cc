"""Load sessions from the archive into the lake: every generation that the lake has not seen, in order."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from memex.errors import DamagedArchive, MemexError
from memex.model import Session, Source
from memex.sources.archive import Archive
from memex.sources.base import Adapter
from memex.sources.blobs import KeptBlob, SideFiles, distinct
from memex.sources.commit import Commit
from memex.sources.frames import Kept
from memex.sources.history import recover
from memex.sources.kin import Kin
from memex.sources.lines import BadLine, Census
from memex.sources.parse import Checkpoints, Outcome, SessionParse
from memex.sources.project import Projects
from memex.sources.walk import Stat
from memex.store.lake import Lake, in_list
from memex.store.schemas import to_arrow


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


class State(NamedTuple):
    """A source as the lake knows it. The names are those of the lake's columns."""

    cli: str
    path: str
    id: str
    session_id: str
    gone: bool
    file_size: int
    file_mtime_ns: int
    file_ctime_ns: int
    generation: int
    size: int
    parser_version: int

    @property
    def file(self) -> Stat:
        """The state of the file when it was read."""
        return self[5:8]

    @property
    def parsed(self) -> tuple[int, int, int]:
        """Generation, size and parser version."""
        return self[8:]


@dataclass(frozen=True, slots=True)
class Load:
    """The verb, with its parts."""

    archive: Archive
    lake: Lake
    adapters: Mapping[str, Adapter]
    checkpoints: Checkpoints
    projects: Projects

    def sessions(self, groups: Mapping[str, list[Kept]], before: Mapping[str, State]) -> IngestReport:
        """Read sessions from the archive into the lake, each generation that the lake has not seen."""
        report = IngestReport()
        histories = {name: group for name, group in groups.items() if group[0].role == "history"}
        groups = {name: group for name, group in groups.items() if name not in histories}
        seen = {key: state.parsed[0] for key, state in before.items() if state.parsed[0]}
        todo = {session: (group, self._next_generation(group, before)) for session, group in groups.items()}
        while todo:
            report += self._generation(todo, before, seen)
            seen |= {k.id: min(number, k.generation) for group, number in todo.values() for k in group}
            todo = {
                session: (group, number + 1)
                for session, (group, number) in todo.items()
                if number < max(source.generation for source in group)
            }
        for kept in (source for group in histories.values() for source in group):
            report += self._history(kept.cli, kept)  # last, when every log that there is has been read
        return report

    def _next_generation(self, group: list[Kept], before: Mapping[str, State]) -> int:
        """Tell with which generation to go on: the last one read, unless it was read to its end."""
        last = max(before[k.id].parsed[0] if k.id in before else 0 for k in group)
        version = self.adapters[group[0].cli].parser_version
        whole = all(
            k.id in before and before[k.id].parsed == (at := min(last, k.generation), k.size_of(at), version)
            for k in group
        )
        return max(1, min(last + whole, max(k.generation for k in group)))

    def _generation(
        self, groups: Mapping[str, tuple[list[Kept], int]], before: Mapping[str, State], seen: Mapping[str, int]
    ) -> IngestReport:
        ids = sorted(groups)
        known = frozenset(self.lake.scan("sessions", ["id"], in_list("id", ids))["id"].to_pylist())
        rewritten = frozenset(
            session
            for session, (group, generation) in groups.items()
            if any(seen.get(k.id, generation) < min(generation, k.generation) for k in group)
        )
        commit = Commit(self.lake, known, rewritten)
        kin = {cli: Kin(self.archive, self.lake, cli) for cli in self.adapters}
        rows: list[Source] = []
        unreadable: list[str] = []
        done: list[SessionParse] = []
        with collector_paused():
            for session, (group, generation) in groups.items():
                try:
                    parse = self._parse(session, group, generation, kin[group[0].cli], before)
                    censuses = self._run(parse, commit) if parse else {}
                except DamagedArchive as error:  # stays pending, and stops no other
                    unreadable.append(str(error))
                    continue
                if parse and parse.outcome:
                    done.append(parse)
                rows += [self._row(source, censuses.get(source.id, Census()), generation) for source in group]
        sessions = self._finish(commit, [parse.outcome for parse in done if parse.outcome])
        for parse in done:
            self.checkpoints.save(parse.session_id, parse.saved)
        self.lake.upsert("sources", to_arrow("sources", rows))
        return IngestReport(
            sessions=len(done),
            files=len(rows),
            messages=commit.messages,
            tool_calls=commit.calls,
            talks=sum(s.talks for s in sessions),
            bad_lines=sum(row.bad_lines.count('"offset"') for row in rows),
            unreadable=tuple(unreadable),
        )

    def _run(self, parse: SessionParse, commit: Commit) -> dict[str, Census]:
        """Read a session into the commit; one that the parser cannot take is a bad line, and stops no other."""
        try:
            for rows in parse.rows():
                commit.add(rows)
        except MemexError:
            raise
        except Exception as error:
            reason = f"the parser failed: {type(error).__name__}: {error}"[:300]
            return {log.source_id: Census(bad=[BadLine(0, reason)]) for log in parse.logs}
        return parse.censuses

    def _history(self, cli: str, kept: Kept) -> IngestReport:
        """Recover prompts of sessions that have no log."""
        census = Census()
        commit = Commit(self.lake, frozenset(self.lake.scan("sessions", ["id"])["id"].to_pylist()), frozenset())
        outcomes = []
        logs = [KeptBlob(self.archive, kept, number) for number in range(1, kept.generation + 1)]
        for rows, outcome in recover(self.lake, cli, self.adapters[cli].history, logs, census):
            commit.add(rows)
            outcomes.append(outcome)
        sessions = self._finish(commit, outcomes)
        self.lake.upsert("sources", to_arrow("sources", [self._row(kept, census, kept.generation)]))
        talks = sum(session.talks for session in sessions)
        return IngestReport(len(sessions), files=1, messages=commit.messages, talks=talks, bad_lines=len(census.bad))

    def _parse(
        self, session: str, group: list[Kept], generation: int, kin: Kin, before: Mapping[str, State]
    ) -> SessionParse | None:
        """Prepare the read of a session; None when there are only side files, without a log."""
        blobs = [KeptBlob(self.archive, kept, min(generation, kept.generation)) for kept in group]
        logs = distinct([blob for blob in blobs if blob.kept.role == "log"])
        sides = [blob for blob in blobs if blob.kept.role == "side"]
        if not logs:
            return None
        parse = SessionParse(
            self.adapters[kin.cli],
            session,
            logs,
            logs[0].generation,
            logs[0].kept.size_of(logs[0].generation),
            SideFiles(sides),
            {side.path.name: (side.generation, side.kept.size_of(side.generation)) for side in sides},
            kin,
        )
        saved = self.checkpoints.load(parse)
        state = before.get(saved.source_id) if saved else None
        if saved and state and state.parsed == (saved.generation, saved.size, saved.parser_version):
            parse.checkpoint = saved  # lake and checkpoint agree on where the last read ended
        return parse

    def _finish(self, commit: Commit, outcomes: Sequence[Outcome]) -> list[Session]:
        """Write the rest of a batch. What its folders tell of projects is noted first: they may be gone next time."""
        self.projects.learn(outcome.session.cwd for outcome in outcomes)
        return commit.finish(outcomes, self.projects.of)

    def _row(self, kept: Kept, census: Census, generation: int) -> Source:
        read = min(generation, kept.generation)
        return source_row(kept, census, self.adapters[kept.cli].parser_version, kept.size_of(read), read)


def source_row(kept: Kept, census: Census, parser_version: int, size: int, generation: int = 0) -> Source:
    """Make the lake's row of a source, read up to `size` bytes of a generation; parser version 0 is not read."""
    import orjson

    return Source(
        id=kept.id,
        cli=kept.cli,
        path=kept.path,
        session_id=kept.session_id,
        generation=generation,
        size=size,
        parser_version=parser_version,
        file_size=kept.stat[0],
        file_mtime_ns=kept.stat[1],
        file_ctime_ns=kept.stat[2],
        gone=kept.gone,
        lines=census.lines,
        records=orjson.dumps(census.records).decode(),
        bad_lines=orjson.dumps(census.bad).decode(),
        torn_bytes=census.torn_bytes,
    )


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the garbage collector from walking the many small objects of a batch again and again.

    A batch holds few rows at a time and no cycles; pausing saves a quarter of the time of parsing.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
