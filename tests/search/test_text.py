"""The full-text index: what is in the lake is found, by any words, while it is being rebuilt."""

import subprocess
import sys
import textwrap
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.search import text as text_module
from memex.search.part import Doc
from memex.search.query import Filters
from memex.search.text import TextIndex

WHEN = datetime(2026, 5, 1, tzinfo=UTC)


def doc(key, content, **fields):
    base = Doc(key, content, "claude:s1", 1, "raw", "claude", "user", "dir:/src/app", "app", WHEN, content)
    return replace(base, **fields)


def refresh(index, docs, whole=False):
    by_key = {d.key: d for d in docs}
    return index.refresh(
        lambda: {k: d.digest for k, d in by_key.items()}, lambda keys: (by_key[k] for k in keys), whole
    )


ALL = Filters()


def found(index, query, filters=ALL, limit=50):
    return [row["key"] for row in index.search(query, filters, limit)]


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


def test_additions_changes_and_removals_are_seen_without_a_new_base(index):
    refresh(index, [doc("a", "old words"), doc("b", "second"), doc("c", "third")])
    base = index._parts()[0].name
    refresh(index, [doc("a", "new words"), doc("b", "second"), doc("d", "fourth")])
    assert index._parts()[0].name == base
    assert (found(index, "old"), found(index, "new"), found(index, "third"), found(index, "fourth")) == (
        [],
        ["a"],
        [],
        ["d"],
    )
    assert index.count() == 3


def test_an_unchanged_index_is_not_written(index):
    docs = [doc("a", "words")]
    assert refresh(index, docs) == 1
    before = [p.name for p in index._parts()]
    assert refresh(index, docs) == 0
    assert [p.name for p in index._parts()] == before


def test_a_large_change_makes_a_new_base_and_old_parts_are_removed(index):
    refresh(index, [doc("a", "first")])
    refresh(index, [doc("a", "first"), doc("b", "second")])
    many = [doc(f"n{i}", f"word{i}") for i in range(text_module.FRESH_MINIMUM + 10)]
    refresh(index, many)
    assert len(index._parts()) == 1
    assert len(list(index.root.glob("*.duckdb"))) == 1
    assert found(index, "word7")[0] == "n7"


def test_base_and_fresh_part_score_like_one_index(index, tmp_path):
    docs = [doc(f"d{i}", " ".join(["common"] * (i % 5 + 1) + ["rare"] * (i % 3 == 0) + [f"w{i}"])) for i in range(40)]
    refresh(index, docs[:30])
    refresh(index, docs)
    whole = TextIndex(tmp_path / "whole")
    refresh(whole, docs)
    for query in ("common", "rare", "common rare", "w3"):
        split = {row["key"]: row["score"] for row in index.search(query, Filters(), 50)}
        one = {row["key"]: row["score"] for row in whole.search(query, Filters(), 50)}
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
    from memex.search.query import Filters
    from memex.search.text import TextIndex
    index, searches = TextIndex(Path(sys.argv[1])), 0
    print("ready", flush=True)
    while not Path(sys.argv[2]).exists():
        rows = index.search("steady", Filters(), 10)
        assert [row["key"] for row in rows] == ["a"], rows
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
