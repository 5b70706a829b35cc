"""The verb: keep the graph small and true, step by step, scope by scope.

A scope is a project, or what the user wants in all projects. Whoever works on one is alone with it, and first
carries out what a crash left open. A dry run plans the same units and commits none.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from memex.embed.base import Embedder
from memex.errors import CannotUndo, translated_os_errors
from memex.maintain.decide import Decider
from memex.maintain.derive import OWNER, Derived, derive, pending_talks
from memex.maintain.extract import MemoryWriter
from memex.maintain.gate import Verdict
from memex.maintain.graph import Unit, Vetoes
from memex.maintain.journal import Entry, Journal, Scope
from memex.maintain.person import act_of, memory_of, write_remembered
from memex.maintain.recalls import fold_recalls
from memex.maintain.similar import Similarity
from memex.maintain.steps import Planned, Planner, where_scope
from memex.maintain.stored import read_graph, read_touched
from memex.maintain.undo import reverse, vetoes_of
from memex.maintain.vectors import fill_memory_vectors
from memex.model import Memory
from memex.settings import MaintainSettings
from memex.store.lake import Lake, in_list

log = logging.getLogger("memex.maintain")

StepName = Literal["derive", "gate", "consolidate", "compress", "rollup", "sleep", "index"]
STEPS: tuple[StepName, ...] = ("derive", "gate", "consolidate", "compress", "rollup", "sleep", "index")
USER: Scope = (OWNER, "")
Tick = Callable[[int], None]


class Log(Protocol):
    """What a person did, kept where nothing can be lost."""

    def add(self, act: Any, **about: Any) -> dict[str, Any]:
        """Append one act, on disk before it returns."""
        ...

    def read(self, *acts: Any) -> Iterator[dict[str, Any]]:
        """Yield the acts of some kinds, oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class StepReport:
    """What a step did, or would do: units by what they are, verdicts of the gate, and what a person should know."""

    step: str
    scopes: int = 0
    units: int = 0
    changed: int = 0
    derived: Derived = field(default_factory=Derived)
    embedded: int = 0
    verdicts: tuple[tuple[str, Verdict], ...] = ()
    notes: tuple[str, ...] = ()
    planned: tuple[tuple[str, Unit], ...] = field(default=(), repr=False)

    def __add__(self, other: "StepReport") -> "StepReport":
        return StepReport(
            self.step or other.step,
            self.scopes + other.scopes,
            self.units + other.units,
            self.changed + other.changed,
            self.derived + other.derived,
            self.embedded + other.embedded,
            (*self.verdicts, *other.verdicts),
            (*self.notes, *other.notes),
            (*self.planned, *other.planned),
        )


