"""The full-text index: what is in the lake is found, by any words, while it is being rebuilt."""

import subprocess
import sys
import textwrap
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.search.part import Doc
from memex.search.query import Filters, Query
from memex.search.text import TextIndex

WHEN = datetime(2026, 5, 1, tzinfo=UTC)


def doc(key, content, **fields):
    base = Doc(key, content, "claude:s1", 1, "raw", "claude", "user", "prompt", "dir:/src/app", "app", WHEN, content)
    return replace(base, **fields)


def refresh(index, docs, whole=False, sessions=None):
    by_key = {d.key: d for d in docs}
    return index.refresh(
        lambda: {k: d.digest for k, d in by_key.items()}, lambda keys: (by_key[k] for k in keys), whole, sessions
    )


ALL = Filters()


def found(index, query, filters=ALL, limit=50):
    return [row["key"] for row in index.search(Query(query, filters=filters), limit)]


@pytest.fixture
def index(tmp_path: Path) -> TextIndex:
    return TextIndex(tmp_path / "index")


def test_an_index_that_was_never_built_finds_nothing(index):
    assert found(index, "anything") == []
    assert index.count() == 0


def test_words_identifiers_and_cjk_are_found(index):
    refresh(
        index,
        [doc("a", "call getUserName in src/auth/login.ts"), doc("b", "登录接口的认证方案"), doc("c", "重跑gen后通过")],
    )
    for query, key in [
        ("getusername", "a"),
        ("user", "a"),
        ("login.ts", "a"),
        ("认证", "b"),
        ("证", "b"),
        ("gen", "c"),
        ("跑", "c"),
    ]:
        assert found(index, query) == [key], query


def test_documents_with_all_the_words_come_first(index):
    refresh(index, [doc("one", "alpha alpha alpha alpha"), doc("both", "alpha and then a very long text about beta")])
    assert found(index, "alpha beta") == ["both", "one"]


CROWD = [doc(f"x{i}", f"crowd member{i}", session_id=f"claude:x{i % 7}") for i in range(60)]


def test_additions_changes_and_removals_are_seen_without_a_new_base(index):
    refresh(index, [*CROWD, doc("a", "old words"), doc("b", "second"), doc("c", "third")])
    base = index._parts()[0].name
    refresh(index, [*CROWD, doc("a", "new words"), doc("b", "second"), doc("d", "fourth")])
    assert index._parts()[0].name == base
    assert (found(index, "old"), found(index, "new"), found(index, "third"), found(index, "fourth")) == (
        [],
        ["a"],
        [],
        ["d"],
    )
    assert index.count() == len(CROWD) + 3


def test_a_refresh_of_some_sessions_leaves_the_others_as_they_are(index):
    refresh(index, CROWD)
    grown = [doc(d.key, f"{d.content} grown", session_id=d.session_id) for d in CROWD if d.session_id == "claude:x3"]
    [new] = [doc("new", "crowd newcomer", session_id="claude:x3")]
    assert refresh(index, [*grown[1:], new], sessions=["claude:x3"]) == len(grown)
    assert sorted(found(index, "grown", limit=100)) == sorted(d.key for d in grown[1:])
    assert found(index, "newcomer") == ["new"]
    assert index.count() == len(CROWD)
    assert len(found(index, "crowd", limit=100)) == len(CROWD)


