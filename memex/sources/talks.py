"""Talks and sessions as a view over messages and calls: the lake is asked, so a part read adds up like a whole.

A talk is a prompt and all that follows it up to the next one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memex.model import Session, Talk
from memex.sources.base import ProjectOf
from memex.store.lake import Lake, in_list
from memex.text import digest, unique

if TYPE_CHECKING:
    import polars as pl

_PLACE = ["session_id", "prompt_number", "seq", "superseded", "tokens", "content"]
MESSAGE_COLUMNS = [*_PLACE, "kind", "ts", "model", "tokens_input", "tokens_output", "tokens_cached"]
CALL_COLUMNS = [*_PLACE, "started_at", "ended_at"]
PROMPT_COLUMNS = ["session_id", "prompt_number", "seq", "superseded", "text", "ts"]


@dataclass(frozen=True)
class View:
    """The messages, calls and prompts of some sessions, as far as talks and counts are made of them."""

    messages: "pl.DataFrame"
    calls: "pl.DataFrame"
    prompts: "pl.DataFrame"

    @classmethod
    def of(cls, lake: Lake, sessions: Sequence[str]) -> "View":
        """Read sessions from the lake."""
        where = in_list("session_id", sessions)
        return cls(
            lake.frame("messages", MESSAGE_COLUMNS, where),
            lake.frame("tool_calls", CALL_COLUMNS, where),
            lake.frame("messages", PROMPT_COLUMNS, f"{where} AND kind = 'prompt'"),
        )


def cut_talks(view: View) -> list[Talk]:
    """Cut sessions into talks, superseded ones included.

    `content` hashes what was said and done, in order: prompts, replies, calls with their results.
    """
    import polars as pl

    said = pl.col("content") != ""
    calls = view.calls.rename({"started_at": "ts", "ended_at": "end"}).with_columns(call=True, kind=pl.lit(""))
    cut = (
        pl.concat([view.messages.with_columns(end=pl.col("ts"), call=False), calls], how="diagonal")
        .sort("seq", "call")
        .group_by("session_id", "prompt_number", "superseded")
        .agg(
            first=pl.min_horizontal(pl.col("ts").min(), pl.col("end").min()),
            last=pl.max_horizontal(pl.col("ts").max(), pl.col("end").max()),
            seq_from=pl.col("seq").min(),
            seq_to=pl.col("seq").max(),
            messages=(~pl.col("call")).sum(),
            tool_calls=pl.col("call").sum(),
            tokens=pl.col("tokens").filter(said).sum(),
            answered=pl.col("call").any() | (said & (pl.col("kind") == "reply")).any(),
            contents=pl.col("content").filter(said),
        )
    )
    parts = {(r["session_id"], r["prompt_number"], r["superseded"]): r for r in cut.iter_rows(named=True)}
    talks = {}
    for prompt in view.prompts.sort(~pl.col("superseded"), "seq").iter_rows(named=True):
        part = parts[prompt["session_id"], prompt["prompt_number"], prompt["superseded"]]
        talks[prompt["session_id"], prompt["prompt_number"]] = _talk(prompt, part)
    return [talks[place] for place in sorted(talks)]


def _talk(prompt: Mapping[str, Any], part: Mapping[str, Any]) -> Talk:
    talk = Talk(
        id=f"{prompt['session_id']}#{prompt['prompt_number']}",
        session_id=prompt["session_id"],
        prompt_number=prompt["prompt_number"],
        prompt=prompt["text"],
        started_at=prompt["ts"] or part["first"],
        ended_at=part["last"],
        seq_from=part["seq_from"],
        seq_to=part["seq_to"],
        messages=part["messages"],
        tool_calls=part["tool_calls"],
        tokens_raw=part["tokens"],
        answered=part["answered"],
        superseded=prompt["superseded"],
        content=digest(*part["contents"]),
    )
    return replace(talk, digest=digest(repr(talk)))


def complete(
    sessions: Iterable[Session], view: View, talks: Sequence[Talk], made_by: Mapping[str, str], project_of: ProjectOf
) -> list[Session]:
    """Give sessions their counts, their project, and the call that made them (`made_by`, by session id).

    Tokens are counted for all that was said, superseded or not: they were spent.
    """
    import polars as pl

    live = pl.col("superseded").not_()
    counted = (
        view.messages.sort("seq")
        .group_by("session_id")
        .agg(
            messages=live.sum(),
            model=pl.col("model").unique(maintain_order=True),
            tokens_input=pl.col("tokens_input").sum(),
            tokens_output=pl.col("tokens_output").sum(),
            tokens_cached=pl.col("tokens_cached").sum(),
        )
    )
    counts = {row["session_id"]: row for row in counted.iter_rows(named=True)}
    calls = dict(view.calls.filter(live).group_by("session_id").len().iter_rows())
    talks_of: dict[str, list[Talk]] = {}
    for talk in talks:
        if not talk.superseded:
            talks_of.setdefault(talk.session_id, []).append(talk)
    return [
        _completed(
            replace(s, parent_call_id=made_by.get(s.id, "")),
            counts.get(s.id, {}),
            calls.get(s.id, 0),
            talks_of.get(s.id, []),
            project_of,
        )
        for s in sessions
    ]


def _completed(
    session: Session, count: Mapping[str, Any], calls: int, talks: Sequence[Talk], project_of: ProjectOf
) -> Session:
    project_id, project = project_of(session.cwd)
    whole = replace(
        session,
        project_id=project_id,
        project=project,
        models=unique(count.get("model", ())),
        talks=len(talks),
        messages=count.get("messages", 0),
        tool_calls=calls,
        tokens_raw=sum(talk.tokens_raw for talk in talks),
        tokens_input=count.get("tokens_input", 0),
        tokens_output=count.get("tokens_output", 0),
        tokens_cached=count.get("tokens_cached", 0),
    )
    return replace(whole, digest=digest(repr(whole), *(talk.digest for talk in talks)))


def makers(lake: Lake, sessions: Iterable[Session]) -> dict[str, str]:
    """Map subagents among these sessions to the calls that made them."""
    agents = [s.id for s in sessions if s.kind == "subagent"]
    if not agents:
        return {}
    rows = lake.scan("tool_calls", ["id", "agent_session_id"], in_list("agent_session_id", agents)).to_pydict()
    return dict(zip(rows["agent_session_id"], rows["id"], strict=True))
