"""What a model is asked to answer, as pydantic models: sizes, enumerations and empty shells are seen to here.

Descriptions are short, for they are sent with every call. What can be mended (a list given as text, a near word, a
text that is too long) is mended; what cannot is a ValidationError, for which the model is asked again.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from memex.model import ObservationType
from memex.text import one_line, unique

_TYPES: tuple[str, ...] = get_args(ObservationType)
_LIKE = {
    "fix": "bugfix", "bug": "bugfix", "bug fix": "bugfix", "hotfix": "bugfix", "修复": "bugfix",
    "feat": "feature", "addition": "feature", "new feature": "feature", "功能": "feature", "新增": "feature",
    "refactoring": "refactor", "cleanup": "refactor", "重构": "refactor",
    "read": "discovery", "search": "discovery", "research": "discovery", "investigation": "discovery",
    "analysis": "discovery", "run": "discovery", "test": "discovery", "exploration": "discovery", "发现": "discovery",
    "choice": "decision", "plan": "decision", "决定": "decision",
}  # fmt: skip
_SHELL = re.compile(
    r"^(?:[\W_]*|n/?a|none|null|nil|empty|unknown|todo|tbd|string|text|"
    r"(?:no|not) (?:summary|information|content|data|available|applicable|provided|specified)\b"
    r"(?: (?:is|was|are|were|available|provided|given|found|applicable|needed|yet|here|to report|for this \w+))*[.]?|"
    r"(?:summary|title|narrative|user_request|completed|the summary|无|没有|暂无)[.。]?)$",
    re.IGNORECASE,
)


def is_shell(text: str) -> bool:
    """Tell whether a text says nothing: "N/A", "...", "No summary available".

    >>> is_shell("n/a"), is_shell("Fixed the login")
    (True, False)
    """
    return bool(_SHELL.match(one_line(text)))


def _text(value: Any) -> Any:
    """Take a list of sentences, or nothing, for a text."""
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    return value


def _lines(value: Any) -> Any:
    """Take a text, nothing, or objects with one text each for a list of lines."""
    if value is None:
        return []
    if isinstance(value, str):
        value = value.splitlines()
    if isinstance(value, list):
        value = [_only_text(item) for item in value]
        return [re.sub(r"^\s*(?:[-*•]|\d{1,2}[.)、])\s+", "", v) if isinstance(v, str) else v for v in value]
    return value


def _only_text(item: Any) -> Any:
    if isinstance(item, dict):
        texts = [v for v in item.values() if isinstance(v, str)]
        return texts[0] if len(texts) == 1 else item
    return item


def _said(text: str) -> str:
    if is_shell(text):
        raise ValueError("says nothing: write what really happened")
    return text.strip()


def _or_nothing(text: str) -> str:
    return "" if is_shell(text) else text.strip()


def _saying(lines: list[str]) -> list[str]:
    return list(unique(line.strip() for line in lines if not is_shell(line)))


def _kind(value: Any) -> Any:
    word = one_line(str(value)).lower().strip(".。'\"")
    return word if word in _TYPES else _LIKE.get(word, "change" if word else value)


Said = Annotated[str, BeforeValidator(_text), AfterValidator(_said)]
Optional = Annotated[str, BeforeValidator(_text), AfterValidator(_or_nothing)]
Lines = Annotated[list[str], BeforeValidator(_lines), AfterValidator(_saying)]


class Reply(BaseModel):
    """An answer as a model gives it; what it adds on its own is ignored."""

    model_config = ConfigDict(extra="ignore")


class OperationReply(Reply):
    """One operation."""

    n: int = Field(description="number of the operation")
    type: Annotated[ObservationType, BeforeValidator(_kind)] = "change"
    title: Said
    subtitle: Optional = ""
    facts: Lines = Field(default_factory=list)
    narrative: Said


class OperationsReply(Reply):
    """One entry for each operation."""

    entries: list[OperationReply] = Field(min_length=1)


class TalkReply(Reply):
    """A talk in short."""

    user_request: Said
    summary: Said
    completed: Optional = Field(default="", description="empty when nothing was finished")


class SessionReply(Reply):
    """A session in short."""

    summary: Said
    key_points: Lines = Field(min_length=1)
    technologies: Lines = Field(default_factory=list)


def texts_of(reply: Reply) -> Iterator[str]:
    """Give every text of an answer."""
    for value in reply.__dict__.values():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Reply):
                yield from texts_of(item)
            elif isinstance(item, str):
                yield item
