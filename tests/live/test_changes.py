"""What changed is told, once, wherever it is and whenever it appeared."""

import shutil
import threading
import time

import pytest

from memex.live.changes import Changes
from tests.live.watching import PATIENCE


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "logs" / "deep").mkdir(parents=True)
    return tmp_path / "logs"


def told(changes: Changes, path) -> None:
    """Wait until a path is told."""
    end = time.monotonic() + PATIENCE
    while str(path) not in changes.take(1)[0]:
        assert time.monotonic() < end, path


def blind(changes: Changes) -> None:
    """Wait until something may have changed unseen."""
    end = time.monotonic() + PATIENCE
    while not changes.take(1)[1]:
        assert time.monotonic() < end


def nothing(_text: str) -> None:
    pytest.fail("there is nothing to complain about")


def test_files_are_told_at_every_depth_and_only_when_they_change(folder):
    (folder / "quiet").write_text("x")
    with Changes([folder], nothing) as changes:
        (folder / "deep" / "one").write_text("x")
        told(changes, folder / "deep" / "one")
        assert changes.take(1) == (set(), False)
        with (folder / "quiet").open("a") as file:
            file.write("no longer")
        told(changes, folder / "quiet")
        (folder / "quiet").unlink()
        told(changes, folder / "quiet")


def test_many_changes_of_a_file_are_one(folder):
    with Changes([folder], nothing) as changes:
        for _line in range(2000):
            with (folder / "busy").open("a") as file:
                file.write("line\n")
        time.sleep(1)
        assert changes.take(1) == ({str(folder / "busy")}, False)


def test_a_single_file_may_be_watched_and_replaced(folder):
    history = folder / "history.jsonl"
    history.write_text("x")
    with Changes([history], nothing) as changes:
        for text in ("one", "two"):
            (folder / "aside").write_text(text)
            (folder / "aside").replace(history)
            blind(changes)
            with history.open("a") as file:
                file.write("more")
            told(changes, history)


def test_a_place_that_appears_or_is_made_anew_is_noticed_and_then_watched(folder):
    place = folder / "later" / "projects"
    with Changes([place], nothing) as changes:
        assert changes.take(1) == (set(), False)
        for name in ("one", "two"):
            place.mkdir(parents=True)
            blind(changes)
            (place / name).write_text("x")
            told(changes, place / name)
            shutil.rmtree(folder / "later")
            time.sleep(1)
            changes.take(0)


def test_the_wait_can_be_ended_by_anybody(folder):
    with Changes([folder], nothing) as changes:
        threading.Timer(0.5, changes.wake).start()
        assert changes.take(PATIENCE) == (set(), False)


def test_watching_anew_loses_nothing_that_comes_after(folder):
    with Changes([folder, folder / "nowhere"], nothing) as changes:
        for number in range(5):
            changes.renew()
            (folder / "deep" / f"file{number}").write_text("x")
            told(changes, folder / "deep" / f"file{number}")


def test_folders_that_are_made_moved_or_made_anew_are_watched_however_deep(folder):
    with Changes([folder], nothing) as changes:
        for name in ("made", "moved", "made"):
            (folder / "made" / "x" / "y").mkdir(parents=True) if name == "made" else (folder / "made").rename(
                folder / "moved"
            )
            blind(changes)
            (folder / name / "x" / "y" / "file").write_text(name)
            told(changes, folder / name / "x" / "y" / "file")


def test_what_falls_between_two_watches_is_owned_up_to(folder):
    history, missed = folder / "history.jsonl", set()
    history.write_text("x")
    with Changes([folder / "deep", history], nothing) as changes:
        for number in range(3000):
            if number % 150 == 0:
                (folder / "aside").write_text(str(number))
                (folder / "aside").replace(history)
            (folder / "deep" / f"file{number}").write_text("x")
            missed.add(str(folder / "deep" / f"file{number}"))
            time.sleep(0.002)
        end = time.monotonic() + PATIENCE
        while missed:
            assert time.monotonic() < end, missed
            paths, may_have_missed = changes.take(1)
            missed = set() if may_have_missed else missed - paths


def test_no_link_is_followed(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (folder / "out").symlink_to(tmp_path / "elsewhere")
    (folder / "deep" / "loop").symlink_to(folder)
    with Changes([folder], nothing) as changes:
        (tmp_path / "elsewhere" / "theirs").write_text("x")
        (folder / "deep" / "ours").write_text("x")
        told(changes, folder / "deep" / "ours")
        (folder / "deep" / "later").symlink_to(tmp_path / "elsewhere")
        told(changes, folder / "deep" / "later")
        (tmp_path / "elsewhere" / "theirs").write_text("y")
        assert changes.take(2) == (set(), False)


def test_it_ends_at_once(folder):
    changes = Changes([folder], nothing)
    with changes:
        pass
    assert "changes" not in {thread.name for thread in threading.enumerate()}
