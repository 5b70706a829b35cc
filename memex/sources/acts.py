"""What the person did, as opposed to what was read: kept with the archive, for nothing else can bring it back.

    archive/acts.jsonl      one line an act: {"at": …, "act": "forget", …}

Acts are appended and synced before they take effect, and replayed after a rebuild. A `forget` that was carried
out is followed by a `forgotten`.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import orjson
from filelock import FileLock

from memex.errors import translated_os_errors

Kind = Literal["forget", "forgotten", "merge_projects", "remember", "undo"]


@dataclass(frozen=True, slots=True)
class Acts:
    """The log of acts below the archive's folder."""

    root: Path

    def add(self, act: Kind, **about: Any) -> dict[str, Any]:
        """Append one act, and return it as it was written.

        Raises:
            DiskFull, HomeError: it could not be written, and so must not be carried out.
        """
        entry = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "act": act, **about}
        with translated_os_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            with FileLock(self.root / "acts.lock"), self._path.open("ab") as out:
                out.write(b"\n" * self._is_torn() + orjson.dumps(entry) + b"\n")
                out.flush()
                os.fsync(out.fileno())
        return entry

    def read(self, act: Kind) -> Iterator[dict[str, Any]]:
        """Yield the acts of one kind, oldest first; the torn last line of a crash never happened."""
        if not self._path.exists():
            return
        for line in self._path.read_bytes().splitlines():
            try:
                entry = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if entry.get("act") == act:
                yield entry

    def overwrite(self, clean: Callable[[bytes], bytes]) -> None:
        """Take forgotten texts out of all acts but those of forgetting, which hold hashes only."""
        if not self._path.exists():
            return
        with translated_os_errors(self.root), FileLock(self.root / "acts.lock"):
            old = self._path.read_bytes().splitlines(keepends=True)
            new = [line if b'"act":"forg' in line else clean(line) for line in old]
            if new != old:
                aside = self.root / "acts.aside"
                aside.write_bytes(b"".join(new))
                aside.replace(self._path)

    @property
    def _path(self) -> Path:
        return self.root / "acts.jsonl"

    def _is_torn(self) -> bool:
        data = self._path.read_bytes() if self._path.exists() else b""
        return bool(data) and not data.endswith(b"\n")
