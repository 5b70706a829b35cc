from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.errors import CannotUndo
from memex.maintain.compress import compress
from memex.maintain.consolidate import consolidate
from memex.maintain.decide import Rules
from memex.maintain.graph import COUNTERS, Graph, Unit
from memex.maintain.rollup import roll_up
from memex.maintain.sleep import sleep
from memex.maintain.undo import reverse
from memex.model import Memory
from tests.maintain.making import NOW, Scripted, everyone_near, leaves, memory, talks


def merged() -> tuple[Graph, Graph, Unit]:
    """A graph before and after a merge, and the unit."""
    before = Graph.of(memory("old", access_count=2), memory("new", "event", 2, access_count=1))
    script = Scripted(lambda c: {"action": "merge", "merge_target_id": c.neighbours[0].number})
    [unit] = consolidate(before, ["new"], everyone_near([*before.memories.values()]), script).units
    after = before.copy()
    after.apply([unit])
    return before, after, unit


def test_a_merge_is_taken_back():
    before, after, unit = merged()
    after.apply([reverse(after, unit)])
    assert after.memories == before.memories


def recalled(one: Memory) -> Memory:
    return replace(one, access_count=one.access_count + 1, importance=one.importance + 0.1, last_access_at=NOW)


def test_a_recall_is_no_reason_against_it_and_stays_counted():
    _before, after, unit = merged()
    after.put(recalled(after.memories["old"]))
    after.apply([reverse(after, unit)])
    old = after.memories["old"]
    assert (old.access_count, old.last_access_at) == (3, NOW)
    assert old.importance == pytest.approx(5.1)
    assert after.memories["new"].access_count == 1


@pytest.mark.parametrize("change", [{"text": "Else."}, {"seq": 99}, {"archived": True}, {"child_ids": ("x",)}])
def test_a_change_since_then_is_a_reason(change: dict[str, Any]):
    before = Graph.of(memory("old"), memory("new", "event", 2))
    script = Scripted(
        lambda c: {"action": "merge", "merge_target_id": c.neighbours[0].number, "merged_fields": {"text": "Both."}}
    )
    [unit] = consolidate(before, ["new"], everyone_near([*before.memories.values()]), script).units
    before.apply([unit])
    after = before.copy()
    after.change("old", **change) if "archived" not in change else after.change("new", archived=False)
    kept = after.copy()
    with pytest.raises(CannotUndo):
        reverse(after, unit)
    assert after.memories == kept.memories


def test_a_field_that_the_unit_does_not_own_may_change():
    _before, after, unit = merged()
    after.change("old", fields={"state": "done"})
    after.apply([reverse(after, unit)])
    assert after.memories["old"].fields == {"state": "done"}


def test_a_parent_that_was_folded_further_stays():
    graph = Graph.of(*leaves(9))
    first, *rest = list(compress(graph, Rules(), NOW, force=True))
    graph.apply([first, *rest])
    with pytest.raises(CannotUndo, match="archived"):
        reverse(graph, first)


def test_what_cannot_be_undone_says_so():
    with pytest.raises(CannotUndo):
        reverse(Graph(), Unit("recall", "k", "w", (), undoable=False))


def test_a_row_that_is_gone_stops_it():
    _before, after, unit = merged()
    after.drop(after.memories["new"])
    with pytest.raises(CannotUndo, match="gone"):
        reverse(after, unit)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 40), st.integers(0, 40), st.data())
def test_taking_everything_back_restores_the_graph(events: int, digested: int, data: st.DataObject):
    graph = Graph.of(*leaves(events), *leaves(events // 3, "thread"), memory("f", "fact"))
    before = graph.copy()
    done: list[Unit] = []
    rounds = data.draw(st.lists(st.sampled_from(["compress", "force", "rollup", "sleep"]), max_size=5))
    for what in rounds:
        if what == "rollup":
            units = list(roll_up(graph, "p", talks(digested), Rules(), NOW))
        elif what == "sleep":
            names = sorted(m.id for m in graph.active() if m.level == 0)
            units = list(
                sleep(graph, data.draw(st.lists(st.sampled_from(names), unique=True)) if names else [], "x").units
            )
        else:
            units = list(compress(graph, Rules(), NOW, force=what == "force"))
        graph.apply(units)
        done += units
    for one in list(graph.memories.values())[:5]:
        graph.put(recalled(one))
    for unit in reversed(done):
        graph.apply([reverse(graph, unit)])
    assert (graph.edges, graph.digests) == (before.edges, before.digests)
    assert graph.memories.keys() == before.memories.keys()
    for name, old in before.memories.items():
        counters = {counter: getattr(old, counter) for counter in COUNTERS}
        assert replace(graph.memories[name], **counters) == old


def test_a_change_that_took_a_row_away_puts_it_back():
    graph = Graph.of(memory("a"), memory("b"), memory("c", "event", 2))
    graph.connect("c", "a", "related", 0.5, NOW - timedelta(days=1))
    before = graph.copy()
    script = Scripted(lambda c: {"action": "skip", "duplicate_of": c.neighbours[1].number})
    [unit] = consolidate(graph, ["c"], {"c": [("a", 0.9, 0.9), ("b", 0.9, 0.9)]}, script).units
    graph.apply([unit])
    assert graph.edges.keys() != before.edges.keys()
    graph.apply([reverse(graph, unit)])
    assert graph.edges == before.edges
