from datetime import timedelta
from pathlib import Path

from memex.maintain.graph import Graph
from memex.maintain.recalls import fold_recalls, note_recall
from tests.maintain.making import NOW, memory


def fold(graph: Graph, folder: Path, folded: dict[str, int]) -> Graph:
    """Fold events in, as maintenance does."""
    units = fold_recalls(graph, folder, folded)
    graph.apply(units)
    folded.update({unit.why: unit.count for unit in units})
    return graph


def test_a_recall_counts(tmp_path: Path):
    graph = Graph.of(memory("a", access_count=1, importance=5.0), memory("b", importance=9.95))
    note_recall(tmp_path, ["a", "b", "nobody"], NOW)
    note_recall(tmp_path, ["a"], NOW + timedelta(hours=1))
    fold(graph, tmp_path, {})
    a, b = graph.memories["a"], graph.memories["b"]
    assert (a.access_count, round(a.importance, 6), a.last_access_at) == (3, 5.2, NOW + timedelta(hours=1))
    assert (b.access_count, b.importance) == (1, 10.0)


def test_what_is_always_shown_does_not_count(tmp_path: Path):
    graph = Graph.of(memory("a"))
    note_recall(tmp_path, ["a"], NOW, "always")
    assert fold_recalls(graph, tmp_path, {}) == []


def test_each_event_counts_once(tmp_path: Path):
    graph, folded = Graph.of(memory("a")), dict[str, int]()
    for day in range(3):
        note_recall(tmp_path, ["a"], NOW + timedelta(days=day))
        fold(graph, tmp_path, folded)
        fold(graph, tmp_path, folded)
    note_recall(tmp_path, ["a"], NOW)
    fold(graph, tmp_path, folded)
    assert graph.memories["a"].access_count == 4


def test_a_torn_line_waits_and_nonsense_is_passed_over(tmp_path: Path):
    graph, folded = Graph.of(memory("a")), dict[str, int]()
    note_recall(tmp_path, ["a"], NOW)
    [path] = tmp_path.glob("*.jsonl")
    whole = path.read_bytes()
    path.write_bytes(whole + b"{nonsense}\n[]\n" + whole[:20])
    assert fold(graph, tmp_path, folded).memories["a"].access_count == 1
    path.write_bytes(whole + b"{nonsense}\n[]\n" + whole)
    assert fold(graph, tmp_path, folded).memories["a"].access_count == 2


def test_an_older_recall_does_not_make_a_memory_older(tmp_path: Path):
    graph = Graph.of(memory("a", last_access_at=NOW))
    note_recall(tmp_path, ["a"], NOW - timedelta(days=9))
    assert fold(graph, tmp_path, {}).memories["a"].last_access_at == NOW
