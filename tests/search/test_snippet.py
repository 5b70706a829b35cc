"""Snippets: what a text is found by is what they show."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.search.snippet import highlights, snippet
from memex.search.tokens import query_tokens

TEXTS = st.text(st.sampled_from("aAbB_ ./-修复認证ｆＦ，é\u0301"), max_size=60)


def marked(text, query):
    return [text[start:end] for start, end in highlights(text, query)]


@pytest.mark.parametrize(
    ("text", "query", "words"),
    [
        ("All the retries failed.", "retry failing", ["retries", "failed"]),
        ("call getUserName() now", "getusername", ["getUserName"]),
        ("see src/auth/login.py twice", "login", ["login"]),
        ("see src/auth/login.py twice", "src/auth/login.py", ["src", "auth", "login", "py"]),
        ("身份認證服務", "认证", ["認證"]),
        ("先重跑gen后再看", "重跑gen后", ["重跑gen后"]),
        ("nothing here", "absent", []),
        ("nothing here", "", []),
    ],
)
def test_words_of_the_query_are_marked_in_whatever_form(text, query, words):
    assert marked(text, query) == words


@settings(deadline=None)
@given(text=TEXTS, query=TEXTS)
def test_marks_are_in_order_and_inside(text, query):
    spans = highlights(text, query)
    flat = [place for span in spans for place in span]
    assert flat == sorted(set(flat))
    assert all(0 <= place <= len(text) for place in flat)
    if query_tokens(text):
        assert highlights(text, text)


def test_snippet_shows_the_densest_place():
    text = "retry " + "x " * 400 + "the retries of the upload failed again" + " y" * 400
    assert "retries of the upload failed" in snippet(text, "upload retry failing", 80)
    assert len(snippet(text, "upload", 80)) <= 82
