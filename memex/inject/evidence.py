"""What a prompt and a memory share, beside the direction of their vectors: files, names in code, rare words."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from memex.search.tokens import RUN, normal, query_tokens, tokens_in

_PATH = re.compile(r"(?<![\w.@~/\\-])(?:[\w.@~-]*[/\\])*[\w.@-]*[\w-]\.[A-Za-z]\w{0,7}\b")
"""Something with an extension, or a path to it."""
_NAME = re.compile(
    r"\b(?:[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|\w+_\w+|[A-Z]{2,}\d+|[A-Za-z]+-\d+)\b|(?<=`)[\w.:/-]{3,60}(?=`)"
)
"""camelCase, CamelCase, snake_case, AB12, ABC-123, and what stands between backquotes."""
MOST_WORDS = 400
"""Tokens of a prompt that are compared: a longer one is pasted text."""
_DOMAIN = frozenset(("com", "org", "net", "io", "dev", "html", "e", "g"))


@dataclass(frozen=True, slots=True)
class Shared:
    """What two texts share: each file, name and word with its strength from 0 to 1.

    `coverage` is the share of the prompt's words that are shared, weighed by rarity; `rarity` is the sum of that.
    """

    files: Mapping[str, float] = field(default_factory=dict)
    names: Mapping[str, float] = field(default_factory=dict)
    words: Mapping[str, float] = field(default_factory=dict)
    coverage: float = 0.0
    rarity: float = 0.0


@dataclass(frozen=True, slots=True)
class Rarity:
    """How rare words are: `having` counts the documents with each, of `documents` in all."""

    having: Mapping[str, int]
    documents: int
    common: float = 0.1
    rare: float = 0.005

    def weight(self, word: str) -> float:
        """Give the inverse document frequency; 0 for a word that no document has."""
        count = self.having.get(word, 0)
        return math.log(1 + (self.documents - count + 0.5) / (count + 0.5)) if count else 0.0

    def strength(self, word: str) -> float:
        """Give 0 for a word in at least `common` of the documents, 1 for one in at most `rare`, by its logarithm."""
        share = max(1, self.having.get(word, 1)) / max(1, self.documents)
        rise = math.log(self.common / share) / math.log(self.common / self.rare)
        return min(1.0, max(0.0, rise))


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt, taken apart once. `words` are the tokens of a full-text search."""

    text: str
    words: tuple[str, ...]
    files: frozenset[str]
    names: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, text: str) -> "Asked":
        """Take a prompt apart."""
        files = frozenset(paths_in(text))
        names = {name: frozenset(tokens_in(name)) for name in dict.fromkeys(_NAME.findall(normal(text)))}
        return cls(text, tuple(query_tokens(text)[:MOST_WORDS]), files, {n: t for n, t in names.items() if t})

    def shared_with(self, text: str, files: tuple[str, ...], rarity: Rarity) -> Shared:
        """Compare with a memory: its text, and the files that it is about."""
        theirs = words_of(text)
        mine = {word: rarity.weight(word) for word in self.words}
        both = {word: weight for word, weight in mine.items() if weight and word in theirs}
        shared_files = self._files_in(files, rarity)
        names = {name: max(map(rarity.strength, tokens)) for name, tokens in self.names.items() if tokens <= theirs}
        told = frozenset(token for name in (*names, *shared_files) for token in tokens_in(name))
        return Shared(
            shared_files,
            {name: strength for name, strength in names.items() if strength and name not in shared_files},
            {word: s for word in both if word not in told and len(word) > 1 and (s := rarity.strength(word)) > 0},
            sum(both.values()) / (sum(mine.values()) or 1.0),
            sum(both.values()),
        )

    def _files_in(self, files: tuple[str, ...], rarity: Rarity) -> dict[str, float]:
        """Find the files of the prompt among those of a memory; a common name, such as README.md, counts less."""
        found: dict[str, float] = {}
        for path in self.files:
            if any(is_same_file(path, theirs) for theirs in files):
                name = path.rsplit("/", 1)[-1]
                found[name] = rarity.strength(name.casefold()) if "/" not in path.strip("./") else 1.0
        return {name: strength for name, strength in found.items() if strength}


def is_same_file(path: str, other: str) -> bool:
    """Tell whether one of two paths is the end of the other, whole names compared."""
    a, b = (
        tuple(part for part in one.replace("\\", "/").split("/") if part not in ("", ".", "~")) for one in (path, other)
    )
    size = min(len(a), len(b))
    return size > 0 and a[-size:] == b[-size:]


def _names(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "~"))


def paths_in(text: str) -> list[str]:
    """List what looks like a file in a text: it has an extension."""
    found = (path.replace("\\", "/") for path in _PATH.findall(normal(text)))
    return [path for path in dict.fromkeys(found) if "." in path.strip(".") and path.rsplit(".", 1)[-1] not in _DOMAIN]


@lru_cache(maxsize=20_000)
def words_of(text: str) -> frozenset[str]:
    """Cut a text into the words that it is found by; kept, since the same memories are looked at again and again."""
    return frozenset(token for run in set(RUN.findall(normal(text))) for token in tokens_in(run))


Count = Callable[[tuple[str, ...]], tuple[Mapping[str, int], int]]
"""Counts, for each of some words, the documents that have it, and all documents."""


def rarity_of(asked: Asked, count: Count, common: float, rare: float, fewest: int) -> Rarity:
    """Look up how rare the words of a prompt are."""
    wanted = dict.fromkeys([*asked.words, *(token for tokens in asked.names.values() for token in tokens)])
    wanted |= dict.fromkeys(path.rsplit("/", 1)[-1].casefold() for path in asked.files)
    having, documents = count(tuple(wanted))
    return Rarity(having, max(documents, fewest), common, rare)
