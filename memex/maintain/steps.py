"""From the lake to the plan of one step of one scope."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from memex.embed.base import Embedder
from memex.maintain.compress import compress
from memex.maintain.consolidate import Near, consolidate
from memex.maintain.decide import Decider
from memex.maintain.gate import Verdict, gate
from memex.maintain.graph import Change, Graph, Step, Unit, Vetoes
from memex.maintain.journal import Journal, Scope, marker
from memex.maintain.neighbours import Neighbourhood, nearest_by_vector
from memex.maintain.rollup import Extraction, roll_up
from memex.maintain.similar import Similarity
from memex.maintain.sleep import COLUMNS, horizon_of, sleep, tired
from memex.maintain.stored import read_digests, read_graph
from memex.model import Memory
from memex.settings import MaintainSettings
from memex.store.lake import Lake, in_list

SETTLED = "settled"


@dataclass(frozen=True, slots=True)
class Planned:
    """What a step would do in one scope.

    units: what is shown and can be taken back. notices: what is noted beside them. refused: why a person must say
    yes first. error: what stopped the planner; the units before it count.
    """

    units: tuple[Unit, ...] = ()
    notices: tuple[Unit, ...] = ()
    verdict: Verdict | None = None
    notes: tuple[str, ...] = ()
    refused: str = ""
    error: Exception | None = None

    @property
    def all(self) -> tuple[Unit, ...]:
        """All that is to be committed."""
        return (*self.units, *self.notices)


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans steps; reads the lake and writes nothing."""

    lake: Lake
    journal: Journal
    decider: Decider
    settings: MaintainSettings
    embedder: Embedder | None
    similarity: Callable[[], Similarity]
    vetoes: Vetoes
    now: datetime

    def plan(self, step: str, scope: Scope, force: bool, threshold: float | None = None) -> Planned:
        """Plan one step of one scope; nothing when it is switched off or not due."""
        match step:
            case "gate":
                return Planned(verdict=self.gate(scope)[0])
            case "consolidate":
                return self.consolidate(scope, force)
            case "compress":
                return self.compress(scope, force)
            case "rollup":
                return self.roll_up(scope, force)
            case _:
                return self.sleep(scope, force, threshold)

    def gate(self, scope: Scope) -> tuple[Verdict | None, Graph, Mapping[str, Sequence[Near]]]:
        """Judge whether consolidation should run; also give the graph and the neighbours that it was judged by."""
        new_ids = self._new(scope) if self.settings.enable_consolidation else []
        if not new_ids:
            return None, Graph(), {}
        graph = read_graph(self.lake, scope, "level = 0 AND (NOT archived OR archived_reason = 'slept')")
        new = [graph.memories[name] for name in new_ids if name in graph.memories]
        active = list(graph.active())
        hood = Neighbourhood(active, self.similarity(), self.settings.consolidation_neighbor_count)
        near = self._near(new, hood)
        verdict = gate(
            new,
            active,
            lambda memory: [(name, score or 0.0) for name, score, _words in near[memory.id]],
            self.settings.consolidation_threshold,
            self.settings.consolidation_auto_min_new_nodes,
        )
        return verdict, graph, near

    def consolidate(self, scope: Scope, force: bool) -> Planned:
        """Plan what becomes of the new memories, if the gate says so."""
        verdict, graph, near = self.gate(scope)
        if verdict is None or not (verdict.run or force):
            return Planned(verdict=verdict)
        plan = consolidate(graph, sorted(near), near, self.decider, self.vetoes.keys)
        seen = tuple(Change("memories", name, {SETTLED: False}, {SETTLED: True}) for name in plan.settled)
        notice = Unit("consolidate", f"settled {len(seen)}", SETTLED, seen, undoable=False)
        return Planned(plan.units, (notice,) if seen else (), verdict)

    def compress(self, scope: Scope, force: bool) -> Planned:
        """Plan parents, every so many talks."""
        switched_on = self.settings.enable_auto_compression
        if not switched_on or not (force or self._due("compress", scope, self.settings.compression_every_n)):
            return Planned()
        graph = read_graph(self.lake, scope, "(archived_reason IS NULL OR archived_reason != 'retired')")
        found = compress(graph, self.decider, self.now, force, self.vetoes, self._summarised(scope))
        return self._collected(found, "compress", scope)

    def roll_up(self, scope: Scope, force: bool) -> Planned:
        """Plan digests of a project; the user has none."""
        if scope[0] or not self.settings.enable_hierarchical_summary:
            return Planned()
        talks = extractions(self.lake, scope[1])
        found = roll_up(
            read_digests(self.lake, scope[1]),
            scope[1],
            talks,
            self.decider,
            self.now,
            self.settings.small_summary_every_n_extractions,
            self.settings.summary_rollup_fan_in,
            force,
        )
        return self._collected(found, "rollup", scope, mark=False)

    def sleep(self, scope: Scope, force: bool, threshold: float | None) -> Planned:
        """Plan what to put to sleep, every so many talks, when that is switched on or asked for by a threshold."""
        due = self.settings.enable_sleep_cycle and (force or self._due("sleep", scope, self.settings.sleep_every_n))
        if not due and threshold is None:
            return Planned()
        limit = self.settings.forget_threshold if threshold is None else threshold
        frame = self.lake.frame("memories", list(COLUMNS), where_scope(scope))
        ids = list(tired(frame, self.now, limit)["id"])
        graph = read_graph(self.lake, scope, "NOT archived") if ids else Graph()
        why = f"worth less than {limit:.3g}, which is {_span(limit)} for importance 5"
        plan = sleep(graph, ids, why, self.vetoes.sleep)
        first = self.journal.heads(f"step = 'sleep' AND undoable AND {where_scope(scope)}").is_empty()
        most = f"{plan.sleeping} of {plan.awake} memories would sleep, more than half: say --yes"
        return Planned(
            plan.units, self._marked("sleep", scope, plan.units), refused=most if first and plan.most else ""
        )

    def _new(self, scope: Scope) -> list[str]:
        where = f"{where_scope(scope)} AND NOT archived AND level = 0 AND (settled IS NULL OR NOT settled)"
        return list(self.lake.frame("memories", ["id"], where)["id"].sort())

    def _near(self, new: Sequence[Memory], hood: Neighbourhood) -> dict[str, list[Near]]:
        limit = self.settings.consolidation_neighbor_count
        has_vectors = self.embedder and self.lake.dimension("memories") == self.embedder.dimension
        cosines = nearest_by_vector(self.lake, new, self.embedder.model, limit) if self.embedder and has_vectors else {}
        return {memory.id: hood.near(memory, cosines.get(memory.id, ())) for memory in new}

    def _collected(self, found: Iterable[Unit], step: Step, scope: Scope, mark: bool = True) -> Planned:
        """Take what the planner yields; an error ends it, and what came before counts."""
        units: list[Unit] = []
        try:
            units.extend(found)
        except Exception as error:
            return Planned(tuple(units), error=error)
        return Planned(tuple(units), self._marked(step, scope, units) if mark else ())

    def _marked(self, step: Step, scope: Scope, units: Sequence[Unit]) -> tuple[Unit, ...]:
        """Note that a step ran, unless nothing is new since it ran last."""
        count = self._count(scope)
        return (marker(step, count),) if units or count != self.journal.last_count(scope, step) else ()

    def _due(self, step: Step, scope: Scope, every: int) -> bool:
        return self._count(scope) - self.journal.last_count(scope, step) >= every

    def _count(self, scope: Scope) -> int:
        """Count the talks that left memories, or were found to leave none."""
        return self.lake.count("extractions", "true" if scope[0] else in_list("project_id", [scope[1]]))

    def _summarised(self, scope: Scope) -> frozenset[tuple[str, int]]:
        where = "served" if scope[0] else f"served AND {in_list('project_id', [scope[1]])}"
        rows = self.lake.frame("talk_summaries", ["session_id", "prompt_number"], where)
        return frozenset(rows.iter_rows())


