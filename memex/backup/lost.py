"""A backup must not lose what only it still has: a home that was damaged, or another home, does not replace it."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from memex.backup.folder import Folder
from memex.backup.home import Home
from memex.backup.manifest import ACTS, TABLES
from memex.backup.rows import ids_in
from memex.errors import BackupError
from memex.sources.frames import Kept, events_in, replay
from memex.sources.tombstones import Tombstones

PAID = tuple(table for table in TABLES if table not in ("edges", "failures", "ledger"))
"""Tables of which rows go only when something is forgotten."""


def check_nothing_is_lost(home: Home, out: Folder, changed: Mapping[str, Kept]) -> None:
    """Compare what is about to be in a backup with what was; `changed` are sources whose log became another.

    Raises:
        BackupError: something is missing that was not forgotten.
    """
    if out.old and (missing := next(_missing(home, out, changed), "")):
        raise BackupError(
            f"{out.target} holds what this home does not: {missing}",
            f"`memex restore {out.target}` brings it back; or name another folder. Nothing was changed",
        )


def _missing(home: Home, out: Folder, changed: Mapping[str, Kept]) -> Iterator[str]:
    assert out.old
    tombstones = Tombstones.of(home.archive.root)
    for name in out.old.files:
        if name.endswith(".jsonl") and name != ACTS and (name not in out.files or name in changed):
            kept = replay(PurePosixPath(name).stem, out.old_bytes(name))
            if kept is None or tombstones.covers(kept.cli, kept.session_id, kept.path):
                continue
            if name not in changed or not _holds(changed[name], kept):
                yield kept.path
    if not _forgot_since(home, out):
        for table in PAID:
            name = f"rows/{table}.parquet"
            if out.files[name] != out.old.files.get(name) and (path := out.old_file(name)):
                mine = set(home.lake.scan(table, ["id"])["id"].to_pylist())
                if gone := len(ids_in(path) - mine):
                    yield f"{gone} rows of {table}"


def _holds(new: Kept, old: Kept) -> bool:
    """Tell whether a source still has every generation that it had; one laid anew, to forget something, has."""
    if any(chunk.rewrite for chunk in new.chunks):
        return True
    now = [_places(new, generation) for generation in range(1, new.generation + 1)]
    then = [_places(old, generation) for generation in range(1, old.generation + 1)]
    return all(any(one[: len(was)] == was for one in now) for was in then)


def _places(kept: Kept, generation: int) -> list[tuple[int, int, str]]:
    return [(chunk.at, chunk.size, chunk.sha256) for chunk in kept.chunks_of(generation)]


def _forgot_since(home: Home, out: Folder) -> bool:
    before = {act.get("id") for act in events_in(out.old_bytes(ACTS)) if act.get("act") == "forget"}
    return any(act["id"] not in before for act in home.acts.read("forget"))
