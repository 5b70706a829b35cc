"""The seam between compaction and whoever writes: what a writer is given, and what it must answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

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


@dataclass(frozen=True, slots=True)
class Price:
    """What writing some rows would take, estimated: requests, tokens in and out, and US dollars."""

    calls: int = 0
    tokens_input: int = 0
    tokens_output: int = 0
    cost_usd: float = 0.0


class Writer(Protocol):
    """Writes the three levels. `provider`, `model` and the level's version go into the recipe of every row."""

    @property
    def provider(self) -> str:
        """Who is asked first."""
        ...

    @property
    def model(self) -> str:
        """The model that is asked first."""
        ...

    @property
    def context_tokens(self) -> int:
        """Tokens of talk summaries that fit one question."""
        ...

    @property
    def workers(self) -> int:
        """Calls that may be made at once, from as many threads."""
        ...

    @property
    def local(self) -> bool:
        """Whether no text leaves this process."""
        ...

    def version_of(self, level: SummaryLevel) -> str:
        """Tell the version of the prompt, or of the rules, that a level is written by."""
        ...

    def observation(self, given: OperationInput) -> ObservationAnswer:
        """Describe a group of like operations."""
        ...

    def observations(self, given: Sequence[OperationInput]) -> Sequence[ObservationAnswer | Exception]:
        """Describe the operations of one talk; what could not be described is an error in its place."""
        ...

    def talk(self, given: TalkInput) -> TalkAnswer:
        """Summarise a talk in about 200 tokens."""
        ...

    def session(self, given: SessionInput) -> SessionAnswer:
        """Summarise a session from its talk summaries."""
        ...

    def price(self, level: SummaryLevel, sizes: Sequence[int]) -> Price:
        """Estimate what rows would take whose sources have so many tokens each."""
        ...

    def spent(self) -> Sequence[dict[str, Any]]:
        """List the calls that were paid for and are not in the ledger yet, as its rows."""
        ...

    def committed(self) -> None:
        """Take note that everything answered and spent so far is in the lake."""
        ...
