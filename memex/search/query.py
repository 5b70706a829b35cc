"""What a search asks for: words, level, filters, how many."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

SearchLevel = Literal["raw", "observations", "talks", "sessions", "all"]
LEVELS: tuple[str, ...] = get_args(SearchLevel)


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions that hold inside every ranking, before its best are taken.

    `project` matches anywhere in a project's name or id, `session` at the beginning of a session's id.
    """

    levels: tuple[str, ...] = ()
    project: str = ""
    session: str = ""
    role: str = ""
    cli: str = ""
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
            "since": ("ts >= $since", _naive(self.since)),
            "until": ("ts < $until", _naive(self.until)),
        }
        used = {name: (sql, value) for name, (sql, value) in given.items() if value}
        return " AND ".join(sql for sql, _value in used.values()) or "true", {n: v for n, (_sql, v) in used.items()}


def _naive(when: datetime | None) -> datetime | None:
    return when.astimezone(UTC).replace(tzinfo=None) if when else None


_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


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
