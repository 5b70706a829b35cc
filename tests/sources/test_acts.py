"""The log of what the person did."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from memex.sources.acts import Acts


@pytest.fixture
def acts(tmp_path):
    return Acts(tmp_path / "archive")


def test_acts_are_read_back_in_order(acts):
    acts.add("forget", session="claude:1")
    acts.add("merge_projects", source="a", target="b")
    acts.add("forget", session="claude:2")
    assert [act["session"] for act in acts.read("forget")] == ["claude:1", "claude:2"]
    assert list(acts.read("remember")) == []


def test_torn_act_never_happened_and_costs_no_other(acts):
    acts.add("forget", session="claude:1")
    with (acts.root / "acts.jsonl").open("ab") as file:
        file.write(b'{"act": "forget", "sess')
    acts.add("forget", session="claude:2")
    assert [act["session"] for act in acts.read("forget")] == ["claude:1", "claude:2"]


def test_acts_of_several_writers_are_all_kept(acts):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: acts.add("forget", session=f"claude:{number}"), range(40)))
    assert {act["session"] for act in acts.read("forget")} == {f"claude:{number}" for number in range(40)}
