"""L3: a session from its talk summaries, in steps when they do not fit the writer's context."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from memex.compact.recipe import made_by
from memex.llm.answers import SessionAnswer
from memex.llm.base import SessionInput, TalkOutline, Writer
from memex.model import Origin, SessionSummary
from memex.text import estimate_tokens, unique


def write_session(
    writer: Writer,
    session: dict[str, Any],
    talks: Sequence[TalkOutline],
    ended_at: datetime | None,
    origin: Origin,
) -> SessionSummary:
    """Have one session (`session_id, project, project_id`) summarised from its L2s, in order."""
    answer = summarise(writer, session["project"], talks)
    return SessionSummary(
        id=origin.fingerprint,
        session_id=session["session_id"],
        summary=answer.summary,
        key_points=answer.key_points,
        files_involved=unique(path for talk in talks for path in talk.files),
        technologies=answer.technologies,
        project_id=session["project_id"],
        occurred_at=ended_at,
        origin=made_by(origin, answer),
    )


def summarise(writer: Writer, project: str, talks: Sequence[TalkOutline]) -> SessionAnswer:
    """Summarise talks at once when they fit the context, else by parts, and then the parts."""
    parts = split(talks, writer.context_tokens)
    if len(parts) == 1:
        return writer.session(SessionInput(project, tuple(talks)))
    return summarise(writer, project, [_outline(writer.session(SessionInput(project, part)), part) for part in parts])


def split(talks: Sequence[TalkOutline], room: int) -> list[tuple[TalkOutline, ...]]:
    """Cut talks into runs of at most `room` tokens, of at least two talks each so that every step shrinks."""
    parts: list[list[TalkOutline]] = [[]]
    used = 0
    for talk in talks:
        size = sum(map(estimate_tokens, (talk.user_request, talk.summary, talk.completed)))
        if used + size > room and len(parts[-1]) >= 2:
            parts.append([])
            used = 0
        parts[-1].append(talk)
        used += size
    if len(parts) > 1 and len(parts[-1]) == 1:
        lone = parts.pop()
        parts[-1] += lone
    return [tuple(part) for part in parts]


def _outline(answer: SessionAnswer, part: Sequence[TalkOutline]) -> TalkOutline:
    files = unique(path for talk in part for path in talk.files)
    return TalkOutline(answer.summary, " ".join(answer.key_points), part[-1].completed, files)
