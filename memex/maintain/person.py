"""What a person wants remembered. The act is in the log; the memory is made from it, again after a rebuild."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memex.maintain.derive import OWNER, seq_of
from memex.maintain.graph import Unit, Vetoes, change_of, unit_key
from memex.maintain.journal import Journal, Scope
from memex.maintain.kinds import kinds
from memex.model import Memory
from memex.store.lake import in_list
from memex.text import clip_units, digest, one_line

NAME_UNITS = 16


def act_of(text: str, kind: str, project_id: str, name: str = "", importance: float | None = None) -> dict[str, Any]:
    """Describe a memory of a person as an act; what the user wants has no project."""
    return {
        "kind": kind,
        "text": text.strip(),
        "name": one_line(name) or clip_units(one_line(text), NAME_UNITS),
        "project_id": "" if kinds()[kind].user else project_id,
        "importance": kinds()[kind].importance if importance is None else importance,
    }


def memory_of(act: Mapping[str, Any], now: datetime) -> Memory:
    """Make the memory of an act; its id comes from the act."""
    at = datetime.fromisoformat(act["at"])
    seq = seq_of(at, 0)
    return Memory(
        id=act_id(act),
        kind=act["kind"],
        project_id=act["project_id"],
        owner="" if act["project_id"] else OWNER,
        name=act["name"],
        text=act["text"],
        importance=act["importance"],
        occurred_at=at,
        ingested_at=now,
        seq=seq,
        seq_from=seq,
        seq_to=seq,
        slot="remember",
        provider="person",
        created_at=now,
    )


def act_id(act: Mapping[str, Any]) -> str:
    """Name the memory of an act."""
    return digest("memory", act["project_id"], act["kind"], f"act {act['at']}", act["text"])


def write_remembered(
    journal: Journal, scope: Scope, acts: Sequence[Mapping[str, Any]], vetoes: Vetoes, now: datetime, epoch: int
) -> int:
    """Make the memories of a person that are not there, those excepted that the person took back."""
    mine = [act for act in acts if act["project_id"] == scope[1]]
    ids = [act_id(act) for act in mine]
    there = set(journal.lake.scan("memories", ["id"], in_list("id", ids))["id"].to_pylist()) if ids else set()
    units = []
    for act, name in zip(mine, ids, strict=True):
        key = unit_key("remember", name)
        if name not in there and key not in vetoes.keys:
            units.append(Unit("remember", key, "a person said so", (change_of(None, memory_of(act, now)),)))
    journal.commit(scope, units, now, epoch)
    return len(units)
