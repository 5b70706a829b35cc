"""Merging of rankings, and folding of sessions."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.search.fold import fold
from memex.search.fuse import fuse, mix

RANKINGS = st.dictionaries(
    st.sampled_from(["text", "vector", "summaries"]), st.lists(st.sampled_from("abcdefgh"), unique=True)
)
ANY = settings(deadline=None, max_examples=100)


def keys(rankings, k=60):
    return [key for key, _score, _legs in fuse(rankings, k)]


def scores(rankings, k=60):
    return {key: score for key, score, _legs in fuse(rankings, k)}


def test_score_sums_reciprocal_ranks():
    assert fuse({"text": ["a", "b"], "vector": ["b"]}, 60) == [
        ("b", pytest.approx(1 / 62 + 1 / 61), ("text", "vector")),
        ("a", pytest.approx(1 / 61), ("text",)),
    ]


def test_constant_weighs_the_first_ranks():
    rankings = {"text": ["a", "x", "y", "b"], "vector": ["z", "u", "v", "b"]}
    assert keys(rankings, 1)[0] == "a"
    assert keys(rankings, 60)[0] == "b"


def test_constant_is_sixty_unless_given():
    assert fuse({"text": ["a"]})[0][1] == pytest.approx(1 / 61)


def test_repeated_key_counts_at_its_best_rank():
    assert fuse({"text": ["a", "a", "b"]}) == fuse({"text": ["a", "b"]})


def test_nothing_fuses_to_nothing():
    assert fuse({}) == fuse({"text": [], "vector": []}) == []


@ANY
@given(ranking=st.lists(st.integers(), unique=True))
def test_one_ranking_stays_as_it_is(ranking):
    assert keys({"text": ranking}) == ranking
    assert keys({"text": ranking, "vector": []}) == ranking


@ANY
@given(rankings=RANKINGS)
def test_every_key_is_there_once_with_its_legs(rankings):
    fused = fuse(rankings)
    assert sorted(key for key, _score, _legs in fused) == sorted(
        {key for ranking in rankings.values() for key in ranking}
    )
    for key, _score, legs in fused:
        assert legs == tuple(leg for leg, ranking in rankings.items() if key in ranking)


@ANY
@given(rankings=RANKINGS)
def test_best_comes_first_and_ties_follow_the_key(rankings):
    for (key, score, _legs), (next_key, next_score, _next_legs) in pairwise(fuse(rankings)):
        assert (-score, key) < (-next_score, next_key)


@ANY
@given(rankings=RANKINGS, k=st.integers(1, 100))
def test_order_of_the_legs_does_not_change_the_scores(rankings, k):
    turned = dict(reversed(rankings.items()))
    assert scores(turned, k) == pytest.approx(scores(rankings, k))


@ANY
@given(rankings=RANKINGS, k=st.integers(1, 100))
def test_key_above_another_in_every_leg_is_above_it(rankings, k):
    for better, worse in pairwise(next(iter(rankings.values()), [])):
        if all(better in r and (worse not in r or r.index(better) < r.index(worse)) for r in rankings.values()):
            fused = keys(rankings, k)
            assert fused.index(better) < fused.index(worse)


SCORED = st.dictionaries(
    st.sampled_from(["text", "vector"]),
    st.dictionaries(st.sampled_from("abcdefgh"), st.floats(-5, 50)).map(
        lambda scores: sorted(scores.items(), key=lambda item: -item[1])
    ),
)


def test_mix_sums_scores_between_worst_and_best():
    found = mix({"text": [("a", 9.0), ("b", 8.0), ("c", 1.0)], "vector": [("b", 0.9), ("c", 0.8)]}, {"vector": 0.5})
    assert found == [
        ("b", pytest.approx(7 / 8 + 0.5), ("text", "vector")),
        ("a", pytest.approx(1.0), ("text",)),
        ("c", pytest.approx(0.0), ("text", "vector")),
    ]


def test_leg_with_one_answer_counts_whole():
    assert mix({"text": [("a", 3.0)]}, {"text": 0.4}) == [("a", pytest.approx(0.4), ("text",))]
    assert mix({"text": [], "vector": []}, {}) == []


@ANY
@given(rankings=SCORED, weight=st.floats(0, 1))
def test_mix_has_each_key_once_and_in_order(rankings, weight):
    found = mix(rankings, {"vector": weight})
    assert sorted(key for key, _score, _legs in found) == sorted({key for leg in rankings.values() for key, _ in leg})
    assert all(first[1] >= second[1] for first, second in pairwise(found))


def test_sessions_are_as_good_as_their_best_hit_and_a_little_better_with_others():
    hits = [("a", 1.0), ("b", 0.9), ("b", 0.8), ("c", 0.95)]
    folded = fold(hits, lambda hit: hit[0], lambda hit: hit[1])
    assert folded == [[("b", 0.9), ("b", 0.8)], [("a", 1.0)], [("c", 0.95)]]
