"""Secrets taken out of a text before it leaves this machine or is shown to somebody.

The patterns are those of detect-secrets, and a few of our own for what it does not know (`secrets.toml`). What is
found is replaced by its kind; everything else stays as it was. The archive is never changed by this.
"""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.resources import files
from pkgutil import iter_modules
from typing import Any, NamedTuple

NOT_USED = {"ip_public", "high_entropy_strings", "keyword", "jwt", "npm", "openai"}
"""Detectors that take commit hashes, versions and code for secrets, or need minutes for a long line."""

_PRIVATE = re.compile(r"<\s*private\b[^<>]*>.*?(?:<\s*/\s*private\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_LOOSE_END = re.compile(r"\A.*<\s*/\s*private\s*>", re.IGNORECASE | re.DOTALL)
_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.-]*\w\b")
_PLACEHOLDER = re.compile(
    r"\$\{?\w+\}?$|\$\(|<[^<>]*>$|\{[^{}]*\}+$|%[sd(]|\[redacted |\*{3,}|[xX]{4,}$|process\.env\b|"
    r"os\.(?:environ|getenv)\b"
)
"""What stands where a secret would: a variable, a gap, something that was taken out already."""


class Redacted(NamedTuple):
    """A text without its secrets, and how many were found."""

    text: str
    found: int


class _Rule(NamedTuple):
    kind: str
    pattern: re.Pattern[str]
    assigned: bool


def redact(text: str, emails: bool = False) -> Redacted:
    """Replace what must not leave: private parts, secrets, and e-mail addresses on request.

    >>> redact("token ghp_" + "a" * 36 + " <private>me</private>!").text
    'token [redacted github token] [redacted private]!'
    """
    text, count = _PRIVATE.subn("[redacted private]", text)
    text, more = _LOOSE_END.subn("[redacted private]", text)
    count += more
    for rule in _rules():
        text, more = _replaced(rule, text)
        count += more
    if emails:
        text, more = _EMAIL.subn("[redacted e-mail]", text)
        count += more
    return Redacted(text, count)


def _replaced(rule: _Rule, text: str) -> Redacted:
    """Replace the secret of each match: its last group where it has groups, else the whole."""
    parts: list[str] = []
    done = 0
    for start, end in _spans(rule, text):
        parts += (text[done:start], f"[redacted {rule.kind}]")
        done = end
    return Redacted("".join([*parts, text[done:]]), len(parts) // 2)


def _spans(rule: _Rule, text: str) -> Iterator[tuple[int, int]]:
    for match in rule.pattern.finditer(text):
        start, end = match.span("secret" if rule.assigned else 0)
        if end > start and not (rule.assigned and _PLACEHOLDER.match(text[start:end])):
            yield start, end


@cache
def _rules() -> tuple[_Rule, ...]:
    table = tomllib.loads(files("memex").joinpath("secrets.toml").read_text("utf-8"))
    own = [
        _Rule(kind, compiled, "secret" in compiled.groupindex)
        for kind, pattern in table.items()
        for compiled in [re.compile(pattern)]
    ]
    return (*own, *_known_rules())


def _known_rules() -> Iterator[_Rule]:
    """Take the patterns of detect-secrets; the whole match goes, even where it marks a part of it."""
    import detect_secrets.plugins as plugins
    from detect_secrets.plugins.base import RegexBasedDetector

    for module in iter_modules(plugins.__path__):
        if module.name in NOT_USED | {"base"}:
            continue
        for found in vars(import_module(f"{plugins.__name__}.{module.name}")).values():
            if isinstance(found, type) and issubclass(found, RegexBasedDetector) and found is not RegexBasedDetector:
                kind = str(found.secret_type).lower()
                patterns: Any = found.denylist  # a property in the base class, a list in every detector
                yield from (_Rule(kind, pattern, False) for pattern in patterns)
