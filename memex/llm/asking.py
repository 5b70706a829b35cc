"""A question to a chain of providers, its answer checked against its source and kept until the lake has it."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar

import orjson

from memex.errors import InvalidAnswer, ProviderError
from memex.llm.answers import By
from memex.llm.base import SummaryLevel
from memex.llm.book import Book
from memex.llm.chain import Chain
from memex.llm.client import PER_MESSAGE, Client, Message, Usage
from memex.llm.grounding import Source, ungrounded, without_ungrounded
from memex.llm.prompts import language_line, load_prompt, prompt_version
from memex.llm.replies import Reply, texts_of
from memex.llm.tokens import count_tokens
from memex.text import digest, is_cjk

Answered = TypeVar("Answered", bound=Reply)

SCHEMA_TOKENS = 700
"""What the shape of an answer takes, generously."""
FULL = 8_000
"""The room in which a question is rendered to be recognised."""
MOST_COMPLAINTS = 12


def _nothing(_reply: Any) -> str:
    return ""


@dataclass(frozen=True)
class Question(Generic[Answered]):
    """What is asked: `text` renders the input for a room in tokens, an answer may rest on that and on all of
    `source`.

    `wrong` says what else is wrong with an answer, or "". `mended` makes it whole after ungrounded claims were
    dropped; None when too little is left.
    """

    level: SummaryLevel
    language: str
    shape: type[Answered]
    text: Callable[[int], str]
    source: Sequence[str]
    mended: Callable[[Answered], Answered | None]
    wrong: Callable[[Answered], str] = _nothing


@dataclass
class Desk:
    """Asks, checks, keeps."""

    chain: Chain
    book: Book
    _receipts: set[str] = field(default_factory=set, init=False)
    _told: list[str] = field(default_factory=list, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def ask(self, question: Question[Answered]) -> tuple[Answered, By]:
        """Get a checked answer: one that was paid for before and is in no row yet, else from a provider.

        Raises:
            Stopped: a cap is reached, or no provider is left.
            ProviderError: none of them gave a usable answer.
        """
        key = self._key(question)
        with self._lock:
            self._receipts.add(key)
        kept = self.book.answer(key)
        if kept is not None:
            found = orjson.loads(kept)
            return question.shape.model_validate(found["reply"]), By(**found["by"])
        reply, by = self._checked(question)
        self.book.keep(key, orjson.dumps({"reply": reply.model_dump(), "by": asdict(by)}).decode())
        return reply, by

    def spent(self) -> list[dict[str, Any]]:
        """List the calls that the ledger does not have yet."""
        rows = self.book.untold()
        self._told = [row["id"] for row in rows]
        return rows

    def committed(self) -> None:
        """Drop the answers that are rows now, and mark their calls as told."""
        with self._lock:
            keys, self._receipts = self._receipts, set()
        self.book.drop(keys)
        self.book.tell(self._told)

    def _key(self, question: Question[Answered]) -> str:
        first = self.chain.clients[0]
        text, version = question.text(FULL), prompt_version(question.level)
        return digest(question.level, version, first.name, first.model, question.language, text)

    def _checked(self, question: Question[Answered]) -> tuple[Answered, By]:
        text = cache(question.text)
        source = Source([*question.source, text(FULL)])

        def ask(client: Client, share: float) -> tuple[Answered, Usage]:
            shown = text(int(room_for(client, question.level, question.language) * share))
            return _asked(client, question, source, shown)

        reply, usage, client = self.chain.ask(ask)
        reply, dropped = without_ungrounded(reply, source)
        whole = question.mended(reply)
        if whole is None:
            raise InvalidAnswer(f"{client.name}: nothing is left of its answer without what the source does not say")
        return whole, By(client.name, client.model, usage.cost_usd, dropped)


def room_for(client: Client, level: SummaryLevel, language: str) -> int:
    """Tell how many tokens of input fit a question to this provider."""
    most = min(client.facts.context, client.call_tokens)
    return max(256, most - client.answer_tokens(level) - fixed_tokens(level, language))


def fixed_tokens(level: SummaryLevel, language: str) -> int:
    """Count what every question at a level takes beside its input."""
    return count_tokens(load_prompt(level, language).text) + SCHEMA_TOKENS + 4 * PER_MESSAGE


def _asked(client: Client, question: Question[Answered], source: Source, text: str) -> tuple[Answered, Usage]:
    """Ask, and once more where the answer says what its source does not; the second try is optional."""
    messages: list[Message] = [
        {"role": "system", "content": load_prompt(question.level, question.language).text},
        {"role": "user", "content": f"{text}\n\n{language_line(question.language)}"},
    ]
    reply, usage = client.ask(question.level, messages, question.shape)
    wrong = _complaints(reply, source, question)
    if not wrong:
        return reply, usage
    messages += [
        {"role": "assistant", "content": orjson.dumps(reply.model_dump()).decode()},
        {"role": "user", "content": wrong},
    ]
    try:
        again, more = client.ask(question.level, messages, question.shape)
    except ProviderError:  # what is wrong with the first will be dropped
        return reply, usage
    return _better(reply, again, source), usage + more


def _complaints(reply: Answered, source: Source, question: Question[Answered]) -> str:
    """Say what is wrong with an answer; "" when nothing is."""
    told = []
    invented = ungrounded(reply, source)[:MOST_COMPLAINTS]
    if invented:
        told.append(
            f"These do not occur in the text: {', '.join(invented)}. Leave them out, or write them as the text does."
        )
    if question.language in ("zh", "ja", "ko") and not any(map(is_cjk, texts_of(reply))):
        told.append(language_line(question.language))
    more = question.wrong(reply)
    if more:
        told.append(more)
    return " ".join([*told, "Give the whole answer again in the same shape."]) if told else ""


def _better(first: Answered, second: Answered, source: Source) -> Answered:
    """Choose the answer with fewer ungrounded claims, the second when they are equal."""
    return first if len(ungrounded(first, source)) < len(ungrounded(second, source)) else second
