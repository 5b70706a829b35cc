"""The git repository around a folder, read from its files (gitrepository-layout, git-config).

`git` itself is not asked. It may be missing, it refuses folders of other owners, inside a hook it answers for
the hook's repository whatever the folder, and a process for each folder is dear.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

_BARE = (".git", ".bare")
"""Names of a folder of git's own that say nothing; the one around it is the repository's."""
_SECTION = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\](.*)')
_URL = re.compile(r'\s*url\s*=\s*"?([^"#;]*)', re.IGNORECASE)
_SCP = re.compile(r"(?:[^@/\\:]+@)?(\[[^\]]+\]|[^/\\:]{2,}):(.*)")
"""`git@host:path`. A host of one letter is a drive."""
_HOPS = 4
"""A clone of a clone of a clone: how far its remotes are followed on this machine."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository, seen from a folder in it.

    tree: the top of the working tree that holds the folder, "" in a bare one. place: the folder of the
    repository, which all its worktrees share. remote: `host/path`, or the folder that it was cloned from, or "".
    """

    tree: str
    place: str
    name: str
    remote: str = ""


def repository_of(folder: Path) -> Repository | None:
    """Find the repository around a folder that exists; None when there is none, or it cannot be read."""
    for top in (folder, *folder.parents):
        try:
            if found := _at(top):
                return _described(*found)
            if os.path.lexists(top / ".git") and not (top / ".git").is_dir():
                return None  # git does not look further either
        except OSError:
            continue
    return None


def worktrees_of(place: str) -> list[str]:
    """List the worktrees that a repository knows of, those that were deleted included."""
    found = []
    for common in (Path(place, ".git"), Path(place, ".bare"), Path(place)):
        try:
            listed = sorted((common / "worktrees").iterdir())
        except OSError:
            continue
        pointers = ((one, _line(one / "gitdir")) for one in listed)
        found += [str(_resolved(one, pointer).parent) for one, pointer in pointers if pointer]
    return found


def _at(top: Path) -> tuple[str, Path] | None:
    """Tell whether a folder is the top of a working tree, or a bare repository: the tree, and what is shared."""
    inside = top / ".git"
    if _is_git_folder(inside):
        return str(top), _common(inside)
    if inside.is_file():
        return _pointed(top, inside)
    return ("", _common(top)) if _is_git_folder(top) else None


def _pointed(top: Path, file: Path) -> tuple[str, Path] | None:
    """Follow the `.git` file of a worktree or submodule."""
    word, _, target = _line(file).partition(":")
    if word != "gitdir":
        return None
    git = _resolved(top, target.strip())
    if _is_git_folder(git):
        return str(top), _common(git)
    if git.parent.name == "worktrees":  # of a repository that was moved, or that has forgotten this worktree
        return str(top), git.parent.parent
    return None


def _is_git_folder(folder: Path) -> bool:
    if not os.path.lexists(folder / "HEAD"):
        return False
    return (folder / "commondir").is_file() or ((folder / "objects").is_dir() and (folder / "refs").is_dir())


def _common(git: Path) -> Path:
    return _resolved(git, _line(git / "commondir") or ".")


def _described(tree: str, common: Path, hops: int = _HOPS) -> Repository:
    place = common.parent if common.name in _BARE else common
    name, remote = _remote(_remote_url(common / "config"), Path(tree or place), hops)
    return Repository(tree, str(place), name or place.name.removesuffix(".git"), remote)


def _remote_url(config: Path) -> str:
    """Read the address of `origin`; without one, that of the first remote."""
    urls: dict[str, str] = {}
    for remote, line in _remote_lines(config):
        if match := _URL.match(line):
            urls.setdefault(remote, match[1].strip())
    return urls.get("origin") or next(iter(urls.values()), "")


def _remote_lines(config: Path) -> Iterator[tuple[str, str]]:
    try:
        lines = config.read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    remote = ""
    for line in lines:
        if section := _SECTION.match(line):
            remote = section[2] or "" if section[1].lower() == "remote" else ""
            line = section[3]
        if remote:
            yield remote, line


def _remote(url: str, base: Path, hops: int) -> tuple[str, str]:
    """Name what an address leads to: a short name, and `host/path` (however it is reached) or a folder.

    User, password and port are left out, and case counts for nothing on the hosts that matter.
    """
    if not url:
        return "", ""
    try:
        parts = urlsplit(url) if "://" in url else None
        host, path = ((parts.hostname or "").lower(), parts.path) if parts else _scp(url)
    except ValueError:
        return "", ""
    path = unquote(path) if parts else path
    if not host:
        return _cloned(_resolved(base, path), hops)
    path = path.strip("/").removesuffix(".git").rstrip("/")
    return (path.rsplit("/", 1)[-1], f"{host}/{path}".lower()) if path else ("", "")


def _scp(url: str) -> tuple[str, str]:
    match = _SCP.fullmatch(url)
    return (match[1].lower(), match[2]) if match else ("", url)


def _cloned(source: Path, hops: int) -> tuple[str, str]:
    """Name the repository that one was cloned from on the same machine: by its own remote, else by its folder."""
    for folder in (source, source.with_name(f"{source.name}.git")):
        try:
            found = _at(folder) if hops else None
        except OSError:
            found = None
        if found:
            origin = _described(*found, hops - 1)
            return origin.name, origin.remote or origin.place
    place = source.parent if source.name in _BARE else source
    return place.name.removesuffix(".git"), str(place)


def _line(file: Path) -> str:
    """Read the first line of a small file; "" when it cannot be read."""
    try:
        with file.open(encoding="utf-8", errors="surrogateescape") as opened:
            return opened.readline(8192).strip()
    except OSError:
        return ""


def _resolved(base: Path, target: str) -> Path:
    return Path(os.path.normpath(base / target))
