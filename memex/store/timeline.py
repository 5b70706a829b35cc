"""What stands before and after one entry of a session: the way from a hit to how it came about."""

from typing import Any

from memex.errors import NotFound
from memex.store.lake import Lake, in_list
from memex.store.views import find_session, raw_rows

_ANCHORS = ("messages", "tool_calls", "observations")


def show_around(lake: Lake, name: str, before: int, after: int) -> dict[str, Any]:
    """Read the entries around one: `{"session_id", "anchor", "rows"}`, rows in the order of the session.

    `name` is the id of a message, a call or an observation, or a place such as `5d0c1f52#3`: a session, by its id or
    the beginning of it, and the number of a prompt (the first one, when there is no number). Entries that a rewrite
    of the log dropped are left out, unless the name is that of one.

    Raises:
        NotFound: nothing is called like that.
    """
    session_id, key, value = _anchor(lake, name)
    rows = [
        row
        for row in raw_rows(lake, in_list("session_id", [session_id]))
        if not row["superseded"] or (key == "id" and row["id"] == value)
    ]
    at = next((place for place, row in enumerate(rows) if row[key] == value), None)
    if at is None:
        raise NotFound(f"{name!r} has no text of its own", f"memex show {session_id} --level raw has the session")
    chosen = rows[max(at - before, 0) : at + after + 1]
    return {"session_id": session_id, "anchor": rows[at]["id"], "rows": chosen}


def _anchor(lake: Lake, name: str) -> tuple[str, str, Any]:
    """Tell which session a name is in, and which column of its entries has which value where it stands."""
    for table in _ANCHORS:
        columns = ["session_id", "sources"] if table == "observations" else ["session_id"]
        for row in lake.scan(table, columns, in_list("id", [name])).to_pylist():
            return row["session_id"], "id", row["sources"][0] if table == "observations" else name
    session, _hash, number = name.partition("#")
    if number and not number.isdecimal():
        raise NotFound(f"nothing is called {name!r}", "use an id that memex search --json prints, or SESSION#PROMPT")
    return find_session(lake, session), "prompt_number", int(number or 1)
