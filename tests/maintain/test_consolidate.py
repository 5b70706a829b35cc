from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from memex.maintain.compress import reachable
from memex.maintain.consolidate import Consolidation, Near, consolidate
from memex.maintain.decide import Candidate, Decider, Rules
from memex.maintain.graph import Graph
from memex.model import Memory
from tests.maintain.making import NOW, Scripted, everyone_near, memory


def run(
    graph: Graph,
    new: Sequence[Memory],
    answer: Any = None,
    near: Mapping[str, Sequence[Near]] | None = None,
    decider: Decider | None = None,
) -> Consolidation:
    """Consolidate with one answer for every candidate, or with one each, by id, and apply it."""
    script = decider or Scripted(lambda c: _resolved(c, answer.get(c.memory.id, answer)))
    near = everyone_near(list(graph.memories.values())) if near is None else near
    plan = consolidate(graph, [m.id for m in new], near, script)
    graph.apply(plan.units)
    assert reachable(graph.memories.values()) == set(graph.memories)
    return plan


def _resolved(candidate: Candidate, answer: Any) -> Any:
    """Write the numbers of memories for their ids; `me` is the candidate."""
    numbers = {n.memory.id: n.number for n in candidate.neighbours} | {"me": candidate.number}

    def number(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: number(v) for key, v in value.items()}
        if isinstance(value, list):
            return [number(v) for v in value]
        return numbers.get(value, value) if isinstance(value, str) else value

    return number(answer)


MERGE = {"action": "merge", "merge_target_id": "old"}
SKIP = {"action": "skip", "duplicate_of": "old"}


def pair(kind: str = "event", **fields: Any) -> tuple[Graph, Memory, Memory]:
    old, new = memory("old", kind, 1), memory("new", kind, 2, **fields)
    return Graph.of(old, new), old, new


def test_a_merge_conforms():
    old, new = memory("old", "event", 4, seq_from=3), memory("new", "event", 8, seq_to=9)
    graph = Graph.of(old, new)
    run(graph, [new], MERGE)
    survivor = graph.memories["old"]
    assert (survivor.seq, survivor.seq_from, survivor.seq_to) == (8, 3, 9)
    gone = graph.memories["new"]
    assert (gone.archived, gone.archived_reason, gone.parent_id) == (True, "merged", "old")


def test_a_merge_keeps_what_counts():
    graph, _old, new = pair(importance=9, access_count=2, last_access_at=NOW, valid_from=NOW)
    graph.change("old", access_count=3, importance=6)
    run(graph, [new], MERGE)
    survivor = graph.memories["old"]
    assert (survivor.importance, survivor.access_count, survivor.last_access_at) == (9, 5, NOW)
    assert survivor.valid_from == NOW
    assert set(survivor.child_ids) == {"new"}


def test_a_validity_is_copied_only_when_there_is_none():
    graph, _old, new = pair(valid_from=NOW)
    graph.change("old", valid_to=NOW + timedelta(days=1))
    run(graph, [new], MERGE)
    assert (graph.memories["old"].valid_from, graph.memories["old"].valid_to) == (None, NOW + timedelta(days=1))


def test_merged_fields_are_taken():
    graph, old, new = pair()
    run(graph, [new], {**MERGE, "merged_fields": {"text": "Both.", "colour": "red", "name": ""}})
    survivor = graph.memories["old"]
    assert (survivor.text, survivor.name, survivor.fields) == ("Both.", "old", {})
    assert old.text in {entry["value"] for entry in survivor.history}


@pytest.mark.parametrize("fields", [None, {}, [], "text", {"colour": "red"}, {"text": 5}, {"text": " "}])
def test_without_merged_fields_what_is_missing_is_filled(fields: Any):
    graph, old, new = pair(fields={"reason": "speed", "status": ""})
    run(graph, [new], {**MERGE, "merged_fields": fields})
    survivor = graph.memories["old"]
    assert (survivor.text, survivor.fields) == (old.text, {"reason": "speed"})


def test_the_newer_value_of_a_latest_only_kind_wins_and_the_old_is_history():
    old = memory("old", "fact", 1, name="Port", text="8080", fields={"unit": "tcp"})
    new = memory("new", "fact", 2, name="port", text="9090", fields={"unit": ""})
    graph = Graph.of(old, new)
    run(graph, [new], decider=Rules())
    survivor = graph.memories["old"]
    assert (survivor.text, survivor.fields["unit"]) == ("9090", "tcp")
    assert "8080" in {entry["value"] for entry in survivor.history}


