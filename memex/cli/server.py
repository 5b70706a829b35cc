"""A Prefect server for one run: started as a child process, waited for, and stopped again.

With PREFECT_API_URL set there is nothing to start. The database begins as a copy of a migrated template,
which halves the start; it is thrown away at the end.
"""

import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from memex.errors import ServerError

_QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_LATE_RUNS_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_CANCELLATION_CLEANUP_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_FOREMAN_ENABLED": "false",
    "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",
}
_CLIENT = {
    "DO_NOT_TRACK": "1",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",  # what fails is raised as well, and told once
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
}
TELL_SECONDS = 5


class TemporaryServer:
    """A server in a child process; use as a context manager, and `wait` before the first flow."""

    def __init__(self, cache: Path, timeout: float) -> None:
        self._template = cache / f"prefect-{version('prefect')}.db"
        self._timeout = timeout
        self._folder = Path(tempfile.mkdtemp(prefix="memex-prefect-"))
        self._log = self._folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._started = time.monotonic()
        self._url = ""

    def __enter__(self) -> "TemporaryServer":
        port = _free_port()
        self._url = f"http://127.0.0.1:{port}/api"
        database = self._folder / "prefect.db"
        if self._template.exists():
            shutil.copyfile(self._template, database)
        environ = {
            **os.environ,
            **_QUIET,
            "PREFECT_HOME": str(self._folder),
            "PREFECT_API_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{database}",
        }
        environ.pop("PREFECT_API_URL", None)
        command = [sys.executable, "-m", "memex.cli.prefect_child", str(port), str(self._folder)]
        with self._log.open("wb") as log:
            # In a session of its own Ctrl-C does not reach it: the run that stops still reports to it.
            self._process = subprocess.Popen(
                command, env=environ, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )
        os.environ.update({key: os.environ.get(key, value) for key, value in _CLIENT.items()})
        os.environ["PREFECT_API_URL"] = self._url
        return self

    def wait(self, tell: Callable[[float], None]) -> float:
        """Wait until the server answers; return the seconds since the start, and `tell` them now and then.

        Raises:
            ServerError: it ended, or did not answer in time.
        """
        assert self._process is not None
        told = 0.0
        while not self._answers():
            waited = time.monotonic() - self._started
            if self._process.poll() is not None or waited > self._timeout:
                tail = self._log.read_text("utf-8", "replace")[-1500:]
                raise ServerError(
                    f"the temporary Prefect server did not start within {waited:.0f} s\n{tail}",
                    "run it again, raise schedule.server_timeout_seconds, or set PREFECT_API_URL to a standing server",
                )
            if waited > told + TELL_SECONDS:
                told = waited
                tell(waited)
            time.sleep(0.2)
        self._keep_template()
        return time.monotonic() - self._started

    def __exit__(self, *_error: object) -> None:
        os.environ.pop("PREFECT_API_URL", None)
        if self._process is not None:
            self._process.kill()  # its database is thrown away, and a server that is starting ends late
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/health", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _keep_template(self) -> None:
        """Save the migrated, still empty database for the next start."""
        if self._template.exists():
            return
        self._template.parent.mkdir(parents=True, exist_ok=True)
        aside = self._template.with_suffix(f".{os.getpid()}.aside")
        source, target = sqlite3.connect(self._folder / "prefect.db"), sqlite3.connect(aside)
        with closing(source), closing(target):
            source.backup(target)
        aside.replace(self._template)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
