"""The verb: back a home up, to one file or to a folder.

Nobody who writes has to wait: sources only grow, rows are read in the version that there was. Should something
be forgotten meanwhile, the backup is begun anew, for it must not hold it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock

from memex.backup.folder import Folder
from memex.backup.home import Home
from memex.backup.lost import check_nothing_is_lost
from memex.backup.manifest import TABLES, Manifest, now
from memex.backup.rows import exported, state_of
from memex.backup.snapshot import Copied, acts_of, sources_of
from memex.backup.tarball import SUFFIXES, Tarball
from memex.errors import BackupError, StoreBusy
from memex.sources.frames import Kept
from memex.sources.ingest import ingest_lock

ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What a backup holds: sources, rows by table; and the bytes written. `lost`: archived files that are not there."""

    target: str
    sources: int
    rows: dict[str, int] = field(default_factory=dict)
    written: int = 0
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Backup:
    """The verb with its parts."""

    home: Home

    def run(self, target: Path, tick: Callable[[int], None] = lambda _sources: None) -> BackupReport:
        """Write a backup, or what is new since the last one in that folder; `tick` gets the sources so far.

        Raises:
            BackupError: something else is there, or a backup that holds what this home has lost.
            DiskFull, HomeError: it cannot be written; a backup that was there is as it was.
            StoreBusy: something was forgotten again and again meanwhile (Transient).
        """
        target = target.expanduser().absolute()
        if target.resolve().is_relative_to(self.home.root.resolve()):
            raise BackupError(f"{target} lies in the home that it would keep", "name a place outside MEMEX_HOME")
        with FileLock(self.home.root / "backup.lock"):
            for _attempt in range(ATTEMPTS):
                if report := self._attempt(target, tick):
                    return report
        raise StoreBusy("something was forgotten meanwhile; run the same command again")

    def _attempt(self, target: Path, tick: Callable[[int], None]) -> BackupReport | None:
        """Write a backup; None when something was forgotten meanwhile, and nothing has changed."""
        self.home.finish()
        with ingest_lock(self.home.root):
            epoch = self.home.lake.epoch()
        is_file = target.is_file() or (not target.exists() and target.suffix in SUFFIXES)
        with Tarball(target) if is_file else Folder(target) as out:
            states, counts = self._put_rows(out)
            changed, lost = self._put_archive(out, tick)
            sources = sum(name.endswith(".jsonl") for name in out.files) - ("archive/acts.jsonl" in out.files)
            if isinstance(out, Folder):
                check_nothing_is_lost(self.home, out, changed)
            with ingest_lock(self.home.root):
                if epoch != self.home.lake.epoch():
                    return None
                out.publish(Manifest(out.files, {"sources": sources, **counts}, states, now()))
            return BackupReport(str(target), sources, counts, out.written, lost)

    def _put_rows(self, out: Folder | Tarball) -> tuple[dict[str, str], dict[str, int]]:
        states, counts = {}, {}
        for table in TABLES:
            name = f"rows/{table}.parquet"
            states[table] = state_of(self.home.lake, table)
            if out.old and out.old.states.get(table) == states[table] and out.keep(name):
                counts[table] = out.old.counts[table]
                continue
            with exported(self.home.lake, table) as (file, count):
                counts[table] = count
                out.put(Copied(name, file, file.seek(0, 2)))
        return states, counts

    def _put_archive(
        self, out: Folder | Tarball, tick: Callable[[int], None]
    ) -> tuple[dict[str, Kept], tuple[str, ...]]:
        """Copy sources, then acts; name the logs that became others, and the files that are not there."""
        changed: dict[str, Kept] = {}
        lost: list[str] = []
        for done, source in enumerate(sources_of(self.home.archive), 1):
            grown = out.put(source.log)
            for frames in source.frames:
                out.put(frames, grown)
            if not grown:
                changed[source.log.name] = source.kept
            lost += source.lost
            tick(done)
        if acts := acts_of(self.home.archive):
            out.put(acts)
        return changed, tuple(lost)
