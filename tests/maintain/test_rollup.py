import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.maintain.decide import Decider, Rules
from memex.maintain.graph import Graph
from memex.maintain.rollup import Extraction, active_digests, last_summarised, rebuild_from, roll_up
from memex.text import units
from tests.maintain.making import NOW, Silent, talks


def run(
    graph: Graph,
    told: list[Extraction],
    every: int = 3,
    fan_in: int = 3,
    force: bool = False,
    decider: Decider | None = None,
) -> int:
    """Roll up, apply it, and count the units."""
    made = list(roll_up(graph, "p", told, decider or Rules(), NOW, every, fan_in, force))
    graph.apply(made)
    return len(made)


def frontier(graph: Graph) -> list[tuple[int, int, int]]:
    """Level and range of what is active."""
    return [(d.level, d.extraction_from, d.extraction_to) for d in active_digests(graph, "p")]


def by_level(graph: Graph) -> dict[int, int]:
    levels = [level for level, _a, _b in frontier(graph)]
    return {level: levels.count(level) for level in set(levels)}


def closed_form(smalls: int, fan_in: int) -> tuple[dict[int, int], int]:
    """How many are active per level, and how many rollups there are in all."""
    count, level, active, rollups = smalls, 0, {}, 0
    while count > 0:
        active[level] = (count - 1) % fan_in + 1
        count, level = (count - 1) // fan_in, level + 1
        rollups += count
    return active, rollups


def state(graph: Graph) -> tuple[dict[int, int], int]:
    return by_level(graph), sum(d.kind == "rollup" for d in graph.digests.values())


def test_conforms():
    graph = Graph()
    run(graph, talks(9))
    assert state(graph) == ({0: 3}, 0)
    run(graph, talks(12))
    assert state(graph) == ({1: 1, 0: 1}, 1)
    run(graph, talks(39))
    assert frontier(graph) == [(2, 1, 27), (1, 28, 36), (0, 37, 39)]
    assert state(graph)[1] == 5
    assert sum(d.status == "folded" for d in graph.digests.values()) == 15
    run(graph, talks(81))
    assert state(graph) == ({2: 2, 1: 2, 0: 3}, 10)


@pytest.mark.parametrize(("smalls", "top"), [(9, 2), (27, 3)])
def test_force_conforms(smalls: int, top: int):
    graph = Graph()
    run(graph, talks(smalls * 3), force=True)
    assert frontier(graph) == [(top, 1, smalls * 3)]


def test_smalls_slice_every_three():
    graph = Graph()
    seen = []
    for count in range(1, 13):
        run(graph, talks(count))
        smalls = [d for d in graph.digests.values() if d.kind == "small"]
        seen.append((count, len(smalls), state(graph)[1]))
    assert [s for s in seen if s[0] % 3 == 0] == [(3, 1, 0), (6, 2, 0), (9, 3, 0), (12, 4, 1)]
    assert sorted((d.extraction_from, d.extraction_to) for d in smalls) == [(1, 3), (4, 6), (7, 9), (10, 12)]
    assert [d.extraction_to for d in graph.digests.values() if d.kind == "rollup"] == [9]


@pytest.mark.parametrize("fan_in", [2, 3, 4, 5])
def test_the_frontier_is_the_closed_form(fan_in: int):
    grown = Graph()
    for smalls in range(1, 201):
        run(grown, talks(smalls), 1, fan_in)
        assert state(grown) == closed_form(smalls, fan_in)
        if smalls % 20 == 0:
            at_once = Graph()
            run(at_once, talks(smalls), 1, fan_in)
            assert at_once.digests == grown.digests


@pytest.mark.parametrize("fan_in", [2, 3, 5])
def test_the_newest_may_come_first(fan_in: int):
    backwards, at_once = Graph(), Graph()
    for count in range(1, 41):
        run(backwards, talks(count, first=41 - count), 1, fan_in)
        assert state(backwards) == closed_form(count, fan_in)
    run(at_once, talks(40), 1, fan_in)
    assert backwards.digests == at_once.digests


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(1, 31)), st.integers(1, 4), st.integers(2, 5), st.data())
def test_any_order_of_arrival_gives_one_pyramid(order: list[int], every: int, fan_in: int, data: st.DataObject):
    graph, at_once = Graph(), Graph()
    every_talk = dict(enumerate(talks(30), 1))
    arrived: list[int] = []
    while order:
        size = data.draw(st.integers(1, len(order)))
        arrived, order = sorted([*arrived, *order[:size]]), order[size:]
        run(graph, [every_talk[n] for n in arrived], every, fan_in)
    run(at_once, talks(30), every, fan_in)
    assert graph.digests == at_once.digests


