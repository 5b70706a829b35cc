"""L1: what is pruned, what is merged."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memex.compact.observations import CALL_COLUMNS, group_calls
from memex.compact.recipe import Recipe
from memex.settings import L1Settings

RECIPE = Recipe("observations", "1", 1, "extractive", "extractive")
CALL = {"answered": True, "is_error": False, "empty": False, "mutates": False, "superseded": False}
TALKS = pl.DataFrame({"session_id": ["s"], "prompt_number": [1]})


def groups(calls, **options):
    rows = [
        {**CALL, "id": f"c{n}", "session_id": "s", "prompt_number": 1, "seq": n, "content": f"h{n}", **call}
        for n, call in enumerate(calls)
    ]
    frame = pl.DataFrame(rows, schema_overrides={"id": pl.String}) if rows else pl.DataFrame(schema=_SCHEMA)
    return group_calls(frame, TALKS, L1Settings(**options), RECIPE)["call_ids"].to_list()


_SCHEMA = dict.fromkeys(CALL_COLUMNS, pl.String) | {
    "prompt_number": pl.Int64, "seq": pl.Int64, "answered": pl.Boolean, "is_error": pl.Boolean,
    "empty": pl.Boolean, "mutates": pl.Boolean, "superseded": pl.Boolean,
}  # fmt: skip


def calls(*operations, **fields):
    return [{"operation": operation, **fields} for operation in operations]


def test_a_run_of_three_becomes_one_and_a_run_of_two_does_not():
    assert groups(calls("read", "read", "read", "edit", "edit")) == [["c0", "c1", "c2"], ["c3"], ["c4"]]


def test_a_whole_run_becomes_one():
    assert groups(calls(*["run"] * 7)) == [[f"c{n}" for n in range(7)]]


def test_the_threshold_is_a_setting():
    assert groups(calls("read", "read"), merge_threshold=2) == [["c0", "c1"]]
    assert groups(calls("read", "read", "read"), merge_consecutive=False) == [["c0"], ["c1"], ["c2"]]


@pytest.mark.parametrize("kept", [{"mutates": True}, {"is_error": True}])
def test_an_empty_call_that_changed_something_or_failed_is_kept(kept):
    assert groups([{"operation": "run", "empty": True, **kept}]) == [["c0"]]


def test_an_empty_call_that_did_neither_is_pruned():
    assert groups([{"operation": "search", "empty": True}]) == []
    assert groups([{"operation": "search", "empty": True}], prune_empty=False) == [["c0"]]


def test_a_pruned_call_does_not_break_a_run():
    found = [*calls("read", "read"), {"operation": "search", "empty": True}, *calls("read")]
    assert groups(found) == [["c0", "c1", "c3"]]


def test_superseded_calls_and_calls_of_other_talks_are_left_out():
    assert groups([{"operation": "read", "superseded": True}, {"operation": "read", "prompt_number": 2}]) == []


OPERATIONS = st.lists(
    st.fixed_dictionaries(
        {
            "operation": st.sampled_from(["read", "edit", "run"]),
            "empty": st.booleans(),
            "is_error": st.booleans(),
            "mutates": st.booleans(),
        }
    ),
    max_size=20,
)


@given(OPERATIONS, st.integers(2, 5))
def test_every_call_that_is_not_pruned_is_in_exactly_one_group_of_one_kind(found, threshold):
    kept = [f"c{n}" for n, c in enumerate(found) if not c["empty"] or c["mutates"] or c["is_error"]]
    grouped = groups(found, merge_threshold=threshold)
    assert [i for ids in grouped for i in ids] == kept
    for ids in grouped:
        assert len({found[int(i[1:])]["operation"] for i in ids}) == 1
        assert len(ids) == 1 or len(ids) >= threshold
