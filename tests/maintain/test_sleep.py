import math
from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from memex.maintain.graph import Graph
from memex.maintain.sleep import horizon_of, retention, sleep, threshold_for, tired
from memex.model import Memory
from tests.maintain.making import NOW, memory


def value(importance: Any, age: float, count: Any) -> float:
    frame = pl.DataFrame(
        {"i": [importance], "a": [age], "c": [count]}, {"i": pl.Float64, "a": pl.Float64, "c": pl.Float64}
    )
    return frame.select(retention(pl.col("i"), pl.col("a"), pl.col("c"))).item()


def going(*memories: Memory, threshold: float = 0.5) -> set[str]:
    columns = [
        "id",
        "kind",
        "level",
        "archived",
        "importance",
        "access_count",
        "occurred_at",
        "ingested_at",
        "last_access_at",
    ]
    rows = [{name: getattr(m, name) for name in columns} for m in memories]
    types = {name: pl.Datetime("us", "UTC") for name in ("occurred_at", "ingested_at", "last_access_at")}
    frame = pl.DataFrame(
        rows, schema_overrides={**types, "importance": pl.Float64, "access_count": pl.Float64}, strict=False
    )
    return set(tired(frame, NOW, threshold)["id"])


def aged(hours: float, **fields: Any) -> Memory:
    at = NOW - timedelta(hours=hours)
    return memory("m", **{"occurred_at": at, "ingested_at": at, "importance": 5, **fields})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((5, 1, 0), 0.384311), ((5, 24, 0), 0.208512), ((5, 24, 1), 0.417025), ((5, 24, 2), 0.625537),
        ((5, 168, 14), 0.464700), ((7, 1.5, 0), 0.500737), ((7, 1.52, 0), 0.499500), ((7, 24, 1), 0.583834),
    ],
)  # fmt: skip
def test_conforms(given: tuple[float, float, float], expected: float):
    assert value(*given) == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize("count", [None, math.nan, -3])
def test_a_count_that_is_none_counts_as_zero(count: Any):
    assert value(5, 24, count) == value(5, 24, 0)
    assert going(aged(24, access_count=count)) == {"m"}


@pytest.mark.parametrize("importance", [None, math.nan, -1])
def test_an_importance_that_is_none_counts_as_five(importance: Any):
    assert value(importance, 24, 0) == value(5, 24, 0)
    assert going(aged(24, importance=importance)) == {"m"}
    assert going(aged(1, importance=importance), threshold=0.38) == set()


@pytest.mark.parametrize(("hours", "sleeps"), [(1.5, False), (1.52, True), (0.99, False), (1, False)])
def test_the_threshold_is_sharp(hours: float, sleeps: bool):
    assert going(aged(hours, importance=7)) == ({"m"} if sleeps else set())


def test_an_hour_is_old_enough():
    assert going(aged(1)) == {"m"}
    assert going(aged(0.999)) == set()


@pytest.mark.parametrize("kind", ["synopsis", "rule", "thread", "preference"])
def test_some_kinds_never_sleep(kind: str):
    assert going(aged(10_000, kind=kind, importance=1)) == set()


@pytest.mark.parametrize(("importance", "sleeps"), [(7.9, True), (8, False), (9, False)])
def test_what_matters_never_sleeps(importance: float, sleeps: bool):
    assert bool(going(aged(10_000, kind="decision", importance=importance))) is sleeps


def test_age_counts_from_the_latest_of_event_reading_and_recall():
    long_ago = NOW - timedelta(days=900)
    for name in ("occurred_at", "ingested_at", "last_access_at"):
        young = {"occurred_at": long_ago, "ingested_at": long_ago, "last_access_at": long_ago, name: NOW}
        assert going(memory("m", **young)) == set()


def test_what_sleeps_is_left_alone():
    assert going(aged(99, archived=True)) == set()


def test_a_parent_stays_so_that_its_children_are_reached():
    assert going(aged(99_999, level=1, importance=1, child_ids=("a",))) == set()


def test_horizon_and_threshold_are_inverse():
    for days in (1, 7, 90, 365):
        threshold = threshold_for(timedelta(days=days))
        assert horizon_of(threshold) == pytest.approx(timedelta(days=days), rel=1e-6)
        assert going(aged(days * 24 - 0.01), threshold=threshold) == set()
        assert going(aged(days * 24 + 0.01), threshold=threshold) == {"m"}
    assert horizon_of(0.5) == timedelta(hours=1)
    assert threshold_for(timedelta(0)) == threshold_for(timedelta(hours=1))


def test_a_run_archives_and_says_how_much():
    graph = Graph.of(memory("a"), memory("b"), memory("c"))
    plan = sleep(graph, ["a", "b"], "why")
    assert (plan.sleeping, plan.awake, plan.most) == (2, 3, True)
    graph.apply(plan.units)
    assert {m.id for m in graph.active()} == {"c"}
    assert graph.memories["a"].archived_reason == "slept"
    assert not sleep(graph, [], "why").units


def test_what_a_person_woke_stays_awake():
    assert sleep(Graph.of(memory("a")), ["a"], "why", frozenset({"a"})).units == ()
