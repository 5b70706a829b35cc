"""What an embedding model is to the rest of Memex."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from memex.text import storable

if TYPE_CHECKING:
    import numpy as np

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


class Embedder(Protocol):
    """Turns text into unit vectors. `model` names the space: vectors of two models are never compared."""

    model: str
    dimension: int

    def passages(self, texts: Sequence[str]) -> "np.ndarray":
        """Embed texts to be found: (len(texts), dimension) float32, of length 1."""
        ...

    def query(self, text: str) -> "np.ndarray":
        """Embed a question: (dimension,) float32, of length 1."""
        ...


def embeddable(text: str, max_chars: int) -> str:
    """Make text safe for a model: no NUL, which cuts it, no lone surrogate, which raises, and not too long."""
    return _CONTROL.sub(" ", storable(text))[:max_chars].strip() or "-"
