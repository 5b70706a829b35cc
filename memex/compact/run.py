"""The verb: plan what is pending at the levels that are on, and make it, batch by batch of sessions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from memex.compact.failures import record_failures, waiting_units
from memex.compact.plan import UNIT, Changes, compare, stored_rows, talk_states, withheld
from memex.compact.units import growing_units, source_sizes, wanted_units
from memex.compact.write import write_units
from memex.errors import Stopped, StoreBusy
from memex.llm.base import Price, SummaryLevel, Writer
from memex.settings import CompactSettings
from memex.store.lake import LOCK_SECONDS, Lake, in_list
from memex.store.schemas import SUMMARY_TABLES, rows_to_arrow, to_arrow

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

LEVELS: tuple[SummaryLevel, ...] = ("observations", "talks", "sessions")
Tick = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class CompactPlan:
    """What is pending: units by level, units by reason, and the sessions they are in, in batches."""

    pending: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    batches: tuple[tuple[str, ...], ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.batches


@dataclass(frozen=True, slots=True)
class CompactReport:
    """Rows made by level, units that failed, estimated tokens that the rows stand for and take, and their price.

    `stopped` says why it ended before everything was made; what is left is pending.
    """

    made: Mapping[str, int] = field(default_factory=dict)
    failed: int = 0
    tokens_input: int = 0
    tokens_output: int = 0
    cost_usd: float = 0.0
    stopped: str = ""

    def __add__(self, other: "CompactReport") -> "CompactReport":
        return CompactReport(
            _sum(self.made, other.made),
            self.failed + other.failed,
            self.tokens_input + other.tokens_input,
            self.tokens_output + other.tokens_output,
            self.cost_usd + other.cost_usd,
            self.stopped or other.stopped,
        )


@dataclass(frozen=True, slots=True)
class Compact:
    """The verb with its parts. `levels` names those that are on; `clock` decides which talks are over.

    No writer that sends text away gets to see a project that is `excluded` (glob patterns).
    """

    lake: Lake
    writer: Writer
    settings: CompactSettings
    levels: tuple[str, ...]
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    excluded: tuple[str, ...] = ()

    def plan(
        self, sessions: Sequence[str] | None = None, delay: timedelta = timedelta(), force: bool = False
    ) -> CompactPlan:
        """Compute what is pending, in all sessions or in some; no text is read.

        `delay` leaves sessions alone that ended less than so long ago; `force` wants everything again.
        """
        pending: dict[str, int] = {}
        reasons: dict[str, int] = {}
        touched: set[str] = set()
        talks = self._talks(sessions, delay)
        for level in self._levels():
            changes = self._changes(level, talks, sessions, force)
            if not changes.make.is_empty():
                pending[level] = len(changes.make)
                reasons = _sum(reasons, dict(changes.make["why"].value_counts().iter_rows()))
            touched.update(changes.make["session_id"], self._sessions_of(level, (*changes.revive, *changes.retire)))
        ids, size = _newest_first(touched, talks), self.settings.batch_sessions
        return CompactPlan(pending, reasons, tuple(tuple(ids[i : i + size]) for i in range(0, len(ids), size)))

    def price(
        self, sessions: Sequence[str] | None = None, delay: timedelta = timedelta(), force: bool = False
    ) -> dict[str, Price]:
        """Estimate, by level, what making everything pending would take. What waits for a lower level is not in it."""
        talks = self._talks(sessions, delay)
        prices: dict[str, Price] = {}
        for level in self._levels():
            make = self._changes(level, talks, sessions, force).make
            if not make.is_empty():
                prices[level] = self.writer.price(level, source_sizes(self.lake, level, make))
        return prices

    def run(
        self,
        sessions: Sequence[str],
        delay: timedelta = timedelta(),
        force: bool = False,
        tick: Tick = lambda _count: None,
        patience: float = LOCK_SECONDS,
    ) -> CompactReport:
        """Make what is pending in these sessions. Each level is one commit, so an interrupted run resumes.

        Whoever else is at one of these sessions is waited for, `patience` seconds: what it made need not be made
        twice.

        Raises:
            StoreBusy: it took longer; or something was forgotten meanwhile, perhaps what was read here, and nothing
                of it was written.
        """
        with self.lake.alone_with(sessions, patience):
            return self._run(sessions, delay, force, tick)

    def _run(self, sessions: Sequence[str], delay: timedelta, force: bool, tick: Tick) -> CompactReport:
        report = CompactReport()
        epoch = self.lake.epoch()
        talks = self._talks(sessions, delay)
        for level in self._levels():
            changes = self._changes(level, talks, sessions, force)
            if level == "sessions":
                changes = self._with_l2(changes, talks)
            if not changes.empty:
                with self._discarding(epoch):
                    report += self._apply(level, changes, talks, tick, epoch)
            if report.stopped:
                break
        return report

    def _levels(self) -> Iterator[SummaryLevel]:
        return (level for level in LEVELS if level in self.levels)

    def _talks(self, sessions: Sequence[str] | None, delay: timedelta) -> "pl.DataFrame":
        idle = max(timedelta(minutes=self.settings.idle_minutes), delay)
        talks = talk_states(self.lake, self.clock(), idle, sessions)
        return talks if self.writer.local else withheld(talks, self.excluded)

    def _changes(
        self, level: SummaryLevel, talks: "pl.DataFrame", sessions: Sequence[str] | None, force: bool
    ) -> Changes:
        import polars as pl

        wanted = wanted_units(self.lake, level, talks, self.writer, self.settings.l1, sessions)
        waiting = waiting_units(self.lake, level, self.clock())
        if level == "sessions":  # a session waits with any of its talks
            held = waiting_units(self.lake, "talks", self.clock()).with_columns(prompt_number=pl.lit(0, pl.Int64))
            waiting = pl.concat([waiting, held]).unique()
        return compare(wanted, stored_rows(self.lake, level, sessions), growing_units(level, talks), waiting, force)

    def _with_l2(self, changes: Changes, talks: "pl.DataFrame") -> Changes:
        """Leave out the sessions of which a talk has no summary yet."""
        l2 = stored_rows(self.lake, "talks", talks["session_id"].unique().to_list()).filter("served")
        short = talks.filter("complete").join(l2, on=UNIT, how="anti")["session_id"].unique()
        return Changes(
            changes.make.filter(~changes.make["session_id"].is_in(short.to_list())),
            changes.revive,
            changes.retire,
        )

    def _sessions_of(self, level: SummaryLevel, ids: Sequence[str]) -> Sequence[str]:
        return list(self.lake.frame(SUMMARY_TABLES[level], ["session_id"], in_list("id", ids))["session_id"])

    def _apply(
        self, level: SummaryLevel, changes: Changes, talks: "pl.DataFrame", tick: Tick, epoch: int
    ) -> CompactReport:
        import pyarrow as pa

        table, now = SUMMARY_TABLES[level], self.clock()
        written = []
        for result in write_units(self.lake, self.writer, level, changes.make, talks, now):
            written.append(result)
            tick(1)
        rows = [w.row for w in written if w.row is not None]
        errors = [(w.unit, w.error) for w in written if w.error is not None]
        failed = [(unit, error) for unit, error in errors if not isinstance(error, Stopped)]
        done = [w.unit for w in written if w.row is not None]
        switched = self._switched(table, changes, _missed(changes.make, done), now)
        made = to_arrow(table, rows, {"served": True})
        self.lake.upsert(table, pa.concat_tables([switched, made], promote_options="default"), epoch)
        record_failures(self.lake, level, failed, done, now, epoch)
        self.settle()
        return CompactReport(
            {level: len(rows)},
            len(failed),
            sum(row.origin.tokens_input for row in rows),
            sum(row.origin.tokens_output for row in rows),
            sum(row.origin.cost_usd for row in rows),
            next((_told(error) for _unit, error in errors if isinstance(error, Stopped)), ""),
        )

    @contextmanager
    def _discarding(self, epoch: int) -> Iterator[None]:
        """Keep no answer about what was forgotten while it was read."""
        try:
            yield
        except StoreBusy:
            if self.lake.epoch() != epoch:
                self.writer.committed()
            raise

    def settle(self) -> None:
        """Put the calls that were paid for into the ledger; what they answered is in the lake."""
        self.lake.upsert("ledger", rows_to_arrow("ledger", self.writer.spent()))
        self.writer.committed()

    def _switched(self, table: str, changes: Changes, missed: set[tuple[str, int]], now: datetime) -> "pa.Table":
        """Read the rows that start or stop being served, switched. Where a new row was not made, the old one stays."""
        import pyarrow as pa

        rows = self.lake.scan(table, None, in_list("id", [*changes.revive, *changes.retire])).to_pylist()
        back = set(changes.revive)
        rows = [r for r in rows if r["id"] in back or (r["session_id"], r.get("prompt_number", 0)) not in missed]
        for row in rows:
            row["served"] = row["id"] in back
            row["replaced_at"] = None if row["served"] else now
        return pa.Table.from_pylist(rows, self.lake.dataset(table).schema)


def _missed(wanted: "pl.DataFrame", done: Sequence[dict[str, Any]]) -> set[tuple[str, int]]:
    """List the places of the units that were not made."""
    made = {unit["fingerprint"] for unit in done}
    return {(row[0], row[1]) for row in wanted.select(*UNIT, "fingerprint").iter_rows() if row[2] not in made}


def _newest_first(sessions: set[str], talks: "pl.DataFrame") -> list[str]:
    """Order sessions by their last talk, the newest first."""
    import polars as pl

    last = talks.group_by("session_id").agg(pl.col("ended_at").max()).sort("ended_at", "session_id", descending=True)
    ordered = [session for session in last["session_id"] if session in sessions]
    return [*ordered, *sorted(sessions.difference(ordered))]


def _told(error: Stopped) -> str:
    return f"{error}: {error.hint}" if error.hint else str(error)


def _sum(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    return {key: a.get(key, 0) + b.get(key, 0) for key in (*a, *b)}
