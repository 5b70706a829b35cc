"""Prompts of sessions whose logs are gone: CLIs keep a history of what was typed longer than the logs.

A session with a log of its own needs none of this. Prompts of any other become a session of kind `history`,
which gives way as soon as a log turns up.
"""

from collections.abc import Iterator
from typing import Any

from memex.sources.base import Blob, HistoryPrompt, HistoryReader
from memex.sources.copies import history_name
from memex.sources.lines import Census, json_lines
from memex.sources.parse import Outcome
from memex.sources.transcript import Rows, Transcript
from memex.store.lake import Lake, in_list
from memex.text import one_line


def recover(lake: Lake, cli: str, read: HistoryReader, log: Blob, census: Census) -> Iterator[tuple[Rows, Outcome]]:
    """Read a history from its start; yield each session that stands nowhere else."""
    logged = _logged_sessions(lake, cli)
    sessions: dict[str, list[tuple[int, HistoryPrompt]]] = {}
    for offset, record in json_lines(log.pieces(), census, tail=True):
        prompt = read(record)
        if prompt is None or not prompt.text.strip():
            census.count(_kind(record), "in the archive only")
            continue
        name = history_name(cli, prompt.session, prompt.cwd)
        census.count(_kind(record), "in the session's own log" if name in logged else "prompt")
        if name not in logged:
            sessions.setdefault(name, []).append((offset, prompt))
    for name, prompts in sessions.items():
        if prompts[0][1].session:
            yield _session(name, log.source_id, prompts)
        elif unknown := _unknown(lake, cli, prompts):
            yield _session(name, log.source_id, unknown)


def _session(name: str, source_id: str, prompts: list[tuple[int, HistoryPrompt]]) -> tuple[Rows, Outcome]:
    transcript = Transcript(name, source_id)
    for offset, prompt in prompts:
        transcript.prompt(prompt.text, offset=offset, ts=prompt.ts)
        transcript.note_time(prompt.ts)
    rows = transcript.drain()
    session = transcript.session(
        cwd=next((prompt.cwd for _offset, prompt in prompts if prompt.cwd), ""),
        title=one_line(transcript.first_prompt)[:200],
        kind="history",
    )
    return rows, Outcome(session, {message.id for message in rows.messages})


def _logged_sessions(lake: Lake, cli: str) -> set[str]:
    rows = lake.scan("sessions", ["id"], f"{in_list('cli', [cli])} AND kind != 'history'")
    return set(rows["id"].to_pylist())


def _unknown(lake: Lake, cli: str, prompts: list[tuple[int, HistoryPrompt]]) -> list[tuple[int, HistoryPrompt]]:
    """Leave out prompts that a log has too; older histories do not say of which session they are."""
    logged = _logged_sessions(lake, cli)
    rows = lake.scan("messages", ["session_id", "text"], "kind = 'prompt'").to_pylist()
    known = {one_line(row["text"]) for row in rows if row["session_id"] in logged}
    return [(offset, prompt) for offset, prompt in prompts if one_line(prompt.text) not in known]


def _kind(record: dict[str, Any]) -> str:
    kind = record.get("type")
    return kind if isinstance(kind, str) else "history"
