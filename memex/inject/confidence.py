"""How sure it is that a memory helps with a prompt, in parts that can be looked at.

    confidence = base × time_decay × evidence

Each part is between 0 and 1; all numbers are data (`confidence.toml`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from memex.inject.evidence import Shared


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Base(_Table):
    """A logistic regression: what each feature counts."""

    intercept: float
    similarity: float = 0.0
    coverage: float = 0.0
    shared: float = 0.0


class Bases(_Table):
    """With vectors, and without."""

    both: Base
    words: Base


class EvidenceWeights(_Table):
    """What one shared file, name or word counts, and how rare a word must be."""

    file: float = Field(ge=0, le=1)
    name: float = Field(ge=0, le=1)
    word: float = Field(ge=0, le=1)
    common: float = Field(gt=0, le=1)
    rare: float = Field(gt=0, le=1)
    fewest: int = Field(ge=1)


class Decay(_Table):
    """Half-lives in days, by kind or level, and what never decays."""

    floor: float = Field(ge=0, le=1)
    half_life: Mapping[str, float]


class Scope(_Table):
    """The bar for other projects."""

    other_projects: float = Field(ge=0, le=1)


class Weights(_Table):
    """The whole table."""

    base: Bases
    evidence: EvidenceWeights
    decay: Decay
    scope: Scope

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> "Weights":
        """Check a table of the form of `confidence.toml`."""
        return cls.model_validate(table)


@cache
def weights() -> Weights:
    """Read the table that comes with Memex."""
    import tomllib

    return Weights.read(tomllib.loads(files("memex.inject").joinpath("confidence.toml").read_text("utf-8")))


@dataclass(frozen=True, slots=True)
class Confidence:
    """The parts, each 0 to 1, and what evidence there was."""

    base: float
    time_decay: float
    evidence: float
    shared: Shared

    @property
    def value(self) -> float:
        """Their product."""
        return self.base * self.time_decay * self.evidence


def confidence(shared: Shared, similarity: float | None, kind: str, age_days: float, table: Weights) -> Confidence:
    """Work out the confidence in a memory of some kind (or level), from what it shares with the prompt.

    `similarity` is calibrated, None when no vector was asked.

    >>> confidence(Shared(), 0.99, "talks", 0, weights()).value
    0.0
    """
    return Confidence(
        base_probability(shared, similarity, table.base),
        time_decay(kind, age_days, table.decay),
        evidence(shared, table.evidence),
        shared,
    )


def base_probability(shared: Shared, similarity: float | None, bases: Bases) -> float:
    """Give the calibrated probability."""
    model = bases.words if similarity is None else bases.both
    logit = (
        model.intercept
        + model.similarity * (similarity or 0.0)
        + model.coverage * shared.coverage
        + model.shared * math.log1p(shared.rarity)
    )
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, logit))))


def time_decay(kind: str, age_days: float, decay: Decay) -> float:
    """Give what is left after some days; a kind without a half-life lasts."""
    half_life = decay.half_life.get(kind)
    if not half_life:
        return 1.0
    return float(decay.floor + (1 - decay.floor) * 2.0 ** (-max(0.0, age_days) / half_life))


def evidence(shared: Shared, given: EvidenceWeights) -> float:
    """Combine the evidence beside the vectors (noisy or): nothing is 0, much goes to 1."""
    doubt = 1.0
    for weight, strengths in ((given.file, shared.files), (given.name, shared.names), (given.word, shared.words)):
        for strength in strengths.values():
            doubt *= (1 - weight) ** strength
    return 1 - doubt
