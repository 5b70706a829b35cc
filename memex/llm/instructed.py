"""The writer that asks a model: input rendered, answer checked against it, kept until the lake has it."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

import orjson

from memex.errors import InvalidAnswer, ProviderError, Stopped
from memex.llm.answers import By, ObservationAnswer, SessionAnswer, TalkAnswer
from memex.llm.base import OperationInput, Price, SessionInput, SummaryLevel, TalkInput
from memex.llm.book import Book
from memex.llm.chain import Chain
from memex.llm.client import PER_MESSAGE, Client, Message, Usage
from memex.llm.grounding import Source, has_substance, ungrounded, without_ungrounded
from memex.llm.language import language_of
from memex.llm.outcome import dead_end
from memex.llm.prompts import language_line, load_prompt, prompt_version
from memex.llm.render import Renderer, source_of
from memex.llm.replies import OperationReply, OperationsReply, Reply, SessionReply, TalkReply, texts_of
from memex.llm.tokens import count_tokens
from memex.text import clip_units, digest, is_cjk, one_line, unique

Answered = TypeVar("Answered", bound=Reply)

TALK_TOKENS = 8_000
"""Of a talk, so many tokens are shown."""
OPERATIONS = 10
"""Operations that are described in one call."""
OPERATIONS_TOKENS = 4_000
OPERATION_TOKENS = 800
"""What one operation takes at most."""
EXPECTED_TOKENS: dict[SummaryLevel, int] = {"observations": 120, "talks": 300, "sessions": 250}
"""What the answer about one unit usually takes."""
SCHEMA_TOKENS = 700
"""What the shape of an answer takes, generously."""
REQUEST_UNITS = 100
SUMMARY_UNITS = 300
LINE_UNITS = 60
MOST_COMPLAINTS = 12


@dataclass
class InstructorWriter:
    """Writes all three levels by asking the providers of a chain.

    The first one gives the recipe: a row that another made for it counts as made, and says by whom.
    """

    chain: Chain
    book: Book
    renderer: Renderer
    workers: int = 1
    local: bool = field(default=False, init=False)
    _receipts: set[str] = field(default_factory=set, init=False)
    _told: list[str] = field(default_factory=list, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    @property
    def provider(self) -> str:
        """The provider that is asked first."""
        return self.chain.clients[0].name

    @property
    def model(self) -> str:
        """Its model."""
        return self.chain.clients[0].model

    @property
    def context_tokens(self) -> int:
        """The tokens of talk summaries that fit one question, at every provider of the chain."""
        return min(_room(client, "sessions", "zh") for client in self.chain.clients)

    def version_of(self, level: SummaryLevel) -> str:
        """Tell the version of a level's prompts."""
        return prompt_version(level)

    def observation(self, given: OperationInput) -> ObservationAnswer:
        """Describe a group of like operations.

        Raises:
            ProviderError: no provider gave a usable answer.
        """
        reply, by = self._operations([given])
        found = _observation(_numbered(reply, 1)[0], by)
        if found is None:
            raise InvalidAnswer(f"{by.provider}: its entry says nothing that the operation shows")
        return found

    def observations(self, given: Sequence[OperationInput]) -> list[ObservationAnswer | Exception]:
        """Describe the operations of one talk, several in a call; one that got no entry is asked for alone.

        Raises:
            Stopped: a cap is reached, or no provider is left.
        """
        answers: list[ObservationAnswer | Exception] = []
        for part in self._parts(given):
            try:
                reply, by = self._operations(part)
            except Stopped:
                raise
            except ProviderError as error:
                answers += [error] if len(part) == 1 else map(self._alone, part)
                continue
            share = By(by.provider, by.model, by.cost_usd / len(part), by.dropped)
            found = [_observation(entry, share) for entry in _numbered(reply, len(part))]
            answers += [answer or self._alone(one) for answer, one in zip(found, part, strict=True)]
        return answers

    def talk(self, given: TalkInput) -> TalkAnswer:
        """Summarise a talk.

        Raises:
            ProviderError: no provider gave a usable answer.
        """
        language = language_of(given.request + " " + " ".join(given.replies[-1:]))

        def text(room: int) -> str:
            return self.renderer.talk(given, min(room, TALK_TOKENS))

        reply, by = self._asked(
            "talks", language, text, TalkReply, source_of(given), lambda r: dead_end(r.completed, given)
        )
        return TalkAnswer(
            user_request=clip_units(reply.user_request or self._request(given), REQUEST_UNITS),
            summary=clip_units(reply.summary, SUMMARY_UNITS),
            completed="" if dead_end(reply.completed, given) else clip_units(reply.completed, LINE_UNITS * 2),
            by=by,
        )

    def session(self, given: SessionInput) -> SessionAnswer:
        """Summarise a session from its talk summaries.

        Raises:
            ProviderError: no provider gave a usable answer.
        """
        language = language_of(" ".join(talk.user_request for talk in given.talks))
        rendered = self.renderer.session(given)
        reply, by = self._asked("sessions", language, lambda _room: rendered, SessionReply, source_of(given))
        return SessionAnswer(
            summary=clip_units(reply.summary, SUMMARY_UNITS // 2),
            key_points=tuple(clip_units(point, LINE_UNITS * 2) for point in reply.key_points[:7]),
            technologies=unique(name[:60] for name in reply.technologies[:20]),
            by=by,
        )

    def price(self, level: SummaryLevel, sizes: Sequence[int]) -> Price:
        """Estimate what rows would take at the provider that is asked first."""
        client = self.chain.clients[0]
        room = _room(client, level, "zh")
        most = OPERATION_TOKENS if level == "observations" else min(room, TALK_TOKENS)
        given = sum(min(size, most) for size in sizes)
        calls = len(sizes)
        if level == "observations":
            calls = max(-(-calls // self._most_operations), -(-given // min(OPERATIONS_TOKENS, room)))
        fixed = count_tokens(load_prompt(level, "zh").text) + SCHEMA_TOKENS
        tokens_input, tokens_output = given + calls * fixed, len(sizes) * EXPECTED_TOKENS[level]
        return Price(calls, tokens_input, tokens_output, client.facts.cost(tokens_input, tokens_output))

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

    def _request(self, given: TalkInput) -> str:
        return self.renderer.redact(one_line(given.request)) or "…"

    def _alone(self, given: OperationInput) -> ObservationAnswer | Exception:
        try:
            return self.observation(given)
        except Stopped:
            raise
        except ProviderError as error:
            return error

    def _operations(self, given: Sequence[OperationInput]) -> tuple[OperationsReply, By]:
        rendered = self.renderer.operations(given)
        language = language_of(given[0].request)
        source = [text for one in given for text in source_of(one)]
        return self._asked("observations", language, lambda _room: rendered, OperationsReply, source)

    def _parts(self, given: Sequence[OperationInput]) -> list[list[OperationInput]]:
        """Split operations into calls: few enough, and short enough together."""
        parts: list[list[OperationInput]] = []
        room = 0
        for one in given:
            size = count_tokens(self.renderer.operation(one, 1))
            if not parts or len(parts[-1]) >= self._most_operations or size > room:
                parts.append([])
                room = min(OPERATIONS_TOKENS, self._operations_room)
            parts[-1].append(one)
            room -= size
        return parts

    @property
    def _operations_room(self) -> int:
        return min(_room(client, "observations", "zh") for client in self.chain.clients)

    @property
    def _most_operations(self) -> int:
        """So many entries of about 150 tokens that the answer has room for them."""
        return max(
            1, min(OPERATIONS, min(client.answer_tokens("observations") for client in self.chain.clients) // 150)
        )

    def _asked(
        self,
        level: SummaryLevel,
        language: str,
        text: Callable[[int], str],
        shape: type[Answered],
        source: Sequence[str],
        complaint: Callable[[Answered], str] = lambda _reply: "",
    ) -> tuple[Answered, By]:
        """Get a checked answer: from what was paid for before, else from a model."""
        text = cache(text)
        key = self._key(level, language, text(TALK_TOKENS), shape)
        with self._lock:
            self._receipts.add(key)
        kept = self.book.answer(key)
        if kept is not None:
            found = orjson.loads(kept)
            return shape.model_validate(found["reply"]), By(**found["by"])
        reply, by = self._made(level, language, text, shape, Source(source), complaint)
        self.book.keep(key, orjson.dumps({"reply": reply.model_dump(), "by": _plain(by)}).decode())
        return reply, by

    def _key(self, level: SummaryLevel, language: str, text: str, shape: type[Reply]) -> str:
        return digest(level, self.version_of(level), self.provider, self.model, language, shape.__name__, text)

    def _made(
        self,
        level: SummaryLevel,
        language: str,
        text: Callable[[int], str],
        shape: type[Answered],
        source: Source,
        complaint: Callable[[Answered], str],
    ) -> tuple[Answered, By]:
        prompt = load_prompt(level, language).text

        def ask(client: Client, share: float) -> tuple[Answered, Usage]:
            asked = f"{text(int(_room(client, level, language) * share))}\n\n{language_line(language)}"
            messages: list[Message] = [
                {"role": "system", "content": prompt},
                {"role": "user", "content": asked},
            ]
            reply, usage = client.ask(level, messages, shape)
            wrong = _complaints(reply, source, language, complaint(reply))
            if wrong:
                messages += [
                    {"role": "assistant", "content": orjson.dumps(reply.model_dump()).decode()},
                    {"role": "user", "content": wrong},
                ]
                try:
                    again, more = client.ask(level, messages, shape)
                except InvalidAnswer:
                    return reply, usage
                return _better(reply, again, source), usage + more
            return reply, usage

        reply, usage, client = self.chain.ask(ask)
        reply, dropped = without_ungrounded(reply, source)
        if not has_substance(reply):
            raise InvalidAnswer(f"{client.name}: nothing is left of its answer without what the source does not say")
        return reply, By(client.name, client.model, usage.cost_usd, dropped)


def _room(client: Client, level: SummaryLevel, language: str) -> int:
    """Tell how many tokens of input fit a question to this provider."""
    most = min(client.facts.context, client.call_tokens)
    fixed = count_tokens(load_prompt(level, language).text) + SCHEMA_TOKENS + 4 * PER_MESSAGE
    return max(256, most - client.answer_tokens(level) - fixed)


def _complaints(reply: Reply, source: Source, language: str, more: str) -> str:
    """Say what is wrong with an answer; "" when nothing is."""
    invented = ungrounded(reply, source)[:MOST_COMPLAINTS]
    told = []
    if invented:
        told.append(
            f"These do not occur in the text: {', '.join(invented)}. Leave them out, or write them as the text does."
        )
    if language in ("zh", "ja", "ko") and not any(map(is_cjk, texts_of(reply))):
        told.append(language_line(language))
    if more:
        told.append(more)
    return " ".join([*told, "Give the whole answer again in the same shape."]) if told else ""


def _better(first: Answered, second: Answered, source: Source) -> Answered:
    """Choose the answer with fewer ungrounded claims, the second when they are equal."""
    return first if len(ungrounded(first, source)) < len(ungrounded(second, source)) else second


def _numbered(reply: OperationsReply, count: int) -> list[OperationReply | None]:
    """Put the entries of an answer in the order of what was asked; None where there is no entry."""
    entries: dict[int, OperationReply] = {}
    for entry in reply.entries:
        if entry.title and entry.narrative:
            entries.setdefault(entry.n, entry)
    if count == 1 and len(reply.entries) == 1 and not entries.get(1):
        return [entries.get(reply.entries[0].n)]
    return [entries.get(number) for number in range(1, count + 1)]


def _observation(entry: OperationReply | None, by: By) -> ObservationAnswer | None:
    if entry is None:
        return None
    return ObservationAnswer(
        type=entry.type,
        title=clip_units(entry.title, 24)[:160],
        subtitle=clip_units(entry.subtitle, LINE_UNITS)[:300],
        facts=tuple(clip_units(fact, LINE_UNITS)[:300] for fact in entry.facts[:12]),
        narrative=clip_units(entry.narrative, SUMMARY_UNITS)[:2000],
        by=by,
    )


def _plain(by: By) -> dict[str, Any]:
    return {"provider": by.provider, "model": by.model, "cost_usd": by.cost_usd, "dropped": by.dropped}
