"""Summaries of a session as a run of the deployment `session/session`."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from memex.compact.recipe import recipe_of
from memex.errors import ConfigError, ServerError
from memex.llm.base import Writer
from memex.store.lake import Lake, in_list

if TYPE_CHECKING:
    from memex.live.watch import Summarise

DEPLOYMENT = "session/session"
ASK_AGAIN_SECONDS = 600.0
"""How long a server that did not answer is not asked again: each time takes a while, and reading waits for it."""


@dataclass(frozen=True, slots=True)
class Deployed:
    """Asks the Prefect server of PREFECT_API_URL for runs, and waits for none of them."""

    lake: Lake
    writer: Writer

    def __post_init__(self) -> None:
        if not os.environ.get("PREFECT_API_URL"):
            raise ConfigError(
                f"summaries by {self.writer.provider!r} are not free, and so flow runs write them, within their limits",
                "start a Prefect server, and set PREFECT_API_URL",
            )
        import prefect.deployments  # noqa: F401 - this takes seconds, which are better spent before reading begins

    def __call__(self, sessions: Sequence[str], delay: timedelta, tick: Callable[[int], None]) -> str:
        """Ask for one run a session. For the same state of a session a run is asked for once.

        Raises:
            ServerError: the server does not answer, or has no such deployment.
        """
        from httpx import HTTPError
        from prefect.deployments import run_deployment
        from prefect.exceptions import PrefectException

        recipe = str(recipe_of(self.writer, "talks"))
        states = dict(self.lake.frame("sessions", ["id", "digest"], in_list("id", sessions)).iter_rows())
        for session in sessions:
            try:
                run_deployment(
                    DEPLOYMENT,
                    parameters={"session_id": session, "force": False, "delay_minutes": delay.total_seconds() / 60},
                    timeout=0,
                    as_subflow=False,
                    idempotency_key=f"memex {session} {states.get(session)} {recipe} {delay.days}",
                )
            except (HTTPError, PrefectException) as error:
                raise ServerError(
                    f"no run of {DEPLOYMENT} for {session}: {type(error).__name__}: {error}",
                    "is the server of PREFECT_API_URL up, and was `prefect deploy --all` run?",
                ) from error
            tick(1)
        return f"left to {DEPLOYMENT}"


@dataclass
class WhileThereIsAServer:
    """Leaves summaries that cost nothing to the server, and has them written here when it does not answer."""

    deployed: Deployed
    here: "Summarise"
    _ask_at: float = 0.0

    def __call__(self, sessions: Sequence[str], delay: timedelta, tick: Callable[[int], None]) -> str:
        """Ask for runs, or write."""
        trouble = ""
        if time.monotonic() >= self._ask_at:
            try:
                return self.deployed(sessions, delay, tick)
            except ServerError as error:
                self._ask_at = time.monotonic() + ASK_AGAIN_SECONDS
                trouble = f" (here: {error})"
        return self.here(sessions, delay, tick) + trouble
