from collections.abc import Sequence
from datetime import timedelta

import pytest

from memex.maintain.compress import COMPRESSED, batches, compress, reachable
from memex.maintain.decide import Decider, Rules, Told
from memex.maintain.graph import Graph, Unit, Vetoes
from memex.maintain.kinds import Compression, kinds
from memex.model import Memory
from tests.maintain.making import NOW, Silent, leaves, memory


def run(graph: Graph, force: bool = False, decider: Decider | None = None, **options: object) -> list[Unit]:
    """Compress, and apply it."""
    units = list(compress(graph, decider or Rules(), NOW, force, **options))
    graph.apply(units)
    return units


def counts(graph: Graph) -> tuple[int, int]:
    """Parents made, and memories archived."""
    parents = [m for m in graph.memories.values() if m.level]
    return len(parents), sum(m.archived for m in graph.memories.values())


@pytest.mark.parametrize(
    ("kind", "count", "expected"),
    [
        ("event", 9, (0, 0)), ("event", 10, (1, 3)), ("event", 11, (2, 5)), ("event", 12, (2, 6)),
        ("event", 14, (3, 8)), ("event", 15, (3, 9)), ("thread", 6, (0, 0)), ("thread", 7, (1, 3)),
        ("thread", 8, (2, 5)),
    ],
)  # fmt: skip
def test_conforms(kind: str, count: int, expected: tuple[int, int]):
    graph = Graph.of(*leaves(count, kind))
    run(graph)
    assert counts(graph) == expected


@pytest.mark.parametrize(("count", "expected"), [(2, (0, 0)), (3, (1, 3)), (8, (4, 11)), (9, (4, 12)), (27, (13, 39))])
def test_force_conforms(count: int, expected: tuple[int, int]):
    graph = Graph.of(*leaves(count))
    run(graph, force=True)
    assert counts(graph) == expected


def test_force_reaches_level_three():
    graph = Graph.of(*leaves(27))
    run(graph, force=True)
    assert [m.level for m in graph.active()] == [3]


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("count", [10, 15, 27, 100])
def test_a_second_run_makes_nothing(count: int, force: bool):
    graph = Graph.of(*leaves(count))
    run(graph, force)
    assert run(graph, force) == []


def test_a_parent_covers_its_children():
    odd = [
        memory(f"e{n}", seq=n, seq_from=a, seq_to=b, importance=n) for n, (a, b) in enumerate([(5, 9), (0, 1), (3, 4)])
    ]
    graph = Graph.of(*odd)
    [unit] = run(graph, force=True)
    parent = next(m for m in graph.memories.values() if m.level == 1)
    assert (parent.seq, parent.seq_from, parent.seq_to, parent.importance) == (2, 0, 9, 2)
    assert (parent.project_id, parent.child_ids) == ("p", ("e0", "e1", "e2"))
    assert {(m.archived_reason, m.parent_id) for m in odd for m in [graph.memories[m.id]]} == {(COMPRESSED, parent.id)}
    assert unit.members == (parent.id, "e0", "e1", "e2")


def test_edges_of_one_end_inside_are_copied():
    inner, outer = leaves(3), memory("out", "lesson")
    past = NOW - timedelta(days=1)
    graph = Graph.of(*inner, outer)
    graph.connect("event000", "event001")
    graph.connect("event000", "out", "part_of", 0.4, valid_at=NOW)
    graph.connect("event001", "out", "part_of", 0.6, valid_at=past)
    graph.connect("out", "event002", "related", 0.3)
    graph.connect("event001", "out", "old", 0.9, invalid_at=past)
    graph.connect("event001", "out", "later", 0.9, invalid_at=NOW + timedelta(days=1))
    run(graph, force=True)
    parent = next(m.id for m in graph.memories.values() if m.level)
    found = {(e.source == parent, e.relation, e.strength, e.valid_at) for e in graph.edges_of(parent)}
    assert found == {(True, "part_of", 0.6, past), (False, "related", 0.3, None), (True, "later", 0.9, None)}
    assert len(graph.edges_of("event000")) == 2


def test_groups_keep_to_their_project_and_session():
    mixed = [
        memory(f"{p}{s}{n}", seq=n, project_id=p, session_id=s) for n in range(4) for p in "pq" for s in ("s", "t")
    ]
    graph = Graph.of(*mixed)
    run(graph, force=True)
    for parent in [m for m in graph.memories.values() if m.level == 1]:
        below = [graph.memories[child] for child in parent.child_ids]
        assert len({(m.project_id, m.session_id) for m in below}) == 1
        assert parent.project_id == below[0].project_id


