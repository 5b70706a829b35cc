"""L3 in steps: parts that fit, every talk seen, always an end."""

from hypothesis import given
from hypothesis import strategies as st

from memex.compact.sessions import split, summarise
from memex.llm.answers import SessionAnswer
from memex.llm.base import TalkOutline
from memex.llm.extractive import ExtractiveWriter
from memex.text import estimate_tokens


class NarrowWriter(ExtractiveWriter):
    """Joins what it is given, and remembers how large that was."""

    def __init__(self, context_tokens):
        self.context_tokens = context_tokens
        self.seen = []

    def session(self, given):
        self.seen.append(given.talks)
        names = " ".join(t.user_request for t in given.talks)
        return SessionAnswer(summary=names or "-", key_points=("-",), technologies=())


def outline(size, name):
    return TalkOutline(name, "w" * size, "", (f"{name}.py",))


def size(talk):
    return sum(map(estimate_tokens, (talk.user_request, talk.summary, talk.completed)))


@given(st.lists(st.integers(0, 400), min_size=1, max_size=30), st.integers(20, 300))
def test_parts_hold_every_talk_in_order_and_two_at_least(sizes, room):
    talks = [outline(s, f"t{n}") for n, s in enumerate(sizes)]
    parts = split(talks, room)
    assert [t for part in parts for t in part] == talks
    assert len(parts) == 1 or all(len(part) >= 2 for part in parts)


@given(st.lists(st.integers(0, 200), min_size=1, max_size=40), st.integers(1, 100))
def test_a_session_that_does_not_fit_is_made_in_steps(sizes, room):
    writer = NarrowWriter(room)
    talks = [outline(s, f"t{n}") for n, s in enumerate(sizes)]
    answer = summarise(writer, "app", talks)
    assert answer.summary.split() == [t.user_request for t in talks]
    if sum(map(size, talks)) <= room:
        assert writer.seen == [tuple(talks)]
