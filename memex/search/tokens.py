"""Words for full text: the same function reads what is indexed and what is asked.

A run of one script is a word. Identifiers count whole and in parts (`getUserName` is also `get`, `user`,
`name`; `a/b_c.py` is also `b_c.py`, `b_c`, `a`, `b`, `c`, `py`). Chinese, Japanese and Korean have no spaces: they are
indexed as overlapping pairs and as single characters, and asked for by pairs, so that every substring of
one or more characters is found.
"""

import re
import unicodedata
from collections import Counter
from functools import lru_cache

from memex.text import CJK

MAX_TOKEN = 64
"""Longer runs are keys, hashes of hashes and encoded files: they are cut, not searched whole."""

_RUN = re.compile(rf"[{CJK}]+|[^\W{CJK}]+(?:[./:@\\-]+[^\W{CJK}]+)*")
_ASCII_RUN = re.compile(r"\w+(?:[./:@\\-]+\w+)*", re.ASCII)
_SEPARATOR = re.compile(r"[/\\:@-]+")
_PART = re.compile(rf"[^\W_{CJK}]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\WA-Za-z_0-9]+|\d+")
_CJK_CHAR = re.compile(rf"[{CJK}]")


def index_counts(text: str) -> dict[str, int]:
    """Count the tokens of a text to be found."""
    counts: dict[str, int] = {}
    for run, times in Counter(_runs(text)).items():
        tokens = (*run, *_pairs(run)) if _is_cjk(run) else _expanded(run[: 8 * MAX_TOKEN])
        for token in tokens:
            counts[token] = counts.get(token, 0) + times
    return counts


def query_tokens(text: str) -> list[str]:
    """List the distinct tokens that a text must have to match a query."""
    found: dict[str, None] = {}
    for run in _runs(text):
        if _is_cjk(run):
            found |= dict.fromkeys(_pairs(run) if len(run) > 1 else run)
        else:
            found |= dict.fromkeys(_expanded(run[: 8 * MAX_TOKEN]))
    return list(found)


def _runs(text: str) -> list[str]:
    if text.isascii():
        return _ASCII_RUN.findall(text)
    return _RUN.findall(unicodedata.normalize("NFKC", text))


def _is_cjk(run: str) -> bool:
    return run[0] >= "\u1100" and bool(_CJK_CHAR.match(run))


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)]


@lru_cache(maxsize=100_000)
def _expanded(run: str) -> tuple[str, ...]:
    """Give a word and, when it is made of several, its parts."""
    folded = run.casefold()
    whole = folded[:MAX_TOKEN]
    if folded.isalpha() and (run.islower() or run.isupper() or run.istitle()):
        return (whole,)
    names = [piece for name in _SEPARATOR.split(run) for piece in (name, *name.split("."))]
    words = [token for part in _PART.findall(run) for token in (part, *_CAMEL.findall(part))]
    return tuple(dict.fromkeys((whole, *(token.casefold()[:MAX_TOKEN] for token in (*names, *words) if token))))
