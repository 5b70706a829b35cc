"""The shared book of calls: caps, reservations, answers that wait for the lake."""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.errors import Stopped
from memex.llm.book import DAY, Book, Call, Caps, forget_answers

NOON = 20_000 * DAY + DAY / 2


class Clock:
    """Shows the time that it is set to."""

    def __init__(self, now=NOON):
        self.now = now

    def __call__(self):
        return self.now


def call(tokens=100, usd=0.0):
    return Call("talks", "openai", "m", tokens, 0, usd)


@pytest.fixture
def open_book(tmp_path):
    def opened(run="one", clock=None, **caps):
        return Book(tmp_path / "calls.db", Caps(**caps), run, clock or Clock())

    return opened


@pytest.mark.parametrize(
    "caps", [{"day_tokens": 250}, {"run_tokens": 250}, {"day_usd": 0.25}, {"run_usd": 0.25}], ids=str
)
def test_no_cap_is_passed(open_book, caps):
    book = open_book(**caps)
    for _ in range(2):
        book.settle(book.reserve(call(100, 0.1), 60), 100, 0, 0, 0.1, 1)
    with pytest.raises(Stopped, match="the cap of"):
        book.reserve(call(100, 0.1), 60)


def test_a_cap_of_zero_lets_only_free_calls_through(open_book):
    book = open_book(day_usd=0.0)
    book.reserve(call(100, 0.0), 60)
    with pytest.raises(Stopped):
        book.reserve(call(100, 0.001), 60)


def test_caps_of_a_run_are_its_own_and_those_of_a_day_end_with_it(open_book):
    clock = Clock()
    one, two = open_book("one", clock, run_tokens=150), open_book("two", clock, run_tokens=150)
    one.reserve(call(), 60)
    two.reserve(call(), 60)
    daily = open_book("three", clock, day_tokens=250)
    clock.now += 100
    with pytest.raises(Stopped):
        daily.reserve(call(), 60)
    clock.now += DAY
    daily.reserve(call(), 60)


def test_who_finds_the_rest_reserved_waits_until_it_is_settled(open_book):
    book = open_book(day_tokens=1000)
    first = book.reserve(call(900), 60)
    got = []
    waiting = threading.Thread(target=lambda: got.append(book.reserve(call(900), 60)))
    waiting.start()
    assert got == []
    book.settle(first, 50, 0, 0, 0.0, 1)
    waiting.join(20)
    assert len(got) == 1


def test_what_a_dead_process_reserved_counts_as_spent(open_book):
    clock = Clock()
    open_book("dead", clock).reserve(call(900), 60)
    clock.now += 61
    book = open_book("alive", clock, day_tokens=1000)
    with pytest.raises(Stopped):
        book.reserve(call(200), 60)
    assert [row["tokens_input"] for row in book.untold()] == [900]


def test_the_ledger_is_told_once(open_book):
    book = open_book()
    book.settle(book.reserve(call(), 60), 90, 10, 5, 0.1, 12.0)
    book.reserve(call(), 60)  # under way
    (row,) = book.untold()
    assert (row["tokens_input"], row["tokens_output"], row["tokens_cached"], row["cost_usd"]) == (90, 10, 5, 0.1)
    book.tell([row["id"]])
    assert book.untold() == []


def test_answers_are_kept_until_dropped_and_leave_no_trace(open_book, tmp_path):
    book = open_book()
    book.keep("key", "a text that must not be found any more")
    assert open_book("two").answer("key") == "a text that must not be found any more"
    forget_answers(tmp_path / "calls.db")
    assert book.answer("key") is None
    assert not any(b"must not be found" in path.read_bytes() for path in tmp_path.glob("calls.db*"))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 400), st.integers(0, 400)), max_size=25), st.integers(100, 2000))
def test_whatever_calls_take_the_cap_holds_when_they_keep_their_word(tmp_path_factory, calls, cap):
    book = Book(tmp_path_factory.mktemp("book") / "calls.db", Caps(day_tokens=cap), "run", Clock())
    for asked, used in calls:
        try:
            name = book.reserve(call(asked), 60)
        except Stopped:
            continue
        book.settle(name, min(asked, used), 0, 0, 0.0, 1)
        assert book.spent().tokens <= cap
