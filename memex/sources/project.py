"""Which project a working directory belongs to.

A project is a git repository: by its remote, else by its folder. A folder in no repository is a project of its own.

Folders are moved and deleted, so what one belonged to is noted in the log of acts while it is there to tell. All
else follows from that log and the path alone: a rebuild, or another machine, gives the same projects.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any

import orjson

from memex.sources.acts import Acts, Kind
from memex.sources.repository import Repository, repository_of, worktrees_of
from memex.text import storable

NO_FOLDER = ("none", "(no folder)")
"""The project of sessions that do not say where they ran."""

_WORKTREE = re.compile(r"(.+?)[\\/]\.claude[\\/]worktrees[\\/][^\\/]+(?:[\\/].*)?")
"""Where Claude Code puts the worktrees of a repository."""


@dataclass
class Told:
    """What acts tell, replayed in order.

    folders: the project of each folder that was looked at. trees: working trees; what lies in one belongs to it.
    aliases: projects that became part of another; `merged` are those that the person merged. places: folders of
    repositories. seen: when a project was noted first and last. noted: folders with each answer there was.
    """

    folders: dict[str, str] = field(default_factory=dict)
    trees: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    merged: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)
    remotes: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    seen: dict[str, list[str]] = field(default_factory=dict)
    noted: set[tuple[str, str]] = field(default_factory=set)

    def take(self, act: Mapping[str, Any]) -> None:
        """Replay one act."""
        if act["act"] == "merge_projects":
            source, target = self.canonical(act["source"]), self.canonical(act["target"])
            if source != target:
                self.merged.add(source)
                self.aliases[source] = target
            self.seen.setdefault(target, []).append(act["at"])
        else:
            self._take_folder(act)

    def raw(self, folder: str) -> str:
        """Tell the project of a folder, before merges."""
        own = f"dir:{folder}"
        if own in self.merged:
            return own
        if folder in self.folders:
            return self.folders[folder]
        path = _path(folder)
        for around in (path, *path.parents):
            if str(around) in self.trees:
                return self.trees[str(around)]
        worktree = _WORKTREE.fullmatch(folder)
        return self.raw(worktree[1]) if worktree else own

    def canonical(self, project_id: str) -> str:
        """Follow a project through merges, and a folder to its repository.

        They may lead round in a ring: a repository was merged into a folder that lies in it. All of it is one.
        """
        passed: list[str] = []
        while project_id not in passed:
            passed.append(project_id)
            if project_id in self.aliases:
                project_id = self.aliases[project_id]
            elif project_id.startswith("dir:"):
                project_id = self.raw(project_id[4:])
        return max(passed[passed.index(project_id) :])

    def _take_folder(self, act: Mapping[str, Any]) -> None:
        folder, project_id = act["cwd"], act["id"]
        if not self.folders.get(folder, "").startswith("git:"):
            self.folders[folder] = project_id
        if place := act.get("place"):
            self._take_place(place, project_id)
        if tree := act.get("tree"):
            self.trees.setdefault(tree, project_id)
        self.names.setdefault(project_id, act["name"])
        self.remotes.setdefault(project_id, act.get("remote", ""))
        self.seen.setdefault(project_id, []).append(act["at"])
        self.noted.add((folder, project_id))

    def _take_place(self, place: str, project_id: str) -> None:
        """A repository known by its folder is known by its remote from now on, when it has got one."""
        self.places.setdefault(place, project_id)
        by_folder = f"git:{place}"
        if by_folder not in self.aliases:
            self._join(by_folder, project_id)
        elif by_folder in self.merged and project_id not in self.names:  # merged before it had a remote
            self._join(project_id, self.canonical(by_folder))

    def _join(self, source: str, target: str) -> None:
        if source != self.canonical(target):
            self.aliases[source] = target


@dataclass
class Projects:
    """The projects there are. `clean` takes what was forgotten out of a text.

    >>> Projects(Acts(Path("/nowhere"))).of("/src/app")
    ('dir:/src/app', 'app')
    """

    acts: Acts
    clean: Callable[[str], str] = str
    _told: Told | None = field(default=None, repr=False)
    _state: tuple[int, int, int] = (0, 0, 0)
    _looked: set[str] = field(default_factory=set, repr=False)
    _absent: set[str] = field(default_factory=set, repr=False)

    @property
    def told(self) -> Told:
        """What the acts told when they were read last."""
        return self._told or self.read_acts()

    @property
    def state(self) -> tuple[int, int, int]:
        """Tell apart what the acts tell now and what they told before."""
        self.read_acts()
        return self._state

    def of(self, cwd: str) -> tuple[str, str]:
        """Return (project id, short name) of a working directory; nothing is asked but the acts."""
        if not cwd:
            return NO_FOLDER
        project_id = self.told.canonical(self.told.raw(_spelled(cwd)))
        return project_id, self.name(project_id)

    def canonical(self, project_id: str) -> str:
        """Tell what a project became part of; itself, when it is one still."""
        return self.told.canonical(project_id)

    def name(self, project_id: str) -> str:
        """Give the short name of a project."""
        if project_id == NO_FOLDER[0]:
            return NO_FOLDER[1]
        folder = project_id.partition(":")[2]
        return self.told.names.get(project_id) or _path(folder).name or folder

    def learn(self, cwds: Iterable[str]) -> None:
        """Look at folders that are new, or that had no remote when they were seen last; note what is new of them.

        Each is looked at once a process; one that is gone, again when more repositories are known.

        Raises:
            DiskFull, HomeError: it could not be noted.
        """
        told = self.read_acts()
        folders = sorted({_spelled(cwd) for cwd in cwds if cwd} - self._looked)
        self._looked.update(folders)
        unsettled = [folder for folder in folders if not told.remotes.get(told.folders.get(folder, ""))]
        absent = {folder for folder in unsettled if not _is_there(folder)}
        self._note(self._look(folder) for folder in unsettled if folder not in absent)
        self._note(self._look_among_worktrees(folder) for folder in sorted(absent))
        self._absent |= absent

    def merge(self, source: str, target: str) -> None:
        """Note that a project is part of another from now on.

        Raises:
            DiskFull, HomeError: it could not be noted.
        """
        self.read_acts()
        self._add("merge_projects", [{"source": source, "target": target}])

    def rows(self) -> list[dict[str, Any]]:
        """List the projects that the acts tell of, as rows of the lake, by id."""
        told = self.told
        named = {f"dir:{folder}" for folder in told.folders}.union(told.seen, told.aliases)
        members: dict[str, list[str]] = {}
        for member in sorted(named):
            members.setdefault(told.canonical(member), []).append(member)
        return [self._row(project_id, of) for project_id, of in sorted(members.items())]

    def forget_all_but(self, kept: Collection[str]) -> None:
        """Take out of the acts what they tell of other projects than these: they were forgotten."""
        told = self.read_acts()

        def clean(line: bytes) -> bytes:
            about = _project_in(line)
            return line if about is None or told.canonical(about) in kept else b""

        self.acts.overwrite(clean)
        self.read_acts()

    def read_acts(self) -> Told:
        """Read the acts, if there are others than before."""
        state = self.acts.state()
        if self._told is None or state != self._state:
            told = Told()
            for act in self.acts.read("project", "merge_projects"):
                told.take(act)
            self._told, self._state = told, state
        return self._told

    def _row(self, project_id: str, members: Sequence[str]) -> dict[str, Any]:
        """Describe a project; its members are the ids that lead to it."""
        told = self.told
        times = sorted(at for member in members for at in told.seen.get(member, ()))
        return {
            "id": project_id,
            "name": self.name(project_id),
            "remote": told.remotes.get(project_id, ""),
            "paths": [member[4:] for member in members if member.startswith("dir:")],
            "aliases": [member for member in members if member in told.aliases],
            "first_seen": datetime.fromisoformat(times[0]) if times else None,
            "last_seen": datetime.fromisoformat(times[-1]) if times else None,
        }

    def _note(self, looks: Iterable[dict[str, Any] | None]) -> None:
        if found := [about for about in looks if about and self._is_news(about)]:
            self._add("project", found)

    def _add(self, act: Kind, about: list[dict[str, Any]]) -> None:
        told = self.told
        places = len(told.places)
        for entry in self.acts.add_all(act, about):
            told.take(entry)
        self._state = self.acts.state()
        if len(told.places) > places:
            self._looked -= self._absent
            self._absent.clear()

    def _is_news(self, about: Mapping[str, Any]) -> bool:
        folder, project_id = about["cwd"], about["id"]
        if (folder, project_id) in self.told.noted:
            return False
        if project_id.startswith("git:"):
            return True
        return not self.told.folders.get(folder, "").startswith("git:") and self.told.raw(folder) != project_id

    def _look(self, folder: str) -> dict[str, Any]:
        """See what a folder that is there belongs to."""
        real = Path(os.path.realpath(folder))
        found = repository_of(real)
        if found is None or (_is_wide(found) and found.tree != str(real)):
            return self._about(folder, f"dir:{real}", real.name or str(real))
        git = {"tree": "" if _is_wide(found) else found.tree, "place": found.place, "remote": found.remote}
        return self._about(folder, f"git:{found.remote or found.place}", found.name, **git)

    def _look_among_worktrees(self, folder: str) -> dict[str, Any] | None:
        """Find the repository that still lists a worktree which is gone."""
        if self.told.raw(folder) != f"dir:{folder}":
            return None
        around = {folder, *map(str, _path(folder).parents)}
        for place, project_id in self.told.places.items():
            for tree in worktrees_of(place):
                if tree in around:
                    return self._about(folder, project_id, self.name(project_id), tree=tree, place=place)
        return None

    def _about(self, folder: str, project_id: str, name: str, **git: str) -> dict[str, Any]:
        about = {"cwd": folder, "id": project_id, "name": name, **git}
        return {key: self.clean(storable(value)) for key, value in about.items()}


def _project_in(line: bytes) -> str | None:
    """Name the project that an act tells of; None when it is an act of another kind."""
    try:
        act = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return {"project": act.get("id"), "merge_projects": act.get("target")}.get(act.get("act"))


def _path(folder: str) -> PurePath:
    windows = not folder.startswith("/") and ("\\" in folder or folder[1:2] == ":")
    return PureWindowsPath(folder) if windows else PurePosixPath(folder)


def _spelled(cwd: str) -> str:
    """Spell a folder in one way: no slash at the end, a large letter for a drive, which programs write both ways."""
    path = str(_path(cwd))
    return path[0].upper() + path[1:] if path[1:2] == ":" else path


def _is_there(folder: str) -> bool:
    """Tell whether a folder exists on this machine; one of another system never does."""
    try:
        return os.path.isabs(folder) and os.path.isdir(folder)  # noqa: PTH112, PTH117 - never raises but for a NUL
    except ValueError:
        return False


def _is_wide(found: Repository) -> bool:
    """Tell whether a working tree holds what has nothing to do with each other: home, or temporary files.

    Dotfiles are kept in git by a repository around the home folder; what lies below is no part of them.
    """
    inner = (os.path.expanduser("~"), "/tmp", "/var/tmp")  # noqa: PTH111 - as it is, when there is none
    top = found.tree or found.place
    return any(Path(folder).is_relative_to(top) for one in inner for folder in (one, os.path.realpath(one)))
