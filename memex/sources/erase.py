"""Take out of the archive what was forgotten: whole sources, and stretches of those that stay.

Frames that change are laid anew beside the old ones, then the log is replaced, which puts them in force, and then
the old ones are deleted. `sweep` deletes what a crash in between left.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import orjson

from memex.errors import translated_os_errors
from memex.sources.clean import Cleaner, Pair
from memex.sources.frames import (
    CHUNK,
    Chunk,
    Contents,
    Kept,
    Place,
    frames_path,
    load_log,
    read_events,
    read_frames,
    sync,
    write_frames,
)  # fmt: skip
from memex.sources.tombstones import Tombstones


def clean_growth(log: Path, kept: Kept, new: Iterable[bytes], size: int, cleaner: Cleaner) -> Contents | None:
    """Clean the last `size` bytes of a file; None when something that is kept must change with them.

    A line of which the beginning is kept is read again whole, for only then it shows what it holds.
    """
    held, copying = _held(log, kept, cleaner)
    if not held:
        return _placed(cleaner.cut(new, _sizes(size), copying), kept.disk_size)
    pairs = cleaner.cut(chain([held], new), [len(held), *_sizes(size)], copying)
    before, after = next(pairs)
    return _placed(pairs, kept.disk_size) if before == after else None


def clean_generation(
    log: Path, kept: Kept, generation: int, cleaner: Cleaner, new: Iterable[bytes] = (), size: int = 0
) -> list[Chunk]:
    """Write the frames of a generation anew, cleaned, and `size` new bytes behind them; they count for nothing yet."""
    known = kept.chunks_of(generation)
    pieces = chain(read_frames(log, kept, generation), new)
    pairs = cleaner.cut(pieces, [*(c.size for c in known), *_sizes(size)])
    rewrite = known[0].rewrite + 1
    target = frames_path(log, generation, rewrite)
    chunks = write_frames(target, _replaced(pairs, known), Chunk(generation, 0, 0, 0, 0, "", rewrite))
    sync([target])
    return chunks


def put_in_force(
    log: Path, kept: Kept, anew: Mapping[int, Sequence[Chunk]], events: Sequence[dict[str, Any]] = ()
) -> None:
    """Replace the log of a source: its path and the frames of some generations are others, and events follow."""
    chunks = [
        chunk
        for generation in range(1, kept.generation + 1)
        for chunk in anew.get(generation, kept.chunks_of(generation))
    ]
    rest = [event for event in read_events(log) if "source" not in event and "chunk" not in event]
    lines = [kept.source_event(), *(chunk.event() for chunk in chunks), *rest, *events]
    aside = log.with_suffix(".aside")
    with translated_os_errors(log):
        aside.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
        sync([aside])
        aside.replace(log)
        _sync_folder(log.parent)
        for generation in anew:
            kept.frames(log, generation).unlink(missing_ok=True)


def rewrite(log: Path, kept: Kept, tombstones: Tombstones) -> bool:
    """Take what was forgotten out of every generation of a source, and out of its path; tell whether any was there."""
    cleaner = tombstones.cleaner(kept.cli, kept.role, kept.path)
    stale = [g for g in _generations(kept) if cleaner and cleaner.changes(read_frames(log, kept, g))]
    path = tombstones.place(kept.path)
    if not stale and path == kept.path:
        return False
    assert cleaner
    anew = {generation: clean_generation(log, kept, generation, cleaner) for generation in stale}
    put_in_force(log, replace(kept, path=path), anew)
    return True


def erase(log: Path, kept: Kept) -> None:
    """Delete a source: its log, and the frames of all generations."""
    with translated_os_errors(log):
        for path in [log, *log.parent.glob(f"{kept.id}.*")]:
            path.unlink(missing_ok=True)


def sweep(root: Path) -> int:
    """Delete what no log counts: frames and logs of a crash; return how many files. Nobody may be writing."""
    swept = 0
    for folder in root.glob("*/??"):
        counted: set[str] = set()
        for log in folder.glob("*.jsonl"):
            if kept := load_log(log):
                counted.add(log.name)
                counted.update(_trimmed(log, kept))
        for path in folder.iterdir():
            if path.name not in counted:
                path.unlink()
                swept += 1
    return swept


def _generations(kept: Kept) -> list[int]:
    return sorted({chunk.generation for chunk in kept.chunks})


def _held(log: Path, kept: Kept, cleaner: Cleaner) -> tuple[bytes, bool | None]:
    """Give what is kept of a line, or of a whole, that goes on; and whether the line before it was blanked."""
    chunks = kept.chunks_of(kept.generation)
    if not chunks:
        return b"", None
    if not cleaner.in_lines or cleaner.is_packed:
        return b"".join(read_frames(log, kept, kept.generation)), None
    data = b""
    for chunk in reversed(chunks):
        data = b"".join(read_frames(log, kept, kept.generation, chunk.at))
        if data.count(b"\n") > 1:
            break
    *lines, held = data.split(b"\n")
    return held, bool(lines and lines[-1]) and not lines[-1].strip(b" ")


def _sizes(size: int) -> list[int]:
    """Cut new bytes as they are read."""
    return [CHUNK] * (size // CHUNK) + ([size % CHUNK] if size % CHUNK else [])


def _placed(pairs: Iterable[Pair], at: int) -> Contents:
    """Note where new bytes stand on disk that are kept as others."""
    for old, new in pairs:
        yield new, None if old == new else _place(at, old)
        at += len(old)


def _replaced(pairs: Iterable[Pair], known: Sequence[Chunk]) -> Contents:
    """Note where kept bytes stand on disk, and then new ones."""
    at = 0
    for (old, new), chunk in zip_longest(pairs, known):
        place = chunk.on_disk if chunk else _place(at, old)
        yield new, place
        at = place[0] + place[1]


def _place(at: int, data: bytes) -> Place:
    return at, len(data), hashlib.sha256(data).hexdigest()


def _trimmed(log: Path, kept: Kept) -> Iterator[str]:
    """Cut off what stands behind the last frame of each generation, and name the files of frames."""
    for generation in _generations(kept):
        path = kept.frames(log, generation)
        last = kept.chunks_of(generation)[-1]
        end = last.stored_at + last.stored
        yield path.name
        if path.exists() and path.stat().st_size > end:
            os.truncate(path, end)


def _sync_folder(folder: Path) -> None:
    """Put a folder's list of files on disk."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
