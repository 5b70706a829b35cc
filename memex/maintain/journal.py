"""The journal: what each unit changed, written before it is carried out, so that a crash is made good and a person
can take a unit back.

An entry is `open` until its changes are in their tables; whoever works on the scope next carries it out again,
which changes nothing twice, for changes hold values and not differences. `done` and `undone` entries are history.
A line without changes notes that a step ran, and after how many talks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import orjson

from memex.errors import NotFound
from memex.maintain.graph import RECORDS, Change, Step, Unit, Values
from memex.maintain.stored import patch, times_of
from memex.store.lake import Lake, in_list
from memex.store.schemas import rows_to_arrow
from memex.text import digest

if TYPE_CHECKING:
    import polars as pl

Scope = tuple[str, str]
"""Owner and project; one of them is empty."""
State = Literal["open", "done", "undone"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the journal."""

    id: str
    number: int
    scope: Scope
    unit: Unit
    state: State
    at: datetime


@dataclass(frozen=True, slots=True)
class Journal:
    """The journal of all scopes, in the lake."""

    lake: Lake

    def commit(
        self,
        scope: Scope,
        units: Sequence[Unit],
        now: datetime,
        epoch: int | None = None,
        marking: Mapping[str, State] | None = None,
    ) -> None:
        """Write units down and carry them out, all or, after a crash and `settle`, all.

        `epoch` is that of the time at which the units were planned. `marking` gives entries of the journal (by id)
        another state in the same commit.
        """
        if not units:
            return
        number = self._last_number() + 1
        entries = [
            Entry(digest("journal", str(number + n), unit.key), number + n, scope, unit, "open", now)
            for n, unit in enumerate(units)
        ]
        marked = [
            {**row, "state": (marking or {})[row["id"]]}
            for row in self.lake.scan("journal", None, in_list("id", list(marking or ()))).to_pylist()
        ]
        self.lake.upsert("journal", rows_to_arrow("journal", [*marked, *map(_row, entries)]), epoch)
        self._carry_out(entries, epoch)

    def settle(self, scope: Scope) -> int:
        """Carry out what a crash left open; return how many units that were."""
        epoch = self.lake.epoch()
        entries = self.entries(scope, "state = 'open'")
        self._carry_out(entries, epoch)
        return len(entries)

    def entries(self, scope: Scope | None, where: str = "true") -> list[Entry]:
        """Read entries, oldest first, of one scope or of all."""
        rows = self.lake.scan("journal", None, f"{where}{_of(scope)}").to_pylist()
        return [_entry(row) for row in sorted(rows, key=lambda row: row["number"])]

    def heads(self, where: str = "true") -> "pl.DataFrame":
        """Read entries without their changes, oldest first."""
        columns = ["id", "number", "project_id", "owner", "step", "unit", "why", "state", "undoable", "count", "at"]
        return self.lake.frame("journal", [*columns, "members"], where).sort("number")

    def find(self, name: str = "", projects: Sequence[str] | None = None) -> Entry:
        """Find the latest entry that can be taken back, or the one whose id begins with `name`.

        Raises:
            NotFound: there is none, or more than one is called so.
        """
        heads = self.heads("undoable AND state = 'done'").to_dicts()
        found = [h for h in heads if h["id"].startswith(name) and (projects is None or h["project_id"] in projects)]
        if not found:
            raise NotFound(f"nothing to take back{f' is called {name!r}' if name else ''}", "memex undo --list")
        if name and len(found) > 1:
            raise NotFound(f"{len(found)} units begin with {name!r}", "give more of the id")
        return self.entries(None, in_list("id", [found[-1]["id"]]))[0]

    def last_count(self, scope: Scope, step: Step) -> int:
        """Tell after how many talks a step ran last; 0 when it never did."""
        counts = self.lake.frame("journal", ["count"], f"step = '{step}'{_of(scope)}")["count"]
        return int(counts.max() or 0)  # type: ignore[arg-type]

    def _last_number(self) -> int:
        return int(self.lake.frame("journal", ["number"])["number"].max() or 0)  # type: ignore[arg-type]

    def _carry_out(self, entries: Sequence[Entry], epoch: int | None) -> None:
        if not entries:
            return
        for table in RECORDS:
            patch(self.lake, table, [c for e in entries for c in e.unit.changes if c.table == table], epoch)
        done = [_row(replace(entry, state="done")) for entry in entries]
        self.lake.upsert("journal", rows_to_arrow("journal", done), epoch)


def marker(step: Step, count: int) -> Unit:
    """Note that a step ran after so many talks."""
    return Unit(step, digest("ran", step, str(count)), "ran", (), undoable=False, count=count)


def _of(scope: Scope | None) -> str:
    if scope is None:
        return ""
    return f" AND {in_list('owner', [scope[0]])} AND {in_list('project_id', [scope[1]])}"


def _row(entry: Entry) -> dict[str, Any]:
    unit = entry.unit
    return {
        "id": entry.id,
        "number": entry.number,
        "owner": entry.scope[0],
        "project_id": entry.scope[1],
        "step": unit.step,
        "unit": unit.key,
        "why": unit.why,
        "state": entry.state,
        "undoable": unit.undoable,
        "count": unit.count,
        "at": entry.at,
        "members": list(unit.members),
        "changes": orjson.dumps([(c.table, c.id, c.before, c.after) for c in unit.changes], default=list).decode(),
    }


def _entry(row: Mapping[str, Any]) -> Entry:
    changes = tuple(
        Change(table, name, _values(table, before), _values(table, after))
        for table, name, before, after in orjson.loads(row["changes"] or "[]")
    )
    unit = Unit(row["step"], row["unit"], row["why"], changes, row["undoable"], row["count"] or 0)
    return Entry(row["id"], row["number"], (row["owner"], row["project_id"]), unit, row["state"], row["at"])


def _values(table: str, given: Values | None) -> Values | None:
    """Give values the types that they had before they were JSON."""
    if given is None:
        return None
    times = times_of(table)
    return {name: _typed(value, name in times) for name, value in given.items()}


def _typed(value: Any, is_time: bool) -> Any:
    if is_time and value is not None:
        return datetime.fromisoformat(value)
    return tuple(value) if isinstance(value, list) else value


def members_of(units: Iterable[Unit]) -> set[str]:
    """Name the rows that units touch."""
    return {name for unit in units for name in unit.members}
