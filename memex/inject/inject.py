"""The verb: answer a hook of an AI CLI with what helps, or with nothing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from memex.inject.candidates import MEMORIES, Candidates
from memex.inject.choose import Judged, keys_of
from memex.inject.event import ANSWERED, Event, output, read_event
from memex.inject.file import page_for_files
from memex.inject.full import page_for_start
from memex.inject.given import Given, Line
from memex.inject.page import Page
from memex.inject.quote import quotations
from memex.inject.render import Quotation, Told, render
from memex.inject.scope import Scope
from memex.inject.smart import Smart
from memex.maintain.recalls import How, note_recall
from memex.settings import InjectSettings

ATTEMPTS = 2
"""When another answer to the same session came between, what is left is looked at once more."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a hook is told, and why: what was judged, and what a reader should know."""

    told: Told = field(default_factory=Told)
    why: str = ""
    judged: tuple[Judged, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class Inject:
    """The verb with its parts; it is made once and kept, with what it has in memory.

    `project_of` gives id and name of the project of a folder. Nothing is told without being noted first.

    >>> inject.answer("smart", {"hook_event_name": "UserPromptSubmit", …})       # doctest: +SKIP
    {'hookSpecificOutput': {'hookEventName': 'UserPromptSubmit', 'additionalContext': '<memex-history>…'}}
    """

    candidates: Candidates
    project_of: Callable[[str], tuple[str, str]]
    journal: Path
    settings: InjectSettings
    scope: Scope
    emails: bool = False
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def answer(self, mode: str, event: Mapping[str, Any]) -> dict[str, Any]:
        """Answer the raw JSON of a hook with the CLI's own output object; {} is silence, as to any other mode.

        Raises:
            MemexError: the lake or an index cannot be read, or the answer cannot be noted.
        """
        read = read_event(event)
        return output(read, self.explain(mode, read).told.text)

    def explain(self, mode: str, event: Event) -> Answer:
        """Answer an event, with reasons. What is told counts as told."""
        if event.name not in ANSWERED.get(mode, ()):
            return Answer(why=f"{mode} does not answer {event.name or 'an event without a name'}")
        project = self.project_of(event.cwd)
        if why := self.scope.silenced(event, project):
            return Answer(why=why)
        for _attempt in range(ATTEMPTS):
            page = self._page(mode, event, project[0], self.given.keys(event.session_id, self.clock()))
            answer = self._told(mode, event, page)
            if answer is not None:
                return answer
        return Answer(why="another answer said it meanwhile")

    def warm(self) -> None:
        """Load what the first answer would have to wait for: the model, the tokenizer, the memories."""
        render((Quotation("", "-"),), self.settings.max_tokens)
        self.candidates.memories()
        self.candidates.by_meaning("warm up", None)

    @cached_property
    def given(self) -> Given:
        """What each session was given."""
        return Given(self.journal)

    @cached_property
    def smart(self) -> Smart:
        """The mode for prompts."""
        return Smart(self.candidates, self.settings, self.scope)

    def _page(self, mode: str, event: Event, project: str, given: frozenset[str]) -> Page:
        lake, own = self.candidates.open_lake, event.session_id
        if mode == "full":
            page = page_for_start(lake(), project, own)
        elif mode == "file":
            page = page_for_files(lake(), self.candidates, event.files, project, own, given, self.settings.max_results)
        else:
            page = self._for_prompt(event, project, given)
        return replace(page, quotations=tuple(page.news(given)))

    def _for_prompt(self, event: Event, project: str, given: frozenset[str]) -> Page:
        judged, notes = self.smart.find(event.prompt, project, event.session_id, given, self.clock())
        chosen = [one for one in judged if not one.why_not]
        sure = {one.candidate.id: one.confidence.value for one in chosen}
        quoted = quotations(self.candidates.open_lake(), [one.candidate for one in chosen], sure) if chosen else []
        return Page(
            tuple(quoted),
            {one.candidate.id: keys_of(one.candidate) for one in chosen},
            frozenset(one.candidate.id for one in chosen if one.candidate.level == MEMORIES),
            judged=tuple(judged),
            notes=notes,
        )

    def _told(self, mode: str, event: Event, page: Page) -> Answer | None:
        """Render what fits, and note it; None when some of it was told meanwhile."""
        told = render(page.quotations, self.settings.max_tokens, self.emails)
        if not told.quotations:
            return Answer(why=_silent(page), judged=page.judged, notes=page.notes)
        now = self.clock()
        shown = [one.key for one in told.quotations]
        keys = sorted({key for one in told.quotations for key in page.keys_of(one)})
        sure = tuple((one.key, round(one.confidence or 0.0, 4)) for one in told.quotations)
        if not self.given.claim(Line(now, event.session_id, mode, tuple(keys), told.tokens, sure)):
            return None
        self._note([name for name in shown if name in page.memories], page.how, now)
        return Answer(told, "", page.judged, page.notes)

    def _note(self, memories: Sequence[str], how: How, now: datetime) -> None:
        if memories:
            note_recall(self.journal, memories, now, how)


def _silent(page: Page) -> str:
    if page.quotations:
        return "nothing fits into max_tokens"
    return f"nothing is sure enough of {len(page.judged)}" if page.judged else "nothing is known"
