"""The pyramid of digests: what happened in a project, in less and less detail the longer ago.

Small digests slice the talks of a project by event time, every so many; when a level has more than `fan_in` active
ones, the earliest are folded into one of the next level. Talks that arrive late cut the pyramid where they belong,
and it grows again from there.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memex.maintain.decide import Decider
from memex.maintain.graph import Graph, Unit, unit_key
from memex.model import Digest
from memex.text import clip_units, digest

log = logging.getLogger("memex.maintain")

SMALL_UNITS = (80, 220)
ROLLUP_UNITS = (120, 260)
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Extraction:
    """One compacted talk of a project: its summary's id and text, its time, and how many messages it has."""

    id: str
    text: str
    at: datetime | None = None
    messages: int = 0


def roll_up(
    graph: Graph,
    project_id: str,
    talks: Sequence[Extraction],
    decider: Decider,
    now: datetime,
    every: int = 3,
    fan_in: int = 3,
    force: bool = False,
) -> Iterator[Unit]:
    """Plan the digests of a project from all its `talks`, in event time; yield each as a unit.

    `every` is clamped to 1-100, `fan_in` to 2-10. Forced, a level folds as soon as it has `fan_in`.
    """
    graph = graph.copy()
    every, fan_in = min(100, max(1, every)), min(10, max(2, fan_in))
    cut = _cut(graph, project_id, talks, decider)
    if cut is not None:
        yield from rebuild_from(graph, project_id, cut)
    at = last_summarised(graph, project_id)
    yield from _fold(graph, project_id, decider, now, fan_in, force=False)
    while len(talks) - at >= every:
        unit = _small(graph, project_id, talks, at, at + every, decider, now)
        if unit is None:
            break
        yield unit
        at += every
        yield from _fold(graph, project_id, decider, now, fan_in, force=False)
    if force:
        yield from _fold(graph, project_id, decider, now, fan_in, force=True)


def last_summarised(graph: Graph, project_id: str) -> int:
    """Tell how many talks the digests of a project cover: it is read from them, so it cannot run ahead of them."""
    return max((d.extraction_to for d in graph.digests.values() if d.project_id == project_id), default=0)


def rebuild_from(graph: Graph, project_id: str, point: int) -> Iterator[Unit]:
    """Delete the digests that end after extraction `point`, and make those active again that they had folded."""
    mine = [d for d in graph.digests.values() if d.project_id == project_id]
    gone = {d.id for d in mine if d.extraction_to > point}
    left = [d for d in mine if d.id not in gone]
    held = {source for d in left if d.kind == "rollup" for source in d.sources}
    graph.begin()
    for one in mine:
        if one.id in gone:
            graph.drop(one)
        elif one.status == "folded" and one.id not in held:
            graph.put(replace(one, status="active"))
    unit = graph.end("rollup", unit_key("rebuild", project_id, str(point), *sorted(gone)), f"anew from {point}")
    if unit:
        yield unit


def active_digests(graph: Graph, project_id: str) -> list[Digest]:
    """List the frontier: what is not folded, by time."""
    mine = (d for d in graph.digests.values() if d.project_id == project_id and d.status == "active")
    return sorted(mine, key=lambda d: (d.extraction_from, d.level, d.id))


def _cut(graph: Graph, project_id: str, talks: Sequence[Extraction], decider: Decider) -> int | None:
    """Find the last talk before the first digest that is not what would be written now; None when all are."""
    mine = {d.id: d for d in graph.digests.values() if d.project_id == project_id}
    cuts = []
    for one in mine.values():
        sources = [talk.id for talk in talks[one.extraction_from - 1 : one.extraction_to]]
        if one.kind == "rollup":
            sources = [source for source in one.sources if source in mine]
        if one.fingerprint != _fingerprint(_recipe(decider, one.kind), sources):
            cuts.append(one.extraction_from - 1 + _common(one.sources, sources) * (one.kind == "small"))
    return min(cuts, default=None)


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """Count the sources at the head that are still the same; at most all but one."""
    same = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return min(same, max(0, len(a) - 1))


def _small(
    graph: Graph,
    project_id: str,
    talks: Sequence[Extraction],
    start: int,
    end: int,
    decider: Decider,
    now: datetime,
) -> Unit | None:
    part = talks[start:end]
    text = _told(decider, [talk.text for talk in part], SMALL_UNITS)
    if not text:
        return None
    before = sum(talk.messages for talk in talks[:start])
    recipe, sources = _recipe(decider, "small"), [talk.id for talk in part]
    times = [talk.at for talk in part if talk.at]
    made = Digest(
        id=digest("digest", project_id, "small", *sources),
        project_id=project_id,
        kind="small",
        level=0,
        status="active",
        text=text,
        extraction_from=start + 1,
        extraction_to=end,
        message_from=before + 1,
        message_to=before + sum(talk.messages for talk in part),
        time_from=min(times, default=None),
        time_to=max(times, default=None),
        fingerprint=_fingerprint(recipe, sources),
        recipe=recipe,
        provider=decider.provider,
        model=decider.model,
        sources=tuple(sources),
        created_at=now,
    )
    graph.begin()
    graph.put(made)
    return graph.end("rollup", unit_key("small", made.id), f"talks {start + 1} to {end}")


def _fold(graph: Graph, project_id: str, decider: Decider, now: datetime, fan_in: int, force: bool) -> Iterator[Unit]:
    """Fold the earliest of the lowest level that has too many, until none has; a group that fails stays."""
    while True:
        levels: dict[int, list[Digest]] = {}
        for one in active_digests(graph, project_id):
            levels.setdefault(one.level, []).append(one)
        due = [level for level, mine in levels.items() if len(mine) > fan_in or (force and len(mine) == fan_in)]
        if not due:
            return
        unit = _rollup(graph, project_id, levels[min(due)][:fan_in], decider, now)
        if unit is None:
            return
        yield unit


def _rollup(graph: Graph, project_id: str, parts: Sequence[Digest], decider: Decider, now: datetime) -> Unit | None:
    text = _told(decider, [part.text for part in parts], ROLLUP_UNITS)
    if not text:
        return None
    recipe, sources = _recipe(decider, "rollup"), [part.id for part in parts]
    made = replace(
        parts[0],
        id=digest("digest", project_id, "rollup", *sources),
        kind="rollup",
        level=parts[0].level + 1,
        text=text,
        extraction_to=parts[-1].extraction_to,
        message_to=parts[-1].message_to,
        time_to=max((part.time_to for part in parts if part.time_to), default=None),
        fingerprint=_fingerprint(recipe, sources),
        recipe=recipe,
        provider=decider.provider,
        model=decider.model,
        sources=tuple(sources),
        created_at=now,
    )
    graph.begin()
    graph.put(made)
    for part in parts:
        graph.put(replace(part, status="folded"))
    return graph.end("rollup", unit_key("rollup", made.id), f"{len(parts)} digests of level {parts[0].level}")


def _told(decider: Decider, texts: Sequence[str], room: tuple[int, int]) -> str:
    """Have a digest written; "" when that failed."""
    try:
        text = decider.digest(texts, *room)
    except OSError:
        raise
    except Exception as error:
        log.warning("no digest of %d texts: %s", len(texts), error)
        return ""
    return clip_units(text.strip(), room[1]) if isinstance(text, str) else ""


def _recipe(decider: Decider, kind: str) -> str:
    return f"digest/{kind}/prompt-{decider.version}/schema-{SCHEMA}/{decider.provider}/{decider.model}"


def _fingerprint(recipe: str, sources: Sequence[str]) -> str:
    return digest(recipe, *sources)
