"""Take a unit back: the fields that it owns become what they were, unless somebody changed them since.

What was recalled in the meantime stays counted: counters go back by what the unit added.
"""

from collections.abc import Mapping
from typing import Any

from memex.errors import CannotUndo
from memex.maintain.graph import COUNTERS, Change, Graph, Unit, Values, Vetoes, values_of
from memex.text import digest

MOST_IMPORTANT = 10.0


def reverse(graph: Graph, unit: Unit) -> Unit:
    """Plan to take a unit back, in the graph as it is now.

    Raises:
        CannotUndo: a field that the unit owns has another value now than it gave it.
    """
    if not unit.undoable:
        raise CannotUndo(f"{unit.step} ({unit.why}) cannot be taken back")
    back = tuple(_reversed(graph, change) for change in reversed(unit.changes))
    return Unit("undo", digest("undo", unit.key), f"not {unit.step}: {unit.why}", back, undoable=False)


def vetoes_of(acts: list[Mapping[str, Any]]) -> Vetoes:
    """Read from the acts of a person what must not be done again."""
    of_step: dict[str, set[str]] = {"compress": set(), "sleep": set()}
    for act in acts:
        of_step.setdefault(act.get("step", ""), set()).update(act.get("members") or ())
    keys = frozenset(act["unit"] for act in acts if act.get("unit"))
    return Vetoes(keys, frozenset(of_step["compress"]), frozenset(of_step["sleep"]))


def _reversed(graph: Graph, change: Change) -> Change:
    record = graph.table(change.table).get(change.id)
    now = None if record is None else values_of(record)
    if change.after is None:
        if now is not None:
            raise _conflict(change, "is there again")
        return Change(change.table, change.id, None, change.before)
    if now is None:
        raise _conflict(change, "is gone")
    changed = [name for name, value in change.after.items() if name not in COUNTERS and now[name] != value]
    if changed:
        raise _conflict(change, f"has another {', '.join(changed)} now")
    if change.before is None:
        return Change(change.table, change.id, now, None)
    return Change(
        change.table, change.id, {name: now[name] for name in change.after}, _before(change.before, change.after, now)
    )


def _before(before: Values, after: Values, now: Values) -> dict[str, Any]:
    """Give the old values, counters with what was added to them since."""
    values = dict(before)
    for name in {*COUNTERS} & {*before}:
        if now[name] == after[name]:
            continue
        if name == "last_access_at":
            values[name] = now[name]
        else:
            values[name] = max(0, (before[name] or 0) + (now[name] or 0) - (after[name] or 0))
    if "importance" in values:
        values["importance"] = min(MOST_IMPORTANT, values["importance"])
    return values


def _conflict(change: Change, what: str) -> CannotUndo:
    return CannotUndo(f"{change.table} {change.id} {what}", "take back what was done to it later first: memex undo")
