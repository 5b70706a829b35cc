from memex.maintain.graph import Graph
from memex.maintain.recall import recall
from tests.maintain.making import memory


def asked(graph: Graph, question: str, limit: int = 5, **similarities: float) -> list[str]:
    found = recall(question, list(graph.memories.values()), graph.edges.values(), limit, similarities)
    return [one.memory.id for one in found]


def test_rare_words_count_more_than_common_ones():
    graph = Graph.of(
        *(memory(f"m{n}", text="The tests pass now.") for n in range(5)), memory("rare", text="The parrot.")
    )
    assert asked(graph, "Where are the tests of the parrot?")[0] == "rare"


def test_what_sleeps_and_what_has_nothing_to_do_with_it_is_left_out():
    graph = Graph.of(memory("a", text="A parrot.", archived=True), memory("b", text="A cat."))
    assert asked(graph, "parrot") == []


def test_a_vector_finds_what_no_word_does():
    graph = Graph.of(memory("a", name="", text="一只鹦鹉"), memory("b", name="", text="A cat."))
    assert asked(graph, "parrot", a=0.9) == ["a"]


def test_a_decision_brings_what_it_replaced():
    old = memory("old", "decision", 1, text="Use tabs.", session_id="s")
    new = memory("new", "decision", 2, text="Use spaces, superseding that.", session_id="t")
    graph = Graph.of(old, new, *(memory(f"m{n}", text="spaces and more") for n in range(9)))
    graph.connect("new", "old", "supersedes")
    assert {"old", "new"} <= set(asked(graph, "superseding spaces", 3))
    assert {"old", "new"} <= set(asked(graph, "tabs", 3))


def test_a_talk_answers_once():
    graph = Graph.of(*(memory(f"m{n}", text="A parrot.", session_id="s", prompt_number=n // 2) for n in range(4)))
    assert len(asked(graph, "parrot")) == 2
    assert len(asked(graph, "parrot", 1)) == 1
