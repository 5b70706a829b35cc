"""Each part of the confidence counts, alone and in the order of what is told."""

import math
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memex.inject.candidates import Candidate, Near, merged
from memex.inject.choose import Bar, choose, judge
from memex.inject.confidence import Weights, confidence, evidence, time_decay, weights
from memex.inject.evidence import Asked, Rarity, Shared, is_same_file, paths_in
from tests.inject.conftest import NOW

TABLE = weights()
RARE = Rarity({}, 1000)
ASKED = Asked.of("why does session_store.py lose the quarantine table?")
ALL = Rarity(dict.fromkeys([*ASKED.words, "session_store.py"], 2), 1000)


def candidate(name: str, text: str = "the quarantine table of session_store", **fields) -> Candidate:
    made = {"kind": "talks", "session_id": f"claude:{name}", "prompt_number": 1, "project_id": "p", "at": NOW}
    return Candidate(name, "talks", text=text, **{**made, **fields})


def order(*candidates: Candidate, table: Weights = TABLE) -> list[str]:
    return [one.candidate.id for one in judge(candidates, ASKED, ALL, table, NOW)]


def test_base_changes_the_order():
    near, far = candidate("b", similarity=0.9), candidate("a", similarity=0.2)
    assert order(far, near) == ["b", "a"]
    more, less = candidate("b"), candidate("a", "the quarantine")
    assert order(less, more) == ["b", "a"]
    flat = TABLE.model_copy(
        update={"base": TABLE.base.model_validate({"both": {"intercept": 0}, "words": {"intercept": 0}})}
    )
    assert order(far, near, table=flat) == ["a", "b"]


def test_time_decay_changes_the_order():
    old, new = candidate("a", at=NOW - timedelta(days=300)), candidate("b")
    assert order(old, new) == ["b", "a"]
    lasting = TABLE.model_copy(update={"decay": TABLE.decay.model_copy(update={"half_life": {}})})
    assert order(old, new, table=lasting) == ["a", "b"]


def test_evidence_changes_the_order():
    named, alike = candidate("b", files=("/src/session_store.py",), similarity=0.5), candidate("a", similarity=0.5)
    assert order(alike, named) == ["b", "a"]
    none = TABLE.evidence.model_copy(update={"file": 0.0})
    assert order(alike, named, table=TABLE.model_copy(update={"evidence": none})) == ["a", "b"]


@given(
    st.floats(0, 1), st.floats(0, 1), st.floats(0, 40), st.floats(-10, 10_000), st.sampled_from(["talks", "rule", "x"])
)
def test_confidence_is_a_product_of_shares(similarity, coverage, rarity, age, kind):
    shared = Shared({}, {"a": 1.0}, {"b": 0.5}, coverage, rarity)
    found = confidence(shared, similarity, kind, age, TABLE)
    assert found.value == found.base * found.time_decay * found.evidence
    assert all(0 <= part <= 1 for part in (found.base, found.time_decay, found.evidence))
    assert found.base <= confidence(shared, min(1.0, similarity + 0.1), kind, age, TABLE).base
    assert found.base <= confidence(replace(shared, coverage=1.0), similarity, kind, age, TABLE).base


def test_without_evidence_beside_the_vectors_there_is_no_confidence():
    assert confidence(Shared(), 1.0, "rule", 0, TABLE).value == 0.0


def test_half_life():
    decay = TABLE.decay
    left = {age: (time_decay("talks", age, decay) - decay.floor) / (1 - decay.floor) for age in (0, 60, 120)}
    assert left == {0: pytest.approx(1), 60: pytest.approx(0.5), 120: pytest.approx(0.25)}
    assert time_decay("rule", 60, decay) > time_decay("talks", 60, decay)
    assert time_decay("talks", -5, decay) == 1  # a clock that was put back


def test_evidence_adds_up_and_never_passes_one():
    one = evidence(Shared({}, {}, {"a": 1.0}), TABLE.evidence)
    two = evidence(Shared({}, {}, {"a": 1.0, "b": 1.0}), TABLE.evidence)
    assert one == TABLE.evidence.word
    assert one < two < evidence(Shared({"f": 1.0}, {"n": 1.0}, {"a": 1.0, "b": 1.0}), TABLE.evidence) < 1
    assert evidence(Shared({}, {}, {"a": 0.5}), TABLE.evidence) == pytest.approx(1 - math.sqrt(1 - TABLE.evidence.word))


def test_common_words_are_no_evidence():
    asked = Asked.of("please fix the table")
    common = Rarity(dict.fromkeys(asked.words, 400), 1000)
    shared = asked.shared_with("please fix the table", (), common)
    assert shared.words == {} and shared.coverage == pytest.approx(1)
    assert evidence(shared, TABLE.evidence) == 0


def test_a_word_that_no_document_has_is_not_shared():
    assert Asked.of("zyzzyva").shared_with("other words", (), RARE) == Shared()


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("a/b.py", "/src/a/b.py", True),
        ("./a/b.py", "a/b.py", True),
        ("b.py", "/src/a/b.py", True),
        ("xb.py", "/src/a/b.py", False),
        ("c/b.py", "/src/a/b.py", False),
        (r"src\a\b.py", "D:/work/src/a/b.py", True),
        ("", "/src", False),
        ("/", "/src", False),
    ],
)
def test_same_file(a, b, same):
    assert is_same_file(a, b) == is_same_file(b, a) == same


def test_paths_in_a_text():
    text = "see src/app/main.py, `C:\\x\\y.ts` and 配置config.toml; not e.g. this, v1.2 or example.com"
    assert paths_in(text) == ["src/app/main.py", "/x/y.ts", "配置config.toml"]


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_can_be_compared(a, b):
    asked = Asked.of(a)
    shared = asked.shared_with(b, tuple(paths_in(b)), Rarity(dict.fromkeys(asked.words, 1), 100))
    assert 0 <= shared.coverage <= 1 + 1e-9


def test_what_only_words_found_is_at_most_as_similar_as_the_last_that_vectors_found():
    near = Near((candidate("v", similarity=0.6),), {"talks": 0.4})
    assert {one.id: one.similarity for one in merged([candidate("w"), candidate("v")], near)} == {"v": 0.6, "w": 0.4}
    assert [one.similarity for one in merged([candidate("w")], None)] == [None]
    assert [one.similarity for one in merged([candidate("w")], Near())] == [None]


def test_one_of_each_talk():
    judged = judge(
        [candidate("a", similarity=0.9), candidate("b", session_id="claude:a", similarity=0.8)], ASKED, ALL, TABLE, NOW
    )
    decided = choose(judged, Bar(0.0, "p", 0.0), (), (), 5)
    assert [one.why_not for one in decided] == ["", "told before"]
