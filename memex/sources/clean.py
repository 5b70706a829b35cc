"""Take out of the bytes of one file what was forgotten, as they are read; what is left keeps its place.

Lines that a forgotten session wrote become blank lines, forgotten texts are overwritten. A log that its CLI
compressed is unpacked for it and packed again, and only then has another length.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from memex.sources.copies import Copies
from memex.sources.redact import holds, redacted_all
from memex.sources.secrets import Secrets
from memex.sources.zst import compressed, decompressed

BLOCK = 1 << 20
"""Bytes, at most, that are looked through at once; a longer line is looked through whole."""

Pair = tuple[bytes, bytes]
"""Bytes as they were, and as they are kept."""


def is_in_lines(role: str, place: str) -> bool:
    """Tell whether a file is a list of lines; side files, and logs that are one JSON document, are not."""
    return role != "side" and place.removesuffix(".zst").endswith(".jsonl")


@dataclass(frozen=True, slots=True)
class Cleaner:
    """What applies to one file.

    in_lines: it is a list of lines, not to be read as a whole; is_packed: it is compressed. `copies` makes a
    reader of its lines, given whether the line before was a copy.
    """

    secrets: Sequence[Secrets]
    copies: Callable[[bool | None], Copies] | None
    in_lines: bool
    is_packed: bool

    def pairs(self, pieces: Iterable[bytes], copying: bool | None = None) -> Iterator[Pair]:
        """Clean a file, unpacked: a few lines at a time, or all of it. Both bytes of a pair have one length."""
        if not self.in_lines:
            data = b"".join(pieces)
            yield data, redacted_all(data, self.secrets)
            return
        copies = self.copies(copying) if self.copies else None
        for block in blocks(pieces):
            yield block, self._clean_lines(block, copies)

    def unpacked(self, pieces: Iterable[bytes]) -> Iterable[bytes]:
        """Give the pieces of what is cleaned."""
        return decompressed(pieces) if self.is_packed else pieces

    def changes(self, pieces: Iterable[bytes]) -> bool:
        """Tell whether there is anything to take out of a file."""
        return any(old != new for old, new in self.pairs(self.unpacked(pieces)))

    def cut(self, pieces: Iterable[bytes], sizes: Sequence[int], copying: bool | None = None) -> Iterator[Pair]:
        """Clean a file and cut it into pieces of these sizes; a packed one that changes, into as many."""
        if not self.is_packed:
            yield from _cut(self.pairs(pieces, copying), sizes)
            return
        packed = list(pieces)
        old = list(_cut(((piece, piece) for piece in packed), sizes))
        if not self.changes(packed):
            yield from old
            return
        new = b"".join(compressed(kept for _old, kept in self.pairs(decompressed(packed))))
        size = -(-len(new) // max(1, len(old)))
        yield from ((piece, new[n * size : (n + 1) * size]) for n, (piece, _same) in enumerate(old))

    def _clean_lines(self, block: bytes, copies: Copies | None) -> bytes:
        if copies:
            block = b"".join(_blank(line) if copies.holds(line) else line for line in lines_in(block))
        if not any(holds(block, secrets) for secrets in self.secrets):
            return block
        return b"".join(redacted_all(line, self.secrets) for line in lines_in(block))


def lines_in(block: bytes) -> list[bytes]:
    """Cut at newlines and nowhere else, and keep them."""
    lines = [line + b"\n" for line in block.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines


def _blank(line: bytes) -> bytes:
    return b" " * (len(line) - 1) + b"\n" if line.endswith(b"\n") else b" " * len(line)


def blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Join pieces and cut them after newlines; the last block may lack its newline."""
    held: list[bytes] = []
    for piece in pieces:
        while piece:
            end = piece.rfind(b"\n", 0, BLOCK) + 1 or piece.find(b"\n") + 1
            if not end:
                held.append(piece)
                break
            yield b"".join([*held, piece[:end]])
            held, piece = [], piece[end:]
    if any(held):
        yield b"".join(held)


def _cut(pairs: Iterable[Pair], sizes: Sequence[int]) -> Iterator[Pair]:
    """Cut a stream of pairs into pieces of these sizes; what comes after the last is left out."""
    old, new = bytearray(), bytearray()
    wanted = iter(sizes)
    size = next(wanted, None)
    for before, after in pairs:
        old += before
        new += after
        while size is not None and len(old) >= size:
            yield bytes(old[:size]), bytes(new[:size])
            del old[:size], new[:size]
            size = next(wanted, None)
    if size is not None and old:
        yield bytes(old), bytes(new)
