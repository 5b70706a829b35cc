"""What is known about a file that is about to be changed: what `--mode=file` answers.

Decisions and lessons of the talks that changed it, commands that failed there, and the last changes. The evidence is
that it is the same file, so there is no confidence to work out.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from memex.inject.candidates import Candidate, Candidates
from memex.inject.evidence import is_same_file
from memex.inject.page import Page
from memex.inject.quote import around, quotations, show, told
from memex.inject.render import Quotation
from memex.llm.salient import command_of, failed, has_failed_tests, runs_tests, salient_lines
from memex.model import ToolCall
from memex.store.lake import Lake, in_list

CHANGES, FAILURES, NOTES = 3, 2, 3
"""How much is told of a file, at most."""
TALKS = 12
"""The latest talks that changed it are looked at."""
_NOTED = frozenset(("decision", "lesson", "rule", "thread"))
_CALL = ["id", "session_id", "prompt_number", "seq", "message_id", "name", "operation", "input", "output", "is_error",
         "started_at"]  # fmt: skip
_CHANGE = ["id", "session_id", "prompt_number", "title", "narrative", "files_modified", "occurred_at"]

Place = tuple[str, int]
"""A session and the number of a prompt in it."""


def page_for_files(
    lake: Lake,
    candidates: Candidates,
    files: Sequence[str],
    project: str,
    session: str,
    given: Collection[str],
    limit: int,
) -> Page:
    """Gather what is known of some files in a project, from other sessions; each file is told of once a session."""
    new = [path for path in files if _key(path) not in given]
    if not new:
        return Page()
    changes = [row for row in _changes(lake, project) if row["session_id"] != session and _changed(row, new)][:TALKS]
    places = list(dict.fromkeys((row["session_id"], row["prompt_number"]) for row in changes))
    notes = [one for one in candidates.memories() if one.session_id != session and _is_about(one, project, places, new)]
    notes.sort(key=lambda one: one.at.timestamp() if one.at else 0.0, reverse=True)
    found = [
        *quotations(lake, notes[:NOTES], {}),
        *islice(_failures(lake, places), FAILURES),
        *map(_told, changes[:CHANGES]),
    ][:limit]
    keys = frozenset(map(_key, new))
    return Page(
        tuple(found), {one.key: keys for one in found}, frozenset(one.key for one in found) & {one.id for one in notes}
    )


def _changes(lake: Lake, project: str) -> list[dict[str, Any]]:
    """List the observations of a project that changed a file, the newest first."""
    where = f"served AND {in_list('project_id', [project])} AND array_length(files_modified) > 0"
    rows = lake.scan("observations", _CHANGE, where).to_pylist()
    return sorted(rows, key=lambda row: row["occurred_at"].timestamp() if row["occurred_at"] else 0.0, reverse=True)


def _changed(row: dict[str, Any], files: Iterable[str]) -> bool:
    return any(is_same_file(path, other) for path in files for other in row["files_modified"])


def _is_about(one: Candidate, project: str, places: Collection[Place], files: Iterable[str]) -> bool:
    """Tell whether a note was made where a file was changed, or names it."""
    if one.kind not in _NOTED or one.project_id not in ("", project):
        return False
    made_there = (one.session_id, one.prompt_number) in places
    return made_there or any(is_same_file(path, other) for path in files for other in one.files)


def _failures(lake: Lake, places: Sequence[Place]) -> Iterator[Quotation]:
    """Find the commands that failed in some talks, the last one of each."""
    sessions = list(dict.fromkeys(session for session, _number in places))
    rows = lake.scan("tool_calls", _CALL, f"{in_list('session_id', sessions)} AND operation = 'run' AND NOT superseded")
    last: dict[Place, dict[str, Any]] = {}
    for row in rows.sort_by("seq").to_pylist():
        if _has_failed(_call(row)):
            last[row["session_id"], row["prompt_number"]] = row
    for row in (last[place] for place in places if place in last):
        call = _call(row)
        text = f"`{command_of(call)}` failed: {' / '.join(salient_lines(call.output, 3))}"
        yield Quotation(row["id"], text, row["started_at"], None, "failed when it was changed", around(row["id"]))


def _call(row: dict[str, Any]) -> ToolCall:
    return ToolCall(**{name: value for name, value in row.items() if value is not None})


def _has_failed(call: ToolCall) -> bool:
    return has_failed_tests(call) if runs_tests(call) else failed(call)


def _told(row: dict[str, Any]) -> Quotation:
    more = show(row["session_id"], "talks")
    return Quotation(row["id"], told("observations", row), row["occurred_at"], None, "changed", more)


def _key(path: str) -> str:
    return f"file:{path}"
