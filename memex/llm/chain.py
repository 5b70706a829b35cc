"""Providers in order: what one cannot do, the next is asked for."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from memex.errors import ProviderBusy, ProviderClosed, ProviderError, Stopped, TooLong
from memex.llm.book import Book
from memex.llm.client import Client, Usage
from memex.llm.replies import Reply

Answered = TypeVar("Answered", bound=Reply)
Ask = Callable[[Client, float], tuple[Answered, Usage]]

STRIKES = 3
"""Questions in a row that a busy provider may leave unanswered before it is left alone for the run."""
SHRINKINGS = 2
"""How often a prompt that is too long is halved."""

log = logging.getLogger("memex.llm")


@dataclass(frozen=True)
class Chain:
    """The providers of one run."""

    clients: Sequence[Client]
    book: Book
    strikes: dict[str, int] = field(default_factory=dict)

    def ask(self, ask: Ask[Answered]) -> tuple[Answered, Usage, Client]:
        """Ask the first provider that gives an answer; `ask` gets it, and the share of its room to fill.

        Raises:
            Stopped: a cap is reached, or no provider is left in this run.
            ProviderError: none of them could answer this; what the last one said.
        """
        closed = self.book.closed()
        last: ProviderError | None = None
        for client in self.clients:
            if client.name in closed:
                continue
            try:
                reply, usage = _shrinking(ask, client)
            except Stopped:
                raise
            except ProviderClosed as error:
                self._close(client, error)
            except ProviderBusy as error:
                last = error
                self._strike(client, error)
            except ProviderError as error:
                last = error
            else:
                self.strikes[client.name] = 0
                return reply, usage, client
        closed = self.book.closed()
        if all(client.name in closed for client in self.clients):
            raise Stopped(
                "no provider is left: " + "; ".join(closed[client.name] for client in self.clients),
                "what is left stays pending; memex providers checks each of them",
            )
        assert last is not None
        raise last

    def _strike(self, client: Client, error: ProviderBusy) -> None:
        self.strikes[client.name] = self.strikes.get(client.name, 0) + 1
        if self.strikes[client.name] >= STRIKES:
            self._close(client, error)

    def _close(self, client: Client, error: ProviderError) -> None:
        if self.book.close(client.name, str(error)):
            log.warning(
                "%s is left alone for this run: %s%s", client.name, error, f" ({error.hint})" * bool(error.hint)
            )


def _shrinking(ask: Ask[Answered], client: Client) -> tuple[Answered, Usage]:
    """Ask with a full prompt, and with a shorter one when it does not fit after all."""
    share = 1.0
    for _ in range(SHRINKINGS):
        try:
            return ask(client, share)
        except TooLong:
            share /= 2
    return ask(client, share)