def test_an_older_value_that_comes_late_does_not_win():
    old = memory("old", "fact", 5, name="port", text="9090", settled=True)
    new = memory("new", "fact", 2, name="port", text="8080")
    graph = Graph.of(old, new)
    run(graph, [new], decider=Rules())
    assert graph.memories["old"].text == "9090"
    assert "8080" in {entry["value"] for entry in graph.memories["old"].history}


def test_a_skip_goes_into_its_survivor():
    graph, _old, new = pair()
    graph.put(memory("far", "lesson"))
    graph.connect("new", "far", "part_of", 0.6)
    graph.connect("old", "far", "part_of", 0.4)
    graph.connect("new", "old")
    run(graph, [new], SKIP)
    assert (graph.memories["new"].archived_reason, graph.memories["new"].parent_id) == ("duplicate", "old")
    assert [(e.source, e.target, e.strength) for e in graph.edges.values()] == [("old", "far", 0.6)]


def test_a_skip_without_a_duplicate_goes_to_the_most_similar():
    graph, _old, new = pair()
    run(graph, [new], {"action": "skip"})
    assert graph.memories["new"].parent_id == "old"


def test_a_skip_without_any_neighbour_is_a_keep():
    graph, _old, new = pair()
    run(graph, [new], {"action": "skip"}, near={"new": []})
    assert not graph.memories["new"].archived


def test_skips_that_name_each_other_leave_one():
    a, b = memory("a", "event", 1), memory("b", "event", 2)
    graph = Graph.of(a, b)
    run(graph, [a, b], {"a": {"action": "skip", "duplicate_of": "b"}, "b": {"action": "skip", "duplicate_of": "a"}})
    assert [m.id for m in graph.active()] == ["b"]


def test_a_chain_of_skips_is_resolved():
    chain = [memory(name, "event", n) for n, name in enumerate("abc")]
    graph = Graph.of(*chain)
    script = {one: {"action": "skip", "duplicate_of": other} for one, other in ("ab", "bc", "ca")}
    run(graph, chain, script)
    assert [m.id for m in graph.active()] == ["c"]


def test_a_skip_of_one_that_was_archived_goes_on_to_its_survivor():
    a, b, c = (memory(name, "event", n) for n, name in enumerate("abc"))
    graph = Graph.of(a, b, c)
    run(graph, [a, b], {"a": {"action": "skip", "duplicate_of": "c"}, "b": {"action": "skip", "duplicate_of": "a"}})
    assert graph.memories["b"].parent_id == "c"


def test_merges_into_each_other_leave_one():
    a, b = memory("a", "event", 1), memory("b", "event", 2)
    graph = Graph.of(a, b)
    script = {one: {"action": "merge", "merge_target_id": other} for one, other in ("ab", "ba")}
    run(graph, [a, b], script)
    assert [m.id for m in graph.active()] == ["b"]


EVOLVES = {"should_evolve": True, "connections": ["old"], "updates": [{"id": "old", "summary": "Changed."}]}


@pytest.mark.parametrize(
    "answer",
    [
        {**MERGE, "merge_target_id": "me"},
        {**MERGE, "merge_target_id": 99},
        {**MERGE, "merge_target_id": None},
        {**MERGE, "merge_target_id": True},
        {**MERGE, "merge_target_id": [1]},
        {"action": "merge"},
        {"action": "explode"},
        {"action": None},
        {},
        {"action": "supersede", "supersedes": "old"},
    ],
)
def test_an_answer_that_makes_no_sense_is_a_keep_without_evolution(answer: Any):
    graph, _old, new = pair()
    before = graph.copy()
    run(graph, [new], {**answer, "evolution": EVOLVES})
    assert (graph.memories, graph.edges) == (before.memories, before.edges)


@pytest.mark.parametrize(
    "other",
    [
        memory("old", archived=True),
        memory("old", project_id="q"),
        memory("old", kind="lesson"),
        memory("old", level=1),
        memory("old", valid_to=NOW - timedelta(days=400)),
    ],
)
@pytest.mark.parametrize("answer", [MERGE, SKIP, {"action": "keep", "evolution": EVOLVES}])
def test_what_is_not_compatible_is_neither_shown_nor_touched(other: Memory, answer: Any):
    new = memory("new", "event", 2, valid_from=NOW)
    graph = Graph.of(other, new, memory("third"))
    script = Scripted(lambda c: {**_resolved(c, answer), "merge_target_id": 2, "duplicate_of": 2})
    plan = consolidate(graph, ["new"], everyone_near([other, new]), script)
    assert plan.units == ()
    assert "old" not in {n.memory.id for c in script.asked for one in c for n in one.neighbours}


