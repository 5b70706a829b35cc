"""The ways in which bytes of a log are read as text, and from which bytes each piece of the text was read.

A log holds JSON, JSON within JSON, and terminal output within both. So the same bytes are read as they stand,
with their escapes resolved once, twice and more, and each time also without what carries no words.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from memex.text import ANSI

DEPTH = 4
"""How often escapes are resolved: JSON within JSON within JSON, and once more."""

_ESCAPE = re.compile(rb'\\(?:["\\/bfnrt]|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4})')
_NOISE = re.compile(ANSI.pattern.encode() + rb"|\x00")
_SHORT = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_PLAIN = [(b"\\" + name, meaning) for name, meaning in (*_SHORT.items(), (b"/", b"/"), (b'"', b'"'))]
_REPLACEMENT = "\ufffd".encode()
_BETWEEN = b"\x1f"
_DENSE = 4
"""A text is read whole when what is near to escapes is more than a part of it that this divides."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Bytes read as `text`. Some pieces of it stand for other bytes; the rest is as it was.

    starts, ends: where each piece stands in the text; begins, closes: where its bytes begin and end in `inner`,
    the text that was read, or in the bytes themselves.
    """

    text: bytes
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    begins: tuple[int, ...] = ()
    closes: tuple[int, ...] = ()
    inner: "Reading | None" = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Tell which of the first bytes became `text[start:end]`; a piece is never cut."""
        begin, stop = self._begin(start), self._stop(end)
        return self.inner.span(begin, stop) if self.inner else (begin, stop)

    def resolved(self) -> "Reading":
        """Read the text once more, with its escapes resolved."""
        return self._with(_ESCAPE, _meaning) if b"\\" in self.text else self

    def quiet(self) -> "Reading":
        """Read the text without terminal escapes and NULs."""
        return self._with(_NOISE, lambda _match: b"") if is_noisy(self.text) else self

    def _with(self, pattern: "re.Pattern[bytes]", meaning: Callable[["re.Match[bytes]"], bytes]) -> "Reading":
        parts: list[bytes] = []
        starts, ends, begins, closes = [], [], [], []
        done = length = 0
        for match in pattern.finditer(self.text):
            piece = meaning(match)
            parts += (self.text[done : match.start()], piece)
            length += match.start() - done
            starts.append(length)
            length += len(piece)
            ends.append(length)
            begins.append(match.start())
            done = match.end()
            closes.append(done)
        if not done:
            return self
        parts.append(self.text[done:])
        return Reading(b"".join(parts), tuple(starts), tuple(ends), tuple(begins), tuple(closes), self)

    def _begin(self, start: int) -> int:
        last = bisect_right(self.starts, start) - 1
        if last < 0:
            return start
        return self.begins[last] if start < self.ends[last] else self.closes[last] + start - self.ends[last]

    def _stop(self, end: int) -> int:
        last = bisect_right(self.starts, end - 1) - 1
        if last < 0:
            return end
        return self.closes[last] if end - 1 < self.ends[last] else self.closes[last] + end - self.ends[last]


def readings(data: bytes, bare: bool) -> Iterator[Reading]:
    """Read bytes in every way; `bare` ones also as they stand, others are the inside of a JSON string."""
    reading = Reading(data)
    if bare:
        yield from _both(reading)
    for depth in range(DEPTH):
        deeper = reading.resolved()
        if deeper is reading and (depth or bare):
            return
        reading = deeper
        yield from _both(reading)


def texts(data: bytes, reach: int = 0) -> Iterator[bytes]:
    """Give the texts of all readings, fast: which bytes they come from is not noted.

    With `reach`, of a deeper reading only what stands so near to something resolved is given, where that is
    little: all else was in the text before.
    """
    text = data
    for depth in range(DEPTH + 1):
        if depth == 0 or not reach or text.count(b"\\") * reach * _DENSE > len(text):
            yield text if depth == 0 else (text := _resolved(text))
        else:
            yield _near_resolved(text, reach)
            text = _resolved(text)
        if is_noisy(text):
            yield _NOISE.sub(b"", text)
        if not _ESCAPE.search(text):
            return


def _resolved(text: bytes) -> bytes:
    """Resolve all escapes: the common ones at the speed of a plain replacement, between pairs of backslashes."""
    return b"\\".join(map(_resolved_singles, text.split(b"\\\\")))


def _resolved_singles(text: bytes) -> bytes:
    if b"\\" not in text:
        return text
    for escape, meaning in _PLAIN:
        text = text.replace(escape, meaning)
    return _ESCAPE.sub(_meaning, text) if b"\\u" in text else text


def _near_resolved(text: bytes, reach: int) -> bytes:
    """Resolve the escapes in a text, and leave out what stands far from all of them."""
    stretches: list[tuple[int, int]] = []
    for match in _ESCAPE.finditer(text):
        start, end = max(0, match.start() - reach), match.end() + reach
        if stretches and start <= stretches[-1][1]:
            start = stretches.pop()[0]
        stretches.append((start, end))
    return _BETWEEN.join(_ESCAPE.sub(_meaning, text[start:end]) for start, end in stretches)


def is_noisy(text: bytes) -> bool:
    """Tell whether some of the text may carry no words."""
    return b"\x1b" in text or b"\x00" in text


def _both(reading: Reading) -> Iterator[Reading]:
    yield reading
    quiet = reading.quiet()
    if quiet is not reading:
        yield quiet


def _meaning(match: "re.Match[bytes]") -> bytes:
    body = match[0][1:]
    if body[:1] != b"u":
        return _SHORT.get(body, body)
    if len(body) > 5:
        return bytes.fromhex((body[1:5] + body[7:]).decode()).decode("utf-16-be").encode()
    code = int(body[1:], 16)
    return _REPLACEMENT if 0xD800 <= code < 0xE000 else chr(code).encode()
