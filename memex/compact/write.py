"""From pending units to rows: gather the text of each, have it written, price it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memex.compact.observations import write_observation
from memex.compact.plan import UNIT
from memex.compact.recipe import recipe_of
from memex.compact.sessions import write_session
from memex.compact.talks import TalkText, read_talks, write_talk
from memex.llm.base import SummaryLevel, TalkOutline, Writer
from memex.model import Observation, Origin, SessionSummary, TalkSummary
from memex.store.lake import Lake, in_list
from memex.text import estimate_tokens

if TYPE_CHECKING:
    import polars as pl

Row = Observation | TalkSummary | SessionSummary


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
    """Write the row of every unit. A unit that fails is reported, and the next one goes on."""
    jobs = _session_jobs(lake, units, talks) if level == "sessions" else _talk_jobs(lake, units, talks)
    recipe = str(recipe_of(writer, level))
    for unit, given in jobs:
        origin = Origin(
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
        try:
            yield Written(unit, _write(writer, level, unit, given, origin))
        except OSError:
            raise
        except Exception as error:
            yield Written(unit, None, error)


def _write(writer: Writer, level: SummaryLevel, unit: dict[str, Any], given: Any, origin: Origin) -> Row:
    if level == "sessions":
        about, rows = given
        outlines = [_outline(row) for row in rows]
        origin = _priced(
            origin, [row["id"] for row in rows], [o.user_request + o.summary + o.completed for o in outlines]
        )
        return _measured(write_session(writer, about, outlines, about["ended_at"], origin))
    talk: TalkText = given
    if level == "talks":
        texts = [talk.request, *talk.replies, *(c.input + c.output for c in talk.calls)]
        origin = _priced(origin, [*talk.message_ids, *(c.id for c in talk.calls)], texts)
        return _measured(write_talk(writer, talk, origin))
    wanted = set(unit["call_ids"])
    calls = tuple(call for call in talk.calls if call.id in wanted)
    origin = _priced(origin, unit["call_ids"], [c.input + c.output for c in calls])
    return _measured(write_observation(writer, calls, talk, origin))


def _talk_jobs(lake: Lake, units: "pl.DataFrame", talks: "pl.DataFrame") -> Iterator[tuple[dict[str, Any], TalkText]]:
    """Pair each unit with the text of its talk, one session in memory at a time."""
    of_talk: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for unit in units.to_dicts():
        of_talk.setdefault((unit["session_id"], unit["prompt_number"]), []).append(unit)
    for session in talks.join(units, on=UNIT, how="semi").partition_by("session_id", maintain_order=True):
        for text in read_talks(lake, session.to_dicts()):
            for unit in of_talk[text.session_id, text.prompt_number]:
                yield unit, text


def _session_jobs(lake: Lake, units: "pl.DataFrame", talks: "pl.DataFrame") -> Iterator[tuple[dict[str, Any], Any]]:
    """Pair each session with its facts and its served L2 rows, in order."""
    columns = ["id", *UNIT, "user_request", "summary", "completed", "files_involved"]
    where = f"{in_list('session_id', units['session_id'].to_list())} AND served"
    rows = lake.frame("talk_summaries", columns, where).sort(UNIT)
    for unit in units.to_dicts():
        mine = talks.filter(session_id=unit["session_id"])
        yield unit, (mine.row(-1, named=True), rows.join(mine, on=UNIT, how="semi").to_dicts())


def _outline(row: dict[str, Any]) -> TalkOutline:
    return TalkOutline(row["user_request"], row["summary"], row["completed"], tuple(row["files_involved"] or ()))


def _priced(origin: Origin, sources: Sequence[str], texts: Sequence[str]) -> Origin:
    return replace(origin, sources=tuple(sources), tokens_input=sum(map(estimate_tokens, texts)))


def _measured(row: Row) -> Row:
    """Note how many tokens the row itself takes."""
    parts = [getattr(row, name, "") for name in ("title", "narrative", "user_request", "summary", "completed")]
    parts += [" ".join(getattr(row, name, ())) for name in ("facts", "key_points")]
    return replace(row, origin=replace(row.origin, tokens_output=sum(map(estimate_tokens, filter(None, parts)))))
