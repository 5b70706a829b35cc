"""JSON lines, read as they come: whole lines only, whatever stands in them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from memex.text import storable

MAX_LINE = 64 * 1024 * 1024
"""Bytes. A longer line is kept in the archive and counted as bad; it is never held in memory whole."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that cannot be read: where it starts, in bytes, and why."""

    offset: int
    reason: str


@dataclass(slots=True)
class Census:
    """What was in one log file: lines, records by type and by what became of them, lines not read.

    `read_to` is the byte up to which lines are whole; `torn_bytes` follow it.
    """

    lines: int = 0
    records: dict[str, dict[str, int]] = field(default_factory=dict)
    bad: list[BadLine] = field(default_factory=list)
    read_to: int = 0
    torn_bytes: int = 0

    def count(self, kind: str, became: str) -> None:
        """Count one record of a type."""
        uses = self.records.setdefault(kind, {})
        uses[became] = uses.get(became, 0) + 1

    def recount(self, kind: str, was: str, became: str) -> None:
        """Correct what became of one record that was counted before its fate was known."""
        self.count(kind, became)
        left = self.records[kind].pop(was) - 1
        if left:
            self.records[kind][was] = left


def json_lines(pieces: Iterable[bytes], census: Census, tail: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (byte offset of the line, record) for every JSON object on every whole line from `read_to` on.

    `pieces` are the bytes from `census.read_to` on, cut anywhere. Several values on one line are all read,
    and a line that cannot be read is counted, never raised. A last line without its end is left for the next
    time; with `tail` it is read when it is a whole object, for no object is the beginning of another.
    """
    for offset, line, ended in _lines(pieces, census.read_to):
        if offset == 0 and line.startswith(b"\xef\xbb\xbf"):
            line = line[3:]
        if ended:
            census.read_to = offset + ended
        elif not tail:
            census.torn_bytes = len(line)
            return
        values = read_values(line)
        if values is None:
            continue
        records = [value for value in values if isinstance(value, dict)]
        if not ended and not records:
            census.torn_bytes = len(line)
            return
        census.lines += 1
        if not records:
            census.bad.append(BadLine(offset, "longer than 64 MiB" if len(line) > MAX_LINE else "not a JSON object"))
        elif len(records) < len(values):
            census.count("(not an object)", "in the archive only")
        for record in records:
            yield offset, record


def _lines(pieces: Iterable[bytes], offset: int) -> Iterator[tuple[int, bytes, int]]:
    """Cut bytes into (offset, line, bytes with its end); the last has 0 for the end it lacks.

    Of a line longer than MAX_LINE only the beginning comes, longer than MAX_LINE by one piece at most.
    """
    begun: list[bytes] = []
    held = length = 0
    for piece in pieces:
        *whole, rest = piece.split(b"\n")
        for line in whole:
            size = length + len(line) + 1
            yield offset, b"".join([*begun, line]) if begun else line, size
            begun, held, length, offset = [], 0, 0, offset + size
        length += len(rest)
        if rest and held <= MAX_LINE:
            begun.append(rest)
            held += len(rest)
    if length:
        yield offset, b"".join(begun), 0


def read_values(line: bytes) -> list[Any] | None:
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
