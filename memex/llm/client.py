"""One provider: a question goes out, an answer of a given shape comes back, and its price is in the book.

Every request passes through `_Question.send`: the only place where text leaves. There secrets are taken out, a place
at the provider and its price are reserved, and errors become ours. It is also the owner of tries after overload;
instructor asks again for a wrong shape; the client's own tries are off.
"""

import logging
import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from memex.errors import InvalidAnswer, ProviderBusy, ProviderClosed, ProviderError
from memex.llm.book import Book, Call
from memex.llm.facts import ModelFacts
from memex.llm.faults import fault_in_body, fault_of
from memex.llm.replies import Reply
from memex.llm.slots import Slots
from memex.llm.tokens import count_tokens

if TYPE_CHECKING:
    from openai import OpenAI
    from tenacity import RetryCallState

Answered = TypeVar("Answered", bound=Reply)
Message = dict[str, str]

TRIES = 4
"""Requests for one answer when the provider is busy."""
LONGEST_PAUSE = 60.0
"""Seconds; a provider that wants more is left alone for this run."""
REASKS = 1
"""How often an answer of a wrong shape is asked for again."""
ANSWER_TOKENS: dict[str, int] = {"observations": 2000, "talks": 1000, "sessions": 1000, "check": 300}
"""What an answer may take; a third of the context at most."""
PER_MESSAGE = 8
"""Tokens that a message takes beside its text, generously."""
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_MODES = {"json_schema": "JSON_SCHEMA", "json": "JSON", "tools": "TOOLS", "markdown": "MD_JSON"}

