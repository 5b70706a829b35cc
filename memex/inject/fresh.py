"""What of a text is news: the levels of one history say the same again, in part, and nobody wants to read it twice."""

import re
from collections.abc import Iterable
from dataclasses import replace

from memex.inject.render import Quotation
from memex.text import digest, one_line, sentences, units

FEWEST = 6
"""Units that must be left of a text for it to be told."""
SHARE = 0.34
"""The share of a text that must be news for it to be told."""
_JOINT = re.compile(r"\n|; | — ")
_MARK = re.compile(r"[\W_]+")
_END = re.compile(r"[.!?。！？:：]$")


def fresh(quotation: Quotation, said: Iterable[str]) -> Quotation | None:
    """Leave out the sentences that were `said`, by their keys, or stand there already; None when little is left."""
    known = frozenset(said)
    pieces = {key_of(piece): piece for piece in reversed(pieces_of(quotation.text))}
    left = [piece for key, piece in reversed(pieces.items()) if key not in known]
    size = units(" ".join(left))
    if len(left) < len(pieces) and (size < FEWEST or size < SHARE * units(quotation.text)):
        return None
    return replace(quotation, text=" ".join(piece if _END.search(piece) else f"{piece}." for piece in left))


def pieces_of(text: str) -> list[str]:
    """Split a text into its sentences, and into what is strung together like them."""
    return [piece for part in _JOINT.split(text) for piece in sentences(part)]


def keys_in(text: str) -> frozenset[str]:
    """Give the keys of what a text says."""
    return frozenset(map(key_of, pieces_of(text)))


def key_of(piece: str) -> str:
    """Give the key of a sentence: the same for the same words."""
    return "~" + digest(_MARK.sub(" ", one_line(piece).casefold()).strip())[:16]
