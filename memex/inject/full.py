"""What a session should know of its project when it starts: what `--mode=full` answers.

The most important comes first, since `max_tokens` may cut the rest: what the person demands and likes, what is open,
what the last sessions did, then the pyramid of digests, the newest first.
"""

from collections.abc import Iterable
from typing import Any

from memex.inject.candidates import MEMORIES
from memex.inject.page import Page
from memex.inject.quote import show, told
from memex.inject.render import Quotation
from memex.store.lake import Lake, in_list

KINDS = (("rule", 10), ("preference", 10), ("thread", 6), ("decision", 5))
"""Kinds of memory that are told, and how many of each, the most important and newest."""
SESSIONS = 3
"""Latest sessions."""
DIGESTS = 8
"""Of the digests that are in force, so many, the newest first."""
_COLUMNS = ["id", "kind", "name", "text", "importance", "occurred_at", "valid_to"]


def page_for_start(lake: Lake, project: str, session: str) -> Page:
    """Gather what there is about a project, without the session that asks."""
    memories = list(_memories(lake, project))
    quotations = (*memories, *_sessions(lake, project, session), *_digests(lake, project))
    return Page(quotations, memories=frozenset(one.key for one in memories), how="always")


def _memories(lake: Lake, project: str) -> Iterable[Quotation]:
    kinds = in_list("kind", [kind for kind, _count in KINDS])
    where = f"NOT archived AND {in_list('project_id', ['', project])} AND {kinds}"
    rows = [row for row in lake.scan(MEMORIES, _COLUMNS, where).to_pylist() if row["valid_to"] is None]
    for kind, count in KINDS:
        mine = sorted((row for row in rows if row["kind"] == kind), key=_weight, reverse=True)
        for row in mine[:count]:
            more = f"memex memory {row['id'][:10]}"
            yield Quotation(row["id"], told(MEMORIES, row), row["occurred_at"], None, kind, more)


def _sessions(lake: Lake, project: str, session: str) -> Iterable[Quotation]:
    where = f"served AND {in_list('project_id', [project])}"
    rows = lake.scan("session_summaries", ["id", "session_id", "summary", "key_points", "occurred_at"], where)
    others = [row for row in rows.to_pylist() if row["session_id"] != session]
    for row in _newest(others, "occurred_at")[:SESSIONS]:
        more = show(row["session_id"], "session")
        yield Quotation(row["id"], told("sessions", row), row["occurred_at"], None, "a session", more)


def _digests(lake: Lake, project: str) -> Iterable[Quotation]:
    where = f"status = 'active' AND {in_list('project_id', [project])}"
    rows = lake.scan("digests", ["id", "text", "time_from", "time_to", "extraction_to"], where).to_pylist()
    for row in sorted(rows, key=lambda row: row["extraction_to"], reverse=True)[:DIGESTS]:
        since = f"since {row['time_from']:%Y-%m-%d}" if row["time_from"] else ""
        yield Quotation(row["id"], row["text"], row["time_to"], None, f"the project {since}".strip())


def _weight(row: dict[str, Any]) -> tuple[float, float]:
    return row["importance"], row["occurred_at"].timestamp() if row["occurred_at"] else 0.0


def _newest(rows: list[dict[str, Any]], column: str) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row[column].timestamp() if row[column] else 0.0, reverse=True)
