"""Steps from each schema version to the next, run in order under one lock.

A step gets the lake and changes tables by adding typed-null columns, renaming or dropping; a column with
a non-null default would make older writers fail. Tables that are new (`projects` in version 2,
`extractions` and `journal` in 3) are made afterwards.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from memex.errors import SchemaError
from memex.store.schemas import SCHEMA_VERSION

if TYPE_CHECKING:
    from memex.store.lake import Lake

Step = Callable[["Lake"], None]


def _to_2(lake: "Lake") -> None:
    """Rows of raw text learn their tokens and content, sessions their first record, sources the file state."""
    lake.add_columns("messages", ["tokens", "content"])
    lake.add_columns("tool_calls", ["tokens"])
    lake.add_columns("sessions", ["root"])
    lake.add_columns("sources", ["file_size", "file_mtime_ns", "file_ctime_ns", "gone"])


def _to_3(lake: "Lake") -> None:
    """Memories learn which talk they came from, and whether consolidation has seen them."""
    lake.add_columns("memories", ["settled", "session_id", "prompt_number", "slot"])


MIGRATIONS: Mapping[int, Step] = {2: _to_2, 3: _to_3}
"""The step that leads to each version, from 2 on."""


def migrate(lake: "Lake", steps: Mapping[int, Step] = MIGRATIONS, target: int = SCHEMA_VERSION) -> list[int]:
    """Run the steps that the lake has not had; return the versions passed.

    Raises:
        SchemaError: the lake is newer than `target`.
    """
    version = lake.version()
    if version > target:
        raise SchemaError(
            f"{lake.root} has schema {version}; this Memex knows schemas up to {target}",
            "update Memex; nothing was changed",
        )
    passed = []
    for step in range(version + 1, target + 1):
        if step in steps:
            steps[step](lake)
        lake.set_version(step)
        passed.append(step)
    return passed
