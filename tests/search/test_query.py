"""Filters as SQL, and points in time as people write them."""

from datetime import UTC, datetime, timedelta, timezone

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.search.query import LEVELS, Filters, parse_when

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
DOCS = [
    ("a", "claude:111-a", "raw", "user", "claude", "Shelf", "git:/src/Shelf", datetime(2026, 3, 1)),
    ("b", "claude:111-b", "raw", "assistant", "claude", "gateway", "dir:/src/gateway", datetime(2026, 3, 2)),
    ("c", "codex:222-c", "talks", "", "codex", "100%_it's", "dir:/src/x", datetime(2026, 3, 3)),
    ("d", "claude:333-d", "sessions", "", "claude", "shelf", "git:/src/shelf", None),
]


@pytest.fixture(scope="module")
def docs():
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE docs (key TEXT, session_id TEXT, level TEXT, role TEXT, cli TEXT,"
            " project TEXT, project_id TEXT, ts TIMESTAMP)"
        )
        connection.executemany("INSERT INTO docs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", DOCS)
        yield connection


def matching(docs, filters):
    condition, values = filters.as_sql()
    return "".join(
        key for (key,) in docs.execute(f"SELECT key FROM docs WHERE {condition} ORDER BY key", values).fetchall()
    )


@pytest.mark.parametrize(
    ("filters", "keys"),
    [
        (Filters(), "abcd"),
        (Filters(levels=("raw",)), "ab"),
        (Filters(levels=("talks", "sessions")), "cd"),
        (Filters(project="shelf"), "ad"),
        (Filters(project="SHELF"), "ad"),
        (Filters(project="src/gate"), "b"),
        (Filters(project="100%_it's"), "c"),
        (Filters(project="%"), "c"),
        (Filters(project="' OR true --"), ""),
        (Filters(session="claude:111"), "ab"),
        (Filters(session="111-a"), "a"),
        (Filters(session="222"), "c"),
        (Filters(session="11-a"), ""),
        (Filters(role="user"), "a"),
        (Filters(cli="codex"), "c"),
        (Filters(since=datetime(2026, 3, 2, tzinfo=UTC)), "bc"),
        (Filters(until=datetime(2026, 3, 2, tzinfo=UTC)), "a"),
        (Filters(since=datetime(2026, 3, 1, tzinfo=UTC), until=datetime(2026, 3, 3, tzinfo=UTC)), "ab"),
        (Filters(since=datetime(2026, 3, 2, 1, tzinfo=timezone(timedelta(hours=1)))), "bc"),
        (Filters(levels=("raw",), project="shelf", role="user"), "a"),
        (Filters(levels=("raw",), cli="codex"), ""),
    ],
)
def test_filters_keep_what_they_name(docs, filters, keys):
    assert matching(docs, filters) == keys


def test_no_filter_is_true():
    assert Filters().as_sql() == ("true", {})


def test_values_never_stand_in_the_sql():
    condition, values = Filters(project="Quoted'", session="s'", role="r'", cli="c'").as_sql()
    assert "'" not in condition.replace("':'", "")
    assert values == {"project": "quoted'", "session": "s'", "role": "r'", "cli": "c'"}


def test_levels_are_known():
    assert LEVELS == ("raw", "observations", "talks", "sessions", "all")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30m", NOW - timedelta(minutes=30)),
        ("12h", NOW - timedelta(hours=12)),
        ("3d", NOW - timedelta(days=3)),
        ("2w", NOW - timedelta(weeks=2)),
        ("0d", NOW),
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01T12:30", datetime(2026, 3, 1, 12, 30, tzinfo=UTC)),
        ("2026-03-01T12:30:00Z", datetime(2026, 3, 1, 12, 30, tzinfo=UTC)),
        ("2026-03-01T12:30+02:00", datetime(2026, 3, 1, 10, 30, tzinfo=UTC)),
    ],
)
def test_ages_and_dates_are_read(text, expected):
    assert parse_when(text, NOW) == expected


def test_date_without_a_zone_is_in_the_zone_of_now():
    zone = timezone(timedelta(hours=8))
    assert parse_when("2026-03-01", NOW.astimezone(zone)) == datetime(2026, 3, 1, tzinfo=zone)


@pytest.mark.parametrize("text", ["", "d", "3", "-3d", "3.5d", "3 d", "3y", "yesterday", "2026-13-01", "2026-02-30"])
def test_other_words_are_no_date(text):
    with pytest.raises(ValueError, match="is no date"):
        parse_when(text, NOW)


@pytest.mark.parametrize("text", ["99999999w", "9999999999999d", "99999999999999999999h"])
def test_age_before_all_time_is_an_error(text):
    with pytest.raises(ValueError, match="too long ago"):
        parse_when(text, NOW)


@settings(deadline=None, max_examples=100)
@given(text=st.text(max_size=12) | st.from_regex(r"\d{1,12}[mhdw]", fullmatch=True))
def test_any_text_is_a_time_or_a_value_error(text):
    try:
        when = parse_when(text, NOW)
    except ValueError:
        return
    assert when.tzinfo is not None
