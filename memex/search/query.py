"""What a search asks for: words, phrases, what must not be there, and filters. Any text is legal.

    retry "rate limit" -mock project:shelf source:codex role:user type:bash file:login.py since:3d until:2026-03-01

A field that is unknown, a date that is none, a quote that is not closed: these are words like others.
"""

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from memex.search.tokens import query_tokens

SearchLevel = Literal["raw", "observations", "talks", "sessions", "all"]
LEVELS: tuple[str, ...] = get_args(SearchLevel)
LONGEST_PHRASE = 1000
"""Characters; a longer one is searched for by its words."""

_TERM = re.compile(r"""(?<!\S)(?P<no>-(?=["\w]))?(?:(?P<field>[a-z]+):)?(?:"(?P<phrase>[^"]*)"(?!\S)|(?P<word>\S+))""")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions that hold inside every ranking, before its best are taken.

    `project` matches anywhere in a project's name or id, `session` at the beginning of a session's id, `file`
    anywhere in a text. `type` is the kind of a message, the name of a tool, or the type of an observation.
    """

    levels: tuple[str, ...] = ()
    project: str = ""
    session: str = ""
    role: str = ""
    cli: str = ""
    type: str = ""
    file: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def as_sql(self) -> tuple[str, dict[str, Any]]:
        """Write the condition for DuckDB, with its values."""
        given: dict[str, tuple[str, Any]] = {
            "levels": ("list_contains($levels, level)", list(self.levels)),
            "project": (
                "(contains(lower(project), $project) OR contains(lower(project_id), $project))",
                self.project.lower(),
            ),
            "session": (
                "(starts_with(session_id, $session) OR starts_with(split_part(session_id, ':', 2), $session))",
                self.session,
            ),
            "role": ("role = $role", self.role),
            "cli": ("cli = $cli", self.cli),
            "type": ("lower(type) = $type", self.type.lower()),
            "file": ("contains(lower(content), $file)", self.file.lower()),
            "since": ("ts >= $since", _naive(self.since)),
            "until": ("ts < $until", _naive(self.until)),
        }
        used = {name: (sql, value) for name, (sql, value) in given.items() if value}
        return " AND ".join(sql for sql, _value in used.values()) or "true", {n: v for n, (_sql, v) in used.items()}


@dataclass(frozen=True, slots=True)
class Query:
    """A question. `text` is what is ranked by, phrases included; every phrase must be there, nothing `without`."""

    text: str
    phrases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    filters: Filters = Filters()

    @property
    def is_exact(self) -> bool:
        """Whether only the text itself tells if it is an answer: a vector does not."""
        return bool(self.phrases or self.without or self.filters.file)

    def as_sql(self) -> tuple[str, dict[str, Any]]:
        """Write filters and phrases as a condition for DuckDB, with its values."""
        condition, values = self.filters.as_sql()
        for number, phrase in enumerate(self.phrases):
            condition += f" AND regexp_matches(content, $phrase{number})"
            values[f"phrase{number}"] = r"(?i)" + r"\s+".join(map(re.escape, phrase.split()))
        return condition, values


def parse_query(text: str, now: datetime, filters: Filters = Filters()) -> Query:
    """Read a question as a person writes it. What stands in the text goes before the `filters` given beside it."""
    words: list[str] = []
    phrases: list[str] = []
    without: list[str] = []
    for term in _TERM.finditer(text):
        value = term["word"] if term["phrase"] is None else term["phrase"]
        narrowed = _narrowed(filters, term["field"], value, now) if term["field"] and not term["no"] else None
        if narrowed:
            filters = narrowed
        elif term["no"] and not term["field"] and query_tokens(value):
            without.append(value)
        elif term["phrase"] is not None and not term["no"] and not term["field"] and _is_phrase(value):
            phrases.append(value)
            words.append(value)
        else:
            words.append(term[0])
    return Query(" ".join(words), tuple(phrases), tuple(without), filters)


def ask(text: str, now: datetime, filters: Filters, since: str = "", until: str = "") -> Query:
    """Read a question and the dates or ages beside it, "" where there is none.

    Raises:
        ValueError: `since` or `until` is neither date nor age.
    """
    start, end = (parse_when(when, now) if when else None for when in (since, until))
    return parse_query(text, now, replace(filters, since=start, until=end))


def _narrowed(filters: Filters, field: str, value: str, now: datetime) -> Filters | None:
    """Take a field in; None when it is none of ours."""
    given: dict[str, Any] = {}
    if field in ("since", "until"):
        try:
            given[field] = parse_when(value, now)
        except ValueError:
            return None
    elif field in _FIELDS and value:
        given[_FIELDS[field]] = value
    return replace(filters, **given) if given else None


_FIELDS = {name: name for name in ("project", "session", "role", "type", "file")} | {"source": "cli"}


def _is_phrase(text: str) -> bool:
    return len(text) <= LONGEST_PHRASE and bool(query_tokens(text))


def _naive(when: datetime | None) -> datetime | None:
    return when.astimezone(UTC).replace(tzinfo=None) if when else None


def parse_when(text: str, now: datetime) -> datetime:
    """Read a date (`2026-03-01`), a time, or an age (`3d`, `12h`, `2w`).

    Raises:
        ValueError: it is none of these.
    """
    if text[-1:] in _UNITS and text[:-1].isdecimal():
        try:
            return now - int(text[:-1]) * _UNITS[text[-1]]
        except OverflowError as error:
            raise ValueError(f"{text!r} is too long ago") from error
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is no date: write 2026-03-01, 2026-03-01T12:00 or an age such as 3d, 12h, 2w"
        ) from None
    return when if when.tzinfo else when.replace(tzinfo=now.tzinfo)
