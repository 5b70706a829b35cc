"""From what a writer is given to the text that a model reads: bounded, the telling parts kept longest.

Each field is cut by itself, 60 % from its head and 30 % from its tail. What people and assistant said is kept before
what tools put out. Secrets are taken out of a field before it is cut, for half a secret would not be known as one, and
before it stands beside others, for a <private> without an end hides all that follows.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import orjson

from memex.llm.base import OperationInput, SessionInput, TalkInput, TalkOutline
from memex.llm.salient import arguments, failed
from memex.llm.tokens import MOST_CHARS, count_tokens, cut
from memex.model import ToolCall
from memex.text import plain, storable

Redact = Callable[[str], str]

REQUEST_SHARE = 0.25
REPLIES_SHARE = 0.45
LAST_REPLY_SHARE = 0.5
"""Of the room for replies, what the last one may take: it tells how the talk ended."""
ARGUMENT_TOKENS = 120
OUTPUT_TOKENS = 240
OPERATION_ARGUMENTS = 300
OPERATION_OUTPUT = 500
OUTLINE_TOKENS = 400


@dataclass(frozen=True, slots=True)
class Renderer:
    """Renders inputs; `redact` takes secrets out of a text."""

    redact: Redact

    def operation(self, given: OperationInput, number: int) -> str:
        """Render one operation, or a run of like ones."""
        calls = given.calls
        share = max(40, OPERATION_OUTPUT // len(calls)), max(40, OPERATION_ARGUMENTS // len(calls))
        lines = [self._call(call, share[1], share[0]) for call in calls[:12]]
        if len(calls) > 12:
            lines.append(f"… and {len(calls) - 12} more of the same kind")
        return f'<operation n="{number}">\n' + "\n".join(lines) + "\n</operation>"

    def operations(self, given: Sequence[OperationInput]) -> str:
        """Render some operations of one talk, numbered from 1."""
        asked = self.field(given[0].request, ARGUMENT_TOKENS)
        rendered = "\n".join(self.operation(one, number) for number, one in enumerate(given, 1))
        return f"<folder>{given[0].cwd}</folder>\n<request>\n{asked}\n</request>\n{rendered}"

    def talk(self, given: TalkInput, room: int) -> str:
        """Render one talk in at most about `room` tokens."""
        request = self.field(given.request, int(room * REQUEST_SHARE))
        replies = self._replies(given.replies, int(room * REPLIES_SHARE))
        head = [f"<folder>{given.cwd}</folder>"]
        if given.question:
            head.append(f"<question>\n{self.field(given.question, ARGUMENT_TOKENS)}\n</question>")
        head.append(f"<request>\n{request}\n</request>")
        said = "\n".join(f"<reply>\n{reply}\n</reply>" for reply in replies)
        spare = room - sum(map(count_tokens, [*head, said]))
        calls = self._calls(given.calls, spare)
        end = "<ended>interrupted by the person</ended>" if given.interrupted else ""
        return "\n".join(part for part in [*head, calls, said, end] if part)

    def session(self, given: SessionInput) -> str:
        """Render the talk summaries of a session."""
        talks = (self._outline(number, talk) for number, talk in enumerate(given.talks, 1))
        return f"<project>{given.project}</project>\n" + "\n".join(talks)

    def field(self, text: str, limit: int) -> str:
        """Take the secrets out of one field, and cut it to `limit` tokens."""
        text = storable(plain(text)).strip()
        most = 4 * limit * MOST_CHARS
        if len(text) > 2 * most:
            text = text[:most] + "\n…\n" + text[-most:]
        return cut(self.redact(text), limit)

    def _replies(self, replies: Sequence[str], room: int) -> list[str]:
        """Cut the replies; the last has up to half of the room, the others share the rest."""
        if not replies:
            return []
        last = self.field(replies[-1], int(room * LAST_REPLY_SHARE) if len(replies) > 1 else room)
        spare = room - count_tokens(last)
        return [*self._shared(replies[:-1], spare), last]

    def _shared(self, texts: Sequence[str], room: int) -> list[str]:
        """Cut texts to equal shares; what a short one leaves goes to the others. Late ones go first when many."""
        shown: list[str] = []
        left = len(texts)
        for text in sorted(range(len(texts)), key=lambda i: len(texts[i])):
            share = max(0, room) // max(1, left)
            shown.append("" if share < 20 else self.field(texts[text], share))
            room -= count_tokens(shown[-1])
            left -= 1
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        return [text for _i, text in sorted(zip(order, shown, strict=True)) if text]

    def _calls(self, calls: Sequence[ToolCall], room: int) -> str:
        """Render calls, each in its share of the room: first their outputs shrink, then the quiet ones go."""
        if not calls or room < 40:
            return ""
        each = min(ARGUMENT_TOKENS + OUTPUT_TOKENS, max(60, room // len(calls)))
        loud = [call for call in calls if call.mutates or failed(call)]
        kept = set(map(id, calls if each * len(calls) <= room else (loud or calls)))
        shown = [self._call(call, each // 3, each - each // 3) for call in calls if id(call) in kept]
        lines = _fitting(shown, room)
        left_out = len(calls) - len(lines)
        told = [f"… {left_out} calls left out …"] if left_out else []
        return "<calls>\n" + "\n".join([*lines, *told]) + "\n</calls>"

    def _call(self, call: ToolCall, argument_room: int, output_room: int) -> str:
        given = arguments(call)
        texts = {k: v if isinstance(v, str) else orjson.dumps(v).decode() for k, v in given.items()}
        shown = {k: self.field(v, argument_room) for k, v in texts.items() if v}
        head = f"[{call.name}{' FAILED' if failed(call) else ''}] " + "; ".join(f"{k}: {v}" for k, v in shown.items())
        output = self.field(call.output, output_room)
        return self.field(head, 2 * argument_room) + (f"\n=> {output}" if output else "")

    def _outline(self, number: int, talk: TalkOutline) -> str:
        parts = (
            f"request: {self.field(talk.user_request, OUTLINE_TOKENS // 4)}",
            f"summary: {self.field(talk.summary, OUTLINE_TOKENS)}",
            f"completed: {self.field(talk.completed, OUTLINE_TOKENS // 4)}" if talk.completed else "completed: nothing",
            f"files: {', '.join(talk.files[:12])}" if talk.files else "",
        )
        return f'<talk n="{number}">\n' + "\n".join(filter(None, parts)) + "\n</talk>"


def _fitting(lines: Sequence[str], room: int) -> list[str]:
    """Keep the first and the last lines that fit, more of the last: how it ended counts most."""
    sizes = [count_tokens(line) + 1 for line in lines]
    kept: set[int] = set()
    order = [i for pair in zip(reversed(range(len(lines))), range(len(lines)), strict=True) for i in pair]
    for index in order:
        if index not in kept and sizes[index] <= room:
            kept.add(index)
            room -= sizes[index]
    return [line for index, line in enumerate(lines) if index in kept]


def source_of(given: OperationInput | TalkInput | SessionInput) -> list[str]:
    """List the texts that an answer may take its facts from: all of the input, uncut."""
    match given:
        case SessionInput():
            texts: Iterable[str] = (
                text for t in given.talks for text in (t.user_request, t.summary, t.completed, *t.files)
            )
            return [given.project, *texts]
        case TalkInput():
            return [given.cwd, given.request, given.question, *given.replies, *_call_texts(given.calls)]
        case OperationInput():
            return [given.cwd, given.request, *_call_texts(given.calls)]


def _call_texts(calls: Sequence[ToolCall]) -> list[str]:
    return [text for call in calls for text in (call.name, call.input, call.output, *call.files)]
