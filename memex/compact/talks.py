"""L2: the text of a talk, gathered from the lake, and its summary."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memex.compact.recipe import made_by
from memex.llm.base import TalkInput, Writer
from memex.llm.prose import question
from memex.model import Origin, TalkSummary, ToolCall
from memex.store.lake import Lake, in_list
from memex.text import unique, units

TERSE_UNITS = 8
"""A request shorter than this is shown with the question that it answers."""

_INTERRUPTED = ("[Request interrupted", "<turn_aborted>")
"""How the notices of Claude Code and Codex begin that tell of an interruption."""

_CALL_FIELDS = tuple(f for f in ToolCall.__slots__ if f not in ("superseded", "digest"))


@dataclass(frozen=True, slots=True)
class TalkText:
    """All that was said and done in one talk. `message_ids` are the rows it was read from."""

    session_id: str
    prompt_number: int
    project_id: str
    cwd: str
    request: str
    replies: tuple[str, ...]
    calls: tuple[ToolCall, ...]
    message_ids: tuple[str, ...]
    interrupted: bool
    question: str
    ended_at: datetime | None

    @property
    def files(self) -> tuple[str, ...]:
        """Files named by the arguments of the calls."""
        return unique(path for call in self.calls for path in call.files)

    def as_input(self) -> TalkInput:
        """Give a writer what it may see."""
        return TalkInput(self.request, self.replies, self.calls, self.interrupted, self.question, self.cwd)


def read_talks(lake: Lake, talks: Sequence[dict[str, Any]]) -> Iterator[TalkText]:
    """Gather the texts of talks (rows of `complete_talks`) of a few sessions."""
    sessions = sorted({talk["session_id"] for talk in talks})
    where = f"{in_list('session_id', sessions)} AND NOT superseded"
    columns = ["id", "session_id", "prompt_number", "seq", "kind", "text"]
    messages = _by_talk(
        lake.scan("messages", columns, f"{where} AND kind IN ('prompt', 'reply', 'notice')").to_pylist()
    )
    calls = _by_talk(lake.scan("tool_calls", _CALL_FIELDS, where).to_pylist())
    for talk in talks:
        key = (talk["session_id"], talk["prompt_number"])
        said = messages.get(key, [])
        before = messages.get((key[0], key[1] - 1), [])
        yield _talk_text(talk, said, calls.get(key, []), before)


def _by_talk(rows: list[dict[str, Any]]) -> dict[tuple[str, int], list[dict[str, Any]]]:
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda r: r["seq"]):
        groups.setdefault((row["session_id"], row["prompt_number"]), []).append(row)
    return groups


def _talk_text(
    talk: dict[str, Any],
    said: list[dict[str, Any]],
    calls: list[dict[str, Any]],
    before: list[dict[str, Any]],
) -> TalkText:
    request = next((m["text"] for m in said if m["kind"] == "prompt"), "")
    replies = [m for m in said if m["kind"] == "reply" and m["text"].strip()]
    last_words = [m["text"] for m in before if m["kind"] == "reply" and m["text"].strip()][-1:]
    return TalkText(
        session_id=talk["session_id"],
        prompt_number=talk["prompt_number"],
        project_id=talk["project_id"],
        cwd=talk["cwd"],
        request=request,
        replies=tuple(m["text"] for m in replies),
        calls=tuple(ToolCall(**{**c, "files": tuple(c["files"] or ())}) for c in calls),
        message_ids=tuple(m["id"] for m in said),
        interrupted=any(m["text"].startswith(_INTERRUPTED) for m in said if m["kind"] == "notice"),
        question=question(last_words[0]) if last_words and units(request) < TERSE_UNITS else "",
        ended_at=talk["ended_at"],
    )


def write_talk(writer: Writer, talk: TalkText, origin: Origin) -> TalkSummary:
    """Have one talk summarised. The files are those of its calls."""
    answer = writer.talk(talk.as_input())
    return TalkSummary(
        id=origin.fingerprint,
        session_id=talk.session_id,
        prompt_number=talk.prompt_number,
        user_request=answer.user_request,
        summary=answer.summary,
        completed=answer.completed,
        files_involved=talk.files,
        project_id=talk.project_id,
        occurred_at=talk.ended_at,
        origin=made_by(origin, answer),
    )
