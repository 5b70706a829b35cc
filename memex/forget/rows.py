"""Rows of the lake that hold, or were made from, what is forgotten."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memex.sources.tombstones import Tombstones
from memex.store.lake import Lake, in_list
from memex.store.schemas import SUMMARY_TABLES, TABLES

SUMMARIES = (*SUMMARY_TABLES.values(), "failures", "extractions", "memories", "edges", "digests", "journal")
"""The tables of what was made from raw text, those first from which others are made."""
RAW = ("messages", "tool_calls")
BATCH = 1000
_NAMES = frozenset(("id", "session_id", "source_id", "message_id", "parent_id", "fingerprint", "recipe", "digest"))
"""Columns that hold no text. Ids of sessions and records may stay where they are needed."""
_BETWEEN = b"\x1f"

Place = tuple[str, int]
"""A talk: session and number of its prompt."""


def texts_of(row: Mapping[str, Any]) -> Iterator[bytes]:
    """Give the texts of a row."""
    for name, value in row.items():
        if name not in _NAMES:
            for text in value if isinstance(value, list) else (value,):
                if isinstance(text, str) and text:
                    yield text.encode("utf-8", "surrogatepass")


def speaking(rows: Sequence[Mapping[str, Any]], tombstones: Tombstones) -> Iterator[Mapping[str, Any]]:
    """Pick the rows that hold a forgotten text: half by half, for most hold none."""
    if not tombstones.secrets or not rows:
        return
    if not tombstones.speaks_in(_BETWEEN.join(text for row in rows for text in texts_of(row))):
        return
    if len(rows) == 1:
        yield rows[0]
        return
    middle = len(rows) // 2
    yield from speaking(rows[:middle], tombstones)
    yield from speaking(rows[middle:], tombstones)


@dataclass
class Going:
    """Rows that are to be deleted, by table: their ids; and rows that only such ones had put aside, as they were."""

    rows: dict[str, set[str]] = field(default_factory=lambda: {table: set() for table in TABLES})
    released: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Rows:
    """Finds them."""

    lake: Lake
    tombstones: Tombstones

    def gone_sessions(self) -> set[str]:
        """Name the forgotten sessions of which some table still has a row."""
        tables = (*RAW, "talks", *SUMMARY_TABLES.values(), "failures", "extractions", "sources")
        named = self._values("sessions", "id").union(*(self._values(table, "session_id") for table in tables))
        return {name for name in named if name and self.tombstones.is_gone(name)}

    def to_read_again(self) -> set[str]:
        """Name the sessions whose own row holds a forgotten text (the name of a repository), or that are unread."""
        unread = self.lake.scan("sources", ["session_id"], "parser_version = 0")["session_id"].to_pylist()
        speaking = self._speaking("sessions", None)
        return {*unread, *(f"{row['cli']}:history" if row["kind"] == "history" else row["id"] for row in speaking)}

    def changing(self, where: str, blanked: Collection[tuple[str, int]]) -> tuple[dict[str, set[str]], set[Place]]:
        """Find the messages and calls that will change or vanish, and the talks that they are in.

        `blanked` are lines: source id and offset.
        """
        found: dict[str, set[str]] = {}
        places: set[Place] = set()
        for table in RAW:
            hits = list(self._speaking(table, where))
            if blanked:
                columns = ["id", "session_id", "prompt_number", "source_id", "offset"]
                rows = self.lake.scan(table, columns, where).to_pylist()
                hits += [row for row in rows if (row["source_id"], row["offset"]) in blanked]
            found[table] = {row["id"] for row in hits}
            places |= {(row["session_id"], row["prompt_number"]) for row in hits}
        return found, places

    def of_sessions(self, table: str, sessions: Collection[str]) -> set[str]:
        """List the rows of sessions in a table of raw text."""
        column = "id" if table == "sessions" else "session_id"
        return set(self.lake.scan(table, ["id"], in_list(column, sorted(sessions)))["id"].to_pylist())

    def derived(self, sources: Collection[str], places: Collection[Place]) -> Going:
        """Find what was made from sources (ids of rows), from talks, and from forgotten sessions.

        A talk's summary may quote the end of the talk before.
        """
        going = Going()
        touched = {
            "observations": set(places),
            "talk_summaries": set(places) | {(session, number + 1) for session, number in places},
            "extractions": set(places) | {(session, number + 1) for session, number in places},
        }
        sessions = {session for session, _number in places}
        removed = set(sources)
        for table in ("observations", "talk_summaries", "session_summaries", "failures", "extractions"):
            columns = [n for n in ("id", "session_id", "prompt_number", "sources") if n in self._columns(table)]
            for row in self.lake.scan(table, columns).to_pylist():
                place = (row["session_id"], row.get("prompt_number", 0))
                whole = table == "session_summaries" and row["session_id"] in sessions
                if whole or place in touched.get(table, ()) or self._comes_from(row, removed):
                    going.rows[table].add(row["id"])
            going.rows[table] |= {row["id"] for row in self._speaking(table, None)}
            removed |= going.rows[table]
        self._add_memories(going, removed)
        return going

    def _add_memories(self, going: Going, removed: set[str]) -> None:
        """Add memories and digests, and what was made from them; let go what only they had put aside."""
        for table, made_of in (("memories", "child_ids"), ("digests", "sources")):
            rows = [row for batch in self._batches(table, None) for row in batch]
            mine = {row["id"] for row in speaking(rows, self.tombstones)}
            while more := {row["id"] for row in rows if self._comes_from(row, removed | mine, made_of)} - mine:
                mine |= more
            going.rows[table] = mine
            removed |= mine
            parts = {part for row in rows if row["id"] in mine for part in row[made_of] or ()}
            aside = [row for row in rows if row["id"] in parts - mine]
            going.released[table] = [_released(table, row) for row in aside]
        self._add_extractions(going)
        edges = self.lake.scan("edges", ["id", "source", "target"]).to_pylist()
        ends = going.rows["memories"]
        going.rows["edges"] = {row["id"] for row in edges if row["source"] in ends or row["target"] in ends}
        going.rows["edges"] |= {row["id"] for row in self._speaking("edges", None)}
        units = self.lake.scan("journal", ["id", "members"]).to_pylist()
        changed = {*ends, *going.rows["digests"], *going.rows["edges"]}
        going.rows["journal"] = {row["id"] for row in units if not changed.isdisjoint(row["members"] or ())}
        going.rows["journal"] |= {row["id"] for row in self._speaking("journal", None)}

    def _add_extractions(self, going: Going) -> None:
        """Add the notes on talks that lose a memory, so that what may stay of it is made again."""
        mine = in_list("id", sorted(going.rows["memories"]))
        lost = self.lake.scan("memories", ["session_id", "prompt_number"], mine).to_pylist()
        places = {(row["session_id"], row["prompt_number"]) for row in lost}
        noted = self.lake.scan("extractions", ["id", "session_id", "prompt_number"]).to_pylist()
        going.rows["extractions"] |= {r["id"] for r in noted if (r["session_id"], r["prompt_number"]) in places}

    def _comes_from(self, row: Mapping[str, Any], removed: Collection[str], made_of: str = "sources") -> bool:
        parts = {*(row.get("sources") or ()), *(row.get(made_of) or ())}
        sessions = {row.get("session_id") or "", *(part.partition("#")[0] for part in parts)}
        return any(part in removed for part in parts) or any(map(self.tombstones.is_gone, sessions))

    def _speaking(self, table: str, where: str | None) -> Iterator[Mapping[str, Any]]:
        if self.tombstones.secrets:
            for batch in self._batches(table, where):
                yield from speaking(batch, self.tombstones)

    def _batches(self, table: str, where: str | None) -> Iterator[list[dict[str, Any]]]:
        columns = [name for name in self._columns(table) if name != "vector"]
        for batch in self.lake.batches(table, BATCH, columns, where):
            yield batch.to_pylist()

    def _columns(self, table: str) -> list[str]:
        return list(self.lake.dataset(table).schema.names)

    def _values(self, table: str, column: str) -> set[str]:
        return set(self.lake.scan(table, [column])[column].unique().to_pylist())


def _released(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """Take a memory, or a digest, back out of what it was folded into."""
    if table == "digests":
        return row | {"status": "active"}
    return row | {"archived": False, "archived_reason": "", "parent_id": ""}
