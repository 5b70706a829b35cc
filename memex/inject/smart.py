"""The few memories that help with a prompt, or none: what `--mode=smart` answers."""

import logging
import time
from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime

from memex.inject.ahead import Ahead
from memex.inject.candidates import Candidates, Near, merged
from memex.inject.choose import Bar, Judged, choose, judge
from memex.inject.confidence import Weights, weights
from memex.inject.evidence import Asked, rarity_of
from memex.inject.scope import Scope
from memex.settings import InjectSettings
from memex.store.lake import Lake, in_list

log = logging.getLogger("memex.inject")

SHARE = 0.5
"""Of the hook's time, what the vectors may take; the rest is for everything else, the hook's own start included."""


@dataclass
class Smart:
    """Finds and judges. `table` are the weights of the confidence."""

    candidates: Candidates
    settings: InjectSettings
    scope: Scope
    table: Weights = field(default_factory=weights)
    ahead: Ahead[Near] = field(default_factory=Ahead)

    def find(
        self, prompt: str, project: str, session: str, given: Collection[str], now: datetime
    ) -> tuple[list[Judged], tuple[str, ...]]:
        """Judge what there is for a prompt, the surest first; tell as well which leg did not answer.

        The words answer in time also when the vectors do not. Nothing of `session` or of what was `given` is chosen.
        """
        until = time.monotonic() + SHARE * self.settings.timeout_seconds
        asked = Asked.of(prompt)
        if not asked.words:
            return [], ()
        where = project if self.settings.project_scope == "current" else None
        coming = self.ahead.start(lambda: self.candidates.by_meaning(prompt, where))
        words = self.candidates.by_words(prompt, asked.words, where)
        about = self.table.evidence
        rarity = rarity_of(asked, self.candidates.summaries.frequencies, about.common, about.rare, about.fewest)
        near, notes = self._near(coming, until)
        found = [one for one in merged(words, near) if not self.scope.hides(one.project_id)]
        judged = judge(found, asked, rarity, self.table, now)
        return self._chosen(judged, project, session, given), notes

    def _near(self, coming: "Future[Near] | None", until: float) -> tuple[Near | None, tuple[str, ...]]:
        """Wait for the vectors; without them the words decide alone."""
        try:
            near = self.ahead.wait(coming, until)
        except Exception as error:  # whatever a model may raise: the words have an answer
            log.warning("the vectors did not answer: %s", error)
            return None, (f"the vectors did not answer: {error}",)
        return near, (("the vectors came too late: judged by words alone",) if near is None else ())

    def _chosen(self, judged: list[Judged], project: str, session: str, given: Collection[str]) -> list[Judged]:
        bar = self._bar(project)
        decided = choose(judged, bar, {session}, given, self.settings.max_results)
        if any(not one.why_not for one in decided):  # only then is it worth a look
            own = kin(self.candidates.open_lake(), session)
            decided = choose(judged, bar, own, given, self.settings.max_results)
        return decided

    def _bar(self, project: str) -> Bar:
        threshold = self.settings.similarity_threshold
        return Bar(threshold, project, threshold + (1 - threshold) * self.table.scope.other_projects)


def kin(lake: Lake, session: str) -> frozenset[str]:
    """List a session, its subagents, and the one that it goes on from: what they said was said in it."""
    me = in_list("id", [session])
    rows = lake.scan("sessions", ["id", "parent_id", "kind"], f"{me} OR {in_list('parent_id', [session])}").to_pylist()
    parents = {row["parent_id"] for row in rows if row["id"] == session and row["kind"] == "fork" and row["parent_id"]}
    return frozenset({session, *(row["id"] for row in rows), *parents})
