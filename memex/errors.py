"""Every error Memex raises on purpose.

MemexError                     exit code 1
 ├── ConfigError  (Terminal)   2   a key, a value or a provider in the configuration is wrong
 ├── HomeError    (Terminal)   3   MEMEX_HOME cannot be read or written
 ├── SchemaError  (Terminal)   4   the lake was written by a newer Memex
 ├── DiskFull     (Terminal)   5   no space left; what was committed stays, the rest stays pending
 ├── NotFound     (Terminal)   6   no session, talk or table of that name
 ├── SqlError     (Terminal)   7   a query of `memex sql` that DuckDB refuses
 ├── StoreError   (Terminal)   8   the lake refuses a write, or is damaged
 │    └── DamagedArchive       8   kept bytes are not the bytes that were read
 ├── StoreBusy    (Transient)  9   another process won a commit; the same call may pass now
 ├── ServerError  (Transient) 10   a Prefect server did not start or answer in time
 ├── AlreadyRunning (Terminal) 11  another process watches this home
 ├── BackupError  (Terminal)  12   no backup, a damaged one, or one that must not be written over
 ├── CannotUndo   (Terminal)  13   what a unit of maintenance changed was changed again since
 └── ProviderError            14   a model did not give a usable answer
      ├── ProviderBusy   (Transient)   too many requests, overloaded, no answer in time
      ├── ProviderClosed (Terminal)    no key, no money, no such model: nothing more from it in this run
      ├── Refused        (Terminal)    its content filter, or a request that it does not take
      ├── TooLong        (Terminal)    the prompt does not fit its context
      ├── InvalidAnswer  (Terminal)    the answer has the wrong shape, also when asked again
      └── Stopped        (Terminal)    a cap is reached, or no provider is left: what is not done stays pending

Two marks decide every retry, whatever the branch: a `Transient` error may pass when tried again, a
`Terminal` one will not. Errors without a mark are bugs and are not retried.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager


class Transient(Exception):
    """Mark: the same call may succeed later."""


class Terminal(Exception):
    """Mark: the same call will fail again until somebody changes something."""


class MemexError(Exception):
    """Root of the tree; `hint` says what the reader can do about it."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class ConfigError(MemexError, Terminal):
    """A key, a value or a provider in the configuration is wrong."""

    exit_code = 2


class HomeError(MemexError, Terminal):
    """MEMEX_HOME cannot be read or written."""

    exit_code = 3


class SchemaError(MemexError, Terminal):
    """The lake was written by a newer Memex."""

    exit_code = 4


class DiskFull(MemexError, Terminal):
    """No space left on the device."""

    exit_code = 5


class NotFound(MemexError, Terminal):
    """No session, talk or table of that name."""

    exit_code = 6


class SqlError(MemexError, Terminal):
    """DuckDB refuses the query."""

    exit_code = 7


class StoreError(MemexError, Terminal):
    """The lake refuses a write, or is damaged."""

    exit_code = 8


class DamagedArchive(StoreError):
    """Kept bytes are not the bytes that were read."""


class StoreBusy(MemexError, Transient):
    """Another process won a commit."""

    exit_code = 9


class ServerError(MemexError, Transient):
    """A Prefect server did not start or answer in time."""

    exit_code = 10


class AlreadyRunning(MemexError, Terminal):
    """Another process watches this home."""

    exit_code = 11


class BackupError(MemexError, Terminal):
    """No backup, a damaged one, or one that must not be written over."""

    exit_code = 12


class CannotUndo(MemexError, Terminal):
    """What a unit of maintenance changed was changed again since."""

    exit_code = 13


class ProviderError(MemexError):
    """A model did not give a usable answer."""

    exit_code = 14


class ProviderBusy(ProviderError, Transient):
    """Too many requests, overloaded, or no answer in time.

    `retry_after` is in seconds, None when not said; a request that was `broken_off` may have to be paid.
    """

    def __init__(
        self, message: str, hint: str = "", retry_after: float | None = None, broken_off: bool = False
    ) -> None:
        super().__init__(message, hint)
        self.retry_after = retry_after
        self.broken_off = broken_off


class ProviderClosed(ProviderError, Terminal):
    """No key, no money, no such model: nothing more from this provider in this run."""


class Refused(ProviderError, Terminal):
    """The content filter, or a request that the provider does not take."""


class TooLong(ProviderError, Terminal):
    """The prompt does not fit the context."""


class InvalidAnswer(ProviderError, Terminal):
    """The answer has the wrong shape, also when asked again."""


class Stopped(ProviderError, Terminal):
    """A cap is reached, or no provider is left: what is not done stays pending."""


def is_disk_full(error: BaseException) -> bool:
    """Tell whether an error, from Python or from a native library, means that the disk is full."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return "no space left" in str(error).lower() or "disk quota" in str(error).lower()


@contextmanager
def translated_os_errors(path: object) -> Iterator[None]:
    """Turn an OSError about `path` into `DiskFull` or `HomeError`."""
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise DiskFull(f"no space left while writing {path}", DISK_FULL_HINT) from error
        raise HomeError(
            f"cannot use {path}: {error.strerror or error}",
            "check its permissions, or set MEMEX_HOME to a folder that you can write",
        ) from error


DISK_FULL_HINT = "free some space and run the same command again: nothing is lost, it goes on where it stopped"
