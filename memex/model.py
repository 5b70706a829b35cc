"""The nouns, as frozen records. Times are aware UTC datetimes; ids are derived from content or origin.

>>> Session(id="claude:1b2c", cli="claude", native_id="1b2c", project_id="dir:/src/app", project="app").kind
'main'
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Role = Literal["user", "assistant", "tool", "system"]
MessageKind = Literal["prompt", "reply", "thinking", "sidechain", "notice", "boundary", "system"]
SessionKind = Literal["main", "subagent", "fork", "probe", "history"]
Operation = Literal["read", "search", "fetch", "edit", "write", "run", "delegate", "plan", "ask", "other"]
ObservationType = Literal["bugfix", "feature", "refactor", "change", "discovery", "decision"]
DigestKind = Literal["small", "rollup"]
DigestStatus = Literal["active", "folded"]
Level = Literal["raw", "observations", "talks", "sessions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation, or one subagent's share of it.

    `root` is the native id of its first record, by which a fork finds the session it was copied from.
    `digest` hashes the whole row.
    """

    id: str
    cli: str
    native_id: str
    project_id: str
    project: str
    cwd: str = ""
    git_branch: str = ""
    title: str = ""
    kind: SessionKind = "main"
    parent_id: str = ""
    parent_call_id: str = ""
    root: str = ""
    agent_type: str = ""
    cli_version: str = ""
    models: tuple[str, ...] = ()
    started_at: datetime | None = None
    ended_at: datetime | None = None
    talks: int = 0
    messages: int = 0
    tool_calls: int = 0
    tokens_raw: int = 0
    tokens_input: int = 0
    tokens_output: int = 0
    tokens_cached: int = 0
    parser_version: int = 0
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A real prompt and all that answers it. `seq_from..seq_to` (inclusive) are its messages and calls.

    `content` hashes what was said and done, `digest` the whole row.
    """

    id: str
    session_id: str
    prompt_number: int
    prompt: str
    started_at: datetime | None = None
    ended_at: datetime | None = None
    seq_from: int = 0
    seq_to: int = 0
    messages: int = 0
    tool_calls: int = 0
    tokens_raw: int = 0
    answered: bool = False
    superseded: bool = False
    content: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One utterance, whole: the records of a split reply are merged. `offset` is its first line's byte.

    `tokens` estimates its text; `content` hashes what counts as said in a talk, and is empty for the rest.
    """

    id: str
    session_id: str
    prompt_number: int
    seq: int
    role: Role
    kind: MessageKind
    text: str
    ts: datetime | None = None
    model: str = ""
    uuid: str = ""
    source_id: str = ""
    offset: int = 0
    images: int = 0
    tokens_input: int = 0
    tokens_output: int = 0
    tokens_cached: int = 0
    tokens: int = 0
    superseded: bool = False
    content: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call joined with its result. `input` is JSON; `output` is plain text, cut nowhere.

    `empty` tells that it returned nothing; `content` hashes arguments and result, `digest` the whole row.
    """

    id: str
    session_id: str
    prompt_number: int
    seq: int
    message_id: str
    name: str
    operation: Operation
    input: str
    output: str = ""
    answered: bool = False
    is_error: bool = False
    empty: bool = False
    mutates: bool = False
    files: tuple[str, ...] = ()
    started_at: datetime | None = None
    ended_at: datetime | None = None
    agent_session_id: str = ""
    source_id: str = ""
    offset: int = 0
    tokens: int = 0
    superseded: bool = False
    content: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file of a CLI, as far as it was parsed: `size` bytes of `generation`.

    `file_size` and the times are those of the file when it was read. `records` counts records by type and by
    what became of them, `bad_lines` lists lines that could not be read; both are JSON.
    """

    id: str
    cli: str
    path: str
    session_id: str
    generation: int
    size: int
    parser_version: int
    file_size: int = -1
    file_mtime_ns: int = -1
    file_ctime_ns: int = -1
    gone: bool = False
    lines: int = 0
    records: str = "{}"
    bad_lines: str = "[]"
    torn_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who made a row, from what, and at which price. `recipe` and `content` make the fingerprint."""

    fingerprint: str
    recipe: str
    provider: str
    model: str
    sources: tuple[str, ...]
    tokens_input: int
    tokens_output: int
    cost_usd: float
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """L1: what one operation, or a run of like operations, did."""

    id: str
    session_id: str
    prompt_number: int
    source_offset: int
    type: ObservationType
    title: str
    subtitle: str
    facts: tuple[str, ...]
    narrative: str
    files_read: tuple[str, ...]
    files_modified: tuple[str, ...]
    project_id: str
    occurred_at: datetime | None
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class TalkSummary:
    """L2: what was asked in one talk, and what came of it."""

    id: str
    session_id: str
    prompt_number: int
    user_request: str
    summary: str
    completed: str
    files_involved: tuple[str, ...]
    project_id: str
    occurred_at: datetime | None
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """L3: a session in one sentence and a few key points, made from its L2s alone."""

    id: str
    session_id: str
    summary: str
    key_points: tuple[str, ...]
    files_involved: tuple[str, ...]
    technologies: tuple[str, ...]
    project_id: str
    occurred_at: datetime | None
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A node of the graph. `level` 0 is a leaf; a parent's `child_ids` are what was folded into it.

    The scope is the project, or the `owner` of a memory that holds in all projects, whose project is empty. `seq`
    orders a scope by event time. `parent_id` names where an archived memory went: its parent or its survivor.
    `settled` tells that consolidation has seen it. `session_id`, `prompt_number` and `slot` say which talk it was
    derived from, and as which of its memories.
    """

    id: str
    kind: str
    level: int = 0
    project_id: str = ""
    owner: str = ""
    name: str = ""
    text: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    importance: float = 5.0
    access_count: int = 0
    last_access_at: datetime | None = None
    occurred_at: datetime | None = None
    ingested_at: datetime | None = None
    seq: int = 0
    seq_from: int = 0
    seq_to: int = 0
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    archived: bool = False
    archived_reason: str = ""
    parent_id: str = ""
    child_ids: tuple[str, ...] = ()
    history: tuple[Mapping[str, Any], ...] = ()
    settled: bool = False
    session_id: str = ""
    prompt_number: int = 0
    slot: str = ""
    fingerprint: str = ""
    recipe: str = ""
    provider: str = ""
    model: str = ""
    sources: tuple[str, ...] = ()
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A directed relation between two memories of one scope; `strength` is between 0 and 1."""

    id: str
    project_id: str
    source: str
    target: str
    relation: str = "related"
    strength: float = 0.8
    valid_at: datetime | None = None
    invalid_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """What happened in a project between two of its talks, counted from 1. `folded` ones are inside a rollup."""

    id: str
    project_id: str
    kind: DigestKind
    level: int
    status: DigestStatus
    text: str
    extraction_from: int
    extraction_to: int
    message_from: int = 0
    message_to: int = 0
    time_from: datetime | None = None
    time_to: datetime | None = None
    fingerprint: str = ""
    recipe: str = ""
    provider: str = ""
    model: str = ""
    sources: tuple[str, ...] = ()
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One search result. `legs` names the rankings that found it.

    `similarity` is calibrated, and there when the vectors found it and the store is large enough to calibrate.
    `evidence` is the best hit of each other level in the session, where all levels are folded into one.
    """

    session_id: str
    message_id: str
    prompt_number: int
    level: Level
    content: str
    score: float
    project: str
    ts: datetime | None
    role: str = ""
    legs: tuple[str, ...] = ()
    similarity: float | None = None
    evidence: "tuple[Hit, ...]" = ()