@dataclass(frozen=True, slots=True)
class Maintain:
    """The verb with its parts. `recalls` is the folder of recall events; without an embedder words alone decide."""

    lake: Lake
    log: Log
    recalls: Path
    decider: Decider
    writer: MemoryWriter | None
    settings: MaintainSettings
    embedder: Embedder | None = None
    similarity: Callable[[], Similarity] = Similarity
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def journal(self) -> Journal:
        """What was done, and can be taken back."""
        return Journal(self.lake)

    def scopes(self, projects: Sequence[str] | None = None) -> list[str]:
        """List the projects to maintain, "" for what holds in all of them; given ones, or all that have something."""
        if projects is not None:
            return list(dict.fromkeys(projects))
        scans = [self.lake.scan(t, ["project_id"]) for t in ("memories", "talk_summaries", "extractions")]
        found = {project for rows in scans for project in rows["project_id"].unique().to_pylist()}
        remembered = {act["project_id"] for act in self.log.read("remember")}
        return sorted({*found, *remembered, ""} - {None})

    def step(
        self,
        step: StepName,
        projects: Sequence[str],
        force: bool = False,
        dry_run: bool = False,
        threshold: float | None = None,
        yes: bool = False,
        tick: Tick = lambda _count: None,
    ) -> StepReport:
        """Do one step for some projects ("" for the user); what is not due is not done, unless forced.

        `threshold` is that of sleep, `yes` lets a first sleep take more than half. `tick` gets the projects done.

        Raises:
            StoreBusy: something was forgotten meanwhile, or another process works there (Transient).
        """
        report = StepReport(step)
        if step == "derive" and not dry_run:
            self._begin()
        vetoes = vetoes_of(list(self.log.read("undo")))
        planner = Planner(
            self.lake, self.journal, self.decider, self.settings, self.embedder, self.similarity, vetoes, self.clock()
        )
        for project in projects:
            scope = scope_of_project(project)
            if dry_run or step == "gate":
                report += self._dry(step, scope, planner, force, threshold)
            else:
                with self._alone(scope, *([USER] if step == "derive" else [])):
                    report += self._do(step, scope, planner, force, threshold, yes)
            tick(1)
        if step == "index" and not dry_run:
            self._begun.unlink(missing_ok=True)
        return report

    @property
    def is_unfinished(self) -> bool:
        """Whether a run was stopped before its last step, which the counts of what is pending do not tell."""
        return self._begun.exists()

    @property
    def _begun(self) -> Path:
        return self.recalls / "maintain.begun"

    def _begin(self) -> None:
        with translated_os_errors(self.recalls):
            self.recalls.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._begun.touch()

    def pending(self, projects: Sequence[str] | None = None) -> dict[str, int]:
        """Count the talks whose memories are to be made, by project."""
        if self.writer is None:
            return {}
        rows = pending_talks(self.lake, self.writer)
        counts = dict(rows["project_id"].value_counts().iter_rows())
        return {p: n for p, n in counts.items() if projects is None or p in projects}

    def remember(
        self, text: str, kind: str, project_id: str, name: str = "", importance: float | None = None
    ) -> Memory:
        """Note what a person wants remembered, and make the memory; "" is the project of what holds everywhere."""
        act = self.log.add("remember", **act_of(text, kind, project_id, name, importance))
        scope = scope_of_project(act["project_id"])
        vetoes = vetoes_of(list(self.log.read("undo")))
        with self._alone(scope):
            write_remembered(self.journal, scope, [act], vetoes, self.clock(), self.lake.epoch())
        return memory_of(act, self.clock())

    def undo(self, name: str = "", projects: Sequence[str] | None = None) -> Entry:
        """Take back the latest unit that can be, or the one whose id begins with `name`; return it.

        Raises:
            NotFound: there is none, or more than one is called so.
            CannotUndo: what it changed was changed again since.
        """
        entry = self.journal.find(name, projects)
        with self._alone(entry.scope):
            back = reverse(read_touched(self.lake, entry.unit.changes), entry.unit)
            put_away = [c.id for c in entry.unit.changes if c.after and c.after.get("archived")]
            self.log.add("undo", entry=entry.id, unit=entry.unit.key, step=entry.unit.step, members=put_away)
            self.journal.commit(entry.scope, [back], self.clock(), self.lake.epoch(), {entry.id: "undone"})
        return entry

    def _do(
        self,
        step: StepName,
        scope: Scope,
        planner: Planner,
        force: bool,
        threshold: float | None,
        yes: bool,
    ) -> StepReport:
        now, epoch = self.clock(), self.lake.epoch()
        if step == "derive":
            return self._derive(scope, planner.vetoes, now, epoch)
        if step == "index":
            return StepReport(step, 1, embedded=self._embed(scope))
        if step == "consolidate" and self.embedder:
            self._embed(scope, "NOT settled")
        planned = planner.plan(step, scope, force, threshold)
        if planned.refused and not yes:
            return self._report(step, scope, Planned(verdict=planned.verdict, notes=(planned.refused,)))
        self.journal.commit(scope, planned.all, now, epoch)
        if planned.error:
            raise planned.error
        return self._report(step, scope, planned)

    def _dry(self, step: StepName, scope: Scope, planner: Planner, force: bool, threshold: float | None) -> StepReport:
        if step in ("derive", "index"):
            talks = self.pending([scope[1]]).get(scope[1], 0) if step == "derive" and scope != USER else 0
            return StepReport(step, 1, derived=Derived(talks))
        return self._report(step, scope, planner.plan(step, scope, force, threshold))

    def _report(self, step: str, scope: Scope, planned: Planned) -> StepReport:
        name = scope[1] or scope[0]
        notes = tuple(f"{name}: {note}" for note in (*planned.notes, planned.refused) if note)
        return StepReport(
            step,
            1,
            len(planned.units),
            sum(len(unit.changes) for unit in planned.units),
            verdicts=((name, planned.verdict),) if planned.verdict else (),
            notes=notes,
            planned=tuple((name, unit) for unit in planned.units),
        )

    def _derive(self, scope: Scope, vetoes: Vetoes, now: datetime, epoch: int) -> StepReport:
        """Make what is pending below: the memories of talks and of the person, and the counters of recalls."""
        made = derive(self.lake, self.writer, scope[1], now) if self.writer and scope != USER else Derived()
        remembered = write_remembered(self.journal, scope, list(self.log.read("remember")), vetoes, now, epoch)
        folded = self._folded(scope)
        counted = fold_recalls(read_graph(self.lake, scope), self.recalls, folded) if self._has_events(folded) else []
        self.journal.commit(scope, counted, now, epoch)
        return StepReport("derive", 1, remembered, sum(len(u.changes) for u in counted), made)

    def _folded(self, scope: Scope) -> dict[str, int]:
        where = f"step = 'recall' AND {where_scope(scope)}"
        rows = self.journal.heads(where).group_by("why").agg(bytes="count").to_dicts()
        return {row["why"]: max(row["bytes"]) for row in rows}

    def _has_events(self, folded: dict[str, int]) -> bool:
        return any(path.stat().st_size > folded.get(path.name, 0) for path in self.recalls.glob("recalls-*.jsonl"))

    def _embed(self, scope: Scope, where: str = "true") -> int:
        if self.embedder is None:
            return 0
        return fill_memory_vectors(self.lake, self.embedder, f"{where_scope(scope)} AND {where}")

    @contextmanager
    def _alone(self, *scopes: Scope) -> Iterator[None]:
        """Work on scopes alone, after making good what a crash left there."""
        with self.lake.alone_with([f"maintain {owner} {project}" for owner, project in scopes]):
            for scope in scopes:
                self.journal.settle(scope)
                self._finish_undo(scope)
            yield

    def _finish_undo(self, scope: Scope) -> None:
        """Take back what a person wanted back when a crash came between."""
        wanted = in_list("id", sorted({act["entry"] for act in self.log.read("undo")}))
        for entry in self.journal.entries(scope, f"state = 'done' AND {wanted}"):
            try:
                back = reverse(read_touched(self.lake, entry.unit.changes), entry.unit)
            except CannotUndo as error:
                log.warning("%s", error)
                continue
            self.journal.commit(scope, [back], self.clock(), None, {entry.id: "undone"})


def scope_of_project(project: str) -> Scope:
    """Give the scope of a project; "" is that of the user."""
    return ("", project) if project else USER


def run_all(
    maintain: Maintain,
    projects: Sequence[str] | None = None,
    steps: Iterable[StepName] = STEPS,
    force: bool = False,
    dry_run: bool = False,
) -> list[StepReport]:
    """Do steps in their order for some projects, or all."""
    wanted = set(steps)
    return [maintain.step(s, maintain.scopes(projects), force, dry_run) for s in STEPS if s in wanted]
