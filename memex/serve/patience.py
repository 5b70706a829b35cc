"""A time limit for the head of a request, which uvicorn does not have.

Without it a few clients that send half a head hold all connections for as long as they like.
"""

import asyncio
from typing import Any


def impatient(seconds: float) -> type[Any]:
    """Make a protocol for uvicorn's `http` that hangs up on whoever takes longer for the head of a request."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Impatient(H11Protocol):  # type: ignore[misc]
        _hang_up: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._wait()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._stop()

        def _wait(self) -> None:
            """Run the clock between requests, and leave it alone when more of a head comes."""
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop()
            elif self._hang_up is None and not self.transport.is_closing():
                self._hang_up = self.loop.call_later(seconds, self.transport.close)

        def _stop(self) -> None:
            if self._hang_up is not None:
                self._hang_up.cancel()
                self._hang_up = None

    return Impatient
