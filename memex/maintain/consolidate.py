"""New memories against what is there: keep, merge, skip, or close what a newer decision replaces.

The planner works on a copy of the graph and returns units. Whatever the decider answers, at least one of any set
of memories that were put together stays active.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memex.maintain.decide import Candidate, Decider, Neighbour
from memex.maintain.graph import Graph, Unit, unit_key
from memex.maintain.identity import compatible, same_identity
from memex.maintain.kinds import kinds
from memex.maintain.merge import SLEPT, merge, record_values, skip
from memex.model import Memory
from memex.text import clip_units, one_line

log = logging.getLogger("memex.maintain")

EVOLUTION_STRENGTH = 0.7
NAME_UNITS = 8
Near = tuple[str, float | None, float]
"""A neighbour: its id, its calibrated similarity, its share of common words."""
Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Consolidation:
    """What to do. `settled` were seen, and need not be seen again; `calls` is how often the decider was asked."""

    units: tuple[Unit, ...] = ()
    settled: tuple[str, ...] = ()
    calls: int = 0


def consolidate(
    graph: Graph,
    new: Sequence[str],
    neighbours: Mapping[str, Sequence[Near]],
    decider: Decider,
    vetoed: frozenset[str] = frozenset(),
) -> Consolidation:
    """Plan what becomes of the memories `new` of one scope. `vetoed` units were taken back by a person."""
    graph = graph.copy()
    fresh = [graph.memories[name] for name in new if name in graph.memories]
    fresh = sorted((m for m in fresh if not m.archived and m.text.strip()), key=lambda m: (m.seq, m.id))
    settled = tuple(memory.id for memory in fresh)
    speaking = sum(1 for memory in graph.active() if memory.text.strip())
    units = [unit for memory in fresh for unit in _revived(graph, memory, vetoed)]
    fresh = [memory for memory in fresh if not graph.memories[memory.id].archived]
    asked = [memory for memory in fresh if speaking >= 2 and _shown(graph, memory, neighbours)]
    calls = 0
    unanswered: set[str] = set()
    for start in range(0, len(asked), decider.batch):
        group = asked[start : start + decider.batch]
        by_number, candidates = _numbered(graph, group, neighbours)
        calls += 1
        answers = _answers(decider, candidates)
        if answers is None:
            unanswered.update(memory.id for memory in group)
            continue
        for candidate in candidates:
            shown = {n.number: by_number[n.number] for n in candidate.neighbours}
            units += _decided(graph, candidate.memory.id, answers.get(candidate.number, {}), shown, vetoed)
    return Consolidation(tuple(units), tuple(name for name in settled if name not in unanswered), calls)


def _revived(graph: Graph, new: Memory, vetoed: frozenset[str]) -> list[Unit]:
    """Wake the memory of this name that sleeps, when none is awake: the new one is folded into it."""
    kind = kinds()[new.kind]
    if not kind.latest_only:
        return []
    namesakes = [m for m in graph.memories.values() if m.id != new.id and m.kind == new.kind and m.level == 0]
    namesakes = [m for m in namesakes if same_identity(new, m, kind) and compatible(new, m)]
    asleep = [memory for memory in namesakes if memory.archived_reason == SLEPT]
    if not asleep or not all(memory.archived for memory in namesakes):
        return []
    target = max(asleep, key=lambda m: (m.seq, m.id))
    key = unit_key("merge", new.id, target.id)
    if key in vetoed:
        return []
    graph.begin()
    merge(graph, new, target)
    unit = graph.end("consolidate", key, f"{_called(target)} comes back")
    return [unit] if unit else []


def _shown(graph: Graph, new: Memory, neighbours: Mapping[str, Sequence[Near]]) -> list[Near]:
    """Pick the neighbours that a memory may be joined with."""
    return [
        near
        for near in neighbours.get(new.id, ())
        if near[0] != new.id
        and (other := graph.memories.get(near[0]))
        and not other.archived
        and other.level == 0
        and compatible(new, other)
    ]


def _numbered(
    graph: Graph, group: Sequence[Memory], neighbours: Mapping[str, Sequence[Near]]
) -> tuple[dict[int, str], list[Candidate]]:
    """Show memories under small numbers."""
    numbers: dict[str, int] = {}
    candidates = []
    for memory in group:
        near = _shown(graph, memory, neighbours)
        for name in (memory.id, *(one[0] for one in near)):
            numbers.setdefault(name, len(numbers) + 1)
        shown = tuple(Neighbour(numbers[i], graph.memories[i], score, words) for i, score, words in near)
        candidates.append(Candidate(numbers[memory.id], memory, shown))
    return {number: name for name, number in numbers.items()}, candidates


def _answers(decider: Decider, candidates: Sequence[Candidate]) -> dict[int, Answer] | None:
    """Ask, and read what can be read; of two answers about one memory the last wins. None when nobody answered."""
    try:
        given = list(decider.consolidate(candidates) or ())
    except OSError:
        raise
    except Exception as error:
        log.warning("no decision about %d memories: %s", len(candidates), error)
        return None
    answers = (answer for answer in given if isinstance(answer, Mapping))
    return {number: answer for answer in answers if (number := _number(answer.get("id"))) is not None}


def _number(given: object) -> int | None:
    if isinstance(given, bool) or not isinstance(given, int | str):
        return None
    try:
        return int(given)
    except ValueError:
        return None


def _decided(graph: Graph, new: str, answer: Answer, shown: Mapping[int, str], vetoed: frozenset[str]) -> list[Unit]:
    """Carry out one answer on the graph; an answer that makes no sense is a keep and changes nothing."""
    graph.begin()
    key, why = "", ""
    try:
        match answer.get("action"):
            case "skip":
                key, why = _skip(graph, new, answer, shown, vetoed)
            case "merge":
                key, why = _merge(graph, new, answer, shown, vetoed)
            case "supersede":
                key, why = _supersede(graph, new, answer, shown, vetoed)
            case "keep":
                key, why = _evolve(graph, new, answer.get("evolution"), shown, vetoed)
    except Exception:
        graph.rollback()
        raise
    unit = graph.end("consolidate", key, why)
    return [unit] if unit else []


def _target(graph: Graph, new: str, given: object, shown: Mapping[int, str]) -> Memory | None:
    """Find the neighbour that an answer names, among those shown, if it may be joined with `new`."""
    name = shown.get(_number(given) or 0)
    other = graph.memories.get(name or "")
    if other is None or other.id == new or not compatible(graph.memories[new], other):
        return None
    return other


def _skip(graph: Graph, new: str, answer: Answer, shown: Mapping[int, str], vetoed: frozenset[str]) -> tuple[str, str]:
    named = _target(graph, new, answer.get("duplicate_of"), shown)
    every = [_target(graph, new, number, shown) for number in shown]
    for other in [named] if named else every:
        survivor = _survivor(graph, other)
        if survivor is None or survivor.id == new or not compatible(graph.memories[new], survivor):
            continue
        key = unit_key("skip", new, survivor.id)
        if key in vetoed:
            return "", ""
        skip(graph, graph.memories[new], survivor)
        return key, f"{_called(graph.memories[new])} says what {_called(survivor)} says"
    return "", ""


def _survivor(graph: Graph, memory: Memory | None) -> Memory | None:
    """Follow where archived memories of this kind went, to an active one."""
    seen: set[str] = set()
    while memory is not None and memory.archived and memory.id not in seen:
        seen.add(memory.id)
        memory = graph.memories.get(memory.parent_id)
    return memory if memory is not None and not memory.archived and memory.level == 0 else None


def _merge(graph: Graph, new: str, answer: Answer, shown: Mapping[int, str], vetoed: frozenset[str]) -> tuple[str, str]:
    target = _target(graph, new, answer.get("merge_target_id"), shown)
    if target is None or target.archived:
        return "", ""
    key = unit_key("merge", new, target.id)
    if key in vetoed:
        return "", ""
    merge(graph, graph.memories[new], target, answer.get("merged_fields"))
    return key, f"{_called(graph.memories[new])} is {_called(target)}"


def _supersede(
    graph: Graph, new: str, answer: Answer, shown: Mapping[int, str], vetoed: frozenset[str]
) -> tuple[str, str]:
    """Close the older of two decisions where the newer begins; both stay."""
    given = answer.get("supersedes")
    others = _listed(given if isinstance(given, list | tuple) else [given], lambda item: item, graph, new, shown)
    pairs = []
    for other, _item in others:
        if kinds()[other.kind].supersedes:
            older, newer = sorted((graph.memories[new], graph.memories[other.id]), key=lambda m: (m.seq, m.id))
            pairs.append(_close(graph, older, newer))
    key = unit_key("supersede", *(name for pair in pairs for name in pair))
    if key in vetoed:
        graph.rollback()
        graph.begin()
        return "", ""
    return key, "; ".join(f"{_called(graph.memories[a])} replaces {_called(graph.memories[b])}" for a, b in pairs)


def _close(graph: Graph, older: Memory, newer: Memory) -> tuple[str, str]:
    begins = newer.valid_from or newer.occurred_at
    graph.put(replace(older, valid_to=min((at for at in (older.valid_to, begins) if at), default=None)))
    graph.put(replace(newer, valid_from=begins))
    graph.connect(newer.id, older.id, "supersedes", 1.0, begins)
    return newer.id, older.id


def _evolve(
    graph: Graph, new: str, evolution: object, shown: Mapping[int, str], vetoed: frozenset[str]
) -> tuple[str, str]:
    """Connect a kept memory with neighbours, and bring their state or summary up to date."""
    key = unit_key("evolve", new)
    if not isinstance(evolution, Mapping) or evolution.get("should_evolve") is not True or key in vetoed:
        return "", ""
    for target in _listed(evolution.get("connections"), lambda given: given, graph, new, shown):
        graph.connect(new, target[0].id, "related", EVOLUTION_STRENGTH)
    for other, update in _listed(evolution.get("updates"), _id_of, graph, new, shown):
        wanted = {"text": update.get("summary"), "state": update.get("state")}
        values = {name: value for name, value in wanted.items() if isinstance(value, str) and value.strip()}
        if values:
            evolved = record_values(graph.memories[other.id], values, graph.memories[new].seq, new)
            graph.put(replace(evolved, sources=tuple(dict.fromkeys([*evolved.sources, new]))))
    return key, f"{_called(graph.memories[new])} evolves its neighbours"


def _called(memory: Memory) -> str:
    return f"“{clip_units(one_line(memory.name or memory.text), NAME_UNITS)}”"


def _id_of(update: Any) -> object:
    return update.get("id") if isinstance(update, Mapping) else None


def _listed(
    given: object, number_of: Any, graph: Graph, new: str, shown: Mapping[int, str]
) -> Iterator[tuple[Memory, Any]]:
    """Yield the active neighbours that a list names, each with its item."""
    for item in given if isinstance(given, list | tuple) else ():
        other = _target(graph, new, number_of(item), shown)
        if other is not None and not other.archived:
            yield other, item
