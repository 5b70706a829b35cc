"""Texts taken out of bytes, in place: what is left is JSON if it was, and says all else that it said."""

import json
import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from memex.sources.lines import read_values
from memex.sources.readings import readings, texts
from memex.sources.redact import holds, is_marker, redacted, strings_of
from memex.sources.secrets import STEP, Secrets

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=30) | st.sampled_from(
    ["", "\\", '"', "\\n", "\n", "\x00", "\x1b[1m", "\\u4f60", "你好", "😀", "a\\\\b", "{}", "[forgotten]"]
)
SECRET = st.text(st.characters(exclude_categories=("Cs",)), min_size=2, max_size=12).filter(
    lambda text: len(text.encode()) >= 4 and not is_marker(text.encode())
)
VALUE = st.recursive(
    TEXT | st.integers(-(2**60), 2**60) | st.booleans() | st.none() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def encoded(value, ascii_only=True):
    return json.dumps(value, ensure_ascii=ascii_only).encode()


def leaves(line):
    """All strings and numbers of a line of JSON, keys too, in order."""

    def walk(value):
        if isinstance(value, list | tuple):
            return [leaf for item in value for leaf in walk(item)]
        return [value]

    return walk(json.loads(line, object_pairs_hook=list))


def is_clear(text, *secrets):
    """Tell whether a text reads the same in every way, and no marker can make a secret with what is beside it."""
    return not set(text) & set("\\\x1b\x00") and not any(set(secret) & set("*-x~0[]forgten.") for secret in secrets)


def expected(text, secret, ascii_only):
    """Write as a pattern what must become of a text in which the secret stands."""
    spans = []
    for at in (at for at in range(len(text)) if text.startswith(secret, at)):
        if spans and at < spans[-1][1]:
            spans[-1][1] = at + len(secret)
        else:
            spans.append([at, at + len(secret)])
    parts, done = [], 0
    for start, end in spans:
        size = len(encoded(text[start:end], ascii_only)) - 2
        marker = rf"\[forgotten\.{{{size - 11}}}\]" if size >= 11 else rf"\*{{{size}}}"
        parts += [re.escape(text[done:start]), marker]
        done = end
    return "".join([*parts, re.escape(text[done:])])


@settings(max_examples=500, deadline=None)
@given(VALUE, SECRET, st.lists(TEXT, min_size=2, max_size=4), st.booleans())
def test_line_stays_json_and_only_the_text_is_replaced(value, secret, around, ascii_only):
    line = encoded({"rest": value, "told": secret.join(around), "last": [1, "x"]}, ascii_only)
    finder = Secrets.of([secret.encode()])
    clean = redacted(line, finder)
    assert len(clean) == len(line)
    for before, after in zip(leaves(line), leaves(clean), strict=True):
        told = holds(encoded(before, ascii_only), finder)
        if isinstance(before, str) and is_clear(before, secret):
            assert re.fullmatch(expected(before, secret, ascii_only), after, re.DOTALL)
        elif isinstance(before, str):
            assert secret not in after and (told or after == before)
        else:
            assert after == before or (told and isinstance(after, int))


@settings(max_examples=200, deadline=None)
@given(SECRET, TEXT, TEXT, st.booleans(), st.integers(1, 3))
def test_json_within_json_is_cleaned(secret, left, right, ascii_only, depth):
    told = left + secret + right
    for _level in range(depth):
        told = json.dumps({"k": told}, ensure_ascii=ascii_only)
    line = encoded({"told": told}, ascii_only)
    clean = json.loads(redacted(line, Secrets.of([secret.encode()])))["told"]
    for _level in range(depth):
        [(key, clean)] = json.loads(clean).items()
        assert key == "k"
    assert secret not in clean
    if is_clear(left + secret + right, secret) and secret not in left + right:
        assert clean.startswith(left[: len(left) - len(secret)]) and clean.endswith(right[len(secret) :])


@given(st.binary(max_size=200), SECRET)
def test_anything_keeps_its_length(data, secret):
    finder = Secrets.of([secret.encode()])
    torn = data + secret.encode() + data
    clean = redacted(torn, finder)
    assert len(clean) == len(torn)
    if not read_values(torn):
        assert secret.encode() not in clean


@given(TEXT, TEXT, TEXT)
def test_readings_know_where_their_text_comes_from(left, middle, right):
    raw = encoded(left + middle + right)[1:-1]
    start, end = len(encoded(left)[1:-1]), len(encoded(left + middle)[1:-1])
    once = [reading for reading in readings(raw, bare=False) if reading.text == (left + middle + right).encode()]
    assert once
    span = once[0].span(len(left.encode()), len((left + middle).encode())) if middle else (start, end)
    assert span == (start, end)


@given(TEXT)
def test_fast_readings_are_the_slow_ones(text):
    raw = encoded({"k": [text, encoded(text).decode()]})
    assert {reading.text for reading in readings(raw, bare=True)} == set(texts(raw))


@pytest.mark.parametrize(
    ("line", "clean"),
    [
        ('{"k": "my hunter2-secret is"}', '{"k": "my [forgotten...] is"}'),
        ('{"k": "my hunter2 is"}', '{"k": "my ******* is"}'),
        ('{"pin": 31337, "n": 313370}', '{"pin": 10000, "n": 100000}'),
        ('{"pin": -31337.5}', '{"pin": 10000000}'),
        ('{"hunter2": 1}', '{"*******": 1}'),
        ("hunter2, as it stands", "*******, as it stands"),
        ('{"torn": "hunter2', '{"torn": "*******'),
        ('{"a": "hun", "b": "ter2"}', '{"a": "hun", "b": "ter2"}'),
        ('{"a": "hun\\u001b[0mter2"}', '{"a": "[forgotten.....]"}'),
        ('{"a": "\\u0068unter2"}', '{"a": "[forgotten.]"}'),
        ('{"a": "{\\"b\\": \\"hunter2\\"}"}', '{"a": "{\\"b\\": \\"*******\\"}"}'),
        ('{"a": "hunter2"} {"b": "hunter2"}', '{"a": "*******"} {"b": "*******"}'),
    ],
)
def test_examples(line, clean):
    finder = Secrets.of([b"hunter2", b"hunter2-secret", b"31337"])
    assert redacted(line.encode(), finder).decode() == clean


def test_marker_is_never_the_text_itself():
    for text in (b"[forgotten]", b"forgotten", b"****", b"----", b"gotten.."):
        finder = Secrets.of([text])
        assert not holds(redacted(b'{"a": "x %s y"}' % text, finder), finder)


def test_text_that_its_marker_would_make_again_goes_too():
    finder = Secrets.of([b"secret", b"ab**"])
    clean = redacted(b'{"a": "absecret"}', finder)
    assert not holds(clean, finder) and json.loads(clean)


def test_strings_of_a_line_are_given_in_every_reading():
    line = encoded({"k": [encoded({"in": "x\ty"}).decode(), 7.5]})
    found = set(strings_of(line))
    assert {b"k", b"7.5", b'{"in": "x\\ty"}', b'{"in": "x\ty"}'} <= found


class TestSecrets:
    def test_every_place_is_found(self):
        data = "密码是斑马。斑马斑马".encode()
        found = sorted(Secrets.of(["斑马".encode()]).spans(data))
        assert [data[start:end].decode() for start, end in found] == ["斑马"] * 3

    @given(st.binary(min_size=1, max_size=60), st.integers(0, 50), st.integers(1, 9))
    def test_spans_are_those_of_a_plain_search(self, data, start, size):
        text = data[start : start + size]
        assume(text)
        found = sorted(Secrets.of([text]).spans(data))
        assert found == [(at, at + len(text)) for at in range(len(data)) if data.startswith(text, at)]

    def test_texts_across_the_steps_are_found_once(self):
        data = bytearray(b"." * (2 * STEP + 50))
        places = [0, STEP - 3, STEP, 2 * STEP - 1, 2 * STEP + 42]
        for at in places:
            data[at : at + 8] = b"absolute"
        finder = Secrets.of([b"absolute"])
        del places[2], data[STEP + 5 : STEP + 5]
        assert [start for start, _end in finder.spans(bytes(data))] == [0, STEP, 2 * STEP - 1, 2 * STEP + 42]

    def test_many_texts_of_several_lengths(self):
        names = [b"name-%d" % number for number in range(300)]
        finder = Secrets.of(names)
        data = b" ".join(names)
        assert {data[start:end] for start, end in finder.spans(data)} == set(names)

    def test_what_is_kept_does_not_tell_the_texts(self):
        secrets = Secrets.of([b"hunter2222", "密码斑马".encode()])
        kept = json.dumps(secrets.written())
        assert "hunter" not in kept and b"hunter".hex() not in kept
        assert Secrets.read(json.loads(kept)) == secrets
        assert Secrets.of([b"hunter2222"]).written()["texts"] != Secrets.of([b"hunter2222"]).written()["texts"]
