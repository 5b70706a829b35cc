"""Who gets something, and of whose: the switches by project, session and subagent, and Memex's own sessions."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from memex.inject.event import Event


@dataclass(frozen=True, slots=True)
class Scope:
    """The switches. `projects` and `sessions` are glob patterns, `home` is where Memex itself works."""

    home: Path
    projects: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    subagents: bool = False

    def silenced(self, event: Event, project: tuple[str, str]) -> str:
        """Say why an event gets nothing, "" when it may; `project` is its id and name."""
        if not event.session_id:
            return "no session"
        if event.is_subagent and not self.subagents:
            return "a subagent"
        if event.cwd and _is_within(event.cwd, self.home):
            return "Memex's own session"
        if self.hides(*project, event.cwd):
            return "an excluded project"
        native = event.session_id.partition(":")[2]
        return "an excluded session" if _matches(self.sessions, (event.session_id, native)) else ""

    def hides(self, project_id: str, name: str = "", cwd: str = "") -> bool:
        """Tell whether nothing of a project may be told."""
        return _matches(self.projects, (project_id, name, cwd, project_id.removeprefix("dir:")))


def _matches(patterns: Sequence[str], names: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in names if name)


def _is_within(cwd: str, home: Path) -> bool:
    try:
        return Path(cwd).resolve().is_relative_to(home.resolve())
    except (OSError, ValueError):
        return False