def test_kinds_without_an_entry_stay():
    graph = Graph.of(*leaves(40, "fact"), *leaves(40, "decision"))
    assert run(graph, force=True) == []


def test_a_lone_last_one_stays():
    rule = Compression(fan_in=3)
    assert [len(batch) for batch in batches(leaves(7), rule)] == [3, 3]
    assert [len(batch) for batch in batches(leaves(8), rule)] == [3, 3, 2]


def test_the_defaults_of_a_rule():
    assert Compression() == Compression(threshold=2, fan_in=2, keep_recent=0, max_depth=1)
    assert Compression(fan_in=4).threshold == 4
    assert Compression(fan_in=0).fan_in == 2


@pytest.mark.parametrize("error", [None, ValueError("no")])
def test_a_level_never_spans_a_hole(error: Exception | None):
    graph = Graph.of(*leaves(40))
    units = run(graph, decider=Silent(4, error))
    assert len(units) == 4
    assert {m.level for m in graph.memories.values()} == {0, 1}
    first_hole = min(m.seq for m in graph.active() if m.level == 0)
    assert max(m.seq_to for m in graph.memories.values() if m.level) < first_hole


class SilentOnce(Rules):
    """Says nothing about one batch."""

    def parent(self, kind: str, children: Sequence[Memory]) -> Told | None:
        return None if children[0].seq == 45 else super().parent(kind, children)


def test_the_next_level_waits_until_a_hole_is_filled():
    graph = Graph.of(*leaves(60))
    assert len(run(graph, decider=SilentOnce())) == 15
    assert {m.level for m in graph.memories.values()} == {0, 1}
    run(graph)
    assert {m.level for m in graph.memories.values()} == {0, 1, 2}


def test_what_was_made_before_a_failure_stays():
    graph = Graph.of(*leaves(40))
    before = graph.copy()
    made: list[Unit] = []
    with pytest.raises(OSError, match="disk"):
        made.extend(compress(graph, Silent(2, OSError("disk")), NOW))
    graph.apply(made)
    assert counts(graph) == (2, 6)
    assert graph.memories != before.memories


def test_an_event_waits_for_the_summary_of_its_talk():
    waiting = [memory(f"e{n}", seq=n, session_id="s", prompt_number=n) for n in range(12)]
    ready = frozenset(("s", n) for n in range(12) if n != 0)
    graph = Graph.of(*waiting)
    run(graph, ready=ready)
    assert not graph.memories["e0"].archived
    assert counts(graph) == (2, 5)


def test_changed_children_have_their_parents_written_anew():
    graph = Graph.of(*leaves(27))
    run(graph, force=True)
    texts = {m.id: m.text for m in graph.memories.values() if m.level}
    graph.change("event000", text="It is something else.")
    units = run(graph)
    changed = {m.id for m in graph.memories.values() if m.level and m.text != texts[m.id]}
    assert len(units) == 3
    assert len(changed) == 3
    assert "something else" in next(
        m.text for m in graph.memories.values() if m.level == 1 and "event000" in m.child_ids
    )
    assert run(graph) == []


def test_what_was_taken_back_is_left_alone():
    graph = Graph.of(*leaves(10))
    spared = Vetoes(compress=frozenset(f"event00{n}" for n in range(3)))
    assert run(graph, vetoes=spared) == []
    assert len(run(graph, force=True, vetoes=spared)) > 0


def test_every_child_is_reached_through_its_parents():
    graph = Graph.of(*leaves(100))
    run(graph)
    assert reachable(graph.memories.values()) == set(graph.memories)
    orphan = memory("lost", archived=True, parent_id="nobody")
    assert reachable([orphan]) == set()


def test_the_order_of_reading_does_not_matter():
    forwards, backwards = Graph.of(*leaves(30)), Graph.of(*reversed(leaves(30)))
    assert run(forwards) == run(backwards)
    assert forwards.memories == backwards.memories


def active_levels(members: Sequence[Memory]) -> list[int]:
    return sorted(m.level for m in members)


def test_the_depth_ends():
    deep = kinds()["lesson"].compression
    assert deep is not None
    graph = Graph.of(*leaves(500, "lesson"))
    for _again in range(10):
        run(graph, force=True)
    assert max(active_levels(list(graph.memories.values()))) == deep.max_depth
