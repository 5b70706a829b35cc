from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from memex.maintain.gate import Verdict, gate
from memex.maintain.identity import identity, overlap
from memex.model import Memory
from tests.maintain.making import NOW, memory


class Nearest:
    """Answers with fixed scores, and counts how often it was asked."""

    def __init__(self, *found: tuple[str, float], fails_on: str = "") -> None:
        self.found, self.fails_on, self.asked = list(found), fails_on, 0

    def __call__(self, of: Memory) -> Sequence[tuple[str, float]]:
        self.asked += 1
        if of.id == self.fails_on:
            raise RuntimeError("no answer")
        return self.found


def judged(score: float, other: Memory | None = None, new: Memory | None = None, **options: Any) -> Verdict:
    new, other = new or memory("new"), other or memory("old")
    return gate([new], [new, other], Nearest((other.id, score)), **options)


@pytest.mark.parametrize(("score", "runs"), [(0.85, True), (0.84, False), (0.9, True)])
def test_runs_at_the_threshold(score: float, runs: bool):
    verdict = judged(score)
    assert (verdict.run, verdict.score, verdict.match_id) == (runs, score, "old")


def test_reports_the_best_score_when_it_does_not_run():
    assert judged(0.84) == Verdict(False, "nothing like it", 1, 0.84, "new", "old", 1)


DAY = timedelta(days=1)
DATED = {"valid_from": NOW, "valid_to": NOW + DAY}


@pytest.mark.parametrize(
    ("other", "new", "runs"),
    [
        (memory("old", archived=True), memory("new"), False),
        (memory("old", project_id="q"), memory("new"), False),
        (memory("old", project_id=""), memory("new"), False),
        (memory("old", kind="lesson"), memory("new"), False),
        (memory("old", **DATED), memory("new", valid_from=NOW + 2 * DAY), False),
        (memory("old", **DATED), memory("new", valid_to=NOW - DAY), False),
        (memory("old", **DATED), memory("new"), True),
        (memory("old", **DATED), memory("new", valid_from=NOW), True),
        (memory("old", fields={"status": "planned"}), memory("new", fields={"status": "done"}), False),
        (memory("old", fields={"status": "planned"}), memory("new", fields={"status": "planned"}), True),
    ],
)
def test_only_compatible_memories_count(other: Memory, new: Memory, runs: bool):
    assert judged(0.9, other, new).run is runs


def test_a_user_scoped_memory_fits_its_owner_only():
    mine = {"kind": "preference", "project_id": "", "owner": "user"}
    assert judged(0.9, memory("old", **mine), memory("new", **mine)).run
    assert not judged(0.9, memory("old", **{**mine, "owner": "else"}), memory("new", **mine)).run


def test_a_name_decides_without_a_vector():
    nearest = Nearest()
    old, new = memory("a", "fact", name=" Foo   Bar "), memory("b", "fact", name="foo bar")
    assert gate([new], [new, old], nearest) == Verdict(True, "same name", 1, 1.0, "b", "a")
    assert nearest.asked == 0


def test_the_title_counts_where_there_is_no_name():
    old, new = (memory(n, "fact", name="", fields={"title": t}) for n, t in (("a", "X Y"), ("b", "x y")))
    assert gate([new], [new, old], Nearest()).run


def test_one_of_the_same_batch_counts():
    both = [memory(n, "fact", name="same") for n in ("a", "b")]
    assert gate(both, both, Nearest(), min_new=3).why == "same name"


def test_events_of_one_title_are_no_match():
    both = [memory(n, name="same") for n in ("a", "b")]
    assert not gate(both[:1], both, Nearest()).run


def test_a_threshold_is_clamped():
    assert judged(1.0, threshold=5).run
    assert not judged(0.999, threshold=5).run


def test_many_new_memories_run_without_analysis():
    nearest = Nearest()
    assert gate([memory("a"), memory("b")], [], nearest) == Verdict(True, "2 new memories", 2)
    assert nearest.asked == 0


def test_a_failed_query_does_not_stop_the_next():
    new = [memory("a"), memory("b")]
    verdict = gate(new, [*new, memory("old")], Nearest(("old", 0.9), fails_on="a"), min_new=3)
    assert (verdict.run, verdict.memory_id) == (True, "b")


def test_nothing_new_is_nothing_to_do():
    assert not gate([memory("a", archived=True)], [], Nearest(), min_new=0).run


@pytest.mark.parametrize(
    ("a", "b"),
    [(" Foo   Bar ", "foo bar"), ("ＡＢＣ", "abc"), ("./src\\a/../b.py", "src/b.py"), ("src//b.py", "SRC/b.py")],
)
def test_identity_folds_what_does_not_matter(a: str, b: str):
    assert identity(a) == identity(b)


def test_identity_keeps_what_matters():
    assert len({identity(name) for name in ("a.py", "b/a.py", "a/py", "a py", "/a.py")}) == 5


def test_intervals_open_on_one_side_overlap_truly():
    early, late = memory("a", valid_to=NOW), memory("b", valid_from=NOW + DAY)
    assert not overlap(early, late)
    assert not overlap(late, early)
    assert overlap(early, memory("c", valid_to=NOW + DAY))
