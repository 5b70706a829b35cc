"""From pending units to rows: gather the text of each, have it written, price it."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, TypeVar

from memex.compact.observations import observation_of
from memex.compact.plan import UNIT
from memex.compact.recipe import recipe_of
from memex.compact.sessions import write_session
from memex.compact.talks import TalkText, read_talks, write_talk
from memex.errors import DiskFull, HomeError, Stopped
from memex.llm.base import OperationInput, SummaryLevel, TalkOutline, Writer
from memex.model import Observation, Origin, SessionSummary, TalkSummary
from memex.store.lake import Lake, in_list
from memex.text import estimate_tokens

if TYPE_CHECKING:
    import polars as pl

Job = TypeVar("Job")
Result = TypeVar("Result")
Row = Observation | TalkSummary | SessionSummary

FATAL = (OSError, HomeError, DiskFull)
"""What is no fault of a unit, and ends the run."""


@dataclass(frozen=True, slots=True)
class Written:
    """What became of one unit: its row, or the error that stopped it."""

    unit: dict[str, Any]
    row: Row | None
    error: Exception | None = None


def write_units(
    lake: Lake,
    writer: Writer,
    level: SummaryLevel,
    units: "pl.DataFrame",
    talks: "pl.DataFrame",
    now: datetime,
) -> Iterator[Written]:
    """Write the row of every unit, as many at once as the writer takes, in any order.

    A unit that fails is reported, and the next one goes on. When the writer is `Stopped`, no further unit is begun;
    those under way are reported, and those that were stopped.
    """
    jobs = _session_jobs(lake, units, talks) if level == "sessions" else _talk_jobs(lake, units, talks)
    recipe = str(recipe_of(writer, level))
    stop = threading.Event()

    def work(job: tuple[list[dict[str, Any]], Any]) -> list[Written]:
        if stop.is_set():
            return []
        made = _written(writer, level, job, recipe, now)
        if any(isinstance(one.error, Stopped) for one in made):
            stop.set()
        return made

    for made in _at_once(work, jobs, writer.workers, stop):
        yield from made


def _at_once(
    work: Callable[[Job], Result], jobs: Iterator[Job], workers: int, stop: threading.Event
) -> Iterator[Result]:
    """Do jobs in threads, a few more in hand than there are workers; one worker needs no thread."""
    if workers == 1:
        yield from map(work, takewhile(lambda _job: not stop.is_set(), jobs))
        return
    with ThreadPoolExecutor(workers) as pool:
        running = {pool.submit(work, job) for job in islice(jobs, 2 * workers)}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                if not stop.is_set():
                    running |= {pool.submit(work, job) for job in islice(jobs, len(done))}
                for one in done:
                    yield one.result()
        finally:
            stop.set()


def _written(
    writer: Writer, level: SummaryLevel, job: tuple[list[dict[str, Any]], Any], recipe: str, now: datetime
) -> list[Written]:
    """Have the units of one job written: the operations of a talk, a talk, or a session."""
    units, given = job
    origins = [_origin(writer, unit, recipe, now) for unit in units]
    if level == "observations":
        return _written_observations(writer, units, given, origins)
    write = _write_session if level == "sessions" else _write_talk
    try:
        return [Written(units[0], _measured(write(writer, given, origins[0])))]
    except FATAL:
        raise
    except Exception as error:
        return [Written(units[0], None, error)]


def _written_observations(
    writer: Writer, units: list[dict[str, Any]], talk: TalkText, origins: list[Origin]
) -> list[Written]:
    by_id = {call.id: call for call in talk.calls}
    groups = [tuple(by_id[name] for name in unit["call_ids"] if name in by_id) for unit in units]
    try:
        answers = writer.observations([OperationInput(talk.request, calls, talk.cwd) for calls in groups])
    except Stopped as error:
        return [Written(unit, None, error) for unit in units]
    made = []
    for unit, calls, origin, answer in zip(units, groups, origins, answers, strict=True):
        if isinstance(answer, FATAL):
            raise answer
        if isinstance(answer, Exception):
            made.append(Written(unit, None, answer))
            continue
        origin = _priced(origin, unit["call_ids"], [c.input + c.output for c in calls])
        made.append(Written(unit, _measured(observation_of(answer, calls, talk, origin))))
    return made


def _write_talk(writer: Writer, talk: TalkText, origin: Origin) -> TalkSummary:
    texts = [talk.request, *talk.replies, *(c.input + c.output for c in talk.calls)]
    return write_talk(writer, talk, _priced(origin, [*talk.message_ids, *(c.id for c in talk.calls)], texts))


def _write_session(
    writer: Writer, given: tuple[dict[str, Any], list[dict[str, Any]]], origin: Origin
) -> SessionSummary:
    about, rows = given
    outlines = [_outline(row) for row in rows]
    origin = _priced(origin, [row["id"] for row in rows], [o.user_request + o.summary + o.completed for o in outlines])
    return write_session(writer, about, outlines, about["ended_at"], origin)


def _origin(writer: Writer, unit: dict[str, Any], recipe: str, now: datetime) -> Origin:
    return Origin(
        fingerprint=unit["fingerprint"],
        recipe=recipe,
        provider=writer.provider,
        model=writer.model,
        sources=(),
        tokens_input=0,
        tokens_output=0,
        cost_usd=0.0,
        created_at=now,
    )


def _talk_jobs(
    lake: Lake, units: "pl.DataFrame", talks: "pl.DataFrame"
) -> Iterator[tuple[list[dict[str, Any]], TalkText]]:
    """Pair the units of each talk with its text, one session in memory at a time."""
    of_talk: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for unit in units.to_dicts():
        of_talk.setdefault((unit["session_id"], unit["prompt_number"]), []).append(unit)
    for session in talks.join(units, on=UNIT, how="semi").partition_by("session_id", maintain_order=True):
        for text in read_talks(lake, session.to_dicts()):
            yield of_talk[text.session_id, text.prompt_number], text


def _session_jobs(
    lake: Lake, units: "pl.DataFrame", talks: "pl.DataFrame"
) -> Iterator[tuple[list[dict[str, Any]], Any]]:
    """Pair each session with its facts and its served L2 rows, in order."""
    columns = ["id", *UNIT, "user_request", "summary", "completed", "files_involved"]
    where = f"{in_list('session_id', units['session_id'].to_list())} AND served"
    rows = lake.frame("talk_summaries", columns, where).sort(UNIT)
    for unit in units.to_dicts():
        mine = talks.filter(session_id=unit["session_id"])
        yield [unit], (mine.row(-1, named=True), rows.join(mine, on=UNIT, how="semi").to_dicts())


def _outline(row: dict[str, Any]) -> TalkOutline:
    return TalkOutline(row["user_request"], row["summary"], row["completed"], tuple(row["files_involved"] or ()))


def _priced(origin: Origin, sources: Sequence[str], texts: Sequence[str]) -> Origin:
    return replace(origin, sources=tuple(sources), tokens_input=sum(map(estimate_tokens, texts)))


def _measured(row: Row) -> Row:
    """Note how many tokens the row itself takes."""
    parts = [getattr(row, name, "") for name in ("title", "narrative", "user_request", "summary", "completed")]
    parts += [" ".join(getattr(row, name, ())) for name in ("facts", "key_points")]
    return replace(row, origin=replace(row.origin, tokens_output=sum(map(estimate_tokens, filter(None, parts)))))
