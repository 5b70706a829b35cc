"""Take texts out of the bytes of a log, in place: what is left has the length it had, and is JSON if it was.

The place of every other byte stays the same, so offsets, ids made of them, and the frames of the archive do too.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Protocol

from memex.sources.lines import read_values
from memex.sources.readings import readings, texts

_TOKEN = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"|-?\d[\d.eE+-]*', re.DOTALL)
_WORD = b"[forgotten]"
_FILLERS = (b"*", b"-", b"x", b"~", b"0")
_DIGITS = (b"1", b"7", b"9")
_ROUNDS = 4

_Span = tuple[int, int, bool]
"""Start, end, and whether it is a number."""


class Finder(Protocol):
    """Knows what is to be taken out."""

    @property
    def shortest(self) -> int:
        """The least that it is, in bytes."""
        ...

    @property
    def longest(self) -> int:
        """The most that it is, in bytes."""
        ...

    def spans(self, data: bytes, /) -> Iterator[tuple[int, int]]:
        """Find it in some UTF-8: (start, end) of each."""
        ...


def holds(data: bytes, finder: Finder) -> bool:
    """Tell whether some of it stands in the bytes, however they are read."""
    return any(next(finder.spans(text), None) is not None for text in texts(data, finder.longest))


def redacted(data: bytes, finder: Finder) -> bytes:
    """Take it out of a line, or out of a file that is no list of lines. Its length stays.

    Of JSON the insides of strings are read, keys too, and numbers; anything else is read as it stands.
    """
    is_json = bool(read_values(data))
    for _round in range(_ROUNDS):  # what is put in may, with what stands beside it, be what was to go
        spans = _united(_in_json(data, finder) if is_json else _in_text(data, finder, 0))
        if not spans:
            break
        data = _replaced(data, spans, finder)
    return data


def redacted_all(data: bytes, finders: Iterable[Finder]) -> bytes:
    """Take out of a line what any of them finds."""
    for finder in finders:
        if holds(data, finder):
            data = redacted(data, finder)
    return data


def is_marker(text: bytes) -> bool:
    """Tell whether a text is what stands for one that was taken out."""
    return re.fullmatch(rb"\[forgotten\.*\]|\*+", text) is not None


def strings_of(line: bytes) -> Iterator[bytes]:
    """Give every text of a line of JSON, in every reading; of anything else the line itself."""
    if not read_values(line):
        yield from (reading.text for reading in readings(line, bare=True))
        return
    for token in _TOKEN.finditer(line):
        if token[1] is None:
            yield token[0]
        else:
            yield from (reading.text for reading in readings(token[1], bare=False))


def _in_json(data: bytes, finder: Finder) -> Iterator[_Span]:
    for token in _TOKEN.finditer(data):
        if token.end() - token.start() < finder.shortest:
            continue
        if token[1] is not None:
            yield from _in_text(token[1], finder, token.start(1), bare=False)
        elif next(finder.spans(token[0]), None):
            yield *token.span(), True


def _in_text(data: bytes, finder: Finder, at: int, bare: bool = True) -> Iterator[_Span]:
    for reading in readings(data, bare):
        for span in finder.spans(reading.text):
            start, end = reading.span(*span)
            yield at + start, at + end, False


def _united(spans: Iterator[_Span]) -> list[_Span]:
    """Sort spans; those that overlap become one."""
    united: list[_Span] = []
    for start, end, is_number in sorted(spans):
        if united and start < united[-1][1]:
            united[-1] = (united[-1][0], max(end, united[-1][1]), is_number)
        else:
            united.append((start, end, is_number))
    return united


def _replaced(data: bytes, spans: list[_Span], finder: Finder) -> bytes:
    parts: list[bytes] = []
    done = 0
    for start, end, is_number in spans:
        parts += (data[done:start], _instead(end - start, finder, is_number))
        done = end
    return b"".join([*parts, data[done:]])


def _instead(size: int, finder: Finder, is_number: bool) -> bytes:
    """Give what stands for a text: [forgotten], stretched, or a row of stars; for a number, another one."""
    if is_number:
        choices = [digit + b"0" * (size - 1) for digit in _DIGITS]
    else:
        choices = [filler * size for filler in _FILLERS]
        if size >= len(_WORD):
            choices.insert(0, _WORD[:-1] + b"." * (size - len(_WORD)) + _WORD[-1:])
    return next((choice for choice in choices if next(finder.spans(choice), None) is None), choices[-1])
