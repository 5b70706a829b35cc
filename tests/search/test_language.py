"""The language of queries: what a person writes is what is asked; any text is legal."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.search.part import Doc
from memex.search.query import Filters, Query, parse_query
from memex.search.text import TextIndex

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
PIECES = st.sampled_from(
    [
        '"',
        "-",
        "project:",
        "since:",
        "until:3d",
        "file:a.py",
        "-mock",
        "retry",
        "修复",
        " ",
        "  ",
        "\n",
        ":",
        "x:y",
        "--",
    ]
)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("", Query("")),
        ("retry upload", Query("retry upload")),
        ('the "rate limit" again', Query("the rate limit again", phrases=("rate limit",))),
        ("retry -mock", Query("retry", without=("mock",))),
        ('retry -"rate limit"', Query("retry", without=("rate limit",))),
        ("tar --exclude x", Query("tar --exclude x")),
        ("a -- b - c", Query("a -- b - c")),
        ("well-known", Query("well-known")),
        ("std::vector a:b C:\\x", Query("std::vector a:b C:\\x")),
        ('say "unclosed words', Query('say "unclosed words')),
        ('"***" x', Query('"***" x')),
        ("project:shelf export", Query("export", filters=Filters(project="shelf"))),
        ('project:"my app" x', Query("x", filters=Filters(project="my app"))),
        ("project: x", Query("project: x")),
        ("source:codex role:user type:Bash file:a.py session:5d", None),
        ("since:3d x", Query("x", filters=Filters(since=NOW - timedelta(days=3)))),
        ("until:2026-03-01", Query("", filters=Filters(until=datetime(2026, 3, 1, tzinfo=UTC)))),
        ("since:whenever x", Query("since:whenever x")),
        ("-project:shelf", Query("-project:shelf")),
        ("认证 -令牌", Query("认证", without=("令牌",))),
    ],
)
def test_query_is_read_as_it_is_meant(text, asked):
    wanted = asked or Query("", filters=Filters((), "", "5d", "user", "codex", "Bash", "a.py"))
    assert parse_query(text, NOW) == wanted


def test_options_hold_unless_the_query_says_otherwise():
    given = Filters(project="gateway", role="user")
    assert parse_query("x project:shelf", NOW, given).filters == Filters(project="shelf", role="user")


def on(day):
    return datetime(2026, 3, day, tzinfo=UTC)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    base = Doc("", "", "claude:s", 1, "raw", "claude", "user", "prompt", "", "", None, "")
    docs = [
        replace(
            base, key="a", content="the rate limit was hit in src/auth/login.py", ts=datetime(2026, 3, 1, tzinfo=UTC)
        ),
        replace(base, key="b", content="limit the rate, please", ts=datetime(2026, 3, 3, tzinfo=UTC)),
        replace(base, key="c", content="RATE\n  LIMIT with a mocked clock", type="Bash", role="tool"),
        replace(base, key="d", content="登录的令牌过期了", ts=on(2)),
        replace(base, key="e", content="登录成功"),
    ]
    made = TextIndex(tmp_path_factory.mktemp("index"))
    made.refresh(lambda: {one.key: one.digest for one in docs}, lambda _keys: docs)
    return made


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("rate limit", "abc"),
        ('"rate limit"', "ac"),
        ('"limit the rate"', "b"),
        ('"rate lim"', ""),
        ('"auth/login"', "a"),
        ('"login.py"', "a"),
        ('"的令"', "d"),
        ('"登录的令牌"', "d"),
        ("rate -mock", "ab"),
        ("rate -mocking", "ab"),
        ('rate -"rate limit" -clock', ""),
        ("rate -absent", "abc"),
        ("登录 -令牌", "e"),
        ("rate type:bash", "c"),
        ("rate file:AUTH/login", "a"),
        ("rate role:tool", "c"),
        ("file:login.py", "a"),
        ("since:2026-03-02 until:2026-03-04", "bd"),
        ("-rate role:user", "de"),
        ("nothing of this", ""),
        ("", ""),
        ("-rate", ""),
    ],
)
def test_answers_are_what_the_query_says(index, text, keys):
    assert "".join(sorted(row["key"] for row in index.search(parse_query(text, NOW), 10))) == keys


def test_without_words_the_newest_come_first(index):
    rows = index.search(parse_query("role:user", NOW), 10)
    assert [row["key"] for row in rows] == ["b", "d", "a", "e"]


@settings(deadline=None, max_examples=60)
@given(text=st.lists(PIECES, max_size=8).map("".join) | st.text(max_size=30))
def test_any_text_is_legal(index, text):
    asked = parse_query(text, NOW)
    rows = index.search(asked, 10)
    assert all(phrase.split()[0].lower() in row["content"].lower() for row in rows for phrase in asked.phrases)
    assert len(rows) <= 10
