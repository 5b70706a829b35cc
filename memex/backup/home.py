"""The parts of one home that backups are made of, and restored into."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memex.sources.acts import Acts
from memex.sources.archive import Archive
from memex.sources.ingest import Ingest
from memex.store.lake import Lake


@dataclass(frozen=True, slots=True)
class Home:
    """A home. `finish` carries out what is to be forgotten and was not, and tells how many acts that were."""

    root: Path
    archive: Archive
    acts: Acts
    lake: Lake
    ingest: Ingest
    finish: Callable[[], int]

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever read here."""
        return next(self.archive.sources(), None) is None and not self.lake.count("memories")


OpenHome = Callable[[Path], Home]
"""Opens, or begins, the home in a folder."""
