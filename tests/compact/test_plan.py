"""Planning: exactly what changed is pending, and nothing is served twice."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from memex.compact.plan import compare

WANTED = {"session_id": pl.String, "prompt_number": pl.Int64, "key": pl.String, "fingerprint": pl.String}
STORED = {
    "id": pl.String,
    "session_id": pl.String,
    "prompt_number": pl.Int64,
    "fingerprint": pl.String,
    "served": pl.Boolean,
}
PLACES = {"session_id": pl.String, "prompt_number": pl.Int64}


def wanted(*rows):
    return pl.DataFrame([(s, n, f"{s}{n}", f) for s, n, f in rows], WANTED, orient="row")


def stored(*rows):
    return pl.DataFrame([(f, s, n, f, served) for s, n, f, served in rows], STORED, orient="row")


def places(*rows):
    return pl.DataFrame(list(rows), PLACES, orient="row")


def difference(want, have, growing=(), waiting=(), force=False):
    changes = compare(wanted(*want), stored(*have), places(*growing), places(*waiting), force)
    return dict(changes.make.select("fingerprint", "why").iter_rows()), changes.revive, changes.retire


def test_a_new_unit_is_made():
    assert difference([("s", 1, "f")], []) == ({"f": "new"}, (), ())


def test_an_unchanged_unit_is_left_alone():
    assert difference([("s", 1, "f")], [("s", 1, "f", True)]) == ({}, (), ())


def test_a_changed_unit_is_made_and_its_old_row_retired():
    assert difference([("s", 1, "g")], [("s", 1, "f", True)]) == ({"g": "changed"}, (), ("f",))


def test_a_row_wanted_again_is_revived_at_no_cost():
    have = [("s", 1, "f", False), ("s", 1, "g", True)]
    assert difference([("s", 1, "f")], have) == ({}, ("f",), ("g",))


def test_a_vanished_unit_is_retired():
    assert difference([], [("s", 1, "f", True)]) == ({}, (), ("f",))


def test_a_growing_talk_keeps_its_row():
    assert difference([], [("s", 1, "f", True)], growing=[("s", 1)]) == ({}, (), ())


def test_a_unit_that_rests_after_a_failure_is_not_made_and_keeps_its_old_row():
    assert difference([("s", 1, "g")], [("s", 1, "f", True)], waiting=[("s", 1)]) == ({}, (), ())


def test_force_makes_everything_again_even_what_rests():
    assert difference([("s", 1, "f")], [("s", 1, "f", True)], waiting=[("s", 1)], force=True) == (
        {"f": "changed"},
        (),
        (),
    )


UNITS = st.lists(st.tuples(st.sampled_from("st"), st.integers(1, 3)), unique=True, max_size=5)


@given(st.data(), UNITS)
def test_applying_a_plan_leaves_one_served_row_a_unit_and_nothing_to_do(data, units):
    want = [(s, n, f"{s}{n}-{data.draw(st.integers(0, 2))}") for s, n in units]
    history = data.draw(
        st.dictionaries(
            st.tuples(st.sampled_from("st"), st.integers(1, 3), st.integers(0, 2)), st.booleans(), max_size=8
        )
    )
    have = [(s, n, f"{s}{n}-{v}", served) for (s, n, v), served in history.items()]
    make, revive, retire = difference(want, have)
    after = {f: (s, n, served) for s, n, f, served in have}
    after |= {f: (s, n, True) for s, n, f in want if f in make}
    after |= {f: (*after[f][:2], True) for f in revive}
    after |= {f: (*after[f][:2], False) for f in retire}
    assert sorted(f for f, (_s, _n, served) in after.items() if served) == sorted(f for _s, _n, f in want)
    again = difference(want, [(s, n, f, served) for f, (s, n, served) in after.items()])
    assert again == ({}, (), ())
