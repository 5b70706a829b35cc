"""The level `memory`: what each compacted talk leaves in the graph, updated when the talk's summary is made anew.

What is pending is computed: talks with a summary of which no extraction has the wanted fingerprint. An extraction
is noted even when it is empty. A memory's id comes from its place, so a new summary updates it: an active one goes
through consolidation again, one that was joined comes back first, and the parents of one are written anew later.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memex.maintain.extract import Found, MemoryWriter, TalkRows, source_of
from memex.maintain.graph import Change, change_of
from memex.maintain.kinds import kinds
from memex.maintain.stored import patch, read_records
from memex.model import Memory
from memex.store.lake import Lake, in_list
from memex.store.schemas import rows_to_arrow
from memex.text import digest, unique

if TYPE_CHECKING:
    import polars as pl

log = logging.getLogger("memex.maintain")

SCHEMA = 1
TALKS = 200
"""Talks of which the memories are committed at once."""
OWNER = "user"
SLOTS = 4096
"""Memories of one millisecond that `seq` keeps apart."""
RETIRED = "retired"
"""Why a memory was archived: its talk does not say it any more."""
JOINED = ("merged", "duplicate")

_L2 = [
    "id",
    "session_id",
    "prompt_number",
    "user_request",
    "summary",
    "completed",
    "project_id",
    "occurred_at",
    "fingerprint",
]
_L1 = ["id", "session_id", "prompt_number", "type", "title", "narrative", "sources", "occurred_at", "fingerprint"]


@dataclass(frozen=True, slots=True)
class Derived:
    """Talks that were looked at, and the memories that are new, changed and gone."""

    talks: int = 0
    new: int = 0
    changed: int = 0
    retired: int = 0

    def __add__(self, other: "Derived") -> "Derived":
        return Derived(
            self.talks + other.talks, self.new + other.new, self.changed + other.changed, self.retired + other.retired
        )


def recipe_of(writer: MemoryWriter) -> str:
    """Tell how memories are made now."""
    return f"memories/prompt-{writer.version}/schema-{SCHEMA}/{writer.provider}/{writer.model}"


def pending_talks(lake: Lake, writer: MemoryWriter, project_id: str | None = None) -> "pl.DataFrame":
    """List the talks whose memories are not those that would be made now.

    Columns: `session_id, prompt_number, project_id, fingerprint, gone`; a talk without a summary is `gone`.
    """
    import polars as pl

    where = "" if project_id is None else f" AND {in_list('project_id', [project_id])}"
    place = ["session_id", "prompt_number"]
    l2 = lake.frame("talk_summaries", [*place, "project_id", "fingerprint"], f"served{where}")
    l1 = lake.frame("observations", [*place, "fingerprint"], f"served{where}").sort("fingerprint")
    below = l1.group_by(place).agg(parts=pl.col("fingerprint"))
    wanted = l2.join(below, on=place, how="left")
    recipe = recipe_of(writer)
    prints = [
        digest(recipe, l2print, *(parts or [])) for l2print, parts in wanted.select("fingerprint", "parts").iter_rows()
    ]
    wanted = wanted.select(*place, "project_id", fingerprint=pl.Series(prints, dtype=pl.String), gone=pl.lit(False))
    made = lake.frame("extractions", [*place, "project_id", "fingerprint"], f"true{where}")
    lost = made.join(wanted, on=[*place, "project_id"], how="anti").with_columns(gone=pl.lit(True))
    missing = wanted.join(made, on=[*place, "project_id", "fingerprint"], how="anti")
    return pl.concat([missing, lost.select(missing.columns)]).sort(place)


def derive(
    lake: Lake,
    writer: MemoryWriter,
    project_id: str,
    now: datetime,
    clear: Callable[[], None] = lambda: None,
) -> Derived:
    """Make the memories that are pending in one project; the caller is alone with its scope."""
    report = Derived()
    epoch = lake.epoch()
    pending = pending_talks(lake, writer, project_id).to_dicts()
    for start in range(0, len(pending), TALKS):
        report += _batch(lake, writer, pending[start : start + TALKS], now, epoch)
        clear()
    return report


def _batch(
    lake: Lake, writer: MemoryWriter, pending: Sequence[Mapping[str, Any]], now: datetime, epoch: int
) -> Derived:
    sessions = sorted({talk["session_id"] for talk in pending})
    mine = in_list("session_id", sessions)
    summaries = _by_place(lake.scan("talk_summaries", _L2, f"served AND {mine}").to_pylist())
    observations = _by_place(lake.scan("observations", _L1, f"served AND {mine}").to_pylist())
    people = set(lake.scan("sessions", ["id"], f"{in_list('id', sessions)} AND kind != 'subagent'")["id"].to_pylist())
    stored: dict[tuple[str, int], list[Memory]] = {}
    for memory in read_records(lake, "memories", f"{mine} AND level = 0"):
        stored.setdefault((memory.session_id, memory.prompt_number), []).append(memory)
    changed: dict[str, Change] = {}
    made: list[dict[str, Any]] = []
    report = Derived(talks=len(pending))
    for talk in pending:
        place = (talk["session_id"], talk["prompt_number"])
        rows = None if talk["gone"] else _rows(place, summaries, observations, people)
        try:
            found = writer.memories(rows) if rows else []
        except OSError:
            raise
        except Exception as error:
            log.warning("no memories of %s#%d: %s", *place, error)
            continue
        wanted = {m.id: m for m in (_memory(f, talk, n, writer, now) for n, f in enumerate(found)) if m.text.strip()}
        old = {memory.id: memory for memory in stored.get(place, ()) if memory.project_id in ("", talk["project_id"])}
        report += _compare(wanted, old, changed)
        if not talk["gone"]:
            made.append(_extraction(talk, writer, len(wanted), now))
    _wake_orphans(lake, changed)
    _write(lake, changed, made, pending, epoch)
    return report


def _compare(wanted: Mapping[str, Memory], old: Mapping[str, Memory], changed: dict[str, Change]) -> Derived:
    """Put what must be written for one talk into `changed`."""
    new = updated = 0
    for name, memory in wanted.items():
        before = old.get(name)
        after = memory if before is None else updated_memory(before, memory)
        if after != before:
            changed[name] = change_of(before, after)
            new, updated = new + (before is None), updated + (before is not None)
    going = [m for name, m in old.items() if name not in wanted and m.archived_reason != RETIRED]
    for memory in going:
        changed[memory.id] = change_of(memory, replace(memory, archived=True, archived_reason=RETIRED, parent_id=""))
    return Derived(new=new, changed=updated, retired=len(going))


def updated_memory(old: Memory, new: Memory) -> Memory:
    """Bring a stored memory to what its talk says now; what the graph did to it stays, unless it says otherwise now."""
    same = (old.name, old.text) == (new.name, new.text)
    fields = {**old.fields, **new.fields}
    updated = replace(
        old, name=new.name, text=new.text, fields=fields, occurred_at=new.occurred_at, fingerprint=new.fingerprint,
        recipe=new.recipe, provider=new.provider, model=new.model, created_at=new.created_at,
        sources=unique([*new.sources, *(s for s in old.sources if old.child_ids)]),
    )  # fmt: skip
    if old.archived_reason == RETIRED:
        updated = replace(updated, archived=False, archived_reason="", settled=False)
    if same:
        return updated
    entry = {"field": "text", "value": old.text, "seq": old.seq, "rank": -1, "from": old.id}
    back = old.archived_reason in JOINED
    return replace(
        updated,
        history=(*old.history, entry),
        settled=False,
        archived=updated.archived and not back,
        archived_reason="" if back else updated.archived_reason,
        parent_id="" if back else old.parent_id,
    )


def seq_of(at: datetime | None, place: int) -> int:
    """Order memories by time to the millisecond, then by their place in the talk; the same on every reading."""
    return (int(at.timestamp() * 1000) if at else 0) * SLOTS + min(place, SLOTS - 1)


def memory_id(project_id: str, kind: str, source: str, slot: str) -> str:
    """Name a memory by where it comes from, never by what it says."""
    return digest("memory", project_id, kind, source, slot)


def _memory(found: Found, talk: Mapping[str, Any], place: int, writer: MemoryWriter, now: datetime) -> Memory:
    user = kinds()[found.kind].user
    seq = seq_of(found.at, place)
    return Memory(
        id=memory_id(talk["project_id"], found.kind, found.source, found.slot),
        kind=found.kind,
        project_id="" if user else talk["project_id"],
        owner=OWNER if user else "",
        name=found.name,
        text=found.text,
        fields=found.fields,
        importance=found.importance,
        occurred_at=found.at,
        ingested_at=now,
        seq=seq,
        seq_from=seq,
        seq_to=seq,
        session_id=talk["session_id"],
        prompt_number=talk["prompt_number"],
        slot=found.slot,
        fingerprint=talk["fingerprint"],
        recipe=recipe_of(writer),
        provider=writer.provider,
        model=writer.model,
        sources=found.sources,
        created_at=now,
    )


def _wake_orphans(lake: Lake, changed: dict[str, Change]) -> None:
    """Bring back what had been joined with a memory that is gone now; consolidation looks at it again."""
    gone = [name for name, change in changed.items() if (change.after or {}).get("archived_reason") == RETIRED]
    for child in read_records(lake, "memories", f"{in_list('parent_id', gone)} AND archived") if gone else ():
        if child.archived_reason in JOINED:
            awake = replace(child, archived=False, archived_reason="", parent_id="", settled=False)
            changed.setdefault(child.id, change_of(child, awake))


def _write(
    lake: Lake,
    changed: Mapping[str, Change],
    made: Sequence[Mapping[str, Any]],
    pending: Sequence[Mapping[str, Any]],
    epoch: int,
) -> None:
    """Commit memories first: an extraction that is noted is one that is there."""
    patch(lake, "memories", list(changed.values()), epoch)
    lake.upsert("extractions", rows_to_arrow("extractions", made), epoch)
    gone = [_extraction_id(talk) for talk in pending if talk["gone"]]
    if gone:
        lake.delete("extractions", in_list("id", gone))


def _extraction(talk: Mapping[str, Any], writer: MemoryWriter, count: int, now: datetime) -> dict[str, Any]:
    return {
        "id": _extraction_id(talk),
        "session_id": talk["session_id"],
        "prompt_number": talk["prompt_number"],
        "project_id": talk["project_id"],
        "fingerprint": talk["fingerprint"],
        "recipe": recipe_of(writer),
        "memories": count,
        "created_at": now,
    }


def _extraction_id(talk: Mapping[str, Any]) -> str:
    return digest("extraction", talk["project_id"], source_of(talk))


def _rows(
    place: tuple[str, int],
    summaries: Mapping[tuple[str, int], list[dict[str, Any]]],
    observations: Mapping[tuple[str, int], list[dict[str, Any]]],
    people: set[str],
) -> TalkRows | None:
    found = summaries.get(place)
    if not found:
        return None
    told = sorted(observations.get(place, ()), key=lambda row: (str(row["occurred_at"]), row["id"]))
    return TalkRows(found[0], tuple(told), place[0] in people)


def _by_place(rows: Sequence[dict[str, Any]]) -> dict[tuple[str, int], list[dict[str, Any]]]:
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["session_id"], row["prompt_number"]), []).append(row)
    return found