def test_a_second_run_makes_nothing():
    graph = Graph()
    run(graph, talks(50))
    assert run(graph, talks(50)) == 0
    run(graph, talks(50), force=True)
    assert run(graph, talks(50), force=True) == 0
    assert run(graph, talks(50)) == 0


def test_a_level_that_has_too_many_folds_without_a_new_small():
    graph = Graph()
    run(graph, talks(12), fan_in=10)
    assert state(graph) == ({0: 4}, 0)
    run(graph, talks(12), fan_in=3)
    assert state(graph) == ({1: 1, 0: 1}, 1)


def test_nothing_said_is_nothing_made_and_tried_again():
    graph = Graph()
    assert run(graph, talks(9), decider=Silent(1)) == 1
    assert last_summarised(graph, "p") == 3
    run(graph, talks(9))
    assert frontier(graph) == [(0, 1, 3), (0, 4, 6), (0, 7, 9)]


def test_a_rollup_that_fails_leaves_its_group_alone():
    graph = Graph()
    run(graph, talks(12), decider=Silent(4, ValueError("no")))
    assert state(graph) == ({0: 4}, 0)
    run(graph, talks(12))
    assert state(graph) == ({1: 1, 0: 1}, 1)


def test_the_watermark_is_what_is_there():
    graph = Graph()
    for count in (1, 2, 3, 4, 5, 9):  # jumps over multiples
        run(graph, talks(count))
    assert [(a, b) for _level, a, b in frontier(graph)] == [(1, 3), (4, 6), (7, 9)]


def test_a_rebuild_keeps_what_ends_at_its_point():
    graph = Graph()
    run(graph, talks(39))
    graph.apply(rebuild_from(graph, "p", 9))
    assert frontier(graph) == [(1, 1, 9)]
    graph.apply(rebuild_from(graph, "p", 8))
    assert frontier(graph) == [(0, 1, 3), (0, 4, 6)]


def test_a_summary_made_anew_cuts_the_pyramid_there():
    graph = Graph()
    run(graph, talks(39))
    before = {d.id for d in graph.digests.values() if d.extraction_to <= 27}
    told = talks(39)
    told[30] = Extraction("l2-new", "Another story.", told[30].at, 2)
    run(graph, told)
    assert before <= graph.digests.keys()
    assert frontier(graph) == [(2, 1, 27), (1, 28, 36), (0, 37, 39)]
    assert "Another story" in next(d.text for d in graph.digests.values() if d.extraction_from == 31)


def test_another_writer_makes_digests_anew():
    graph = Graph()
    run(graph, talks(12))
    other = Rules()
    other.version = "2"
    assert run(graph, talks(12), decider=other) == 6
    assert {d.recipe.split("/")[2] for d in graph.digests.values()} == {"prompt-2"}


def test_ranges_cover_their_sources():
    graph = Graph()
    run(graph, talks(39))
    for one in graph.digests.values():
        if one.kind == "rollup":
            parts = [graph.digests[source] for source in one.sources]
            assert (one.extraction_from, one.extraction_to) == (parts[0].extraction_from, parts[-1].extraction_to)
            assert (one.message_from, one.message_to) == (parts[0].message_from, parts[-1].message_to)
            assert (one.time_from, one.time_to) == (parts[0].time_from, parts[-1].time_to)
            assert all(a.extraction_to + 1 == b.extraction_from for a, b in itertools.pairwise(parts))
            assert {part.status for part in parts} == {"folded"}


def test_a_unit_is_a_character_or_a_word_and_never_a_byte():
    long = [
        Extraction(str(n), "".join(f"第{n}次数据库迁移之后第{m}个测试通过了。" for m in range(20)), NOW, 1)
        for n in range(3)
    ]
    graph = Graph()
    run(graph, long)
    [one] = graph.digests.values()
    assert 80 <= units(one.text) <= 220


def test_projects_do_not_mix():
    graph = Graph()
    run(graph, talks(12))
    graph.apply(roll_up(graph, "q", talks(12), Rules(), NOW))
    ids = {p: {d.id for d in graph.digests.values() if d.project_id == p} for p in "pq"}
    for one in graph.digests.values():
        assert one.kind == "small" or set(one.sources) <= ids[one.project_id]


def test_numbers_out_of_range_are_clamped():
    graph = Graph()
    run(graph, talks(8), every=0, fan_in=0)
    assert state(graph) == closed_form(8, 2)
    huge = Graph()
    run(huge, talks(100), every=1000, fan_in=99)
    assert frontier(huge) == [(0, 1, 100)]
