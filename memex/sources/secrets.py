"""Texts that must be recognised without being known: kept as their length and hashes.

Whoever asks for a text to be forgotten wants it nowhere, and wants it kept out of what is read later. So every
stretch of a length that was forgotten is hashed and compared. A rolling hash, over all stretches at once, picks
the few that a keyed hash then decides about.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Words = np.ndarray[tuple[int], np.dtype[np.uint64]]

STEP = 1 << 16
"""Bytes that are hashed at once: what is worked out of them fits the cache of a processor."""
_WORD = 1 << 64
_HEAD = 16
"""Bits of a rolling hash that are compared first when there are many."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """Texts under one key: by length in bytes, rolling hash → keyed hash.

    >>> secrets = Secrets.of([b"hunter2"])
    >>> list(secrets.spans(b"the password is hunter2."))
    [(16, 23)]
    """

    key: bytes
    known: Mapping[int, Mapping[int, frozenset[str]]]

    @classmethod
    def of(cls, texts: Iterable[bytes], key: bytes = b"") -> "Secrets":
        """Hash texts in UTF-8, under a new key by default."""
        key = key or os.urandom(16)
        known: dict[int, dict[int, frozenset[str]]] = {}
        for data in texts:
            rolling = known.setdefault(len(data), {})
            first = _rolling(data, _base(key))
            rolling[first] = rolling.get(first, frozenset()) | {_sure(data, key)}
        return cls(key, known)

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> "Secrets":
        """Read what `written` gave."""
        known: dict[int, dict[int, frozenset[str]]] = {}
        for length, rolling, sure in kept["texts"]:
            first = int(rolling, 16)
            known.setdefault(length, {})[first] = known.setdefault(length, {}).get(first, frozenset()) | {sure}
        return cls(bytes.fromhex(kept["key"]), known)

    def written(self) -> dict[str, Any]:
        """Give what can be kept as JSON; the texts cannot be read from it, only tried."""
        texts = [
            (length, f"{first:016x}", sure)
            for length, rolling in sorted(self.known.items())
            for first, hashes in sorted(rolling.items())
            for sure in sorted(hashes)
        ]
        return {"key": self.key.hex(), "texts": texts}

    @property
    def shortest(self) -> int:
        """The length of the shortest text, in bytes."""
        return min(self.known, default=1)

    @property
    def longest(self) -> int:
        """The length of the longest text, in bytes."""
        return max(self.known, default=1)

    def spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Find the texts in some UTF-8: (start, end) of each, by length and place."""
        for begin in range(0, len(data), STEP):
            piece = data[begin : begin + STEP + self.longest - 1]
            sums = _sums(piece, _base(self.key)) if len(piece) >= self.shortest else None
            for length, rolling in self.known.items():
                if sums is None or len(piece) < length:
                    continue
                for at in _candidates(sums, length, rolling, _base(self.key)):
                    stretch = piece[at : at + length]
                    if at < STEP and any(_sure(stretch, self.key) in hashes for hashes in rolling.values()):
                        yield begin + at, begin + at + length


def _sure(data: bytes, key: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16, key=key).hexdigest()


@lru_cache(maxsize=64)
def _base(key: bytes) -> int:
    """Choose the base of the rolling hash: odd, so that it can be divided by."""
    return int.from_bytes(hashlib.blake2b(b"base", digest_size=8, key=key).digest(), "little") | 1


def _rolling(data: bytes, base: int) -> int:
    """Hash one text as `_candidates` hashes every stretch: the sum of byte × base^place, modulo 2^64."""
    total = 0
    for byte in reversed(data):
        total = (total * base + byte) % _WORD
    return total


@lru_cache(maxsize=32)
def _powers(base: int, size: int) -> "tuple[Words, Words]":
    """Give the powers of a base, and those of its inverse."""
    import numpy as np

    def powers(of: int) -> "Words":
        row = np.full(size, of, np.uint64)
        row[0] = 1
        return np.cumprod(row, dtype=np.uint64)

    return powers(base), powers(pow(base, -1, _WORD))


def _sums(data: bytes, base: int) -> "Words":
    """Sum byte × base^place up to every place."""
    import numpy as np

    size = max(1024, 1 << (len(data) - 1).bit_length())
    terms = np.frombuffer(data, np.uint8) * _powers(base, size)[0][: len(data)]
    return np.concatenate((np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)))


def _candidates(sums: "Words", length: int, rolling: Mapping[int, Any], base: int) -> list[int]:
    """Find the places where a stretch of some length has one of the rolling hashes."""
    import numpy as np

    stretches = sums[length:] - sums[:-length]  # each times base^place
    inverse = _powers(base, max(1024, 1 << (len(sums) - 2).bit_length()))[1]
    hashes = stretches * inverse[: len(stretches)]
    wanted = np.array(list(rolling), np.uint64)
    if len(wanted) == 1:
        return [int(at) for at in np.flatnonzero(hashes == wanted[0])]
    heads = np.zeros(1 << _HEAD, np.bool_)
    heads[wanted >> np.uint64(64 - _HEAD)] = True
    likely = np.flatnonzero(heads[hashes >> np.uint64(64 - _HEAD)])
    return [int(at) for at in likely[np.isin(hashes[likely], wanted)]]
