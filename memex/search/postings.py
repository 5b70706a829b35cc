"""Count the tokens of many texts: Rust finds the runs, and each distinct run is cut into tokens once."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from memex.search.tokens import RUST_RUN, normal, tokens_in

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    Numbers = np.ndarray[tuple[int], np.dtype[np.uint32]]


class Vocabulary(defaultdict[str, int]):
    """Numbers for tokens, in the order in which they come."""

    def __missing__(self, token: str) -> int:
        number = self[token] = len(self)
        return number


class Postings(NamedTuple):
    """How often a token (`tid`) is in a text (`doc`), and the tokens of that text in all, as columns."""

    tid: "Numbers"
    doc: "Numbers"
    tf: "Numbers"
    len: "Numbers"


def count_tokens(texts: Sequence[str], vocabulary: Vocabulary) -> Postings:
    """Count the tokens of texts, which are numbered from 0; new tokens go into the vocabulary."""
    import numpy as np

    runs, of_text = _runs_of(texts)
    names, numbers = _distinct(runs)
    text, run, times = _counted(of_text, numbers)
    tokens = [[vocabulary[token] for token in tokens_in(name)] for name in names]
    sizes = np.fromiter(map(len, tokens), np.int64, len(tokens))
    flat = np.fromiter(chain.from_iterable(tokens), np.uint32, int(sizes.sum()))
    starts = np.cumsum(sizes) - sizes
    each = sizes[run]
    within = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each)
    tid, doc, tf = _counted(flat[np.repeat(starts[run], each) + within], np.repeat(text, each), np.repeat(times, each))
    length = np.bincount(doc, tf, len(texts)).astype(np.uint32)
    return Postings(tid, doc, tf, length[doc])


def _runs_of(texts: Sequence[str]) -> "tuple[pl.Series, Numbers]":
    """Find the runs of texts, one after the other, and the number of the text of each."""
    import numpy as np
    import polars as pl

    found = pl.Series(map(normal, texts), dtype=pl.String).str.extract_all(RUST_RUN)
    sizes = found.list.len().to_numpy()
    return found.explode(empty_as_null=False), np.repeat(np.arange(len(texts), dtype=np.uint32), sizes)


def _distinct(runs: "pl.Series") -> "tuple[list[str], Numbers]":
    """Number runs: the distinct ones, and which of them each is."""
    import numpy as np
    import pyarrow as pa

    encoded = runs.to_arrow().cast(pa.large_string()).dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.uint32)


def _counted(major: "Numbers", minor: "Numbers", times: "Numbers | None" = None) -> "tuple[Numbers, Numbers, Numbers]":
    """Sort pairs of numbers, and count each: as one integer of 64 bits a pair sorts fast."""
    import numpy as np

    pairs = major.astype(np.uint64) << np.uint64(32) | minor
    if times is None:
        pairs, counts = np.unique(pairs, return_counts=True)
    else:
        order = np.argsort(pairs, kind="stable")
        pairs = pairs[order]
        first = np.flatnonzero(np.r_[True, pairs[1:] != pairs[:-1]][: len(pairs)])
        counts = np.add.reduceat(times[order], first) if len(first) else times
        pairs = pairs[first]
    halves = (pairs >> np.uint64(32)), (pairs & np.uint64(0xFFFFFFFF))
    return halves[0].astype(np.uint32), halves[1].astype(np.uint32), counts.astype(np.uint32)
