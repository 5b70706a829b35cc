"""Prompts of sessions whose logs are gone: CLIs keep a history of what was typed longer than the logs.

A session with a log of its own needs none of this. Prompts of any other become a session of kind `history`,
which gives way as soon as a log turns up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memex.sources.base import Blob, HistoryPrompt, HistoryReader
from memex.sources.copies import history_name
from memex.sources.lines import Census, json_lines
from memex.sources.parse import Outcome
from memex.sources.transcript import Rows, Transcript
from memex.store.lake import Lake, in_list
from memex.text import one_line


@dataclass(frozen=True, slots=True)
class _Typed:
    """A prompt, and where it stands: `place` names it, when that is not in the latest generation."""

    prompt: HistoryPrompt
    offset: int
    place: str = ""


def recover(
    lake: Lake, cli: str, read: HistoryReader, logs: Sequence[Blob], census: Census
) -> Iterator[tuple[Rows, Outcome]]:
    """Read a history from its start; yield each session that stands nowhere else.

    `logs` are its generations, oldest first. What only an older one has was cut off since, or typed on another
    machine; `census` tells of the latest.
    """
    logged = _logged_sessions(lake, cli)
    sessions: dict[str, list[_Typed]] = {}
    newer: set[HistoryPrompt] = set()
    for number, log in reversed(list(enumerate(logs, 1))):
        is_latest = number == len(logs)
        told = census if is_latest else Census()
        found: dict[str, list[_Typed]] = {}
        for offset, record in json_lines(log.pieces(), told, tail=True):
            prompt = read(record)
            if prompt is None or not prompt.text.strip():
                told.count(_kind(record), "in the archive only")
                continue
            name = history_name(cli, prompt.session, prompt.cwd)
            told.count(_kind(record), "in the session's own log" if name in logged else "prompt")
            if name not in logged and prompt not in newer:
                place = "" if is_latest else f"{log.source_id[:8]}~{number}@{offset}"
                found.setdefault(name, []).append(_Typed(prompt, offset, place))
        for name, typed in found.items():
            sessions[name] = [*typed, *sessions.get(name, ())]
            newer.update(one.prompt for one in typed)
    for name, typed in sessions.items():
        if typed[0].prompt.session:
            yield _session(name, logs[-1].source_id, typed)
        elif unknown := _unknown(lake, cli, typed):
            yield _session(name, logs[-1].source_id, unknown)


def _session(name: str, source_id: str, typed: Sequence[_Typed]) -> tuple[Rows, Outcome]:
    transcript = Transcript(name, source_id)
    for one in typed:
        transcript.prompt(one.prompt.text, native=one.place, offset=one.offset, ts=one.prompt.ts)
        transcript.note_time(one.prompt.ts)
    rows = transcript.drain()
    session = transcript.session(
        cwd=next((one.prompt.cwd for one in typed if one.prompt.cwd), ""),
        title=one_line(transcript.first_prompt)[:200],
        kind="history",
    )
    return rows, Outcome(session, {message.id for message in rows.messages})


def _logged_sessions(lake: Lake, cli: str) -> set[str]:
    rows = lake.scan("sessions", ["id"], f"{in_list('cli', [cli])} AND kind != 'history'")
    return set(rows["id"].to_pylist())


def _unknown(lake: Lake, cli: str, typed: Sequence[_Typed]) -> list[_Typed]:
    """Leave out prompts that a log has too; older histories do not say of which session they are."""
    logged = _logged_sessions(lake, cli)
    rows = lake.scan("messages", ["session_id", "text"], "kind = 'prompt'").to_pylist()
    known = {one_line(row["text"]) for row in rows if row["session_id"] in logged}
    return [one for one in typed if one_line(one.prompt.text) not in known]


def _kind(record: dict[str, Any]) -> str:
    kind = record.get("type")
    return kind if isinstance(kind, str) else "history"
