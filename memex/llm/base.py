"""The seam between compaction and whoever writes: what a writer is given, and what it must answer."""

from dataclasses import dataclass
from typing import Literal, Protocol

from memex.llm.answers import ObservationAnswer, SessionAnswer, TalkAnswer
from memex.model import ToolCall

SummaryLevel = Literal["observations", "talks", "sessions"]


@dataclass(frozen=True, slots=True)
class OperationInput:
    """Calls of one kind that make one observation, what the human had asked, and the folder it ran in."""

    request: str
    calls: tuple[ToolCall, ...]
    cwd: str = ""


@dataclass(frozen=True, slots=True)
class TalkInput:
    """One talk: the request, the replies and the calls in order, and how it ended.

    `question` is what the assistant had last asked, given when the request alone says little ("yes").
    """

    request: str
    replies: tuple[str, ...]
    calls: tuple[ToolCall, ...]
    interrupted: bool = False
    question: str = ""
    cwd: str = ""


@dataclass(frozen=True, slots=True)
class TalkOutline:
    """An L2 as the writer of an L3 sees it."""

    user_request: str
    summary: str
    completed: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SessionInput:
    """The L2s of one session, in order."""

    project: str
    talks: tuple[TalkOutline, ...]


class Writer(Protocol):
    """Writes the three levels. `provider`, `model` and `version` go into the recipe of every row."""

    provider: str
    model: str
    version: str
    context_tokens: int

    def observation(self, given: OperationInput) -> ObservationAnswer:
        """Describe a group of like operations."""
        ...

    def talk(self, given: TalkInput) -> TalkAnswer:
        """Summarise a talk in about 200 tokens."""
        ...

    def session(self, given: SessionInput) -> SessionAnswer:
        """Summarise a session from its talk summaries."""
        ...
