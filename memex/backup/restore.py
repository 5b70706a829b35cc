"""The verb: bring a backup into a home, empty or not. Two homes in one lose nothing and double nothing.

The backup is laid out aside, in a folder of the home, and proved before anything changes. What either side
forgot is then taken out of the other, so that two clean homes are put together: acts by what they say, sources
by their bytes, rows by their ids. Sessions, talks, messages and calls are made anew from the archive.

Each step may be done twice. Whoever is stopped has the same command go on; until then, what is half way in is read
by the next ingest.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock

from memex.backup.generations import Generation, Union, union_of
from memex.backup.home import Home, OpenHome
from memex.backup.manifest import TABLES, Manifest
from memex.backup.merge import clear_failures, merge_rows
from memex.backup.rows import exported
from memex.backup.unpack import unpack
from memex.errors import StoreBusy, translated_os_errors
from memex.sources.acts import Acts
from memex.sources.archive import Archive
from memex.sources.frames import Kept, sync
from memex.sources.ingest import ingest_lock
from memex.sources.load import IngestReport
from memex.sources.settle import settle
from memex.store.lake import in_list
from memex.store.schemas import rows_to_arrow

STAGE = "restoring"
"""The folder of the home in which a backup is laid out."""


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What was new: sources, sources that had more or others, acts, rows by table; and the sessions that there are.

    `unreadable` lists sources that do not decode, with the reason.
    """

    made_at: str
    sources: int = 0
    changed: int = 0
    acts: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    sessions: int = 0
    unreadable: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether all of it was there."""
        return not (self.sources or self.changed or self.acts or any(self.rows.values()))


@dataclass(frozen=True, slots=True)
class Restore:
    """The verb with its parts. `open_home` opens the home that is laid out aside."""

    home: Home
    open_home: OpenHome

    def run(self, source: Path, tick: Callable[[int], None] = lambda _sessions: None) -> RestoreReport:
        """Restore a backup; `tick` gets the sessions read so far.

        Raises:
            NotFound: nothing is there.
            BackupError: it is no backup, damaged, changed by somebody, or of a newer Memex; nothing was changed.
            DiskFull: no space left; the same command goes on.
            StoreBusy: something was forgotten meanwhile; the same command goes on (Transient).
        """
        with FileLock(self.home.root / "restore.lock"):
            stage = self.home.root / STAGE
            try:
                with translated_os_errors(stage):
                    shutil.rmtree(stage, ignore_errors=True)
                    stage.mkdir(mode=0o700)
                manifest = unpack(source.expanduser(), stage)
                self._obey(stage)
                return self._take(self._cleaned(stage), manifest, tick)
            finally:
                shutil.rmtree(stage, ignore_errors=True)

    def _obey(self, stage: Path) -> None:
        """Forget here what was forgotten there."""
        self.home.finish()
        forgets = _unknown(Acts(stage / "archive"), self.home.acts)
        if forgets and not self.home.is_empty:
            self.home.acts.merge(forgets)
            self.home.finish()

    def _cleaned(self, stage: Path) -> "_Laid":
        """Take out of what was laid out what was forgotten here, as its own home would."""
        laid = _Laid(stage, Archive(stage / "archive"), Acts(stage / "archive"))
        if forgets := _unknown(self.home.acts, laid.acts):
            theirs = self.open_home(stage)
            for table, path in laid.rows():
                merge_rows(theirs.lake, table, path, 0)
            theirs.ingest.rebuild()
            theirs.acts.merge(forgets)
            theirs.finish()
            for table, path in laid.rows():
                with exported(theirs.lake, table) as (file, _count), path.open("wb") as out:
                    file.seek(0)
                    shutil.copyfileobj(file, out)
        return laid

    def _take(self, theirs: "_Laid", manifest: Manifest, tick: Callable[[int], None]) -> RestoreReport:
        home, begun = self.home, self.home.root / "restore.begun"
        with ingest_lock(home.root):
            if _unknown(home.acts, theirs.acts):
                raise StoreBusy("something was forgotten meanwhile; run the same command again")
            epoch, was_stopped = home.lake.epoch(), begun.exists()
            begun.touch()
            acts = self._take_acts(theirs)
            sources, changed = self._take_archive(theirs)
        rows = {table: merge_rows(home.lake, table, path, epoch) for table, path in theirs.rows()}
        clear_failures(home.lake)
        read = IngestReport()
        if sources or changed or acts or was_stopped:
            read = home.ingest.rebuild(tick)
        elif any(rows.values()):
            with ingest_lock(home.root):
                settle(home.lake, home.ingest.projects)
        home.finish()
        begun.unlink()
        return RestoreReport(manifest.made_at, sources, changed, acts, rows, read.sessions, read.unreadable)

    def _take_acts(self, theirs: "_Laid") -> int:
        ours, path = self.home.archive.root / "acts.jsonl", theirs.archive.root / "acts.jsonl"
        if ours.exists():
            done = {name for act in self.home.acts.read("forgotten") for name in act["of"]}
            return self.home.acts.merge(act for act in theirs.acts.every() if not done.issuperset(act.get("of", [""])))
        if not path.exists():
            return 0
        with translated_os_errors(ours):
            ours.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            sync([path])
            path.replace(ours)
        return sum(1 for _act in self.home.acts.every())

    def _take_archive(self, theirs: "_Laid") -> tuple[int, int]:
        """Move sources in that are new, and unite those that both have; count both.

        Sessions that change are marked as unread first: should this be stopped, the next ingest reads them.
        """
        new: list[Kept] = []
        unions: list[Union] = []
        for kept in theirs.archive.sources():
            ours = self.home.archive.load(kept.cli, kept.id)
            if ours is None:
                new.append(kept)
            else:
                mine, other = Generation(self.home.archive, ours, 1), Generation(theirs.archive, kept, 1)
                unions += filter(None, [union_of(mine, other, _is_here)])
        self._mark_unread({union.ours.kept.session_id for union in unions})
        self._move(theirs, new)
        for union in unions:
            union.lay_down()
        return len(new), len(unions)

    def _move(self, theirs: "_Laid", sources: list[Kept]) -> None:
        """Move sources, frames before the logs that tell of them."""
        logs = [(theirs.archive.log_of(kept), self.home.archive.log_of(kept)) for kept in sources]
        frames = [(path, log.parent / path.name) for at, log in logs for path in at.parent.glob(f"{at.stem}.*.zst")]
        sync(path for path, _to in (*frames, *logs))
        for path, to in (*frames, *logs):
            with translated_os_errors(to):
                to.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                path.replace(to)

    def _mark_unread(self, sessions: set[str]) -> None:
        rows = self.home.lake.scan("sources", None, in_list("session_id", sorted(sessions))).to_pylist()
        unread = [{**row, "generation": 0, "size": 0, "parser_version": 0} for row in rows]
        self.home.lake.upsert("sources", rows_to_arrow("sources", unread))


@dataclass(frozen=True, slots=True)
class _Laid:
    """A backup, laid out."""

    root: Path
    archive: Archive
    acts: Acts

    def rows(self) -> Iterator[tuple[str, Path]]:
        """Name the tables that it has, and their files; those first that others are made from."""
        for table in reversed(TABLES):
            if (path := self.root / "rows" / f"{table}.parquet").exists():
                yield table, path


def _is_here(kept: Kept) -> bool:
    return not kept.gone and Path(kept.path).is_file()


def _unknown(acts: Acts, to: Acts) -> list[dict[str, Any]]:
    """List the acts of forgetting that another log has not."""
    ids = {act["id"] for act in to.read("forget")}
    return [act for act in acts.read("forget") if act["id"] not in ids]