def test_another_memory_than_those_shown_is_no_target():
    graph, _old, new = pair()
    graph.put(memory("hidden"))
    run(graph, [new], MERGE, near={"new": [("hidden", 0.9, 0.9)]})
    assert not graph.memories["new"].archived


class Broken(Rules):
    def __init__(self, answers: Any) -> None:
        super().__init__()
        self._answers = answers

    def consolidate(self, candidates: Sequence[Candidate]) -> Any:
        if isinstance(self._answers, Exception):
            raise self._answers
        return self._answers


@pytest.mark.parametrize("answers", [None, [], [None, 5, "skip"], [{"action": "skip"}], ValueError("no"), {"id": 1}])
def test_no_answer_is_a_keep(answers: Any):
    graph, _old, new = pair()
    run(graph, [new], decider=Broken(answers))
    assert len(list(graph.active())) == 2


def test_of_two_answers_the_last_wins():
    graph, _old, new = pair()
    run(graph, [new], decider=Broken([{"id": 1, "action": "keep"}, {"id": "1", **SKIP, "duplicate_of": 2}]))
    assert graph.memories["new"].archived


def test_a_keep_evolves_its_neighbours():
    graph, old, new = pair()
    update = {"id": "old", "summary": "It was changed.", "state": "done"}
    evolution = {"should_evolve": True, "connections": ["old", "me", 77], "updates": [update, {"id": 77}, "x"]}
    run(graph, [new], {"action": "keep", "evolution": evolution})
    evolved = graph.memories["old"]
    assert (evolved.text, evolved.fields["state"]) == ("It was changed.", "done")
    assert old.text in {entry["value"] for entry in evolved.history}
    assert [(e.source, e.target, e.relation, e.strength) for e in graph.edges.values()] == [
        ("new", "old", "related", 0.7)
    ]


@pytest.mark.parametrize("flag", [False, None, 1, "true", "yes", [True]])
def test_only_a_real_true_evolves(flag: Any):
    graph, _old, new = pair()
    run(graph, [new], {"action": "keep", "evolution": {**EVOLVES, "should_evolve": flag}})
    assert graph.edges == {}
    assert graph.memories["old"].text == "It is old."


def test_fewer_than_two_memories_ask_nobody():
    script = Scripted(lambda _c: {"action": "skip"})
    graph = Graph.of(memory("a"), memory("b", archived=True, archived_reason="slept"), memory("c", text=" "))
    assert run(graph, [memory("a")], decider=script).settled == ("a",)
    assert script.asked == []


def test_a_memory_without_text_is_not_looked_at():
    graph = Graph.of(memory("a", text=""), memory("b"), memory("c"))
    assert run(graph, [memory("a")], SKIP).settled == ()


def test_one_call_a_batch_under_small_numbers():
    many = [memory(f"m{n}", "event", n) for n in range(10)]
    script = Scripted(lambda _c: {"action": "keep"}, batch=5)
    plan = run(Graph.of(*many), many, decider=script)
    assert (plan.calls, [len(batch) for batch in script.asked]) == (2, [5, 5])
    numbers = {n for batch in script.asked for c in batch for n in (c.number, *(o.number for o in c.neighbours))}
    assert numbers == set(range(1, 11))


# --- without a model


def test_without_vectors_names_and_words_still_decide():
    old, twin = (
        memory("old", "lesson", text="Run the linter first."),
        memory("new", "lesson", 2, text="Run the  Linter first!"),
    )
    graph = Graph.of(old, twin)
    run(graph, [twin], near={"new": [("old", None, 1.0)]}, decider=Rules())
    assert graph.memories["new"].archived_reason == "duplicate"


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Always run the migration before the tests.", "Never run the migration before the tests."),
        ("The limit of retries is 5 in all clients.", "The limit of retries is 7 in all clients."),
        ("Tests of memex/store/lake.py pass again now.", "Tests of memex/store/views.py pass again now."),
        ("The parser calls readHeader before it returns.", "The parser calls readTrailer before it returns."),
        ("Edited a.py: `x = 1` → `x = y`", "Edited a.py: `x = y` → `x = 1`"),
        ("不要在测试之前运行迁移脚本", "在测试之前运行迁移脚本"),
    ],
)
def test_texts_that_differ_in_what_matters_are_not_one(a: str, b: str):
    old, new = memory("old", "lesson", 1, text=a, name=""), memory("new", "lesson", 2, text=b, name="")
    graph = Graph.of(old, new)
    run(graph, [new], near={"new": [("old", 0.99, 0.95)]}, decider=Rules())
    assert not graph.memories["new"].archived


