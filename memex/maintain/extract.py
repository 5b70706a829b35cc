"""What a talk leaves behind, without a model: events, and what was said in so many words.

Nothing is invented: every memory is a sentence, or an observation, of its talk. Most talks leave an event, many
leave nothing else, and some leave nothing at all.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, Protocol

from memex.llm.language import phrases
from memex.llm.prose import statements
from memex.maintain.kinds import EVENT_IMPORTANCE, kinds
from memex.text import clip_units, one_line, unique, units

NAME_UNITS = 16
SENTENCE_UNITS = 60
"""A longer sentence is a pasted text rather than something said."""
FEWEST_UNITS = 6
"""A talk whose summary says less leaves no event, and a reply's sentence of less states nothing."""
EVENT_UNITS = 200
"""An event of many edits tells the first of them."""
MOST = 4
"""Memories of one kind that one talk leaves, events apart."""

_RULE = re.compile(
    r"^(?:please |and |also |so |but |ok(?:ay)?,? )?(?:always|never|don't ever|do not ever|under no circumstances|"
    r"in (?:the )?future)\b|\bfrom now on\b|\b(?:must|should|need to) (?:always|never)\b|"
    r"永远|一律|务必|禁止|不要再|以后(?:都|不|请)|从现在起|今后|必ず|常に|絶対に|항상|반드시|절대",
    re.IGNORECASE,
)
_PREFERENCE = re.compile(
    r"\bI(?:'d)? (?:really |always |much )?(?:prefer|rather|like it when|love it when|hate|dislike|don't like)\b|"
    r"我(?:更|比较|很|不)?(?:喜欢|偏好|讨厌|习惯)|(?:の方が|ほうが)(?:好き|いい)|선호",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\bdecided (?:to|on|that|against)\b|\bsettled(?: on\b| then:|:)|\bagreed:|\bwe(?:'ve| have)? agreed\b|"
    r"\b(?:go|goes|going|went|gone|stick|sticking) with\b|\bchose\b|\bopted (?:for|to)\b|\bsupersed(?:es|ed|ing)\b|"
    r"\bamend(?:ed|ing|ment)(?: to)?(?: the)? (?:[\w-]+ )?(?:rule|policy|decision|agreement)\b|\bfrom here on\b|"
    r"\b(?:let's|we(?:'ll| will)) (?:use|keep|stick|switch|drop)\b|"
    r"决定|采用|改用|改为|选定|确定(?:用|为)|敲定|に決め|採用|결정|채택",
    re.IGNORECASE,
)
_UNDECIDED = re.compile(
    r"\bwhether\b|\bneeds? (?:a|to be) deci|\bif (?:we|you)\b|是否|要不要|かどうか|할지", re.IGNORECASE
)
_LESSON = re.compile(
    r"\b(?:root cause|turn(?:s|ed) out|lesson|caused by|the (?:real |actual |underlying )?"
    r"(?:issue|problem|bug|cause|culprit|reason) (?:is|was|turned))\b|"
    r"根因|根本原因|原因是|问题在于|教训|原来是|原因は|원인은",
    re.IGNORECASE,
)
_THREAD = re.compile(
    r"\b(?:todo|to-do|remaining (?:work|task|step|issue)s?|still (?:fail|broken|needs?|open|missing|to do)\w*|"
    r"not (?:yet|done)|next steps?|left to do|(?:as|in|for|needs?) a follow-?up(?! commit)|unfinished|"
    r"blocked (?:on|by))\b|"
    r"待办|尚未|还没|未完成|剩余|下一步|遗留|未対応|残り(?:の)?(?:作業|課題)|아직|남은",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class TalkRows:
    """One talk as the levels below have it: its L2 row, its served L1 rows, and whether a person asked."""

    summary: Mapping[str, Any]
    observations: tuple[Mapping[str, Any], ...] = ()
    asked_by_person: bool = True


@dataclass(frozen=True, slots=True)
class Found:
    """One memory of a talk. `source` and `slot` make its id: never its text. `at` is when it happened."""

    kind: str
    name: str
    text: str
    source: str
    slot: str
    importance: float
    sources: tuple[str, ...]
    at: datetime | None = None
    fields: Mapping[str, str] = field(default_factory=dict)


class MemoryWriter(Protocol):
    """Says what a talk teaches; `provider`, `model` and `version` go into the recipe."""

    provider: str
    model: str
    version: str

    def memories(self, talk: TalkRows) -> Sequence[Found]:
        """List the memories of one talk; none is a good answer."""
        ...


class ExtractiveMemories:
    """Takes them from the rows as they are."""

    provider = "extractive"
    model = "extractive"
    version = "1"

    def memories(self, talk: TalkRows) -> Sequence[Found]:
        """Events of what was changed, else of the talk; and the sentences that state something lasting."""
        return [*(_events(talk) or _talk_event(talk)), *_stated(talk)]


def source_of(summary: Mapping[str, Any]) -> str:
    """Name a talk."""
    return f"{summary['session_id']}#{summary['prompt_number']}"


def _events(talk: TalkRows) -> list[Found]:
    """Make an event of the observations that changed or decided something; those of one title are one event."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in talk.observations:
        if row["type"] != "discovery" and row["sources"]:
            groups.setdefault(row["title"], []).append(row)
    return [_event(title, rows) for title, rows in groups.items()]


def _event(title: str, rows: Sequence[Mapping[str, Any]]) -> Found:
    first = max(rows, key=lambda row: EVENT_IMPORTANCE[row["type"]])
    text = "\n".join(unique(row["narrative"] for row in rows))
    return Found(
        "event", title, clip_units(text, EVENT_UNITS), rows[0]["sources"][0], "event", EVENT_IMPORTANCE[first["type"]],
        tuple(row["id"] for row in rows), rows[0]["occurred_at"], {"type": first["type"]},
    )  # fmt: skip


def _talk_event(talk: TalkRows) -> list[Found]:
    row = talk.summary
    text = one_line(f"{row['user_request']} — {row['summary']}")
    if not talk.asked_by_person or units(row["summary"]) < FEWEST_UNITS:
        return []
    name = clip_units(one_line(row["user_request"]), NAME_UNITS)
    return [
        Found(
            "event", name, text, source_of(row), "event", EVENT_IMPORTANCE["discovery"], (row["id"],),
            row["occurred_at"], {"type": "discovery"},
        )
    ]  # fmt: skip


def _stated(talk: TalkRows) -> Iterator[Found]:
    row = talk.summary
    told = [s for s in statements(row["summary"]) if units(s) >= FEWEST_UNITS]
    asked = statements(row["user_request"]) if talk.asked_by_person else []
    rules = [s for s in asked if _RULE.search(s)]
    decided = [s for s in [*asked, *told] if _DECISION.search(s) and not _UNDECIDED.search(s) and s not in rules]
    stopped = one_line(f"{row['completed']}: {row['user_request']}") if _is_open(row["completed"] or "") else ""
    open_ends = [*(s for s in told if _THREAD.search(s)), clip_units(stopped, SENTENCE_UNITS - 1)]
    yield from _sentences(row, "rule", rules)
    yield from _sentences(row, "preference", [s for s in asked if _PREFERENCE.search(s)])
    yield from _sentences(row, "decision", decided)
    yield from _sentences(row, "lesson", [s for s in told if _LESSON.search(s)])
    yield from _sentences(row, "thread", open_ends)


def _sentences(row: Mapping[str, Any], kind: str, said: Sequence[str]) -> Iterator[Found]:
    fitting = [s for s in unique(said) if 3 <= units(s) <= SENTENCE_UNITS]
    for place, sentence in enumerate(fitting[:MOST]):
        yield Found(
            kind, clip_units(sentence, NAME_UNITS), sentence, source_of(row), f"{kind}:{place}",
            kinds()[kind].importance, (row["id"],), row["occurred_at"],
        )  # fmt: skip


def _is_open(sentence: str) -> bool:
    return any(phrase in sentence.casefold() for phrase in _interrupted())


@cache
def _interrupted() -> frozenset[str]:
    return frozenset(phrases(tongue)["interrupted"].casefold() for tongue in ("en", "zh", "ja", "ko"))
