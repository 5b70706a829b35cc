"""Which language a text is in, as far as its script tells, and the phrases to go with it."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from memex.text import is_cjk

_KANA = re.compile("[\u3040-\u30ff]")
_HANGUL = re.compile("[\uac00-\ud7af]")


def language_of(text: str) -> str:
    """Return zh, ja, ko or en: the script decides, and everything Latin reads as en."""
    sample = text[:4000]
    if not is_cjk(sample):
        return "en"
    if len(_HANGUL.findall(sample)) > len(sample) // 20:
        return "ko"
    return "ja" if len(_KANA.findall(sample)) > len(sample) // 20 else "zh"


@cache
def phrases(language: str) -> Mapping[str, str]:
    """Load the phrases of a language."""
    table: Mapping[str, Mapping[str, str]] = tomllib.loads(
        files("memex.llm").joinpath("phrases.toml").read_text("utf-8")
    )
    return table[language]
