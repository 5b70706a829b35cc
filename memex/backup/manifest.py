"""What a backup holds, and how each file of it is proved.

archive/acts.jsonl                        what the person did
archive/<cli>/<2 hex>/<source id>.*       the log of a source, and its frames
rows/<table>.parquet                      rows of the lake that only an LLM, or nobody, could make again
manifest.json                             written last: without it there is no backup
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, Any

import orjson

from memex.errors import BackupError
from memex.store.schemas import SCHEMA_VERSION

FORMAT = 1
"""Version of this layout."""
NAME = "manifest.json"
ACTS = "archive/acts.jsonl"
TABLES = (
    "digests", "edges", "memories", "session_summaries", "talk_summaries", "observations", "failures", "ledger",
)  # fmt: skip
"""The tables that are kept, those first that were made from others: what they were made from is then kept, too."""
PIECE = 1024 * 1024
_NAME = re.compile(
    r"archive/(?:acts\.jsonl|[a-z0-9_-]+/[0-9a-f]{2}/[0-9a-f]+\.(?:jsonl|[0-9]{4,9}\.(?:[0-9]{1,9}\.)?zst))"
    rf"|rows/(?:{'|'.join(TABLES)})\.parquet"
)
_STORED = re.compile(r"(.+?)(?:~[0-9a-f]{8})?")

Part = tuple[int, str]
"""Bytes, and their SHA-256."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: its parts, in order, in a file that is `stored` under this name and may be longer."""

    stored: str
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        """Bytes that count."""
        return sum(size for size, _sha256 in self.parts)


@dataclass(frozen=True, slots=True)
class Manifest:
    """All of it. `counts` tells sources and rows by table; `states` tells apart the tables of two times."""

    files: Mapping[str, Entry]
    counts: Mapping[str, int] = field(default_factory=dict)
    states: Mapping[str, str] = field(default_factory=dict)
    made_at: str = ""

    def written(self) -> bytes:
        """Write it as JSON."""
        files = {name: {"stored": entry.stored, "parts": entry.parts} for name, entry in self.files.items()}
        body = {**head(), "made_at": self.made_at, "counts": self.counts, "states": self.states, "files": files}
        return orjson.dumps(body, option=orjson.OPT_APPEND_NEWLINE)


def head() -> dict[str, Any]:
    """Say what this is, and which versions made it."""
    return {"memex_backup": FORMAT, "schema": SCHEMA_VERSION}


def now() -> str:
    """Write the time, in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def check_head(data: bytes, place: object) -> dict[str, Any]:
    """Read JSON that begins a backup.

    Raises:
        BackupError: it is no backup, or one of a newer Memex.
    """
    try:
        body = orjson.loads(data)
        versions = int(body["memex_backup"]), int(body["schema"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise not_a_backup(place) from error
    if versions[0] > FORMAT or versions[1] > SCHEMA_VERSION:
        raise BackupError(f"{place} was made by a newer Memex", "update Memex; nothing was changed")
    assert isinstance(body, dict)
    return body


def read_manifest(data: bytes, place: object) -> Manifest:
    """Read a manifest.

    Raises:
        BackupError: it is none, or damaged, or of a newer Memex, or names files that no backup holds.
    """
    body = check_head(data, place)
    try:
        files = {
            name: Entry(one["stored"], tuple((int(size), str(sha256)) for size, sha256 in one["parts"]))
            for name, one in body["files"].items()
        }
        manifest = Manifest(files, dict(body["counts"]), dict(body["states"]), str(body["made_at"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(place, "its manifest cannot be read") from error
    for name, entry in files.items():
        checked_name(name, place)
        stored = _STORED.fullmatch(str(entry.stored))
        if stored is None or stored[1] != name or any(size < 0 for size, _sha256 in entry.parts):
            raise damaged(place, f"it says that {name!r} is stored as {entry.stored!r}")
    return manifest


def checked_name(name: str, place: object) -> str:
    """Give back the name of a file in a backup.

    Raises:
        BackupError: no backup has a file of that name; it might lead out of its folder.
    """
    if not _NAME.fullmatch(name):
        raise BackupError(
            f"{place} holds {name[:200]!r}, which no backup of Memex does", "somebody changed it; nothing was restored"
        )
    return name


def pieces(file: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield up to `size` bytes from where a file stands."""
    while size and (piece := file.read(min(PIECE, size))):
        yield piece
        size -= len(piece)


def begins_with(file: IO[bytes], parts: tuple[Part, ...]) -> bool:
    """Tell whether a file, from where it stands, begins with these parts."""
    for size, sha256 in parts:
        hashed = hashlib.sha256()
        for piece in pieces(file, size):
            hashed.update(piece)
        if hashed.hexdigest() != sha256:
            return False
    return True


def not_a_backup(place: object) -> BackupError:
    """Say that something is no backup."""
    return BackupError(f"{place} is no backup of Memex", "name a file or folder that `memex backup` made")


def damaged(place: object, what: str) -> BackupError:
    """Say that a backup is damaged."""
    return BackupError(
        f"{place} is damaged: {what}", "nothing was changed; use another backup, or another copy of this one"
    )
