"""Many memories of one kind and level into few of the next: a parent stands for its children, which stay stored.

Which groups are due is decided over the frame of counts; the same planner serves a dry run and a run.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from memex.maintain.decide import Decider, Told
from memex.maintain.graph import NO_VETOES, Graph, Unit, Vetoes, is_valid, unit_key
from memex.maintain.kinds import Compression, kinds
from memex.maintain.merge import SLEPT
from memex.model import Memory
from memex.text import digest, one_line, unique

log = logging.getLogger("memex.maintain")

COMPRESSED = "compressed"
"""Why a memory was archived: a parent stands for it."""
SCHEMA = 1

Scope = tuple[str, str]
Key = tuple[str, str, str]
"""A group: owner, project, and for leaves of events their session."""


def batches(members: Sequence[Memory], rule: Compression, force: bool = False) -> list[list[Memory]]:
    """Cut a group of one level, ordered by `seq`, into the batches that become parents; none when it is too small.

    >>> leaves = [Memory(id=str(i), kind="event", seq=i) for i in range(14)]
    >>> [len(batch) for batch in batches(leaves, Compression(threshold=9, fan_in=3, keep_recent=6))]
    [3, 3, 2]
    """
    keep = 0 if force else rule.keep_recent
    enough = len(members) - keep >= rule.fan_in and (force or len(members) > rule.threshold)
    if not enough:
        return []
    oldest = sorted(members, key=lambda m: (m.seq, m.id))[: len(members) - keep]
    cut = [oldest[i : i + rule.fan_in] for i in range(0, len(oldest), rule.fan_in)]
    return [batch for batch in cut if len(batch) >= 2]


def compress(
    graph: Graph,
    decider: Decider,
    now: datetime,
    force: bool = False,
    vetoes: Vetoes = NO_VETOES,
    ready: frozenset[tuple[str, int]] | None = None,
) -> Iterator[Unit]:
    """Plan the parents of every group, level by level, and yield each as a unit; `graph` is not changed.

    `ready` are the talks that have a summary: leaves of events wait for it; None: all have. Parents whose children
    were made anew are written anew first. What a person took back stays as it is, unless forced.
    """
    graph = graph.copy()
    yield from _remade(graph, decider, now, vetoes)
    spared = frozenset() if force else vetoes.compress
    for name, kind in kinds().items():
        if kind.compression:
            yield from _kind(graph, name, kind.compression, decider, now, force, spared, ready)


def _kind(
    graph: Graph,
    kind: str,
    rule: Compression,
    decider: Decider,
    now: datetime,
    force: bool,
    spared: frozenset[str],
    ready: frozenset[tuple[str, int]] | None,
) -> Iterator[Unit]:
    going: set[Scope] | None = None
    for level in range(rule.max_depth):
        made: set[Scope] = set()
        holes: set[Scope] = set()
        for (owner, project, _part), members in _groups(graph, kind, level, spared, ready).items():
            scope = owner, project
            if going is not None and scope not in going:
                continue
            for batch in batches(members, rule, force):
                unit = _parent(graph, batch, level + 1, decider, now)
                if unit is None:  # a later level must not span this hole
                    holes.add(scope)
                    break
                made.add(scope)
                yield unit
        going = made - holes
        if not going:
            return


def _groups(
    graph: Graph, kind: str, level: int, spared: frozenset[str], ready: frozenset[tuple[str, int]] | None
) -> Mapping[Key, list[Memory]]:
    groups: dict[Key, list[Memory]] = {}
    for memory in graph.active():
        if memory.kind != kind or memory.level != level or memory.id in spared:
            continue
        leaf = kind == "event" and level == 0
        if leaf and ready is not None and memory.session_id and (memory.session_id, memory.prompt_number) not in ready:
            continue
        groups.setdefault((memory.owner, memory.project_id, memory.session_id if leaf else ""), []).append(memory)
    return dict(sorted(groups.items()))


def parent_key(children: Sequence[Memory]) -> str:
    """Name the unit that makes the parent of these children."""
    return unit_key("compress", *(child.id for child in children))


def _parent(graph: Graph, children: Sequence[Memory], level: int, decider: Decider, now: datetime) -> Unit | None:
    told = _told(decider, children)
    if told is None:
        return None
    first, last = children[0], children[-1]
    parent = Memory(
        id=digest("memory", first.project_id, first.kind, parent_key(children), "parent"),
        kind=first.kind,
        level=level,
        project_id=first.project_id,
        owner=first.owner,
        importance=max(child.importance for child in children),
        occurred_at=last.occurred_at,
        ingested_at=max((c.ingested_at for c in children if c.ingested_at), default=now),
        seq=last.seq,
        seq_from=min(child.seq_from for child in children),
        seq_to=max(child.seq_to for child in children),
        child_ids=tuple(child.id for child in children),
        settled=True,
        sources=tuple(child.id for child in children),
        created_at=now,
    )
    graph.begin()
    graph.put(_written(parent, told, children, decider))
    for child in children:
        graph.put(replace(child, archived=True, archived_reason=COMPRESSED, parent_id=parent.id))
    _take_over_edges(graph, children, parent, now)
    return graph.end("compress", parent_key(children), f"{len(children)} of level {level - 1}")


def _written(parent: Memory, told: Told, children: Sequence[Memory], decider: Decider) -> Memory:
    recipe = _recipe(decider)
    return replace(
        parent, name=told.name, text=told.text, recipe=recipe, fingerprint=_fingerprint(recipe, children),
        provider=decider.provider, model=decider.model,
    )  # fmt: skip


def _recipe(decider: Decider) -> str:
    return f"memory/parent/prompt-{decider.version}/schema-{SCHEMA}/{decider.provider}/{decider.model}"


def _fingerprint(recipe: str, children: Sequence[Memory]) -> str:
    return digest(recipe, *(part for child in children for part in (child.id, child.name, child.text)))


def _told(decider: Decider, children: Sequence[Memory]) -> Told | None:
    """Have a parent written; None when that failed or said nothing."""
    try:
        told = decider.parent(children[0].kind, children)
    except OSError:
        raise
    except Exception as error:
        log.warning("no parent for %d memories: %s", len(children), error)
        return None
    if told is None or not isinstance(told.text, str) or not told.text.strip():
        return None
    name = one_line(told.name if isinstance(told.name, str) else "")
    return Told(name or one_line(told.text)[:80], told.text.strip())


def _take_over_edges(graph: Graph, children: Sequence[Memory], parent: Memory, now: datetime) -> None:
    """Copy the valid edges of which exactly one end is inside."""
    inside = {child.id for child in children}
    for child in children:
        for edge in graph.edges_of(child.id):
            source, target = edge.source in inside, edge.target in inside
            if source != target and is_valid(edge, now):
                begin, end = (parent.id, edge.target) if source else (edge.source, parent.id)
                graph.connect(begin, end, edge.relation, edge.strength, edge.valid_at, edge.invalid_at)


def _remade(graph: Graph, decider: Decider, now: datetime, vetoes: Vetoes) -> Iterator[Unit]:
    """Write the parents anew whose children, or whose writer, are not what they were; the lowest first."""
    parents = sorted((m for m in graph.memories.values() if m.level), key=lambda m: (m.level, m.seq, m.id))
    for name in [parent.id for parent in parents]:
        parent = graph.memories[name]
        children = [graph.memories[child] for child in parent.child_ids if child in graph.memories]
        wanted = _fingerprint(_recipe(decider), children)
        key = unit_key("remake", name, wanted)
        if len(children) < len(parent.child_ids) or parent.fingerprint == wanted or key in vetoes.keys:
            continue
        told = _told(decider, children)
        if told is not None:
            graph.begin()
            graph.put(replace(_written(parent, told, children, decider), created_at=now))
            unit = graph.end("compress", key, "its children changed")
            if unit:
                yield unit


def reachable(memories: Iterable[Memory]) -> set[str]:
    """List the memories that are active or asleep, or that such a parent or survivor leads to."""
    by_id = {memory.id: memory for memory in memories}
    found: set[str] = set()
    for memory in by_id.values():
        path = [memory]
        while path[-1].archived and path[-1].parent_id in by_id and by_id[path[-1].parent_id] not in path:
            path.append(by_id[path[-1].parent_id])
        if not path[-1].archived or path[-1].archived_reason == SLEPT or any(step.id in found for step in path):
            found.update(unique(step.id for step in path))
    return found
