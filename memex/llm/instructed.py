"""The writer that asks a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memex.errors import InvalidAnswer, ProviderError, Stopped
from memex.llm.answers import By, ObservationAnswer, SessionAnswer, TalkAnswer
from memex.llm.asking import Desk, Question, fixed_tokens, room_for
from memex.llm.base import OperationInput, Price, SessionInput, SummaryLevel, TalkInput
from memex.llm.language import language_of
from memex.llm.outcome import dead_end
from memex.llm.prompts import prompt_version
from memex.llm.render import Renderer, source_of
from memex.llm.replies import OperationReply, OperationsReply, SessionReply, TalkReply
from memex.llm.tokens import count_tokens
from memex.text import clip_units, one_line, unique

TALK_TOKENS = 8_000
"""Of a talk, so many tokens are shown."""
OPERATIONS = 10
"""Operations that are described in one call."""
OPERATION_TOKENS = 800
"""What one operation takes at most."""
OPERATIONS_TOKENS = 4_000
ENTRY_TOKENS = 150
"""Room in an answer for the entry of one operation."""
EXPECTED_TOKENS: dict[SummaryLevel, int] = {"observations": 120, "talks": 300, "sessions": 250}
"""What the answer about one unit usually takes."""
SESSION_SHARE = 0.7
"""Of the room for a session, what the texts of its talks may take; tags and files take the rest."""
REQUEST_UNITS = 100
SUMMARY_UNITS = 300
LINE_UNITS = 60


@dataclass(frozen=True)
class InstructorWriter:
    """Writes all three levels by asking the providers of a chain.

    The first one gives the recipe: a row that another made for it counts as made, and says by whom.
    """

    desk: Desk
    renderer: Renderer
    workers: int = 1
    local: bool = False

    @property
    def provider(self) -> str:
        """The provider that is asked first."""
        return self.desk.chain.clients[0].name

    @property
    def model(self) -> str:
        """Its model."""
        return self.desk.chain.clients[0].model

    @property
    def context_tokens(self) -> int:
        """The tokens of talk summaries that fit one question, at every provider of the chain."""
        return int(SESSION_SHARE * self._room("sessions"))

    def version_of(self, level: SummaryLevel) -> str:
        """Tell the version of a level's prompts."""
        return prompt_version(level)

    def observation(self, given: OperationInput) -> ObservationAnswer:
        """Describe a group of like operations.

        Raises:
            ProviderError: no provider gave a usable answer.
        """
        (answer,) = self.observations([given])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def observations(self, given: Sequence[OperationInput]) -> list[ObservationAnswer | Exception]:
        """Describe the operations of one talk, several in a call; one that got no entry is asked for alone.

        Raises:
            Stopped: a cap is reached, or no provider is left.
        """
        return [answer for part in self._parts(given) for answer in self._observations(part)]

    def talk(self, given: TalkInput) -> TalkAnswer:
        """Summarise a talk.

        Raises:
            ProviderError: no provider gave a usable answer.
        """

        def mended(reply: TalkReply) -> TalkReply | None:
            request = reply.user_request or self.renderer.redact(one_line(given.request)) or "…"
            completed = "" if dead_end(reply.completed, given) else reply.completed
            return reply.model_copy(update={"user_request": request, "completed": completed}) if reply.summary else None

        reply, by = self.desk.ask(
            Question(
                level="talks",
                language=language_of(given.request + " " + " ".join(given.replies[-1:])),
                shape=TalkReply,
                text=lambda room: self.renderer.talk(given, min(room, TALK_TOKENS)),
                source=source_of(given),
                mended=mended,
                wrong=lambda reply: dead_end(reply.completed, given),
            )
        )
        return TalkAnswer(
            user_request=clip_units(reply.user_request, REQUEST_UNITS),
            summary=clip_units(reply.summary, SUMMARY_UNITS),
            completed=clip_units(reply.completed, 2 * LINE_UNITS),
            by=by,
        )

    def session(self, given: SessionInput) -> SessionAnswer:
        """Summarise a session from its talk summaries.

        Raises:
            ProviderError: no provider gave a usable answer.
        """
        rendered = self.renderer.session(given)
        reply, by = self.desk.ask(
            Question(
                level="sessions",
                language=language_of(" ".join(talk.user_request for talk in given.talks)),
                shape=SessionReply,
                text=lambda room: self.renderer.field(rendered, room),
                source=source_of(given),
                mended=lambda reply: reply if reply.summary and reply.key_points else None,
            )
        )
        return SessionAnswer(
            summary=clip_units(reply.summary, SUMMARY_UNITS // 2),
            key_points=tuple(clip_units(point, 2 * LINE_UNITS) for point in reply.key_points[:7]),
            technologies=unique(name[:60] for name in reply.technologies[:20]),
            by=by,
        )

    def price(self, level: SummaryLevel, sizes: Sequence[int]) -> Price:
        """Estimate what rows would take at the provider that is asked first."""
        client = self.desk.chain.clients[0]
        room = min(room_for(client, level, "zh"), OPERATION_TOKENS if level == "observations" else TALK_TOKENS)
        given = sum(min(size, room) for size in sizes)
        calls = len(sizes)
        if level == "observations":
            calls = max(-(-calls // self._most_operations), -(-given // self._operations_tokens))
        tokens_input, tokens_output = given + calls * fixed_tokens(level, "zh"), len(sizes) * EXPECTED_TOKENS[level]
        return Price(calls, tokens_input, tokens_output, client.facts.cost(tokens_input, tokens_output))

    def spent(self) -> list[dict[str, Any]]:
        """List the calls that the ledger does not have yet."""
        return self.desk.spent()

    def committed(self) -> None:
        """Drop the answers that are rows now, and mark their calls as told."""
        self.desk.committed()

    def _observations(self, given: Sequence[OperationInput]) -> list[ObservationAnswer | Exception]:
        """Describe operations in one call, and those that got no entry alone."""
        try:
            found, by = self._entries(given)
        except Stopped:
            raise
        except ProviderError as error:
            if len(given) == 1:
                return [error]
            found, by = [None] * len(given), By(self.provider, self.model)
        share = By(by.provider, by.model, by.cost_usd / len(given), by.dropped)
        answers: list[ObservationAnswer | Exception] = []
        for entry, one in zip(found, given, strict=True):
            if entry is not None:
                answers.append(_observation(entry, share))
            elif len(given) > 1:
                answers += self._observations([one])
            else:
                answers.append(InvalidAnswer(f"{by.provider}: its entry says nothing that the operation shows"))
        return answers

    def _entries(self, given: Sequence[OperationInput]) -> tuple[list[OperationReply | None], By]:
        rendered = self.renderer.operations(given)
        reply, by = self.desk.ask(
            Question(
                level="observations",
                language=language_of(given[0].request),
                shape=OperationsReply,
                text=lambda room: self.renderer.field(rendered, room),
                source=[text for one in given for text in source_of(one)],
                mended=_with_full_entries,
            )
        )
        entries = {entry.n: entry for entry in reversed(reply.entries)}
        if len(given) == 1:
            return [reply.entries[0]], by
        return [entries.get(number) for number in range(1, len(given) + 1)], by

    def _parts(self, given: Sequence[OperationInput]) -> list[list[OperationInput]]:
        """Split operations into calls: few enough, and short enough together."""
        parts: list[list[OperationInput]] = []
        room = 0
        for one in given:
            size = count_tokens(self.renderer.operation(one, 1))
            if not parts or len(parts[-1]) >= self._most_operations or size > room:
                parts.append([])
                room = self._operations_tokens
            parts[-1].append(one)
            room -= size
        return parts

    @property
    def _operations_tokens(self) -> int:
        return min(OPERATIONS_TOKENS, self._room("observations") - OPERATION_TOKENS // 4)

    @property
    def _most_operations(self) -> int:
        answer = min(client.answer_tokens("observations") for client in self.desk.chain.clients)
        return max(1, min(OPERATIONS, answer // ENTRY_TOKENS))

    def _room(self, level: SummaryLevel) -> int:
        return min(room_for(client, level, "zh") for client in self.desk.chain.clients)


def _with_full_entries(reply: OperationsReply) -> OperationsReply | None:
    """Keep the entries that still have a title and a story."""
    full = [entry for entry in reply.entries if entry.title and entry.narrative]
    return reply.model_copy(update={"entries": full}) if full else None


def _observation(entry: OperationReply, by: By) -> ObservationAnswer:
    return ObservationAnswer(
        type=entry.type,
        title=clip_units(entry.title, 24)[:160],
        subtitle=clip_units(entry.subtitle, LINE_UNITS)[:300],
        facts=tuple(clip_units(fact, LINE_UNITS)[:300] for fact in entry.facts[:12]),
        narrative=clip_units(entry.narrative, SUMMARY_UNITS)[:2000],
        by=by,
    )
