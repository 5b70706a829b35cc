"""Walk a folder of logs: every file once, in order, with its state, and nothing outside the folder."""

import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

Stat = tuple[int, int, int]
"""Size, and times of the last write and the last change in ns: the latter moves with every write."""
NO_STAT: Stat = (-1, -1, -1)


class Entry(NamedTuple):
    """A file at `place`, its path. `refused` says why it, or a folder, must not or cannot be read."""

    place: str
    stat: Stat = NO_STAT
    refused: str = ""
    is_folder: bool = False

    @property
    def path(self) -> Path:
        """The place as a path."""
        return Path(self.place)

    @property
    def name(self) -> str:
        """The last part of the place."""
        return self.place.rpartition(os.sep)[2]


def walk(root: Path) -> Iterator[Entry]:
    """Yield every file below `root`, and every folder that is not entered; `root` itself when it is a file.

    Nothing when there is no `root`. Links to folders are not followed: what they lead to inside `root` is found
    anyway, and the rest is not ours to read. A link to a file is followed inside `root` only; when `root` is a
    link to a folder, that folder is what is read.
    """
    try:
        stat = root.stat()
    except OSError:
        return
    if not S_ISREG(stat.st_mode):
        yield from _below(str(root), str(root.resolve()))
    elif found := _entry(str(root), root, str(root.parent.resolve())):
        yield found


def walk_at(root: Path, place: str) -> Iterator[Entry]:
    """Yield those entries of `walk(root)` that are at `place` or below it, without walking the rest."""
    if place == str(root):
        yield from walk(root)
        return
    bound = str(root.resolve())
    folder, name = os.path.split(place)
    folder = os.path.realpath(folder)
    if not (folder + os.sep).startswith(bound + os.sep):
        return
    path = Path(str(root) + folder[len(bound) :], name)  # the way that a walk takes, which is through no link
    if path.is_dir() and not path.is_symlink():
        yield from _below(str(path), bound)
    elif os.path.lexists(path) and (found := _entry(str(path), path, bound)):
        yield found


def _below(folder: str, bound: str) -> Iterator[Entry]:
    open_folders = [_entries(folder)]
    while open_folders:
        entry = next(open_folders[-1], None)
        if entry is None:
            open_folders.pop()
        elif isinstance(entry, Entry):
            yield entry
        elif entry.is_dir(follow_symlinks=False):
            open_folders.append(_entries(entry.path))
        else:
            found = _entry(entry.path, entry, bound)
            if found:
                yield found


def _entries(folder: str) -> Iterator["os.DirEntry[str] | Entry"]:
    try:
        with os.scandir(folder) as found:
            yield from sorted(found, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        yield Entry(folder, refused=error.strerror or str(error), is_folder=True)


def _entry(path: str, entry: "os.DirEntry[str] | Path", bound: str) -> Entry | None:
    try:
        if entry.is_symlink():
            inside = (os.path.realpath(path) + os.sep).startswith(bound + os.sep)
            if not inside:
                return Entry(path, refused="a link out of the folder of logs", is_folder=entry.is_dir())
            if entry.is_dir():
                return None
        stat = entry.stat()
        return Entry(path, state_of(stat)) if S_ISREG(stat.st_mode) else Entry(path, refused="not a file")
    except OSError as error:
        return Entry(path, refused=error.strerror or str(error))


def state_of(stat: os.stat_result) -> Stat:
    """Take what tells whether a file changed."""
    return (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
