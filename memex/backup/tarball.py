"""A backup in one file: a tar archive, compressed by zstd. It says what it is first, and what it holds last."""

import hashlib
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import zstandard

from memex.backup.manifest import (
    NAME,
    Entry,
    Manifest,
    check_head,
    checked_name,
    damaged,
    head,
    not_a_backup,
    read_manifest,
)  # fmt: skip
from memex.backup.snapshot import Copied, copied_bytes
from memex.errors import BackupError, translated_os_errors

HEAD = "memex.json"
SUFFIXES = (".zst", ".tzst")
"""Names that end so are of files."""
LARGEST_HEAD = 65536
_LEVEL = 3


class Tarball:
    """A backup in the making, beside its place."""

    old: Manifest | None = None

    def __init__(self, target: Path) -> None:
        if target.exists():
            head_of(target)
        self.target = target
        self.files: dict[str, Entry] = {}
        self._aside = target.with_name(f".{target.name}.aside")
        self._open = ExitStack()

    @property
    def written(self) -> int:
        """Bytes of the file."""
        return self.target.stat().st_size

    def __enter__(self) -> "Tarball":
        import orjson

        with translated_os_errors(self._aside):
            self._aside.parent.mkdir(parents=True, exist_ok=True)
            self._aside.touch(0o600)
            self._file = self._open.enter_context(self._aside.open("wb"))
            packer = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
            packed = self._open.enter_context(packer.stream_writer(self._file, closefd=False))
            self._tar = self._open.enter_context(tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT))
        self._add(copied_bytes(HEAD, orjson.dumps(head())))
        return self

    def __exit__(self, *_error: object) -> None:
        self._open.close()
        self._aside.unlink(missing_ok=True)

    def put(self, what: Copied, grown: bool = False) -> bool:  # noqa: ARG002 - nothing was there before
        """Write a file."""
        what.file.seek(0)
        self.files[what.name] = self._add(what)
        return False

    def keep(self, name: str) -> bool:  # noqa: ARG002
        """Nothing is there that could be kept."""
        return False

    def publish(self, manifest: Manifest) -> None:
        """Put the file in its place."""
        self._add(copied_bytes(NAME, manifest.written()))
        with translated_os_errors(self._aside):
            self._open.close()
            with self._aside.open("rb") as file:
                os.fsync(file.fileno())
            self._aside.replace(self.target)

    def _add(self, what: Copied) -> Entry:
        member = tarfile.TarInfo(what.name)
        member.size, member.mode = what.size, 0o600
        hashing = _Hashing(what.file)
        with translated_os_errors(self._aside):
            self._tar.addfile(member, hashing)
        return Entry(what.name, ((what.size, hashing.sha256.hexdigest()),))


class _Hashing:
    """Hashes what is read of a file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sha256 = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.sha256.update(data)
        return data


def head_of(path: Path) -> None:
    """Look at the beginning of a file.

    Raises:
        BackupError: it is no backup, or one of a newer Memex.
    """
    with _members(path) as members:
        first = next(members, None)
        if first is None or first[0].name != HEAD:
            raise not_a_backup(path)
        check_head(first[1].read(LARGEST_HEAD), path)


def unpack_tar(path: Path, write: Callable[[str, IO[bytes]], Entry]) -> Manifest:
    """Read a backup through, each file once; `write` is given each with its name.

    Raises:
        BackupError: it is no backup, damaged, of a newer Memex, or holds what no backup does.
    """
    head_of(path)
    found: dict[str, Entry] = {}
    with _members(path) as members:
        next(members)
        for member, file in members:
            if member.name == NAME:
                manifest = read_manifest(file.read(), path)
                if found != {name: Entry(name, entry.parts) for name, entry in manifest.files.items()}:
                    raise damaged(path, "some files are not what the manifest says")
                if next(members, None):
                    raise damaged(path, "something follows its end")
                return manifest
            if member.name in found:
                raise damaged(path, f"it has {member.name} twice")
            found[member.name] = write(checked_name(member.name, path), file)
    raise damaged(path, "its end is missing")


@contextmanager
def _members(path: Path) -> Iterator[Iterator[tuple[tarfile.TarInfo, IO[bytes]]]]:
    """Open a file; yield its members, of which only plain files are let through."""
    try:
        with translated_os_errors(path), path.open("rb") as packed:
            if packed.read(4) != zstandard.FRAME_HEADER:
                raise not_a_backup(path)
            packed.seek(0)
            with (
                zstandard.ZstdDecompressor().stream_reader(packed) as plain,
                tarfile.open(fileobj=plain, mode="r|") as tar,
            ):
                yield _plain_files(tar, path)
    except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
        raise damaged(path, str(error)) from error


def _plain_files(tar: tarfile.TarFile, path: Path) -> Iterator[tuple[tarfile.TarInfo, IO[bytes]]]:
    for member in tar:
        if not member.isreg() or member.issparse():
            raise BackupError(
                f"{path} holds {member.name[:200]!r}, which is no plain file",
                "somebody changed it; nothing was restored",
            )
        file = tar.extractfile(member)
        assert file
        yield member, file
