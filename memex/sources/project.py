"""Which project a working directory belongs to."""

import subprocess
from functools import cache
from pathlib import Path, PurePosixPath, PureWindowsPath


@cache
def project_of(cwd: str) -> tuple[str, str]:
    """Return (project id, short name) of a working directory.

    A folder that exists and lies in a git repository belongs to the repository, whichever worktree it is;
    any other belongs to itself.
    """
    if not cwd:
        return "none", "(no folder)"
    root = _repository(cwd)
    if root:
        return f"git:{root}", Path(root).name
    return f"dir:{cwd}", _name(cwd)


def _name(cwd: str) -> str:
    path = PureWindowsPath(cwd) if "\\" in cwd else PurePosixPath(cwd)
    return path.name or cwd


def _repository(cwd: str) -> str:
    """Find the main working tree of the repository around `cwd`, or ""."""
    path = Path(cwd)
    try:
        if not path.is_absolute() or not path.is_dir():
            return ""
    except OSError:  # a name too long, or a folder that may not be entered
        return ""
    command = ["git", "-C", cwd, "rev-parse", "--path-format=absolute", "--git-common-dir"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    common = Path(answer.stdout.strip())
    return str(common.parent if common.name == ".git" else common)
