"""Files of the home that are neither archive, nor lake, nor index: journals and caches."""

import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import orjson
from filelock import FileLock, Timeout

from memex.errors import translated_os_errors
from memex.sources.clean import lines_in
from memex.sources.tombstones import Tombstones

_LOOSE = (".json", ".jsonl", ".log", ".md", ".toml", ".txt")
_KEPT_ELSEWHERE = ("archive", "lake", "index")
_TELLING = ("journal", "cache")
"""Folders whose files tell of rows of the lake, one line a row."""


def clean_files(home: Path, tombstones: Tombstones, removed: Collection[str]) -> int:
    """Overwrite forgotten texts, and drop the lines of journals that tell of removed rows; return files changed."""
    changed = 0
    for path in _loose_files(home):
        lines = lines_in(path.read_bytes())
        if path.relative_to(home).parts[0] in _TELLING:
            lines = [line for line in lines if not _tells_of(line, tombstones, removed)]
        changed += _replace(path, b"".join(map(tombstones.clean, lines)))
    return changed


def drop_stopped_restore(home: Path) -> None:
    """Delete a backup that a restore which was killed left laid out; one that goes on is cleaned by itself."""
    try:
        with FileLock(home / "restore.lock", timeout=0):
            shutil.rmtree(home / "restoring", ignore_errors=True)
    except Timeout:
        return


def _replace(path: Path, data: bytes) -> bool:
    with translated_os_errors(path):
        if path.read_bytes() == data:
            return False
        aside = path.with_name(f"{path.name}.aside")
        aside.write_bytes(data)
        aside.replace(path)
    return True


def _loose_files(home: Path) -> Iterator[Path]:
    for entry in sorted(home.iterdir()):
        if entry.is_dir() and entry.name not in _KEPT_ELSEWHERE:
            yield from filter(_is_loose, sorted(entry.rglob("*")))
        elif _is_loose(entry):
            yield entry


def _is_loose(path: Path) -> bool:
    return path.suffix in _LOOSE and path.is_file()


def _tells_of(line: bytes, tombstones: Tombstones, removed: Collection[str]) -> bool:
    try:
        strings = set(_strings(orjson.loads(line)))
    except orjson.JSONDecodeError:
        return False
    return any(text in removed or tombstones.is_gone(text.partition("#")[0]) for text in strings)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
