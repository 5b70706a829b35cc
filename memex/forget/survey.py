"""See what forgetting reaches, and change nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memex.errors import DamagedArchive
from memex.forget.rows import Going, Place, Rows
from memex.sources.archive import Archive
from memex.sources.clean import lines_in
from memex.sources.frames import Kept
from memex.sources.tombstones import Tombstones
from memex.store.lake import Lake, in_list

BATCH_SESSIONS = 50


@dataclass(frozen=True, slots=True)
class Change:
    """A source that stays and changes: how many of its lines, and which become blank, by offset."""

    kept: Kept
    lines: int = 0
    blanked: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Survey:
    """What is reached.

    gone: sources that go. sessions: names of sessions that go. reread: sessions that are read again, with all
    their sources; a history of prompts counts as one. going: rows of the lake that go. altered: messages and calls
    of sessions that stay, which will come again as others, or not at all. damaged: sources that could not be
    looked into.
    """

    gone: tuple[Kept, ...]
    changed: tuple[Change, ...]
    sessions: frozenset[str]
    reread: dict[str, list[Kept]]
    going: Going
    altered: dict[str, set[str]]
    damaged: tuple[str, ...]

    @property
    def rows(self) -> dict[str, set[str]]:
        """The rows that go or change, by table."""
        return {table: ids | self.altered.get(table, set()) for table, ids in self.going.rows.items()}


def survey(archive: Archive, lake: Lake, tombstones: Tombstones) -> Survey:
    """Go through archive and lake."""
    gone: list[Kept] = []
    stay: list[Kept] = []
    changed: list[Change] = []
    damaged: list[str] = []
    for kept in archive.sources():
        if tombstones.covers(kept.cli, kept.session_id, kept.path):
            gone.append(kept)
            continue
        stay.append(kept)
        try:
            if change := change_of(archive, kept, tombstones):
                changed.append(change)
        except DamagedArchive as error:
            damaged.append(str(error))
    rows = Rows(lake, tombstones)
    wanted = {change.kept.session_id for change in changed} | rows.to_read_again()
    reread: dict[str, list[Kept]] = {}
    for kept in stay:
        if kept.session_id in wanted:
            reread.setdefault(kept.session_id, []).append(kept)
    sessions = rows.gone_sessions()
    altered, places = _altered(rows, reread, changed)
    going = rows.derived({key for ids in altered.values() for key in ids}, places)
    for table in ("messages", "tool_calls", "talks", "sessions", "sources"):
        going.rows[table] |= rows.of_sessions(table, sessions)
    return Survey(tuple(gone), tuple(changed), frozenset(sessions), reread, going, altered, tuple(damaged))


def change_of(archive: Archive, kept: Kept, tombstones: Tombstones) -> Change | None:
    """See what of a source that stays changes, in all its generations; None when nothing does."""
    cleaner = tombstones.cleaner(kept.cli, kept.role, kept.path)
    lines, blanked = 0, set()
    for generation in range(1, kept.generation + 1) if cleaner else ():
        assert cleaner
        offset = 0
        for old, new in cleaner.pairs(cleaner.unpacked(archive.pieces(kept, generation))):
            if old != new:
                for before, after in zip(lines_in(old), lines_in(new), strict=True):
                    if before != after:
                        lines += 1
                        blanked |= {offset} if not after.strip() else set()
                    offset += len(before)
            else:
                offset += len(old)
    if not lines and tombstones.place(kept.path) == kept.path:
        return None
    return Change(kept, lines, frozenset(blanked))


def rows_of(sources: Iterable[Kept]) -> list[str]:
    """Write predicates for the messages and calls that were read from sources, a few sessions at a time."""
    sources = list(sources)
    histories = sorted(kept.id for kept in sources if kept.role == "history")
    sessions = sorted({kept.session_id for kept in sources if kept.role != "history"})
    parts = [sessions[at : at + BATCH_SESSIONS] for at in range(0, len(sessions), BATCH_SESSIONS)]
    return [in_list("source_id", histories)] * bool(histories) + [in_list("session_id", part) for part in parts]


def _altered(
    rows: Rows, reread: Mapping[str, list[Kept]], changed: Iterable[Change]
) -> tuple[dict[str, set[str]], set[Place]]:
    """Find messages and calls that hold what goes, by table, and the talks that they are in."""
    blanked = {(change.kept.id, offset) for change in changed for offset in change.blanked}
    altered: dict[str, set[str]] = {}
    places: set[Place] = set()
    for where in rows_of(kept for group in reread.values() for kept in group):
        found, talks = rows.changing(where, blanked)
        places |= talks
        for table, ids in found.items():
            altered.setdefault(table, set()).update(ids)
    return altered, places
