"""The bearer token of a home: in a file that only its owner reads."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from memex.errors import HomeError, translated_os_errors

OWNER_ONLY = 0o600


def token_path(home: Path) -> Path:
    """Name the file that holds the token."""
    return home / "serve.token"


def read_token(home: Path) -> str:
    """Read the token of a home; the first to ask makes it, however many ask at once.

    Raises:
        HomeError: the file cannot be read or written, or holds nothing.
    """
    path = token_path(home)
    with translated_os_errors(path):
        if not path.exists():
            _make(path)
        path.chmod(OWNER_ONLY)  # a copied or restored home may have it open
        token = path.read_text("ascii").strip()
    if not token:
        raise HomeError(f"{path} is empty", "delete it: the next start writes a new one")
    return token


def _make(path: Path) -> None:
    """Write a token aside and link it in: nobody ever reads half a token, and the first one stays."""
    aside = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY), "w") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
    try:
        with suppress(FileExistsError):
            path.hardlink_to(aside)
    finally:
        aside.unlink()
