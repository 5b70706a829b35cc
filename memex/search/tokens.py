"""Words for full text: what is indexed and what is asked is cut by the same rules.

A run of one script is a word. Identifiers count whole and in parts (`getUserName` is also `get`, `user`,
`name`; `a/b_c.py` is also `b_c.py`, `b_c`, `a`, `b`, `c`, `py`). Chinese, Japanese and Korean have no spaces: they are
indexed as overlapping pairs and as single characters, and asked for by pairs, so that every substring of
one or more characters is found.
"""

import re
import unicodedata
from functools import lru_cache

from memex.text import CJK

MAX_TOKEN = 64
"""Longer runs are keys, hashes of hashes and encoded files: they are cut, not searched whole."""

_WORD = rf"[^\W{CJK}]"
_RUST_WORD = rf"[\p{{L}}\p{{N}}_--[{CJK}]]"
_GLUE = r"[./:@\\-]+"
RUN = re.compile(rf"[{CJK}]+|{_WORD}+(?:{_GLUE}{_WORD}+)*")
RUST_RUN = rf"[{CJK}]+|{_RUST_WORD}+(?:{_GLUE}{_RUST_WORD}+)*"
"""The same in the language of Rust's expressions."""
_SEPARATOR = re.compile(r"[/\\:@-]+")
_PART = re.compile(rf"[^\W_{CJK}]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\WA-Za-z_0-9]+|\d+")
_CJK_CHAR = re.compile(rf"[{CJK}]")


def normal(text: str) -> str:
    """Write a text with one form of each character, as its runs are looked for."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def tokens_in(run: str) -> tuple[str, ...]:
    """List the tokens by which a run is found; those of CJK come as often as they are in it."""
    return (*run, *_pairs(run)) if _is_cjk(run) else _expanded(run[: 8 * MAX_TOKEN])


def query_tokens(text: str) -> list[str]:
    """List the distinct tokens that a text must have to match a query."""
    found: dict[str, None] = {}
    for run in RUN.findall(normal(text)):
        found |= dict.fromkeys(_pairs(run) if _is_cjk(run) and len(run) > 1 else tokens_in(run))
    return list(found)


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
