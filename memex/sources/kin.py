"""Which sessions were copied from which: forks and resumed sessions begin with another one's records."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from memex.sources.archive import Archive, source_id
from memex.sources.blobs import KeptBlob
from memex.store.lake import Lake, in_list


@dataclass
class Kin:
    """Answers a reader's questions about other sessions, from lake and archive.

    Sessions are read in the order in which they were first seen, so whoever is known already was there first.
    """

    archive: Archive
    lake: Lake
    cli: str
    _new: dict[str, str] = field(default_factory=dict)
    _logs: dict[str, Sequence[KeptBlob]] = field(default_factory=dict)

    def original(self, session_id: str, root: str) -> str:
        """Name the session that was kept before this one and began with the same record, or ""."""
        first = self._roots.get(root) or self._new.setdefault(root, session_id)
        return "" if first == session_id else first

    def logs(self, session_id: str) -> Sequence[KeptBlob]:
        """Give the logs of another session in every generation: what was copied may have been rewritten since."""
        if session_id not in self._logs:
            ids = self.lake.scan("sources", ["id"], in_list("session_id", [session_id]))["id"].to_pylist()
            kept = [source for key in ids if (source := self.archive.load(self.cli, key)) and source.role == "log"]
            self._logs[session_id] = [
                KeptBlob(self.archive, source, generation)
                for source in kept
                for generation in range(1, source.generation + 1)
            ]
        return self._logs[session_id]

    def file(self, place: str) -> bytes:
        """Give the bytes of another archived file; none when there is none."""
        kept = self.archive.load(self.cli, source_id(self.cli, place))
        return self.archive.read(kept) if kept else b""

    def folder(self, sha256: str) -> str:
        """Name the working directory, of any session, whose path has this hash, or ""."""
        return self._folders.get(sha256, "")

    @cached_property
    def _folders(self) -> dict[str, str]:
        folders = self.lake.scan("sessions", ["cwd"])["cwd"].unique().to_pylist()
        return {hashlib.sha256(folder.encode()).hexdigest(): folder for folder in folders if folder}

    @cached_property
    def _roots(self) -> dict[str, str]:
        """Map the first record of every session to the first session with it."""
        rows = self.lake.scan("sessions", ["id", "root", "kind"], f"{in_list('cli', [self.cli])} AND root != ''")
        columns = (rows[name].to_pylist() for name in ("id", "root", "kind"))
        roots: dict[str, str] = {}
        for key, root, _kind in sorted(zip(*columns, strict=True), key=lambda row: row[2] == "fork"):
            roots.setdefault(root, key)
        return roots
