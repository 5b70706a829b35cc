"""Facts about text: units, clips, sentences, what can be stored."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.text import (
    clip_units,
    digest,
    estimate_tokens,
    is_cjk,
    one_line,
    plain,
    sentences,
    storable,
    unique,
    units,
)

ANY = st.text(st.characters())
MIXED = st.text(st.sampled_from("ab cé_1,.。，!修复가ひカ\U00020000\n") | st.characters(), max_size=40)
TEXTS = settings(deadline=None, max_examples=100)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("  ,.!", 0),
        ("fix the login", 3),
        ("修复登录", 4),
        ("重跑gen后", 4),
        ("ひらがなカナ", 6),
        ("한국어", 3),
        ("snake_case x2", 2),
        ("don't", 2),
        ("naïve Übung", 2),
        ("𠀀𠀁", 2),
    ],
)
def test_units_are_words_or_cjk_characters(text, count):
    assert units(text) == count


@TEXTS
@given(left=MIXED, right=MIXED)
def test_units_of_two_texts_add_up(left, right):
    assert units(f"{left} {right}") == units(left) + units(right)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("修复", True),
        ("修复 login now", True),
        ("修 a b c", True),
        ("修 a b c d", False),
        ("login", False),
        ("", False),
    ],
)
def test_a_quarter_of_cjk_units_makes_a_cjk_text(text, expected):
    assert is_cjk(text) is expected


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("修复", 2), ("修复abcde", 4)]
)
def test_tokens_are_estimated_by_script(text, tokens):
    assert estimate_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("fix the login", 3, "fix the login"),
        ("fix the login", 2, "fix the…"),
        ("fix, (the login)", 1, "fix…"),
        ("修复登录，然后测试", 4, "修复登录…"),
        ("重跑gen后", 3, "重跑gen…"),
        ("fix it!  ", 2, "fix it!  "),
        ("fix", 0, "…"),
        ("", 0, ""),
    ],
)
def test_clip_ends_after_the_last_unit_that_fits(text, limit, expected):
    assert clip_units(text, limit) == expected


@TEXTS
@given(text=MIXED, limit=st.integers(0, 20))
def test_clip_keeps_as_many_units_as_allowed(text, limit):
    clipped = clip_units(text, limit)
    assert units(clipped) == min(units(text), limit)
    assert clipped == text or text.startswith(clipped[:-1])
    assert (clipped == text) == (units(text) <= limit) or clipped.endswith("…")


@TEXTS
@given(text=ANY)
def test_stored_text_is_always_utf8(text):
    stored = storable(text)
    assert stored.encode("utf-8").decode("utf-8") == stored
    assert len(stored) == len(text)
    assert storable(stored) == stored


@TEXTS
@given(text=st.text(st.characters(exclude_categories=("Cs",))))
def test_valid_text_is_stored_as_it_is(text):
    assert storable(text) == text


def test_lone_surrogates_are_replaced():
    assert storable("a\ud83db\udc00😀") == "a\ufffdb\ufffd😀"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31;1mred\x1b[0m", "red"),
        ("\x1b]8;;https://x.y\x07link\x1b]8;;\x07", "link"),
        ("\x1b]0;title\x1b\\text", "text"),
        ("a\x00b", "ab"),
        ("\x1b[2K\x1b[1Gdone 50%", "done 50%"),
        ("no escapes [31m", "no escapes [31m"),
    ],
)
def test_plain_text_has_no_terminal_escapes(text, expected):
    assert plain(text) == expected


@pytest.mark.parametrize(("text", "expected"), [(" a \n\t b\u3000c ", "a b c"), ("", ""), ("\n", ""), ("a", "a")])
def test_one_line_folds_white_space(text, expected):
    assert one_line(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It works. Now the docs!  Done?", ["It works.", "Now the docs!", "Done?"]),
        ("已修复。测试通过！好吗？", ["已修复。", "测试通过！", "好吗？"]),
        ("Version 1.2.3 of a.py is out", ["Version 1.2.3 of a.py is out"]),
        ("See e.g. this one", ["See e.g. this one"]),
        ("first line\n\n second line", ["first line", "second line"]),
        ("Done. `pytest` passes", ["Done.", "`pytest` passes"]),
        ("Done. 3 tests pass", ["Done.", "3 tests pass"]),
        (" \n ", []),
        ("", []),
    ],
)
def test_sentences_end_at_stops_and_line_ends(text, expected):
    assert sentences(text) == expected


@TEXTS
@given(text=st.text(st.sampled_from("aB1 .!?。！？\n`*"), max_size=40))
def test_no_word_is_lost_between_sentences(text):
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


@TEXTS
@given(parts=st.lists(ANY, max_size=4), others=st.lists(ANY, max_size=4))
def test_digests_are_equal_for_equal_parts_only(parts, others):
    assert (digest(*parts) == digest(*others)) == (parts == others)


def test_digest_depends_on_the_split():
    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc"), digest("abc", ""), digest()}) == 5
    assert len(digest("abc")) == 32


def test_digest_tells_lone_surrogates_apart():
    assert len({digest("\ud800"), digest("\udc00"), digest("?"), digest("\ufffd")}) == 4


def test_unique_keeps_the_first_of_each():
    assert unique(["b", "", "a", "b"]) == ("b", "a")
