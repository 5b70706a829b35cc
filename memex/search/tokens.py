"""Words for full text: what is indexed and what is asked is cut by the same rules.

A run of one script is a word. Identifiers count whole and in parts (`getUserName` is also `get`, `user`,
`name`; `a/b_c.py` is also `b_c.py`, `b_c`, `a`, `b`, `c`, `py`). Chinese, Japanese and Korean have no spaces: they are
indexed as overlapping pairs and as single characters, and asked for by pairs, so that every substring of
one or more characters is found. Words are brought to what their forms share: English ones to their stem, Chinese
characters to their simplified form.
"""

import re
import unicodedata
from functools import cache, lru_cache
from typing import Any

from memex.text import CJK

RULES = 2
"""Counts the changes of these rules, and of what an index holds: one that is older is made anew."""
MAX_TOKEN = 64
"""Longer runs are keys, hashes of hashes and encoded files: they are cut, not searched whole."""
SHORTEST_STEMMED = 3
"""Letters of the shortest word that has an ending."""

_WORD = rf"[^\W{CJK}]"
_RUST_WORD = rf"[\p{{L}}\p{{N}}_--[{CJK}]]"
_GLUE = r"[./:@\\-]+"
RUN = re.compile(rf"[{CJK}]+|{_WORD}+(?:{_GLUE}{_WORD}+)*")
RUST_RUN = rf"[{CJK}]+|{_RUST_WORD}+(?:{_GLUE}{_RUST_WORD}+)*"
"""The same in the language of Rust's expressions."""
_SEPARATOR = re.compile(r"[/\\:@-]+")
PART = re.compile(rf"[^\W_{CJK}]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\WA-Za-z_0-9]+|\d+")
_CJK_CHAR = re.compile(rf"[{CJK}]")


def normal(text: str) -> str:
    """Write a text with one form of each character, as its runs are looked for."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def tokens_in(run: str) -> tuple[str, ...]:
    """List the tokens by which a run is found; those of CJK come as often as they are in it."""
    if not is_cjk_run(run):
        return _expanded(run[: 8 * MAX_TOKEN])
    simple = "".join(map(_simplified, run))
    return (*simple, *_pairs(simple))


def query_tokens(text: str) -> list[str]:
    """List the distinct tokens that a text must have to match a query."""
    found: dict[str, None] = {}
    for run in RUN.findall(normal(text)):
        tokens = tokens_in(run)
        found |= dict.fromkeys(tokens[len(run) :] if is_cjk_run(run) and len(run) > 1 else tokens)
    return list(found)


def words_in(text: str) -> list[str]:
    """List the smallest tokens of a text, which are there wherever it stands: words, parts of names, CJK pairs."""
    found: dict[str, None] = {}
    for run in RUN.findall(normal(text)):
        if is_cjk_run(run):
            found |= dict.fromkeys(query_tokens(run))
        else:
            found |= dict.fromkeys(map(_token, _CAMEL.findall(run[: 8 * MAX_TOKEN])))
    return list(found)


def is_cjk_run(run: str) -> bool:
    """Tell which of the two kinds of runs one is."""
    return run[0] >= "\u1100" and bool(_CJK_CHAR.match(run))


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)]


@lru_cache(maxsize=100_000)
def _expanded(run: str) -> tuple[str, ...]:
    """Give a word and, when it is made of several, its parts."""
    if run.isalpha() and (run.islower() or run.isupper() or run.istitle()):
        return (_token(run),)
    names = [piece for name in _SEPARATOR.split(run) for piece in (name, *name.split("."))]
    words = [token for part in PART.findall(run) for token in (part, *_CAMEL.findall(part))]
    return tuple(dict.fromkeys(map(_token, filter(None, (run, *names, *words)))))


def _token(word: str) -> str:
    """Cut a word short, and the ending off an English one; letters of its own say that it is of another language."""
    token = word.casefold()[:MAX_TOKEN]
    if len(token) < SHORTEST_STEMMED or not (token.isascii() and token.isalpha()):
        return token
    stem: str = _stemmer().stemWord(token)
    return stem


@cache
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")


@cache
def _simplified(char: str) -> str:
    """Give the simplified form of a Chinese character; one at a time, since a phrase may decide otherwise."""
    simple: str = _converter().convert(char)
    return simple


@cache
def _converter() -> Any:
    from opencc import OpenCC

    return OpenCC("t2s")
