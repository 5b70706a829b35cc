"""From a row of the lake to what is told of it, as it is now: what was forgotten or replaced meanwhile is not told."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memex.inject.candidates import MEMORIES, Candidate
from memex.inject.render import Quotation
from memex.search.vectors import LEVELS
from memex.store.lake import Lake, in_list

PREFIX = 13
"""Characters of a session's id that are given: enough to tell those apart that begin with their time."""
_SAFE = re.compile(r"[\w.:#-]{1,120}\Z", re.ASCII)
"""A hint is a command that somebody may run: an id with any other character is not written into one."""
_COLUMNS: Mapping[str, list[str]] = {
    "observations": ["id", "title", "narrative"],
    "talks": ["id", "user_request", "summary", "completed"],
    "sessions": ["id", "summary", "key_points"],
    MEMORIES: ["id", "name", "text"],
}


def quotations(lake: Lake, chosen: Sequence[Candidate], confidences: Mapping[str, float]) -> list[Quotation]:
    """Read what was chosen; one that is there no more is left out. The order stays."""
    texts: dict[str, str] = {}
    for level in dict.fromkeys(one.level for one in chosen):
        table, where = (MEMORIES, "NOT archived") if level == MEMORIES else (LEVELS[level].table, LEVELS[level].where)
        ids = in_list("id", [one.id for one in chosen if one.level == level])
        for row in lake.scan(table, _COLUMNS[level], f"{ids} AND {where}").to_pylist():
            texts[row["id"]] = told(level, row)
    return [
        Quotation(one.id, texts[one.id], one.at, confidences.get(one.id), _label(one), hint(one))
        for one in chosen
        if texts.get(one.id)
    ]


def told(level: str, row: Mapping[str, Any]) -> str:
    """Write a row as one says it."""
    if level == "talks":
        return _joined((row["user_request"], row["summary"], row["completed"]))
    if level == "sessions":
        return _joined((row["summary"], *(row["key_points"] or ())))
    first, second = (row["title"], row["narrative"]) if level == "observations" else (row["name"], row["text"])
    return second if first in second else _joined((first, second))


def hint(one: Candidate) -> str:
    """Name the command that shows more."""
    if one.level == MEMORIES:
        return f"memex memory {one.id[:10]}"
    if one.level == "observations":
        return around(one.id)
    return show(one.session_id, "session" if one.level == "sessions" else one.level)


def show(session_id: str, level: str) -> str:
    """Name the command that shows a session at a level; "" when its id is none to be written into a command."""
    native = session_id.partition(":")[2][:PREFIX]
    return f"memex show {native} --level {level}" if _SAFE.match(native) else ""


def around(entry: str) -> str:
    """Name the command that shows what stands around an entry."""
    return f"memex timeline {entry}" if _SAFE.match(entry) else ""


def _label(one: Candidate) -> str:
    if one.level == MEMORIES:
        return one.kind
    if one.level == "sessions":
        return "a session"
    return "asked" if one.level == "talks" else one.kind


def _joined(parts: Iterable[str]) -> str:
    return "\n".join(part.strip() for part in parts if part and part.strip())