STEPS = st.lists(
    st.tuples(
        st.sampled_from([None, ["s0"], ["s1", "s2"]]),
        st.dictionaries(st.integers(0, 11), st.sampled_from(["red", "green", "blue red"]), max_size=12),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=8, deadline=None)
@given(steps=STEPS, crowd=st.sampled_from([0, 7, 60]))
def test_any_refreshes_leave_what_a_dict_would_hold(tmp_path_factory, steps, crowd):
    index = TextIndex(tmp_path_factory.mktemp("steps"))
    held = {d.key: d for d in CROWD[:crowd]}
    refresh(index, held.values())
    for sessions, contents in steps:
        docs = {f"k{n}": doc(f"k{n}", content, session_id=f"s{n % 3}") for n, content in contents.items()}
        if sessions is None:
            held = docs | {d.key: d for d in CROWD[:crowd]}
            refresh(index, held.values())
        else:
            docs = {key: d for key, d in docs.items() if d.session_id in sessions}
            held = {key: d for key, d in held.items() if d.session_id not in sessions} | docs
            refresh(index, docs.values(), sessions=sessions)
        assert index.count() == len(held)
        assert index.compare({key: d.digest for key, d in held.items()}).empty
        for word in ("red", "green", "blue", "crowd"):
            expected = sorted(key for key, d in held.items() if word in d.content.split())
            assert sorted(found(index, word, limit=100)) == expected


def test_many_small_additions_leave_few_parts_and_no_old_file(index):
    docs = [doc(f"n{i}", f"word number{i}") for i in range(40)]
    for count in range(1, len(docs) + 1):
        refresh(index, docs[:count])
    assert len(index._parts()) <= 4
    assert {path.name for path in index.root.glob("*.duckdb")} == {part.name for part in index._parts()}
    assert len(found(index, "word", limit=100)) == len(docs)
    assert found(index, "number17")[0] == "n17"


def test_an_unchanged_index_is_not_written(index):
    docs = [doc("a", "words")]
    assert refresh(index, docs) == 1
    before = [p.name for p in index._parts()]
    assert refresh(index, docs) == 0
    assert [p.name for p in index._parts()] == before


def test_what_was_made_by_older_rules_is_made_anew(index):
    docs = [doc("a", "one retry", session_id="s"), doc("b", "two", session_id="t")]
    refresh(index, docs)
    pointer = index.root / "current.json"
    pointer.write_bytes(orjson.dumps([part | {"rules": 1} for part in orjson.loads(pointer.read_bytes())]))
    assert found(index, "retry") == []
    assert index.count() == 0
    refresh(index, docs[:1], sessions=["s"])
    assert found(index, "retries") == ["a"]
    refresh(index, docs)
    assert found(index, "two") == ["b"]


def test_parts_score_like_one_index(index, tmp_path):
    docs = [doc(f"d{i}", " ".join(["common"] * (i % 5 + 1) + ["rare"] * (i % 3 == 0) + [f"w{i}"])) for i in range(40)]
    for count in (30, 36, 39, 40):
        refresh(index, docs[:count])
    assert len(index._parts()) > 1
    whole = TextIndex(tmp_path / "whole")
    refresh(whole, docs)
    for query in ("common", "rare", "common rare", "w3"):
        split = {row["key"]: row["score"] for row in index.search(Query(query), 50)}
        one = {row["key"]: row["score"] for row in whole.search(Query(query), 50)}
        assert split == pytest.approx(one)


FILTERED = [
    doc("a", "word", project="shelf", session_id="claude:s1", role="user", ts=datetime(2026, 5, 1, tzinfo=UTC)),
    doc("b", "word", project="gateway", session_id="claude:s2", role="tool", ts=datetime(2026, 6, 1, tzinfo=UTC)),
    doc("c", "word", project="shelf", session_id="codex:s3", cli="codex", role="assistant", ts=None),
]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(project="SHELF"), {"a", "c"}),
        (Filters(session="s2"), {"b"}),
        (Filters(session="claude:"), {"a", "b"}),
        (Filters(role="tool"), {"b"}),
        (Filters(cli="codex"), {"c"}),
        (Filters(since=datetime(2026, 5, 15, tzinfo=UTC)), {"b"}),
        (Filters(until=datetime(2026, 5, 15, tzinfo=UTC)), {"a"}),
        (Filters(levels=("raw",)), {"a", "b", "c"}),
        (Filters(levels=("talks",)), set()),
    ],
)
def test_filters_hold(index, filters, expected):
    refresh(index, FILTERED)
    assert set(found(index, "word", filters)) == expected


def test_filters_apply_before_the_best_are_taken(index):
    crowd = [doc(f"x{i}", "word word word") for i in range(30)]
    refresh(index, [*crowd, doc("wanted", "a single word in a longer text", project="shelf")])
    assert found(index, "word", Filters(project="shelf"), 1) == ["wanted"]


@settings(max_examples=60, deadline=None)
@given(
    query=st.one_of(
        st.text(max_size=40),
        st.sampled_from(
            ["'", '"', "*", "%", "'; DROP TABLE docs; --", "🎉", "\x00", "(", "AND OR NOT", "$tokens", "{docs}"]
        ),
    )
)
def test_any_string_is_legal(tmp_path_factory, query):
    index = TextIndex(_shared(tmp_path_factory))
    assert isinstance(found(index, query), list)


def test_ten_kilobytes_are_legal(index):
    refresh(index, [doc("a", "needle")])
    assert found(index, "needle " + "x" * 10_000) == ["a"]
    assert found(index, "字" * 10_000) == []


_FOLDER: list[Path] = []


def _shared(factory) -> Path:
    if not _FOLDER:
        _FOLDER.append(factory.mktemp("shared") / "index")
        refresh(TextIndex(_FOLDER[0]), [doc("a", "some words"), doc("b", "认证 emoji 🎉")])
    return _FOLDER[0]


SEARCH_IN_A_LOOP = textwrap.dedent("""
    import sys
    from pathlib import Path
    from memex.search.query import Filters, Query
    from memex.search.text import TextIndex
    index, searches = TextIndex(Path(sys.argv[1])), 0
    print("ready", flush=True)
    while not Path(sys.argv[2]).exists():
        rows = index.search(Query("steady"), 10)
        assert [row["key"] for row in rows] == ["a"], rows
        assert "a" not in index.compare({"a": "steady"}).add
        searches += 1
    print(searches)
""")


def test_readers_never_fail_while_generations_are_swapped(index, tmp_path):
    refresh(index, [doc("a", "steady")])
    stop = tmp_path / "stop"
    command = [sys.executable, "-c", SEARCH_IN_A_LOOP, str(index.root), str(stop)]
    readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for reader in readers:
        assert reader.stdout and reader.stdout.readline() == "ready\n"
    for number in range(12):
        refresh(index, [doc("a", "steady"), doc("n", f"word{number}")], whole=number % 3 == 0)
    stop.touch()
    for reader in readers:
        assert reader.stdout
        assert int(reader.stdout.read()) > 0
        assert reader.wait(60) == 0


def test_of_a_long_question_the_rare_words_count(index):
    crowd = [doc(f"x{i}", " ".join(f"common{n}" for n in range(i, i + 200))) for i in range(30)]
    refresh(index, [*crowd, doc("wanted", "the needle")])
    asked = " ".join([f"common{n}" for n in range(230)] + [f"absent{n}" for n in range(300)] + ["needle"])
    assert "wanted" in found(index, asked, limit=40)
