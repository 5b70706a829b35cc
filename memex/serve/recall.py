"""What a model is told: lines with ids and token costs first, whole texts when it asks for them by id."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from memex.errors import NotFound
from memex.maintain.kinds import kinds
from memex.model import Hit
from memex.search.query import Filters, SearchLevel, ask
from memex.search.snippet import snippet
from memex.setup import Memex
from memex.store import views
from memex.store.timeline import show_around
from memex.text import clip_units, estimate_tokens, one_line

LINE_UNITS = 40
PAGE_TOKENS = 6000
"""Of raw text that is given at once, about."""


@dataclass(frozen=True, slots=True)
class Recall:
    """Reads one home, and remembers in it. Each method raises NotFound for names that nothing has."""

    memex: Memex

    def search(
        self, query: str, level: SearchLevel, limit: int, project: str, since: str, until: str
    ) -> dict[str, Any]:
        """List hits as lines; ValueError when a date is none."""
        asked = ask(query, datetime.now().astimezone(), Filters(project=project), since, until)
        found = self.memex.search.run(asked, level, limit)
        return {"hits": [_line(hit, asked.text) for hit in found.hits], "notes": list(found.notes)}

    def session(self, name: str, format: Literal["summary", "raw"], start: int) -> dict[str, Any]:
        """Read a session: its summaries with the cost of its raw text, or a page of that text from line `start`."""
        lake = self.memex.lake
        found = views.find_session(lake, name)
        raw = views.show_session(lake, found, "raw")
        if format == "raw":
            return {"session": _session(raw["session"]), **_page(raw["rows"], start)}
        summary = views.show_session(lake, found, "session")["rows"]
        return {
            "session": _session(raw["session"]),
            "summary": _dated(summary[0]) if summary else None,
            "talks": [_dated(row) for row in views.show_session(lake, found, "talks")["rows"]],
            "raw_lines": len(raw["rows"]),
            "raw_tokens": sum(estimate_tokens(row["text"]) for row in raw["rows"]),
        }

    def around(self, name: str, prompt: int, before: int, after: int) -> dict[str, Any]:
        """Read the lines around a prompt of a session, as far as a page holds them."""
        found = show_around(self.memex.lake, f"{name}#{prompt}", before, after)
        return {"session": found["session_id"], **_page(found["rows"], 0)}

    def recent(self, project: str, limit: int) -> list[dict[str, Any]]:
        """List sessions as lines, newest first."""
        return [_session(row) for row in views.list_sessions(self.memex.lake, project, limit)]

    def observations(self, session: str, ids: Sequence[str]) -> list[dict[str, Any]]:
        """List the observations of a session as lines; with `ids`, those whole."""
        lake = self.memex.lake
        if ids:
            return [_dated(row) for row in views.list_observations(lake, ids=ids)]
        if not session:
            raise NotFound("neither a session nor ids were given", "search_history finds sessions")
        rows = views.list_observations(lake, views.find_session(lake, session))
        return [_observation(row) for row in rows]

    def projects(self, limit: int) -> list[dict[str, Any]]:
        """List projects, the one that was worked on last first."""
        names = ("id", "name", "sessions", "talks", "last")
        return [_dated({n: row[n] for n in names}) for row in views.list_projects(self.memex.lake)[:limit]]

    def remember(self, text: str, kind: str, project: str) -> dict[str, str]:
        """Remember a text for good; of kinds that hold everywhere the project counts for nothing."""
        if not text.strip():
            raise ValueError("there is nothing to remember")
        if kind not in kinds():
            raise ValueError(f"no kind is called {kind!r}: there are {', '.join(kinds())}")
        everywhere = kinds()[kind].user or not project
        where = "" if everywhere else views.find_project(self.memex.lake, project)
        made = self.memex.maintain.remember(text, kind, where)
        return {"id": made.id, "kind": made.kind, "project": made.project_id}


def _line(hit: Hit, text: str) -> dict[str, Any]:
    return {
        "session": hit.session_id,
        "prompt": hit.prompt_number,
        "level": hit.level,
        "who": hit.role,
        "project": hit.project,
        "when": _minute(hit.ts),
        "what": snippet(hit.content, text),
        "tokens": estimate_tokens(hit.content),
    }


def _session(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["id"],
        "project": row["project"],
        "when": _minute(row["ended_at"] or row["started_at"]),
        "talks": row["talks"],
        "tool_calls": row["tool_calls"],
        "title": clip_units(one_line(row["title"]), LINE_UNITS),
    }


def _observation(row: dict[str, Any]) -> dict[str, Any]:
    cost = estimate_tokens("\n".join([row["narrative"] or "", *(row["facts"] or ())]))
    line = clip_units(one_line(row["title"]), LINE_UNITS)
    return {"id": row["id"], "prompt": row["prompt_number"], "type": row["type"], "what": line, "tokens": cost}


def _page(rows: Sequence[dict[str, Any]], start: int) -> dict[str, Any]:
    """Take lines from `start` on until the page is full; `next` is where the next page starts, None at the end."""
    page: list[dict[str, Any]] = []
    left = PAGE_TOKENS
    for row in rows[start:]:
        cost = estimate_tokens(row["text"])
        if page and cost > left:
            break
        text = row["text"] if cost <= left else clip_units(row["text"], left) + " … (cut: ask for the file itself)"
        page.append({"prompt": row["prompt_number"], "who": f"{row['role']} {row['kind']}".strip(), "text": text})
        left -= cost
    end = start + len(page)
    return {"lines": page, "next": end if end < len(rows) else None, "of": len(rows)}


def _dated(row: dict[str, Any]) -> dict[str, Any]:
    return {key: _minute(value) if isinstance(value, datetime) else value for key, value in row.items()}


def _minute(when: datetime | None) -> str:
    return when.isoformat(timespec="minutes") if when else ""
