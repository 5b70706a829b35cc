"""The verb: bring a backup into a home, empty or not. Two homes in one lose nothing and double nothing.

The backup is laid out aside, in a folder of the home, and proved before anything changes. What either side
forgot is then taken out of the other, so that two clean homes are put together: acts by what they say, sources
by their bytes, rows by their ids. Sessions, talks, messages and calls are made anew from the archive.

Each step may be done twice. Whoever is stopped has the same command go on; until then, what is half way in is read
by the next ingest.
"""

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock

from memex.backup.generations import Generation, unite
from memex.backup.home import Home, OpenHome
from memex.backup.manifest import TABLES, Manifest
from memex.backup.merge import clear_failures, merge_rows
from memex.backup.rows import exported
from memex.backup.unpack import unpack
from memex.errors import translated_os_errors
from memex.sources.frames import Kept, sync
from memex.sources.ingest import ingest_lock
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
            was_stopped = (stage / "begun").exists()
            try:
                with translated_os_errors(stage):
                    shutil.rmtree(stage, ignore_errors=True)
                    stage.mkdir(mode=0o700)
                manifest = unpack(source.expanduser(), stage)
                return self._take(self._clean(stage), manifest, was_stopped, tick)
            finally:
                shutil.rmtree(stage, ignore_errors=True)

    def _clean(self, stage: Path) -> Home:
        """Open what was laid out, without what was forgotten here."""
        self.home.finish()
        theirs = self.open_home(stage)
        forgets = _new(self.home.acts.read("forget"), theirs.acts.read("forget"))
        if forgets:
            for table in TABLES:
                if (path := _rows(stage, table)).exists():
                    merge_rows(theirs.lake, table, path)
            theirs.ingest.rebuild()
            theirs.acts.merge(forgets)
            theirs.finish()
            for table in TABLES:
                with exported(theirs.lake, table) as (file, _count), _rows(stage, table).open("wb") as out:
                    file.seek(0)
                    shutil.copyfileobj(file, out)
        return theirs

    def _take(self, theirs: Home, manifest: Manifest, was_stopped: bool, tick: Callable[[int], None]) -> RestoreReport:
        forgets = _new(theirs.acts.read("forget"), self.home.acts.read("forget"))
        if forgets and not self.home.is_empty:
            self.home.acts.merge(forgets)
            self.home.finish()
        (theirs.root / "begun").touch()
        with ingest_lock(self.home.root):
            acts = self._take_acts(theirs)
            sources, changed = self._take_archive(theirs)
        rows = {
            table: merge_rows(self.home.lake, table, path)
            for table in reversed(TABLES)
            if (path := _rows(theirs.root, table)).exists()
        }
        clear_failures(self.home.lake)
        report = RestoreReport(manifest.made_at, sources, changed, acts, rows)
        if report.empty and not was_stopped:
            return report
        read = self.home.ingest.rebuild(tick)
        self.home.finish()
        return RestoreReport(manifest.made_at, sources, changed, acts, rows, read.sessions, read.unreadable)

    def _take_acts(self, theirs: Home) -> int:
        ours, path = self.home.archive.root / "acts.jsonl", theirs.archive.root / "acts.jsonl"
        if ours.exists() or not path.exists():
            return self.home.acts.merge(theirs.acts.every())
        with translated_os_errors(ours):
            ours.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            sync([path])
            shutil.move(path, ours)
        return sum(1 for _act in self.home.acts.every())

    def _take_archive(self, theirs: Home) -> tuple[int, int]:
        """Move sources in that are new, and unite those that both have; count both."""
        new: list[Kept] = []
        both: list[tuple[Generation, Generation]] = []
        for kept in theirs.archive.sources():
            ours = self.home.archive.load(kept.cli, kept.id)
            if ours is None:
                new.append(kept)
            else:
                both.append((Generation(self.home.archive, ours, 1), Generation(theirs.archive, kept, 1)))
        self._move(theirs, new)
        changed = 0
        for mine, other in both:
            if unite(mine, other, self._is_here):
                changed += 1
                self._mark_unread(mine.kept.session_id)
        return len(new), changed

    def _move(self, theirs: Home, sources: list[Kept]) -> None:
        """Move sources, frames before the logs that tell of them."""
        logs = [(theirs.archive.log_of(kept), self.home.archive.log_of(kept)) for kept in sources]
        frames = [(path, log.parent / path.name) for at, log in logs for path in at.parent.glob(f"{at.stem}.*.zst")]
        sync(path for path, _to in (*frames, *logs))
        for path, to in (*frames, *logs):
            with translated_os_errors(to):
                to.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                path.replace(to)

    def _mark_unread(self, session_id: str) -> None:
        """Have a session read from its start by whoever ingests next, should this be stopped."""
        rows = self.home.lake.scan("sources", None, in_list("session_id", [session_id])).to_pylist()
        unread = [{**row, "generation": 0, "size": 0, "parser_version": 0} for row in rows]
        self.home.lake.upsert("sources", rows_to_arrow("sources", unread))

    def _is_here(self, kept: Kept) -> bool:
        return not kept.gone and Path(kept.path).is_file()


def _rows(stage: Path, table: str) -> Path:
    return stage / "rows" / f"{table}.parquet"


def _new(acts: Iterable[dict[str, Any]], known: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    ids = {act["id"] for act in known}
    return [act for act in acts if act["id"] not in ids]
