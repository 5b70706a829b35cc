"""What an adapter is: one CLI's files found, grouped by session, and read into records.

An adapter is one file with an object of the `Adapter` protocol, and one line in `registry.py`. Its `Reader`
takes in records in file order and builds a `Transcript` of them. A reader is pickled between two reads of a
growing log, so what it holds is plain data, and small: finished rows leave it by `Transcript.drain`.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from memex.model import Session
from memex.sources.lines import Census
from memex.sources.transcript import Transcript
from memex.sources.walk import NO_STAT, Entry, Stat, walk, walk_at

Role = Literal["log", "side", "history"]


@dataclass(frozen=True, slots=True)
class HistoryPrompt:
    """A line of a CLI's history: what was typed, and in which session (its native id, or "") and folder."""

    session: str
    text: str
    ts: datetime | None
    cwd: str = ""


class HistoryReader(Protocol):
    """Reads one record of a CLI's history of prompts."""

    def __call__(self, record: dict[str, Any], /) -> HistoryPrompt | None:
        """Give the prompt, or None when there is none."""
        ...


class Found(NamedTuple):
    """A file on disk that belongs to a session: its log, or a side file (`place`, its path, tells which).

    A `history` lists prompts of many sessions; its own session id only names it.

    `refused` says why the file, or a folder without a session, cannot or must not be read.
    """

    cli: str
    place: str
    session_id: str
    role: Role = "log"
    stat: Stat = NO_STAT
    refused: str = ""

    @property
    def path(self) -> Path:
        """The place as a path; ten thousand of them are dear, and most are not needed."""
        return Path(self.place)


class Blob(Protocol):
    """The bytes of one archived file, as far as they were read."""

    @property
    def source_id(self) -> str:
        """The id of the source."""
        ...

    @property
    def path(self) -> Path:
        """Where the file was."""
        ...

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """Yield the bytes from `start` on, a few MB at a time."""
        ...


class Relatives(Protocol):
    """What a reader may ask about other sessions, to tell what was copied from them."""

    def original(self, session_id: str, root: str, /) -> str:
        """Name the session that was kept before this one and began with the same record, or ""."""
        ...

    def logs(self, session_id: str, /) -> Iterable[Blob]:
        """Give the logs of another session of the same CLI; none when it is not known."""
        ...

    def file(self, place: str, /) -> bytes:
        """Give the bytes of another archived file of the same CLI; none when there is none."""
        ...

    def folder(self, sha256: str, /) -> str:
        """Name the working directory, of any session, whose path has this hash, or ""."""
        ...


class Reader(Protocol):
    """One session under way. `transcript` collects what was said and done.

    `side` and `relatives` are given anew at each read; `missing` names side files that were not there.
    """

    transcript: Transcript
    side: Mapping[str, bytes]
    relatives: "Relatives"
    missing: set[str]

    def read(self, offset: int, record: dict[str, Any], census: Census) -> None:
        """Take in one record of the current source, and count it, now or when its fate is known."""
        ...

    def close(self, census: Census) -> None:
        """Take the end of the file for the end of the session: decide what was left open."""
        ...

    def session(self) -> Session:
        """Tell what the records say of the session as a whole; counts and project are not its business."""
        ...


class Adapter(Protocol):
    """One CLI. What finds its files stands here already: an adapter says where they are, and which they are."""

    cli: str
    parser_version: int

    def places(self, root: Path, /) -> tuple[Path, ...]:
        """Name the files and folders in the CLI's own folder that are read, whether they exist or not."""
        ...

    def found(self, entry: Entry, place: Path, /) -> Found | None:
        """Tell what an entry at or below one of the places is; None when it is none of ours."""
        ...

    def discover(self, root: Path, /) -> Iterator[Found]:
        """Find every file of a session below the CLI's own folder."""
        for place in self.places(root):
            for entry in walk(place):
                if found := self.found(entry, place):
                    yield found

    def discover_at(self, root: Path, paths: Collection[str], /) -> Iterator[Found]:
        """Find what `discover` finds at some paths, and below those that are folders."""
        for place in self.places(root):
            for path in paths:
                if path == str(place) or path.startswith(f"{place}{os.sep}"):
                    yield from filter(None, (self.found(entry, place) for entry in walk_at(place, path)))

    def reader(self, session_id: str, path: Path, side: Mapping[str, bytes], relatives: Relatives, /) -> Reader:
        """Begin a session whose (first) log is `path`. The same bytes give the same records."""
        ...

    def records(self, blob: Blob, census: Census, tail: bool) -> Iterator[tuple[int, dict[str, Any]]]:
        """Read the records of a log from `census.read_to` on, each with its byte offset."""
        ...

    def retention(self, root: Path, /) -> timedelta | None:
        """Tell how long after its last write the CLI deletes a log; None when it never does."""
        ...

    def history(self, record: dict[str, Any]) -> HistoryPrompt | None:
        """Read one record of the CLI's history of prompts; a CLI that keeps none never has any."""
        ...


class ProjectOf(Protocol):
    """Tells the project of a working directory."""

    def __call__(self, cwd: str) -> tuple[str, str]:
        """Return (project id, short name)."""
        ...
