"""Real git repositories in temporary folders."""

import os
import subprocess
from pathlib import Path

_QUIET = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
_WHO = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder; file remotes are allowed, as submodules on disk need."""
    command = ["git", "-C", str(folder), *_WHO, "-c", "protocol.file.allow=always", *arguments]
    environ = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | _QUIET
    return subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout.strip()


def repository(folder: Path, remote: str = "", *options: str) -> Path:
    """Make a repository with one commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", *options)
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder
