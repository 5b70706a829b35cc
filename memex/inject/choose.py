"""Which candidates are told: sure enough, not of this session, not told before, one of each talk."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memex.inject.candidates import MEMORIES, Candidate
from memex.inject.confidence import Confidence, Weights, confidence
from memex.inject.evidence import Asked, Rarity

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate with the parts of its confidence, and why it is not told ("" when it is)."""

    candidate: Candidate
    confidence: Confidence
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """What must be reached: a threshold in the prompt's own project, and a higher one elsewhere."""

    threshold: float
    project: str
    elsewhere: float

    def of(self, candidate: Candidate) -> float:
        """Give the bar for a candidate; what is the person's own is at home everywhere."""
        return self.threshold if candidate.project_id in ("", self.project) else self.elsewhere


def judge(candidates: Iterable[Candidate], asked: Asked, rarity: Rarity, table: Weights, now: datetime) -> list[Judged]:
    """Work out the confidence in each candidate; the surest come first."""
    judged = [
        Judged(one, confidence(asked.shared_with(one.text, one.files, rarity), one.similarity, lasting, age, table))
        for one in candidates
        for age in [(now - one.at).total_seconds() / DAY if one.at else 0.0]
        for lasting in [one.kind if one.level == MEMORIES else one.level]
    ]
    return sorted(judged, key=lambda one: (-one.confidence.value, one.candidate.level != MEMORIES, one.candidate.id))


def choose(
    judged: Sequence[Judged], bar: Bar, sessions: Collection[str], given: Collection[str], limit: int
) -> list[Judged]:
    """Say of each, in order, whether it is told: at most `limit`, none of these `sessions`, nothing that was given."""
    told = set(given)
    decided: list[Judged] = []
    count = 0
    for one in judged:
        why_not = _why_not(one, bar, sessions, told) or ("enough is told" if count >= limit else "")
        if not why_not:
            told |= keys_of(one.candidate)
            count += 1
        decided.append(Judged(one.candidate, one.confidence, why_not))
    return decided


def keys_of(one: Candidate) -> frozenset[str]:
    """Name what must not be told after a candidate was: itself, and its talk at any level."""
    return frozenset((one.id, f"{one.session_id}#{one.prompt_number}" if one.session_id else one.id))


def _why_not(one: Judged, bar: Bar, sessions: Collection[str], told: Collection[str]) -> str:
    if one.candidate.session_id in sessions:
        return "said in this session"
    if one.confidence.value < bar.of(one.candidate):
        return "not sure enough"
    return "told before" if not keys_of(one.candidate).isdisjoint(told) else ""
