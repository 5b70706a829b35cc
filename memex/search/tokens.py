"""Words for full text: the same function reads what is indexed and what is asked.

A run of one script is a word. Identifiers count whole and in parts (`getUserName` is also `get`, `user`,
`name`; `a/b_c.py` is also `a`, `b`, `c`, `py`). Chinese, Japanese and Korean have no spaces: they are
indexed as overlapping pairs and as single characters, and asked for by pairs, so that every substring of
one or more characters is found.
"""

import re
import unicodedata
from collections.abc import Iterator

from memex.text import CJK

MAX_TOKEN = 64
"""Longer runs are keys, hashes of hashes and encoded files: they are cut, not searched whole."""

_RUN = re.compile(rf"[{CJK}]+|[^\W{CJK}]+(?:[./:@\\-]+[^\W{CJK}]+)*")
_PART = re.compile(rf"[^\W_{CJK}]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\WA-Za-z_0-9]+|\d+")
_CJK_RUN = re.compile(rf"[{CJK}]")


def index_tokens(text: str) -> Iterator[str]:
    """Yield the tokens of a text to be found, repeats included."""
    for run in _runs(text):
        if _CJK_RUN.match(run):
            yield from run
            yield from _pairs(run)
        else:
            yield from _word_tokens(run)


def query_tokens(text: str) -> list[str]:
    """List the distinct tokens that a text must have to match a query."""
    found: dict[str, None] = {}
    for run in _runs(text):
        if _CJK_RUN.match(run):
            found |= dict.fromkeys(_pairs(run) if len(run) > 1 else run)
        else:
            found |= dict.fromkeys(_word_tokens(run))
    return list(found)


def _runs(text: str) -> Iterator[str]:
    return (match[0] for match in _RUN.finditer(unicodedata.normalize("NFKC", text)))


def _pairs(run: str) -> Iterator[str]:
    return (run[i : i + 2] for i in range(len(run) - 1))


def _word_tokens(run: str) -> Iterator[str]:
    """Yield a word, and, when it is made of several, its parts."""
    folded = run.casefold()
    if folded.isalpha() and (run.islower() or run.isupper() or run.istitle()):
        yield folded[:MAX_TOKEN]
        return
    whole = folded[:MAX_TOKEN]
    yield whole
    parts = {whole}
    for part in _PART.findall(run):
        for token in (part, *_CAMEL.findall(part)):
            token = token.casefold()[:MAX_TOKEN]
            if token not in parts:
                parts.add(token)
                yield token
