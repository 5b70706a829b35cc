"""Facts about text that every layer shares: scripts, units, token estimates, sentences, fingerprints."""

import hashlib
import re
from collections.abc import Iterable

CJK = (
    "\u3040-\u30ff\u31f0-\u31ff"  # kana
    "\u3100-\u312f\u31a0-\u31bf"  # bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # ideographs
    "\uac00-\ud7af\u1100-\u11ff\u3130-\u318f"  # hangul
    "\U00020000-\U0003134f"  # ideographs beyond the basic plane
)
_UNIT = re.compile(rf"[{CJK}]|[^\W{CJK}]+")
_CJK_CHAR = re.compile(rf"[{CJK}]")
_SENTENCE_END = re.compile(r"([.!?][\"')\]]*)\s+(?=[\"'(\[`*]*[A-Z0-9`*])|([。！？][”’」』）\"']*)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACE = re.compile(r"\s+")
ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
"""Terminal escapes."""


def units(text: str) -> int:
    """Count units: a CJK character, or a word of any other script."""
    return len(_UNIT.findall(text))


def is_cjk(text: str) -> bool:
    """Tell whether at least a quarter of the units of `text` are CJK characters."""
    return 4 * len(_CJK_CHAR.findall(text)) >= max(1, units(text))


def estimate_tokens(text: str) -> int:
    """Estimate model tokens: one a CJK character, one for four other characters."""
    wide = len(_CJK_CHAR.findall(text)) if not text.isascii() else 0
    return wide + (len(text) - wide + 3) // 4


def clip_units(text: str, limit: int) -> str:
    """Cut `text` after `limit` units, with an ellipsis when something was cut.

    A unit without an end (a key, an encoded file) does not stretch it: 16 characters a unit are the most.
    """
    head = text[: limit * 16]
    for count, match in enumerate(_UNIT.finditer(head), 1):
        if count > limit:
            return head[: match.start()].rstrip(" ,;:，；：、(（") + "…"
    return text if len(head) == len(text) else head + "…"


def one_line(text: str) -> str:
    """Fold every run of white space into one space."""
    return _SPACE.sub(" ", text).strip()


def plain(text: str) -> str:
    """Drop terminal escapes and NULs, which carry no words."""
    if "\x1b" in text:
        text = ANSI.sub("", text)
    return text.replace("\x00", "")


def storable(text: str) -> str:
    """Make `text` valid UTF-8: a lone surrogate, which JSON may hold, becomes U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def sentences(text: str) -> list[str]:
    """Split prose into sentences at full stops of Latin and CJK scripts and at line ends."""
    marked = _SENTENCE_END.sub(lambda end: end[0].rstrip() + "\n", text)
    return [part.strip() for part in marked.splitlines() if part.strip()]


def digest(*parts: str) -> str:
    """Hash strings into 32 hex digits; the split into parts counts."""
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    framed = b"".join([piece for data in encoded for piece in (len(data).to_bytes(8, "little"), data)])
    return hashlib.blake2b(framed, digest_size=16).hexdigest()


def mark(key: str) -> int:
    """Hash a key into 8 bytes, for sets of many keys that are kept and compared but never shown."""
    return int.from_bytes(hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def unique(items: Iterable[str]) -> tuple[str, ...]:
    """Keep the first of each non-empty item, in order."""
    return tuple(dict.fromkeys(item for item in items if item))