def extractions(lake: Lake, project_id: str) -> list[Extraction]:
    """Read the compacted talks of a project in event time; those of subagents are inside the talks that sent them."""
    import polars as pl

    columns = ["id", "session_id", "prompt_number", "user_request", "summary", "completed", "occurred_at"]
    rows = lake.frame("talk_summaries", columns, f"served AND {in_list('project_id', [project_id])}")
    sessions = lake.frame("sessions", ["id"], "kind != 'subagent'").rename({"id": "session_id"})
    mine = in_list("session_id", rows["session_id"].unique().to_list())
    talks = lake.frame("talks", ["session_id", "prompt_number", "messages"], mine)
    told = (
        rows.join(sessions, on="session_id", how="semi")
        .join(talks, on=["session_id", "prompt_number"], how="left")
        .sort("occurred_at", "session_id", "prompt_number", nulls_last=False)
    )
    text = pl.concat_str(["user_request", "summary", "completed"], separator="\n", ignore_nulls=True)
    wanted = told.select("id", text, "occurred_at", pl.col("messages").fill_null(0))
    return [Extraction(*row) for row in wanted.iter_rows()]


def where_scope(scope: Scope) -> str:
    """Write the predicate that picks the rows of a scope."""
    return f"{in_list('owner', [scope[0]])} AND {in_list('project_id', [scope[1]])}"


def _span(threshold: float) -> str:
    hours = horizon_of(threshold).total_seconds() / 3600 if threshold > 0 else 1e9
    return f"{hours:.0f} hours" if hours < 48 else f"{hours / 24:,.0f} days"
