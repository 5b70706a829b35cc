"""Lay a backup out in a folder as it was, proved file by file; nothing else of the home is touched."""

import hashlib
from pathlib import Path
from typing import IO

from memex.backup.folder import manifest_in
from memex.backup.manifest import PIECE, Entry, Manifest, damaged, not_a_backup, pieces
from memex.backup.tarball import unpack_tar
from memex.errors import NotFound, translated_os_errors


def unpack(source: Path, stage: Path) -> Manifest:
    """Write the files of a backup, from one file or a folder, below `stage`.

    Raises:
        NotFound: nothing is there.
        BackupError: it is no backup, damaged, of a newer Memex, or holds what no backup does.
        DiskFull: no space left.
    """
    if not source.exists():
        raise NotFound(f"there is no {source}", "name a file or folder that `memex backup` made")
    if source.is_dir():
        return _unpack_folder(source, stage)

    def write(name: str, file: IO[bytes]) -> Entry:
        with translated_os_errors(stage), _created(stage / name) as out:
            hashed, size = hashlib.sha256(), 0
            while piece := file.read(PIECE):
                out.write(piece)
                hashed.update(piece)
                size += len(piece)
        return Entry(name, ((size, hashed.hexdigest()),))

    return unpack_tar(source, write)


def _unpack_folder(source: Path, stage: Path) -> Manifest:
    manifest = manifest_in(source)
    if manifest is None:
        raise not_a_backup(source)
    real = source.resolve()
    for name, entry in manifest.files.items():
        path = source / entry.stored
        if path.resolve() != real / entry.stored or not path.is_file():
            raise damaged(source, f"{entry.stored} is missing, or leads elsewhere")
        with path.open("rb") as file, translated_os_errors(stage), _created(stage / name) as out:
            for size, sha256 in entry.parts:
                hashed = hashlib.sha256()
                for piece in pieces(file, size):
                    out.write(piece)
                    hashed.update(piece)
                if hashed.hexdigest() != sha256:
                    raise damaged(source, f"{entry.stored} does not hold what was written")
    return manifest


def _created(path: Path) -> IO[bytes]:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path.open("xb")