log = logging.getLogger("memex.llm")


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer took, over all its requests."""

    tokens_input: int = 0
    tokens_output: int = 0
    tokens_cached: int = 0
    cost_usd: float = 0.0
    requests: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.tokens_input + other.tokens_input,
            self.tokens_output + other.tokens_output,
            self.tokens_cached + other.tokens_cached,
            self.cost_usd + other.cost_usd,
            self.requests + other.requests,
        )


@dataclass(frozen=True)
class Client:
    """One model at one provider."""

    name: str
    model: str
    facts: ModelFacts
    api_key: str
    timeout_seconds: float
    slots: Slots
    book: Book
    redact: Callable[[str], str]
    call_tokens: int
    quiet: "Quiet" = field(default_factory=lambda: Quiet())

    def ask(self, level: str, messages: Sequence[Message], shape: type[Answered]) -> tuple[Answered, Usage]:
        """Ask once, and again when the shape is wrong.

        An answer that was not finished gets one more try, with twice the room.

        Raises:
            ProviderBusy, ProviderClosed, Refused, TooLong, InvalidAnswer: as `memex.errors` says.
            Stopped: a cap is reached.
        """
        from instructor.core.exceptions import IncompleteOutputException

        question = _Question(self, level, self.answer_tokens(level))
        try:
            return self._ask(question, messages, shape), question.usage
        except IncompleteOutputException:
            question.answer_tokens = min(2 * question.answer_tokens, self.facts.output)
        try:
            return self._ask(question, messages, shape), question.usage
        except IncompleteOutputException as error:
            most = question.answer_tokens
            raise InvalidAnswer(f"{self.name} did not finish its answer in {most} tokens") from error

    def _ask(self, question: "_Question", messages: Sequence[Message], shape: type[Answered]) -> Answered:
        import instructor
        from instructor.core.exceptions import InstructorRetryException

        logging.getLogger("instructor").setLevel(logging.CRITICAL)  # it logs every failure, with the answer
        mode = getattr(instructor.Mode, _MODES[self.facts.mode])
        create: Any = instructor.patch(create=question.send, mode=mode)
        options: dict[str, Any] = {"temperature": self.facts.temperature} if self.facts.temperature is not None else {}
        try:
            reply: Answered = create(
                response_model=shape,
                max_retries=REASKS,
                strict=False,
                model=self.model,
                messages=list(messages),
                **{self.facts.limit_key: question.answer_tokens},
                **options,
                **({"extra_body": self.facts.extra} if self.facts.extra else {}),
            )
        except InstructorRetryException as error:
            cause = error.__cause__
            if isinstance(cause, ProviderError):
                raise cause from None
            raise InvalidAnswer(f"{self.name}: wrong shape, also when asked again: {_short(cause)}") from error
        return reply

    def answer_tokens(self, level: str) -> int:
        """Tell what an answer at this level may take."""
        return min(self.facts.output, ANSWER_TOKENS[level], min(self.facts.context, self.call_tokens) // 3)

    @cached_property
    def api(self) -> "OpenAI":
        """The client of its protocol. It tries nothing again by itself."""
        from openai import OpenAI

        return OpenAI(
            base_url=self.facts.endpoint,
            api_key=self.api_key or "none",
            timeout=self.timeout_seconds,
            max_retries=0,
        )


class Quiet:
    """Until when a provider wants to be left alone, by all who ask it."""

    def __init__(self) -> None:
        self._until = 0.0
        self._lock = threading.Lock()

    def want(self, seconds: float) -> None:
        """Ask for so many seconds of quiet from now."""
        with self._lock:
            self._until = max(self._until, time.monotonic() + seconds)

    def wait(self) -> None:
        """Wait until it is over."""
        while (left := self._until - time.monotonic()) > 0:
            time.sleep(left)


class _Question:
    """One answer in the making, over as many requests as it takes."""

    def __init__(self, client: Client, level: str, answer_tokens: int) -> None:
        self._client = client
        self._level = level
        self.answer_tokens = answer_tokens
        self.usage = Usage()

    def send(self, **request: Any) -> Any:
        """Send one request, and again while the provider is busy."""
        from tenacity import Retrying, retry_if_exception, stop_after_attempt

        safe = [{**m, "content": self._client.redact(str(m.get("content") or ""))} for m in request["messages"]]
        tries = Retrying(
            stop=stop_after_attempt(TRIES), retry=retry_if_exception(_may_pass), wait=self._pause, reraise=True
        )
        return tries(self._send_once, {**request, "messages": safe})

    def _pause(self, state: "RetryCallState") -> float:
        """Wait as long as the provider wants, else longer each time, and not all at once."""
        from tenacity import wait_random_exponential

        error = state.outcome.exception() if state.outcome else None
        wanted = getattr(error, "retry_after", None)
        if wanted is None:
            return wait_random_exponential(multiplier=0.5, max=LONGEST_PAUSE)(state)
        self._client.quiet.want(wanted)
        return float(wanted)

    def _send_once(self, request: dict[str, Any]) -> Any:
        client, facts = self._client, self._client.facts
        size, answer = _size(request), self.answer_tokens
        worst = Call(self._level, client.name, client.model, size, answer, facts.cost(size, answer))
        client.quiet.wait()
        with client.slots.taken():
            self._see_that_it_is_open()
            name = client.book.reserve(worst, client.timeout_seconds + LONGEST_PAUSE)
            began = time.monotonic()
            try:
                response = client.api.chat.completions.create(**request)
                fault = fault_in_body(response, client.name)
            except Exception as error:
                fault = fault_of(error, client.name)
                if fault is None:
                    client.book.release(name)
                    raise
            if fault:
                self._give_back(name, fault, size)
                raise fault
            self._settle(name, response, size, (time.monotonic() - began) * 1000)
        return _readable(response)

    def _see_that_it_is_open(self) -> None:
        """Another question may have found it closed while this one waited for its place."""
        why = self._client.book.closed().get(self._client.name)
        if why is not None:
            raise ProviderClosed(why)

    def _give_back(self, name: str, fault: ProviderError, size: int) -> None:
        """A request that was refused costs nothing; one that broke off may have been paid for."""
        if isinstance(fault, InvalidAnswer) or getattr(fault, "broken_off", False):
            self._client.book.settle(name, size, 0, 0, self._client.facts.cost(size, 0), 0.0)
        else:
            self._client.book.release(name)

    def _settle(self, name: str, response: Any, size: int, latency_ms: float) -> None:
        used = getattr(response, "usage", None)
        tokens_input = getattr(used, "prompt_tokens", None) or size
        tokens_output = getattr(used, "completion_tokens", None)
        if tokens_output is None:
            tokens_output = sum(count_tokens(c.message.content or "") for c in response.choices or ())
        cached = getattr(getattr(used, "prompt_tokens_details", None), "cached_tokens", None) or 0
        told = (getattr(used, "model_extra", None) or {}).get("cost")  # OpenRouter says what it took
        cost = self._client.facts.cost(tokens_input, tokens_output, cached) if told is None else float(told)
        self._client.book.settle(name, tokens_input, tokens_output, cached, cost, latency_ms)
        self.usage += Usage(tokens_input, tokens_output, cached, cost, 1)


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, ProviderBusy) and (error.retry_after or 0) <= LONGEST_PAUSE


def _size(request: dict[str, Any]) -> int:
    """Count the tokens of a request, its schema included."""
    shape = str(request.get("response_format") or "") + str(request.get("tools") or "")
    return sum(count_tokens(m["content"]) + PER_MESSAGE for m in request["messages"]) + count_tokens(shape)


def _readable(response: Any) -> Any:
    """Take thoughts, fences and chatter off the JSON of an answer; an answer without a choice is an empty one."""
    from instructor.v2.core.json import extract_json_from_codeblock
    from openai.types.chat import ChatCompletionMessage
    from openai.types.chat.chat_completion import Choice

    if not getattr(response, "choices", None):
        empty = ChatCompletionMessage(role="assistant", content="")
        response.choices = [Choice(index=0, finish_reason="stop", message=empty)]
    message = response.choices[0].message
    if isinstance(message.content, str):
        message.content = _THOUGHT.sub("", message.content).strip()
        with suppress(ValueError):  # too large, too deep: then its shape is wrong
            message.content = extract_json_from_codeblock(message.content)
    elif message.content is None and not message.tool_calls:
        message.content = ""
    return response


def _short(error: BaseException | None) -> str:
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, e['loc'])) or 'answer'}: {e['msg']}" for e in error.errors()[:4])
    return f"{type(error).__name__}: {error}"[:300]
