"""What was forgotten, as far as it must be known to keep it from coming back.

An act of forgetting names sessions, records and texts by their hashes only, for it outlives them:

    sessions   hashed names: files of these sessions are not read again
    marks      of their records and prompts: copies of them in other logs are blanked
    secrets    texts: stretches of what is read are compared, and overwritten
    places     folders and their names, to be overwritten where a CLI lists its projects
"""

from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

from memex.sources.acts import Acts
from memex.sources.base import HistoryReader
from memex.sources.clean import Cleaner, is_in_lines
from memex.sources.copies import Copies, name_mark
from memex.sources.redact import holds, redacted_all
from memex.sources.secrets import Secrets

LISTS = ("/.project_root", "/projects.json")
"""Files in which a CLI lists its projects, whoever's they are."""


@dataclass(frozen=True)
class Tombstones:
    """All of it, merged. False when nothing was ever forgotten."""

    sessions: frozenset[str] = frozenset()
    packed: tuple[bytes, ...] = ()
    secrets: tuple[Secrets, ...] = ()
    places: tuple[Secrets, ...] = ()
    _known: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, root: Path) -> "Tombstones":
        """Read the acts below the archive's folder."""
        return cls.merged(Acts(root).read("forget"))

    @classmethod
    def merged(cls, acts: Iterable[Mapping[str, Any]]) -> "Tombstones":
        """Put acts together; texts under one key become one."""
        sessions: set[str] = set()
        packed: list[bytes] = []
        texts: dict[str, dict[str, list[Any]]] = {"secrets": {}, "places": {}}
        for act in acts:
            sessions.update(act.get("sessions", ()))
            if marks := act.get("marks"):
                packed.append(b64decode(marks))
            for kind, of_kind in texts.items():
                if kept := act.get(kind):
                    of_kind.setdefault(kept["key"], []).extend(kept["texts"])
        merged = {
            kind: tuple(Secrets.read({"key": key, "texts": of_key}) for key, of_key in of_kind.items())
            for kind, of_kind in texts.items()
        }
        return cls(frozenset(sessions), tuple(packed), merged["secrets"], merged["places"])

    def __bool__(self) -> bool:
        return bool(self.sessions or self.secrets)

    @cached_property
    def marks(self) -> frozenset[int]:
        """The marks of records and prompts."""
        return frozenset(mark for packed in self.packed for mark in array("Q", packed))

    def is_gone(self, session_id: str) -> bool:
        """Tell whether a session was forgotten."""
        if not self.sessions:
            return False
        if session_id not in self._known:
            self._known[session_id] = name_mark(session_id) in self.sessions
        return self._known[session_id]

    def covers(self, cli: str, session_id: str, place: str) -> bool:
        """Tell whether a file is one of a forgotten session, or lies in the folder of one, as subagents' do."""
        if not self.sessions:
            return False
        parts = PurePath(place).parts
        return self.is_gone(session_id) or any(
            self.is_gone(f"{cli}:{name}")
            for part in parts
            for name in (part, part[:8])  # Gemini CLI calls a session by its first letters
        )

    def cleaner(self, cli: str, role: str, place: str) -> Cleaner | None:
        """Give what is to be taken out of a file as it is read; None when there is nothing."""
        in_lines = is_in_lines(role, place)
        in_copies = in_lines and bool(self.sessions)
        secrets = self._secrets_in(place)
        if not in_copies and not secrets:
            return None
        history = _history_of(cli) if role == "history" else None

        def copies(copying: bool | None) -> Copies:
            return Copies(cli, self.sessions, self.marks, history, copying)

        return Cleaner(secrets, copies if in_copies else None, in_lines, place.endswith(".zst"))

    def text(self, text: str) -> str:
        """Take forgotten texts out of one that is no log."""
        return _without(text, self.secrets)

    def place(self, place: str) -> str:
        """Take forgotten texts out of the place of a file."""
        return _without(place, self._secrets_in(place))

    def clean(self, data: bytes) -> bytes:
        """Take forgotten texts out of a line, or of a file that is no list of lines."""
        return redacted_all(data, self.secrets)

    def speaks_in(self, data: bytes) -> bool:
        """Tell whether a forgotten text stands in some UTF-8, however it is read."""
        return any(holds(data, secrets) for secrets in self.secrets)

    def _secrets_in(self, place: str) -> tuple[Secrets, ...]:
        return (*self.secrets, *self.places) if place.endswith(LISTS) else self.secrets


def packed_marks(marks: Iterable[int]) -> str:
    """Write marks as an act keeps them."""
    return b64encode(array("Q", sorted(set(marks))).tobytes()).decode()


def _without(text: str, secrets: Iterable[Secrets]) -> str:
    data = text.encode("utf-8", "surrogateescape")
    return redacted_all(data, secrets).decode("utf-8", "surrogateescape")


def _history_of(cli: str) -> HistoryReader | None:
    from memex.sources.registry import ADAPTERS

    return ADAPTERS[cli].history if cli in ADAPTERS else None
