"""The shapes of what a writer answers, for every writer. Sizes are in units (memex.text.units)."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


@dataclass(frozen=True, slots=True)
class By:
    """Which model gave an answer, what it cost, and how many of its claims were dropped for want of a ground."""

    provider: str
    model: str
    cost_usd: float = 0.0
    dropped: int = 0


class Answer(BaseModel):
    """A frozen answer without surprises in it. `by` is None when the writer itself made it, for nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: By | None = Field(default=None, exclude=True)


class ObservationAnswer(Answer):
    """L1: what one operation, or a run of like ones, did."""

    type: Literal["bugfix", "feature", "refactor", "change", "discovery", "decision"]
    title: Line = Field(max_length=160)
    subtitle: str = Field(max_length=300)
    facts: tuple[Line, ...] = Field(max_length=12)
    narrative: Line = Field(max_length=2000)


class TalkAnswer(Answer):
    """L2: what was asked, what happened, and what was finished."""

    user_request: Line
    summary: Line
    completed: str


class SessionAnswer(Answer):
    """L3: one sentence, key points, technologies."""

    summary: Line
    key_points: tuple[Line, ...] = Field(max_length=7)
    technologies: tuple[Line, ...] = Field(max_length=20)
