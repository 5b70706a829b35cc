"""What was given is remembered: by other objects, other processes, and after damage."""

import threading
from datetime import timedelta

from memex.inject.given import KEPT, Given, Line
from tests.inject.conftest import NOW


def line(session: str, *keys: str, at=NOW) -> Line:
    return Line(at, session, "smart", keys)


def test_what_was_given_is_known_to_others_and_later(tmp_path):
    first, second = Given(tmp_path / "journal"), Given(tmp_path / "journal")
    assert first.keys("s", NOW) == second.keys("s", NOW) == frozenset()
    assert first.claim(line("s", "a", "b"))
    assert second.keys("s", NOW) == {"a", "b"} and second.keys("t", NOW) == frozenset()
    assert not second.claim(line("s", "b", "c"))
    assert second.claim(line("t", "b"))
    assert Given(tmp_path / "journal").keys("s", NOW + timedelta(days=30)) == {"a", "b"}
    assert Given(tmp_path / "journal").keys("s", NOW + KEPT + timedelta(days=1)) == frozenset()


def test_torn_and_foreign_lines_do_no_harm(tmp_path):
    given = Given(tmp_path / "journal")
    given.claim(line("s", "a"))
    (path,) = (tmp_path / "journal").iterdir()
    whole = path.read_bytes()
    path.write_bytes(b'{"session": 1, "keys": []}\n[]\nnull\n{"keys"\n' + whole + b'{"session": "s", "keys": ["torn"]')
    assert Given(tmp_path / "journal").keys("s", NOW) == {"a"}


def test_of_many_threads_one_says_it(tmp_path):
    given, won = Given(tmp_path / "journal"), []
    threads = [threading.Thread(target=lambda: won.append(given.claim(line("s", "a")))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [False] * 7 + [True]
