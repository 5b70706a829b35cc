"""Bring the rows of the lake to the projects that the acts tell of: after a merge, and when more is known of a folder.

The table `projects` is written last. While it differs from the acts, rows may lag behind them, whoever was stopped.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from memex.sources.commit import sessions_from, write_views
from memex.sources.project import Projects
from memex.store.lake import Lake, in_list
from memex.store.schemas import SUMMARY_TABLES, rows_to_arrow

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

BATCH_SESSIONS = 200
BATCH_ROWS = 5000
_BY_PROJECT = ("memories", "edges", "digests")
"""Tables whose rows belong to a project and to no session."""


def is_settled(lake: Lake, projects: Projects) -> bool:
    """Tell whether the lake knows all that the acts tell."""
    return _by_id(lake.scan("projects").to_pylist()) == _by_id(projects.rows())


def settle(lake: Lake, projects: Projects) -> int:
    """Move the rows of every session and project to where they belong; return the sessions moved."""
    sessions = lake.frame("sessions", ["id", "cwd", "project_id", "project"])
    projects.learn(sessions["cwd"].unique().to_list())
    moved = _move_sessions(lake, projects, sessions)
    for table in SUMMARY_TABLES.values():
        _move_summaries(lake, table)
    for table in _BY_PROJECT:
        _move_rows(lake, table, projects.canonical)
    _write_projects(lake, projects.rows())
    return moved


def _move_sessions(lake: Lake, projects: Projects, sessions: "pl.DataFrame") -> int:
    moved = [row[0] for row in sessions.iter_rows() if row[2:] != projects.of(row[1])]
    for at in range(0, len(moved), BATCH_SESSIONS):
        where = in_list("id", moved[at : at + BATCH_SESSIONS])
        write_views(lake, sessions_from(lake.scan("sessions", None, where).to_pylist()), projects.of)
    return len(moved)


def _move_summaries(lake: Lake, table: str) -> None:
    """Give summaries the project of their session."""
    wanted = dict(lake.frame("sessions", ["id", "project_id"]).iter_rows())
    rows = lake.frame(table, ["id", "session_id", "project_id"])
    _give(lake, table, {key: wanted[of] for key, of, now in rows.iter_rows() if wanted.get(of, now) != now})


def _move_rows(lake: Lake, table: str, canonical: Callable[[str], str]) -> None:
    rows = lake.frame(table, ["id", "project_id"])
    _give(lake, table, {key: canonical(now) for key, now in rows.iter_rows() if now and canonical(now) != now})


def _give(lake: Lake, table: str, wanted: Mapping[str, str]) -> None:
    """Write rows anew, whole, with another project."""
    ids = sorted(wanted)
    for at in range(0, len(ids), BATCH_ROWS):
        epoch = lake.epoch()
        rows = lake.scan(table, None, in_list("id", ids[at : at + BATCH_ROWS]))
        lake.upsert(table, _with_projects(rows, [wanted[key] for key in rows["id"].to_pylist()]), epoch)


def _with_projects(rows: "pa.Table", projects: list[str]) -> "pa.Table":
    import pyarrow as pa

    position = rows.schema.get_field_index("project_id")
    return rows.set_column(position, rows.schema.field(position), pa.array(projects, pa.string()))


def _write_projects(lake: Lake, rows: Iterable[dict[str, Any]]) -> None:
    wanted, stored = _by_id(rows), _by_id(lake.scan("projects").to_pylist())
    changed = [row for key, row in wanted.items() if stored.get(key) != row]
    lake.upsert("projects", rows_to_arrow("projects", changed))
    if stray := sorted(stored.keys() - wanted.keys()):
        lake.delete("projects", in_list("id", stray))


def _by_id(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in rows}
