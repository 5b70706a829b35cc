"""kill -9 in the middle of forgetting: whoever writes next finishes it."""

import shutil
import signal
import subprocess
import sys
import textwrap

import pytest

from memex.setup import open_memex
from tests.forget.home import CHINESE, IDS, NEEDLES, WORD, holding, lived, refresh, story, unreferenced

pytestmark = pytest.mark.crash

STRUCK = textwrap.dedent("""
    import os, signal, sys
    from memex.forget.target import Target
    from memex.setup import open_memex
    verb = open_memex().forget
    deadly, seen, begun = int(sys.argv[1]), 0, False
    TELLING = {"open", "os.remove", "os.rename", "os.truncate", "os.rmdir"}

    def strike(event, arguments):
        global seen, begun
        begun = begun or (event == "open" and str(arguments[0]).endswith("acts.jsonl") and arguments[1] == "ab")
        if begun and event in TELLING:
            seen += 1
            if seen == deadly:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(strike)
    verb.run(Target(**{sys.argv[2]: sys.argv[3]}))
    print(seen)
""")
TARGETS = {"session": IDS["target"], "project": WORD, "matching": f"{WORD}|{CHINESE}"}
INGEST = [sys.executable, "-m", "memex.cli.main", "ingest"]


def struck(step, what):
    """Forget in another process, kill it at some step; return how many steps it made, none when it was killed."""
    command = [sys.executable, "-c", STRUCK, str(step), what, TARGETS[what]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode == -signal.SIGKILL:
        return 0
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def rows(memex):
    """All rows, less what says when they were made."""
    times = {"created_at", "replaced_at"}
    found = {t: [{k: v for k, v in row.items() if k not in times} for row in r] for t, r in story(memex).items()}
    return {table: sorted(content, key=lambda row: row["id"]) for table, content in found.items()}


def check(memex, claude_dir, tmp_path, what, moments):
    lived(memex, claude_dir)
    whole = tmp_path / "whole"
    shutil.copytree(memex.home, whole)
    steps = struck(-1, what)
    refresh(open_memex())
    expected = rows(open_memex())
    assert holding(memex.home, *NEEDLES) == []
    finished = 0
    for moment in range(moments):
        shutil.rmtree(memex.home)
        shutil.copytree(whole, memex.home)
        assert struck(1 + steps * moment // moments, what) == 0
        acts = open_memex().acts
        if not list(acts.read("forget")):  # it was killed before it began
            assert holding(memex.home, *NEEDLES) == holding(whole, *NEEDLES)
            continue
        subprocess.run(INGEST, check=True, capture_output=True, timeout=300)
        finished += 1
        assert holding(memex.home, *NEEDLES) == []
        assert unreferenced(memex.home) == []
        assert len(list(acts.read("forgotten"))) == 1
        again = open_memex()
        refresh(again)
        assert rows(again) == expected
    assert finished >= moments - 1


@pytest.mark.parametrize("what", TARGETS)
def test_three_kills_are_finished_by_the_next_ingest(memex, claude_dir, tmp_path, what):
    check(memex, claude_dir, tmp_path, what, 3)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("what", TARGETS)
def test_forty_kills_are_finished_by_the_next_ingest(memex, claude_dir, tmp_path, what):
    check(memex, claude_dir, tmp_path, what, 40)
