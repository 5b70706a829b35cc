"""Cut a session into talks. A talk is a prompt and all that follows it up to the next one."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from memex.model import Message, Talk, ToolCall
from memex.text import digest, estimate_tokens


def cut_talks(prompts: Sequence[Message], messages: Sequence[Message], calls: Sequence[ToolCall]) -> tuple[Talk, ...]:
    """Make one talk of each prompt; messages and calls are in order, and say whose prompt they follow."""
    spoken: dict[int, list[Message]] = {}
    for message in messages:
        spoken.setdefault(message.prompt_number, []).append(message)
    done: dict[int, list[ToolCall]] = {}
    for call in calls:
        done.setdefault(call.prompt_number, []).append(call)
    return tuple(_talk(p, spoken.get(p.prompt_number, []), done.get(p.prompt_number, [])) for p in prompts)


def _talk(prompt: Message, messages: list[Message], calls: list[ToolCall]) -> Talk:
    words = [m for m in messages if m.kind in ("prompt", "reply") and m.text]
    times = [t for t in chain((m.ts for m in messages), *((c.started_at, c.ended_at) for c in calls)) if t]
    seqs = [*(m.seq for m in messages), *(c.seq for c in calls)]
    said = [part for m in words for part in (m.kind, m.text)]
    texts = chain(said, *((c.input, c.output) for c in calls))
    talk = Talk(
        id=f"{prompt.session_id}#{prompt.prompt_number}",
        session_id=prompt.session_id,
        prompt_number=prompt.prompt_number,
        prompt=prompt.text,
        started_at=prompt.ts or (min(times) if times else None),
        ended_at=max(times) if times else prompt.ts,
        seq_from=min(seqs),
        seq_to=max(seqs),
        messages=len(messages),
        tool_calls=len(calls),
        tokens_raw=sum(map(estimate_tokens, texts)),
        answered=bool(calls) or any(m.kind == "reply" for m in words),
        content=digest(*said, *(c.content for c in calls)),
    )
    return replace(talk, digest=digest(repr(talk)))
