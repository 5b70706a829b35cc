"""A backup in a folder: only what changed is written, and nothing of it counts before the manifest is replaced.

A file that only grew is written on. One that became another is written beside the old one, under a name of its
own, and the old one goes once the new manifest is in place. So whoever is stopped leaves the backup that was there.
"""

import hashlib
import os
import shutil
from pathlib import Path

from memex.backup.manifest import NAME, Entry, Manifest, begins_with, not_a_backup, pieces, read_manifest
from memex.backup.snapshot import Copied
from memex.errors import translated_os_errors
from memex.sources.frames import sync


class Folder:
    """A backup in the making. `old` is the one that is there, `files` what the new one has so far."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.old = manifest_in(target)
        self.files: dict[str, Entry] = {}
        self.written = 0
        self._root = target
        self._touched: list[Path] = []

    def __enter__(self) -> "Folder":
        aside = self.target.with_name(f".{self.target.name}.aside")
        with translated_os_errors(aside):
            shutil.rmtree(aside, ignore_errors=True)  # of one that was stopped
            if self.old is None:
                if self.target.exists() and any(self.target.iterdir()):
                    raise not_a_backup(f"{self.target} is not empty, and")
                self._root = aside
                aside.mkdir(parents=True, mode=0o700)
        return self

    def __exit__(self, *_error: object) -> None:
        if self._root != self.target:
            shutil.rmtree(self._root, ignore_errors=True)

    def put(self, what: Copied, grown: bool = False) -> bool:
        """Write what is new of a file; tell whether it begins with what was there. `grown` says so beforehand."""
        old = self.old.files.get(what.name) if self.old else None
        with translated_os_errors(self._root):
            if old and self._goes_on(old, what, grown):
                self.files[what.name] = self._append(what, old)
                return True
            stored = what.name if old is None else f"{what.name}~{os.urandom(4).hex()}"
            self.files[what.name] = self._append(what, Entry(stored, ()))
        return False

    def keep(self, name: str) -> bool:
        """Leave a file as it is; tell whether it is there."""
        old = self.old.files.get(name) if self.old else None
        if old is None or not self._is_there(old):
            return False
        self.files[name] = old
        return True

    def publish(self, manifest: Manifest) -> None:
        """Put the new backup in the place of the old one."""
        with translated_os_errors(self.target):
            sync(self._touched)
            aside = self._root / f"{NAME}.aside"
            aside.write_bytes(manifest.written())
            sync([aside])
            aside.replace(self._root / NAME)
            if self._root != self.target:
                self._root.replace(self.target)
            else:
                self._sweep()

    def old_file(self, name: str) -> Path | None:
        """Find a file of the old backup; None when it is missing, or not what was written."""
        entry = self.old.files.get(name) if self.old else None
        path = self.target / entry.stored if entry else None
        if entry is None or path is None or not path.is_file():
            return None
        with path.open("rb") as file:
            return path if begins_with(file, entry.parts) else None

    def old_bytes(self, name: str) -> bytes:
        """Read a file of the old backup; nothing when it is missing, or not what was written."""
        path = self.old_file(name)
        return path.read_bytes()[: self.old.files[name].size] if path and self.old else b""

    def _goes_on(self, old: Entry, what: Copied, grown: bool) -> bool:
        if what.size < old.size or not self._is_there(old):
            return False
        what.file.seek(0)
        return grown or begins_with(what.file, old.parts)

    def _is_there(self, old: Entry) -> bool:
        path = self._root / old.stored
        return path.is_file() and path.stat().st_size >= old.size

    def _append(self, what: Copied, old: Entry) -> Entry:
        path = self._root / old.stored
        if old.parts and what.size == old.size == path.stat().st_size:
            return old
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        what.file.seek(old.size)
        hashed, size = hashlib.sha256(), 0
        with path.open("r+b" if old.parts else "wb") as out:
            out.truncate(old.size)  # what a backup that was stopped left there
            out.seek(old.size)
            for piece in pieces(what.file, what.size - old.size):
                out.write(piece)
                hashed.update(piece)
                size += len(piece)
        self.written += size
        self._touched.append(path)
        return Entry(old.stored, (*old.parts, (size, hashed.hexdigest()))) if size else old

    def _sweep(self) -> None:
        """Delete what the manifest does not name: what was replaced, or forgotten, or left by a crash."""
        named = {self.target / entry.stored for entry in self.files.values()}
        for path in [
            *self.target.glob("archive/*/??/*"),
            *self.target.glob("archive/acts.*"),
            *self.target.glob("rows/*"),
        ]:
            if path not in named and path.is_file():
                path.unlink()


def manifest_in(folder: Path) -> Manifest | None:
    """Read the manifest of a backup in a folder; None when there is none."""
    path = folder / NAME
    with translated_os_errors(folder):
        return read_manifest(path.read_bytes(), folder) if path.is_file() else None
