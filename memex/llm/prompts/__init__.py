"""The prompts: one Markdown file for a level and a language, whose first line says its version."""

from functools import cache
from importlib.resources import files
from typing import NamedTuple

from memex.llm.base import SummaryLevel

WRITTEN_IN = ("en", "zh")
_NAMES = {"en": "English", "zh": "Chinese", "ja": "Japanese", "ko": "Korean"}


class Prompt(NamedTuple):
    """What a model is told first, the same for every call so that a provider can keep it."""

    version: str
    text: str


@cache
def load_prompt(level: SummaryLevel, language: str) -> Prompt:
    """Load the prompt of a level; a language that has none is written about in English."""
    name = language if language in WRITTEN_IN else "en"
    head, _, text = files(__name__).joinpath(f"{level}.{name}.md").read_text("utf-8").partition("\n")
    return Prompt(head.removeprefix("version:").strip(), text.strip())


def prompt_version(level: SummaryLevel) -> str:
    """Tell the version of a level's prompts: those of its languages, joined where they differ."""
    return "+".join(dict.fromkeys(load_prompt(level, language).version for language in WRITTEN_IN))


def language_line(language: str) -> str:
    """Tell a model which language to answer in. Everything in Latin script reads as English, so the text decides."""
    if language == "zh":
        return "请用中文回答（代码、路径和名称保持原样）。"
    if language == "en":
        return "Answer in the language of the request above; leave code, paths and names as they are."
    return f"Answer in {_NAMES[language]}; leave code, paths and names as they are."
