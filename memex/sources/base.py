"""What an adapter is: one CLI's files found, grouped by session, and parsed into records.

An adapter is one file with an object of the `Adapter` protocol, and one line in `registry.py`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from memex.model import Message, Session, Talk, ToolCall
from memex.text import storable

MAX_LINE = 64 * 1024 * 1024
"""A longer line is kept in the archive and counted as bad, not parsed."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file on disk that belongs to a session: its log, or a side file (`name` tells which)."""

    cli: str
    path: Path
    session_id: str
    role: Literal["log", "side"] = "log"


@dataclass(frozen=True, slots=True)
class Blob:
    """The bytes of one archived file, as far as they were read."""

    source_id: str
    path: Path
    role: Literal["log", "side"]
    data: bytes


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no JSON: where it starts, in bytes, and why it failed."""

    offset: int
    reason: str


@dataclass(slots=True)
class Census:
    """What was in one log file: lines, records by type, lines that could not be read, unfinished bytes."""

    lines: int = 0
    records: dict[str, int] = field(default_factory=dict)
    bad: list[BadLine] = field(default_factory=list)
    torn_bytes: int = 0

    def count(self, kind: str) -> None:
        """Count one record of a type."""
        self.records[kind] = self.records.get(kind, 0) + 1


@dataclass(frozen=True, slots=True)
class Parsed:
    """A session as its files tell it. `census` has one entry per log file, by source id."""

    session: Session
    talks: tuple[Talk, ...]
    messages: tuple[Message, ...]
    calls: tuple[ToolCall, ...]
    census: Mapping[str, Census]


class Adapter(Protocol):
    """One CLI."""

    cli: str
    parser_version: int
    record_uses: Mapping[str, str]
    """What becomes of each type of record; types that are not named stay in the archive and are counted."""

    def discover(self, root: Path) -> Iterator[Found]:
        """Find every file below the CLI's own folder."""
        ...

    def parse(self, session_id: str, blobs: Iterable[Blob], project_of: "ProjectOf") -> Parsed:
        """Turn the files of one session into records. The same bytes give the same records."""
        ...


class ProjectOf(Protocol):
    """Tells the project of a working directory."""

    def __call__(self, cwd: str) -> tuple[str, str]:
        """Return (project id, short name)."""
        ...


def json_lines(data: bytes, census: Census) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (byte offset of the line, record) for every JSON object on every whole line.

    Several values on one line are all read. An unfinished last line is left for the next time, and a line
    that cannot be read is counted, never raised. A last line without a newline is whole when it is a whole
    object: no object is the beginning of another.
    """
    start = 0
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        offset, start = start, start + len(line) + 1
        if offset == 0 and line.startswith(b"\xef\xbb\xbf"):
            line = line[3:]
        values = _values(line)
        if values is None:
            continue
        records = [value for value in values if isinstance(value, dict)]
        if number == len(lines) and not records:
            census.torn_bytes = len(data) - offset
            return
        census.lines += 1
        if not records:
            census.bad.append(BadLine(offset, "longer than 64 MiB" if len(line) > MAX_LINE else "not a JSON object"))
        elif len(records) < len(values):
            census.count("(not an object)")
        for record in records:
            yield offset, record


def _values(line: bytes) -> list[Any] | None:
    """Decode the values on a line; None when it is blank, none when it cannot be read."""
    import orjson

    if len(line) > MAX_LINE:
        return []
    try:
        return [orjson.loads(line)]
    except orjson.JSONDecodeError:
        bare = line.strip(b" \t\r\x00")
        return _lenient(bare) if bare else None


def _lenient(line: bytes) -> list[Any]:
    """Read several JSON values on one line, and values that only Python's reader accepts."""
    import json

    text, position, values = line.decode("utf-8", "replace"), 0, []
    decoder = json.JSONDecoder()
    try:
        while position < len(text):
            value, position = decoder.raw_decode(text, position)
            values.append(_storable(value))
            while position < len(text) and text[position] in " \t\r\x00,":
                position += 1
    except (ValueError, RecursionError):
        return []
    return values


def _storable(value: Any) -> Any:
    """Replace lone surrogates, which only Python's reader lets pass, anywhere inside a JSON value."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(key): _storable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_storable(item) for item in value]
    return value
