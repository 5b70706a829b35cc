"""Tokens: what is asked for is among what is indexed."""

import sys
import unicodedata

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from memex.search.postings import Vocabulary, count_tokens
from memex.search.tokens import MAX_TOKEN, RUN, RUST_RUN, query_tokens

IDEOGRAPHS = st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF) | st.sampled_from("修复登录重跑𠀀豈")
KANA = st.sampled_from("あいうえおがぱんーアイウガパッャｱｲ")
HANGUL = st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3)
CJK = IDEOGRAPHS | KANA | HANGUL
TEXTS = settings(deadline=None, max_examples=100)


def index_counts(text):
    """The tokens that a text is found by, and how often each is in it."""
    vocabulary = Vocabulary()
    counted = count_tokens([text], vocabulary)
    tokens = list(vocabulary)
    assert set(counted.len.tolist()) <= {counted.tf.sum()}
    return {tokens[tid]: tf for tid, tf in zip(counted.tid.tolist(), counted.tf.tolist(), strict=True)}


def found(query, text):
    return bool(query_tokens(query)) and set(query_tokens(query)) <= set(index_counts(text))


@TEXTS
@given(data=st.data(), text=st.text(CJK | st.sampled_from("a1_ .，/"), min_size=1, max_size=30))
def test_every_cjk_substring_is_found(data, text):
    start = data.draw(st.integers(0, len(text) - 1))
    part = text[start : data.draw(st.integers(start + 1, len(text)))]
    assume(query_tokens(part) and not any(char.isascii() for char in part))
    assert found(part, text)


@pytest.mark.parametrize("query", ["重", "重跑", "跑", "后", "gen", "GEN", "重跑gen后", "跑gen", "gen后"])
def test_latin_glued_to_cjk_is_found(query):
    assert found(query, "先重跑gen后再看")


@pytest.mark.parametrize("query", ["跑重", "后重", "ge", "generate", "重看"])
def test_other_words_are_not_found(query):
    assert not found(query, "先重跑gen后再看")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("getUserName", {"getusernam", "get", "user", "name"}),
        ("HTTPServer", {"httpserver", "http", "server"}),
        ("snake_case", {"snake_case", "snake", "case"}),
        ("a/b_c.py", {"a/b_c.py", "b_c.py", "b_c", "a", "b", "c", "py"}),
        ("std::vector", {"std::vector", "std", "vector"}),
        ("me@x.org", {"me@x.org", "x.org", "me", "x", "org"}),
        ("max-width", {"max-width", "max", "width"}),
        (r"C:\src\a.py", {r"c:\src\a.py", "a.py", "c", "src", "a", "py"}),
        ("sha256sum", {"sha256sum", "sha", "256", "sum"}),
        ("PLAIN", {"plain"}),
        ("Straße", {"strass"}),
        ("Ｆｕｌｌ １２", {"full", "12"}),
        ("ﾃｽﾄ", {"テ", "ス", "ト", "テス", "スト"}),
        ("--- ... !?", set()),
        ("", set()),
    ],
)
def test_identifiers_count_whole_and_in_parts(text, tokens):
    assert set(index_counts(text)) == tokens


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("retry", "all the retries failed"),
        ("failing tests", "the test failed"),
        ("migrations", "run_migration()"),
        ("认证", "身份認證服務"),
        ("認證", "身份认证服务"),
        ("後", "重跑gen后"),
        ("データ", "ﾃﾞｰﾀの移行"),
    ],
)
def test_other_forms_of_a_word_are_found(query, text):
    assert found(query, text)


@pytest.mark.parametrize(("query", "text"), [("universe", "university"), ("id3", "id"), ("as", "a")])
def test_other_words_that_look_like_it_are_not(query, text):
    assert not found(query, text)


def test_repeats_are_indexed_and_asked_for_once():
    assert index_counts("fix it, fix") == {"fix": 2, "it": 1}
    assert index_counts("修修修") == {"修": 3, "修修": 2}
    assert query_tokens("fix FIX 修修修") == ["fix", "修修"]


def test_cjk_is_asked_for_by_pairs():
    assert query_tokens("修复登录") == ["修复", "复登", "登录"]
    assert query_tokens("修") == ["修"]


def test_part_of_a_word_counts_once():
    assert index_counts("Foo_foo/FOO") == {"foo_foo/foo": 1, "foo_foo": 1, "foo": 1}
    assert index_counts("foo_bar foo") == {"foo_bar": 1, "foo": 2, "bar": 1}


@pytest.mark.parametrize("run", ["a" * 500, "a1" * 250, "x_" + "a" * 500, "x/" + "B" * 500, "aB" * 250])
def test_long_run_is_cut(run):
    assert max(map(len, index_counts(run))) == MAX_TOKEN
    assert found(run, run)


@TEXTS
@given(text=st.text(st.characters() | st.sampled_from("aB1_./:修复がア\ud800\x00"), max_size=40))
def test_any_text_finds_itself(text):
    asked = query_tokens(text)
    assert set(asked) <= set(index_counts(text))
    assert len(asked) == len(set(asked))
    assert all(0 < len(token) <= MAX_TOKEN for token in asked)


@TEXTS
@given(text=st.text(st.sampled_from("aB1_./修复 "), max_size=20), around=st.sampled_from([" ", "。", "(", '"', "\n"]))
def test_text_is_found_among_other_words(text, around):
    assume(query_tokens(text))
    assert found(text, f"before{around}{text}{around}after")


@TEXTS
@given(word=st.from_regex(r"[a-z]{1,12}", fullmatch=True))
def test_case_does_not_matter(word):
    for text in (word, word.upper(), word.title()):
        assert query_tokens(text) == query_tokens(word)


def test_both_languages_of_expressions_find_the_same_runs():
    texts = [
        f"a{chr(point)}b" for point in range(sys.maxunicode) if unicodedata.category(chr(point)) not in ("Cs", "Cn")
    ]
    found = pl.Series(texts).str.extract_all(RUST_RUN).to_list()
    other = [text for text, runs in zip(texts, found, strict=True) if runs != RUN.findall(text)]
    assert len(texts) > 280_000
    assert other == []


@TEXTS
@given(texts=st.lists(st.text(CJK | st.sampled_from("aAbB1_ ./-，")), max_size=5))
def test_texts_together_count_like_each_alone(texts):
    vocabulary = Vocabulary()
    counted = count_tokens(texts, vocabulary)
    names = list(vocabulary)
    together = [{} for _ in texts]
    for tid, doc, tf, length in zip(*(column.tolist() for column in counted), strict=True):
        together[doc][names[tid]] = tf
        assert length == sum(index_counts(texts[doc]).values())
    assert together == [index_counts(text) for text in texts]
    places = list(zip(counted.tid.tolist(), counted.doc.tolist(), strict=True))
    assert places == sorted(set(places))