def test_what_says_nothing_more_is_a_duplicate():
    old = memory("old", "event", 1, text="Edited a.py: x\nEdited a.py: `y` → `z`")
    less, more = (
        memory(f"new{n}", "event", n, text=t) for n, t in ((2, "Edited a.py: `y` → `z`"), (3, "Edited a.py: w"))
    )
    graph = Graph.of(old, less, more)
    run(graph, [less, more], near={m.id: [("old", None, 0.3)] for m in (less, more)}, decider=Rules())
    assert [m.archived for m in (graph.memories["new2"], graph.memories["new3"])] == [True, False]


def test_a_vector_alone_is_not_enough():
    graph, _old, new = pair("lesson")
    run(graph, [new], near={"new": [("old", 0.99, 0.2)]}, decider=Rules())
    assert not graph.memories["new"].archived


def test_a_name_that_comes_back_wakes_the_memory_that_sleeps():
    old = memory("old", "fact", 1, name="Port", text="8080", archived=True, archived_reason="slept")
    new = memory("new", "fact", 2, name="port", text="8080")
    graph = Graph.of(old, new)
    run(graph, [new], decider=Rules(), near={})
    assert [m.id for m in graph.active()] == ["old"]


def test_what_was_merged_away_is_not_woken():
    old = memory("old", "fact", 1, name="port", archived=True, archived_reason="merged", parent_id="else")
    new, other = memory("new", "fact", 2, name="port"), memory("else", "fact", 3, name="other")
    graph = Graph.of(old, new, other)
    run(graph, [new], decider=Rules(), near={})
    assert not graph.memories["new"].archived


# --- decisions


def decision(called: str, seq: int, text: str, **fields: Any) -> Memory:
    return memory(
        called, "decision", seq, text=text, name="retry policy", occurred_at=NOW + timedelta(days=seq), **fields
    )


@pytest.mark.parametrize("late", [False, True])
def test_a_newer_decision_closes_the_older(late: bool):
    old = decision("old", 1, "Retry on any 5xx, four times.")
    new = decision("new", 2, "Amended: retry on 5xx and 429, five times.")
    graph = Graph.of(old, replace(new, settled=late))
    run(graph, [old if late else new], decider=Rules())
    assert graph.memories["old"].valid_to == graph.memories["new"].valid_from == new.occurred_at
    assert {m.id for m in graph.active()} == {"old", "new"}
    assert [(e.source, e.target, e.relation) for e in graph.edges.values()] == [("new", "old", "supersedes")]


def test_a_closed_decision_is_not_closed_again():
    first, second, third = (decision(f"d{n}", n, f"Retry {n} times, settled anew.") for n in (1, 2, 3))
    graph = Graph.of(first, second)
    run(graph, [second], decider=Rules())
    graph.put(third)
    run(graph, [third], decider=Rules())
    assert graph.memories["d1"].valid_to == second.occurred_at
    assert graph.memories["d2"].valid_to == third.occurred_at
    pairs = {(e.source, e.target) for e in graph.edges.values()}
    assert pairs == {("d2", "d1"), ("d3", "d2")}


def test_a_decision_that_arrives_late_takes_its_place():
    first, second, third = (decision(f"d{n}", n, f"Retry {n} times, settled anew.") for n in (1, 2, 3))
    graph = Graph.of(first, third)
    run(graph, [third], decider=Rules())
    graph.change("d3", settled=True)
    graph.put(second)
    run(graph, [second], decider=Rules())
    ends = [graph.memories[f"d{n}"].valid_to for n in (1, 2, 3)]
    assert ends == [second.occurred_at, third.occurred_at, None]


def test_decisions_about_other_things_stay_as_they_are():
    a, b = decision("a", 1, "Use tabs."), memory("b", "decision", 2, name="release schedule", text="Ship on Mondays.")
    graph = Graph.of(a, b)
    assert run(graph, [b], decider=Rules()).units == ()


# --- vetoes and repetition


def test_what_was_taken_back_is_not_done_again():
    graph, _old, _new = pair()
    script = Scripted(lambda c: _resolved(c, SKIP))
    plan = consolidate(graph, ["new"], everyone_near([*graph.memories.values()]), script)
    again = consolidate(
        graph, ["new"], everyone_near([*graph.memories.values()]), script, frozenset(u.key for u in plan.units)
    )
    assert len(plan.units) == 1
    assert again.units == ()


def test_the_graph_that_is_given_stays_as_it_is():
    graph, _old, _new = pair()
    before = graph.copy()
    consolidate(graph, ["new"], everyone_near([*graph.memories.values()]), Scripted(lambda c: _resolved(c, MERGE)))
    assert (graph.memories, graph.edges) == (before.memories, before.edges)
