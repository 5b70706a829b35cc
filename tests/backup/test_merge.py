"""Two homes in one: nothing is lost, nothing is doubled, and what either forgot stays forgotten."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memex.backup.generations import united
from memex.backup.merge import choose
from memex.compact.plan import UNIT
from memex.forget.target import Target
from memex.sources.verify import verify
from memex.store.schemas import rows_to_arrow
from tests.backup.homes import again, contents, copy_of, home_at, log_in, prompts, refresh, story, tree
from tests.forget.home import history_line, holding
from tests.logs import talk

WORD = "xyzzy-plugh-42"
TIME = datetime(2026, 9, 1, tzinfo=UTC)
TEXTS = st.lists(st.text("ab", min_size=1, max_size=4), max_size=4)
MADE = ("created_at", "replaced_at")


def begins(one, other):
    return other.startswith(one)


@given(TEXTS, TEXTS, st.booleans())
def test_all_texts_are_there_once(ours, theirs, is_last):
    found = united(ours, theirs, begins, is_last)
    assert all(any(begins(text, one) for one in found) for text in (*ours, *theirs))
    assert len(found) <= len(ours) + len(theirs)
    assert all(one in ours or one in theirs for one in found)
    for text in set(theirs) - set(ours):
        assert found.count(text) <= 1
    if ours and is_last:
        assert begins(ours[-1], found[-1])
    assert united(found, theirs, begins, is_last) == found
    assert united(ours, [], begins, is_last) == ours


@given(TEXTS, TEXTS, st.sets(st.text("ab", min_size=1, max_size=4)))
def test_damaged_ones_are_mended_and_not_taken(ours, theirs, broken):
    found = united(ours, theirs, begins, True, lambda text: text in broken)
    sound = [text for text in (*ours, *theirs) if text not in broken]
    assert all(any(begins(text, one) for one in found) for text in sound)
    assert all(found.count(text) <= ours.count(text) for text in broken)


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from("abcdefgh"),
            "session_id": st.sampled_from("st"),
            "prompt_number": st.integers(1, 2),
            "sources": st.lists(st.sampled_from("123"), min_size=1, max_size=2, unique=True),
            "served": st.booleans(),
            "created_at": st.integers(0, 3).map(lambda days: TIME + timedelta(days)),
        }
    ),
    max_size=8,
    unique_by=lambda row: row["id"],
)


@given(ROWS, ROWS, st.sampled_from(["observations", "talk_summaries", "session_summaries"]))
def test_one_row_of_each_unit_is_served_and_it_is_the_newest(ours, theirs, table):
    if table == "session_summaries":
        ours, theirs = ([{k: v for k, v in row.items() if k != "prompt_number"} for row in r] for r in (ours, theirs))
    choice = choose(table, ours, theirs)
    rows = {row["id"]: row for row in ours} | {row["id"]: row for row in theirs if row["id"] in choice.take}
    assert rows.keys() == {row["id"] for row in (*ours, *theirs)}
    served = {key: row for key, row in rows.items() if row["served"] and key not in choice.replaced}
    for row in theirs:
        known = next((one for one in ours if one["id"] == row["id"]), None)
        assert (row["id"] in choice.take) == (known is None or row["created_at"] > known["created_at"])
    units = {}
    for key, row in served.items():
        mine = row["sources"] if table == "observations" else [(row["session_id"], row.get("prompt_number", 0))]
        for unit in mine:
            assert units.setdefault(unit, key) == key
    for key, since in choice.replaced.items():
        assert rows[key]["served"] and rows[key]["created_at"] <= since
    wanted = {(r["session_id"], r.get("prompt_number", 0)) for r in rows.values() if r["served"]}
    if table != "observations":
        assert wanted == set(units)


@pytest.fixture
def pair(tmp_path):
    """Two machines on which the logs stand in one place, for a person has one name on both."""
    return (
        home_at(tmp_path / "a", tmp_path / "claude"),
        home_at(tmp_path / "b", tmp_path / "claude"),
        tmp_path / "claude",
    )


def restored(source, into, tmp_path):
    place = tmp_path / f"backup-{len(list(tmp_path.iterdir()))}"
    again(source).backup.run(place)
    report = again(into).restore.run(place)
    assert again(into).restore.run(place).empty
    assert verify(into.archive).damaged == ()
    return report


def test_homes_with_other_sessions(tmp_path):
    a, b = home_at(tmp_path / "a"), home_at(tmp_path / "b")
    talk(log_in(tmp_path / "a" / "claude", "1"), "one").write()
    talk(log_in(tmp_path / "b" / "claude", "2"), "two").write()
    before, other = story(refresh(a)), story(refresh(b))
    restored(a, b, tmp_path)
    both = story(b)
    for table in ("sessions", "talks", "messages", "tool_calls", "observations", "talk_summaries", "session_summaries"):
        assert both[table] == sorted(before[table] + other[table], key=lambda row: row["id"]), table


@pytest.mark.parametrize("later", ["a", "b"])
def test_one_has_more_of_a_source(pair, tmp_path, later):
    a, b, claude = pair
    log = log_in(claude)
    talk(log, "one").write()
    refresh(a)
    refresh(b)
    talk(log, "two").write()
    longer = refresh(a if later == "a" else b)
    expected = story(longer, *MADE)
    whole = contents(longer)
    restored(a, b, tmp_path)
    assert contents(b) == whole
    assert story(refresh(again(b)), *MADE) == expected


@pytest.mark.parametrize("is_here", [True, False])
def test_source_that_went_on_in_two_ways(pair, tmp_path, is_here):
    a, b, claude = pair
    log = talk(log_in(claude), "shared")
    mine, other = talk(copy_of(log), "only here"), talk(copy_of(log), "only there")
    other.write()
    refresh(b)
    mine.write()
    refresh(a)
    every = contents(a) | contents(b)
    if is_here:
        other.write()
    else:
        log.path.unlink()
        refresh(b)
    restored(a, b, tmp_path)
    assert contents(b) == every
    assert prompts(b) == ["only here", "only there", "shared"]
    live = [row["text"] for row in b.lake.scan("messages", None, "kind = 'prompt' AND NOT superseded").to_pylist()]
    assert sorted(live) == ["only there" if is_here else "only here", "shared"]
    before = contents(b)
    refresh(again(b))
    assert contents(b) == before
    assert story(again(b)) == rebuilt(b)


def rebuilt(memex):
    again(memex).ingest.rebuild()
    return story(again(memex))


def test_both_ways_give_the_same(pair, tmp_path):
    a, b, claude = pair
    log = talk(log_in(claude), "shared")
    for memex, text in ((a, "only here"), (b, "only there")):
        talk(copy_of(log), text).write()
        refresh(memex)
    log.path.unlink()
    c = home_at(tmp_path / "c", claude)
    restored(b, c, tmp_path)
    restored(a, c, tmp_path)
    restored(b, a, tmp_path)
    restored(a, b, tmp_path)
    assert contents(a) == contents(b) == contents(c)
    rows = [story(m, "generation", *MADE) for m in (a, b, c)]
    for table in ("messages", "tool_calls", "talks", "sessions", "talk_summaries", "observations"):
        assert rows[0][table] == rows[1][table] == rows[2][table], table


def test_histories_of_prompts_are_joined(pair, tmp_path):
    a, b, claude = pair
    gone = "99999999-0000-4000-8000-00000000000"
    (claude / "history.jsonl").write_bytes(
        history_line("asked there", f"{gone}1") + history_line("and again", f"{gone}1", 2)
    )
    refresh(a)
    (claude / "history.jsonl").write_bytes(history_line("asked here", f"{gone}2", 3))
    refresh(b)
    restored(a, b, tmp_path)
    assert prompts(b) == ["and again", "asked here", "asked there"]
    assert story(b) == rebuilt(b)


def test_summaries_by_two_recipes(pair, tmp_path):
    a, b, claude = pair
    talk(log_in(claude), "one").write()
    refresh(a)
    refresh(b)
    [row] = a.lake.scan("talk_summaries").to_pylist()
    paid = {**row, "id": "paid", "fingerprint": "paid", "model": "paid", "created_at": row["created_at"] + timedelta(1)}
    a.lake.upsert("talk_summaries", a.lake.scan("talk_summaries").from_pylist([{**row, "served": False}, paid]))
    restored(a, b, tmp_path)
    rows = {r["id"]: r for r in b.lake.scan("talk_summaries").to_pylist()}
    assert rows.keys() == {row["id"], "paid"}
    assert [key for key, r in rows.items() if r["served"]] == ["paid"]
    assert rows[row["id"]]["replaced_at"] == paid["created_at"]


@pytest.mark.parametrize("went_on", [(), ("there",), ("here", "there")])
def test_one_session_at_two_places(tmp_path, went_on):
    """A person has another name on each machine, and carries the logs over."""
    a, b = home_at(tmp_path / "a"), home_at(tmp_path / "b")
    log = talk(log_in(tmp_path / "a" / "claude"), "shared")
    copy = copy_of(log)
    copy.path = log_in(tmp_path / "b" / "claude").path
    shared = len(log.records)
    if "there" in went_on:
        talk(log, "there")
    if "here" in went_on:
        talk(copy, "here")
    for record in copy.records[shared:]:
        record["uuid"] += "-here"
    log.write()
    copy.write()
    refresh(a)
    refresh(b)
    restored(a, b, tmp_path)
    refresh(again(b))
    assert prompts(b) == sorted(["shared", *went_on])
    assert len(contents(b)) == 2
    assert sorted(row["prompt"] for row in b.lake.scan("talks", ["prompt"]).to_pylist()) == prompts(b)


def test_acts_of_both_in_order(pair, tmp_path):
    a, b, _claude = pair
    for memex, name in ((a, "1"), (b, "2"), (a, "3"), (b, "4")):
        memex.acts.add("merge_projects", source=f"dir:/{name}", target="dir:/all", n=name)
    restored(a, b, tmp_path)
    assert [act["n"] for act in b.acts.read("merge_projects")] == ["1", "2", "3", "4"]


TARGETS = {"session": Target(session="1111"), "text": Target(matching=WORD)}


def told(claude):
    """A log that holds a word, and one that does not."""
    log = talk(talk(log_in(claude, "1"), f"tell of {WORD}"), "another")
    log.write()
    talk(log_in(claude, "2"), "stay").write()
    return log


@pytest.mark.parametrize("what", TARGETS)
@pytest.mark.parametrize("by", ["ours", "theirs", "both"])
def test_what_one_forgot_does_not_come_back(pair, tmp_path, what, by):
    a, b, claude = pair
    told(claude)
    refresh(a)
    refresh(b)
    for memex, who in ((a, "theirs"), (b, "ours")):
        if by in (who, "both"):
            memex.forget.run(TARGETS[what])
            refresh(memex)
    restored(a, b, tmp_path)
    refresh(again(b))
    assert holding(b.home, WORD) == []
    assert "stay" in prompts(b)
    if by == "both":
        assert contents(a) == contents(b)
    if what == "text":
        assert "another" in prompts(b)
        assert len(contents(b)) == 2
        kept = b.lake.scan("talk_summaries", list(UNIT), "served").to_pylist()
        assert len(kept) == len({tuple(row.values()) for row in kept}) == 3


def test_older_backup_does_not_bring_back_what_was_forgotten(pair, tmp_path):
    a, _b, claude = pair
    told(claude)
    refresh(a).backup.run(tmp_path / "old.tar.zst")
    a.forget.run(TARGETS["text"])
    a.forget.run(TARGETS["session"])
    refresh(a)
    before = tree(a.archive.root)
    again(a).restore.run(tmp_path / "old.tar.zst")
    assert holding(a.home, WORD) == []
    assert tree(a.archive.root) == before
    assert prompts(a) == ["stay"]


def test_forgotten_text_leaves_the_backup_folder(pair, tmp_path):
    a, _b, claude = pair
    told(claude)
    refresh(a).backup.run(tmp_path / "backup")
    a.forget.run(TARGETS["text"])
    a.backup.run(tmp_path / "backup")
    c = home_at(tmp_path / "c", tmp_path / "nothing")
    c.restore.run(tmp_path / "backup")
    assert holding(c.home, WORD) == holding(tmp_path / "backup" / "archive", WORD) == []
    a.forget.run(TARGETS["session"])
    a.backup.run(tmp_path / "backup")
    names = {path.stem.split(".")[0] for path in (tmp_path / "backup" / "archive").glob("*/??/*")}
    assert names == {kept.id for kept in a.archive.sources()}


def test_failure_that_the_other_home_made_good_goes(pair, tmp_path):
    a, b, claude = pair
    talk(talk(log_in(claude), "one"), "two").write()
    for memex in pair[:2]:
        refresh(memex)
    failure = {
        "level": "talks", "session_id": f"claude:{log_in(claude).session}", "reason": "x", "attempts": 1,
        "failed_at": TIME, "retry_at": TIME,
    }  # fmt: skip
    b.lake.delete("talk_summaries", "prompt_number = 1")
    failures = [{**failure, "id": "f1", "prompt_number": 1}, {**failure, "id": "f9", "prompt_number": 9}]
    b.lake.upsert("failures", rows_to_arrow("failures", failures))
    restored(a, b, tmp_path)
    assert [row["id"] for row in b.lake.scan("failures").to_pylist()] == ["f9"]
