"""Whether an answer says things that its source does not: paths, addresses, hashes, names, numbers.

A claim is grounded when it stands in the source, letter case aside. What is not is dropped with the sentence, or the
list item, that makes it: a short true summary is worth more than a long one with an invented file in it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from memex.llm.replies import Reply, texts_of
from memex.text import unique

_URL = re.compile(r"\b(?:https?|ssh|git|ftp|wss?)://[\x21-\x7e]+", re.IGNORECASE)
_PATH = re.compile(
    r"(?<![\w/.-])(?:~|\.{1,2}|[A-Za-z]:)?(?:[\\/]?[A-Za-z0-9_@.+-]+(?:[\\/][A-Za-z0-9_@.+*-]+)+[\\/]?|"
    r"[A-Za-z0-9_@+-][A-Za-z0-9_@.+-]*\.[a-z][A-Za-z0-9]{0,5}(?![\w(]|\.\w))",
    re.ASCII,
)
_HASH = re.compile(r"(?<![\w-])(?=[a-f0-9]*[0-9])(?=[a-f0-9]*[a-f])[a-f0-9]{7,64}(?![\w-])", re.ASCII)
_NAME = re.compile(
    r"(?<![\w.])(?:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?=\()|[A-Za-z]\w*_\w+|_\w{2,}|[a-z]+[a-z0-9]*[A-Z]\w*|"
    r"[A-Z][a-z0-9]+[A-Z]\w*|[A-Za-z_]\w*(?=\(\)))",
    re.ASCII,
)
_NUMBER = re.compile(r"(?<![\w.,-])\d+(?:[.,]\d+)*", re.ASCII)
_ALTERNATIVES = re.compile(r"\w[\w-]*/\w[\w-]*|[A-Z]\w*(?:/[A-Z]\w*)+")
"""What a slash stands between in plain English: add/remove, JSON/YAML."""
_CODE = re.compile(r"`([^`\n]{2,120})`")
_SENTENCE = re.compile(r"((?<=[.!?])\s+(?=[\"'(\[`*]*[^\sa-z])|(?<=[。！？])|\n+)")
_TRAILING = ".,;:!?)]}>'\"`*…"
_COMMON = frozenset(
    {"and/or", "e.g", "i.e", "read/write", "client/server", "input/output", "ci/cd", "tcp/ip", "github", "javascript",
     "typescript", "node.js", "vue.js", "next.js", "fastapi", "graphql", "postgresql", "mysql", "sqlite", "yes/no"}
)  # fmt: skip
"""What looks like a path or a name and is plain English, or a technology."""

Cleaned = TypeVar("Cleaned", bound=Reply)
Ground = Callable[[str], bool]


class Source:
    """What an answer was made from, ready to be asked.

    >>> Source(["edited /src/app/login.py"]).ungrounded("Changed app/login.py and app/user.py")
    ['app/user.py']
    """

    def __init__(self, texts: Sequence[str]) -> None:
        joined = "\n".join(texts).casefold()
        self._text = joined + "\n" + joined.replace("\\\\", "/").replace("\\", "/")
        self._numbers = {_bare(match[0]) for match in _NUMBER.finditer(joined)} | set(re.findall(r"\d+", joined))

    def holds(self, claim: str) -> bool:
        """Tell whether the source says this."""
        wanted = claim.casefold().replace("\\", "/")
        if wanted in self._text or wanted in _COMMON:
            return True
        if "/" in wanted and "://" not in wanted:  # a path may be told from another folder
            parts = wanted.strip("~./").split("/")
            tails = ["/".join(parts[i:]) for i in range(len(parts))]
            return len(parts) > 1 and any("/" in tail and tail in self._text for tail in tails[1:])
        return False

    def ungrounded(self, text: str) -> list[str]:
        """List the claims of a text that the source does not make, in order."""
        return list(unique(claim for claim in claims(text) if not self._says(claim)))

    def _says(self, claim: str) -> bool:
        if _NUMBER.fullmatch(claim):
            return _bare(claim) in self._numbers or self.holds(claim)
        return self.holds(claim)


def claims(text: str) -> Iterator[str]:
    """Find what can be checked: addresses, paths, hashes, names, and numbers of three digits or with a point."""
    rest = text
    for pattern in (_URL, _PATH, _HASH, _NAME):
        for match in pattern.finditer(rest):
            claim = match[0].rstrip(_TRAILING)
            if len(claim) > 2 and not _NUMBER.fullmatch(claim) and not _ALTERNATIVES.fullmatch(claim):
                yield claim
        rest = pattern.sub(" ", rest)
    quoted = {number for code in _CODE.findall(text) for number in _NUMBER.findall(code)}
    for number in _NUMBER.findall(rest):
        if number in quoted or len(re.sub(r"\D", "", number)) >= 3 or "." in number:
            yield number


def _bare(number: str) -> str:
    return number.replace(",", "")


def ungrounded(reply: Reply, source: Source) -> list[str]:
    """List what an answer claims without a ground, in order."""
    return list(unique(claim for text in texts_of(reply) for claim in source.ungrounded(text)))


def without_ungrounded(reply: Cleaned, source: Source) -> tuple[Cleaned, int]:
    """Drop the sentences and list items that make ungrounded claims; return what is left, and how many claims went.

    A text of which nothing is left is "".
    """
    dropped = len(ungrounded(reply, source))
    if not dropped:
        return reply, 0
    return _cleaned(reply, source), dropped


def _cleaned(reply: Cleaned, source: Source) -> Cleaned:
    values: dict[str, Any] = {}
    for name, value in reply.__dict__.items():
        if isinstance(value, str):
            values[name] = _grounded_part(value, source)
        elif isinstance(value, list):
            values[name] = [
                _cleaned(item, source) if isinstance(item, Reply) else item
                for item in value
                if isinstance(item, Reply) or not source.ungrounded(item)
            ]
        else:
            values[name] = value
    return reply.model_copy(update=values)


def _grounded_part(text: str, source: Source) -> str:
    parts = _SENTENCE.split(text)  # sentence, gap, sentence, gap, …
    gaps = [*parts[1::2], ""]
    kept = (part + gap for part, gap in zip(parts[::2], gaps, strict=True) if not source.ungrounded(part))
    return "".join(kept).strip()
