"""kill -9 in the middle of a backup and of a restore: nothing is half, and the same command goes on."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest

from memex.backup.unpack import unpack
from memex.errors import BackupError
from memex.forget.target import Target
from memex.sources.verify import verify
from tests.backup.homes import KINDS, again, contents, copy_of, home_at, log_in, prompts, refresh, story, target, tree
from tests.forget.home import holding
from tests.logs import talk

pytestmark = pytest.mark.crash

STRUCK = textwrap.dedent("""
    import os, signal, sys
    from pathlib import Path
    from memex.setup import open_memex
    memex = open_memex()
    verb = getattr(memex, sys.argv[2])
    deadly, seen = int(sys.argv[1]), 0
    unions = int(sys.argv[4])  # kill after so many logs of sources were replaced
    TELLING = {"open", "os.remove", "os.rename", "os.truncate", "os.rmdir", "os.mkdir"}

    def strike(event, arguments):
        global seen, unions
        if event in TELLING:
            seen += 1
            if seen == deadly or unions == -1:
                os.kill(os.getpid(), signal.SIGKILL)
        place = str(arguments[0]) if event == "os.rename" else ""
        if unions and "/archive/claude/" in place and "restoring" not in place:
            unions = unions - 1 or -1

    sys.addaudithook(strike)
    verb.run(Path(sys.argv[3]))
    print(seen)
""")
WORD = "xyzzy-plugh-42"


def struck(memex, step, verb, place, unions=0):
    """Run a verb in another process, kill it at some step; return how many steps it made, none when it was killed."""
    claude_dir = memex.settings.sources.claude_config_dir
    env = {**os.environ, "MEMEX_HOME": str(memex.home), "CLAUDE_CONFIG_DIR": str(claude_dir)}
    env["PYTHONDONTWRITEBYTECODE"] = "1"  # each run makes the same steps
    command = [sys.executable, "-c", STRUCK, str(step), verb, str(place), str(unions)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=env)
    if done.returncode == -signal.SIGKILL:
        return 0
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def replaced(path, by):
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    (shutil.copytree if by.is_dir() else shutil.copy)(by, path)


def unpacked(place, tmp_path):
    """All files of a backup, and whether it is whole."""
    stage = tmp_path / "unpacked"
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir()
    unpack(place, stage)
    return tree(stage / "archive")


def check_backup(tmp_path, kind, moments):
    memex = home_at(tmp_path / "here")
    log = talk(log_in(tmp_path / "here" / "claude"), "one")
    log.write()
    refresh(memex)
    place, first = target(tmp_path, kind), tmp_path / "first"
    steps = struck(memex, -1, "backup", place)
    for moment in range(moments):  # of the first backup
        replaced(first, place) if not moment else None
        shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
        assert struck(memex, 1 + steps * moment // moments, "backup", place) == 0
        if place.exists():
            assert unpacked(place, tmp_path) == tree(memex.archive.root)
    old = unpacked(first, tmp_path)
    talk(log, "two").write()
    memex.acts.add("merge_projects", source="dir:/a", target="dir:/b")
    refresh(memex)
    replaced(place, first)
    steps = struck(memex, -1, "backup", place)
    new = unpacked(place, tmp_path)
    assert old != new == tree(memex.archive.root)
    for moment in range(moments):
        replaced(place, first)
        assert struck(memex, 1 + steps * moment // moments, "backup", place) == 0
        assert unpacked(place, tmp_path) in (old, new)
        again(memex).backup.run(place)
        assert unpacked(place, tmp_path) == new
        assert not list(tmp_path.glob(".*aside*"))
        if kind == "folder":
            assert tree(place / "archive") == new


@pytest.mark.parametrize("kind", KINDS)
def test_backup_is_never_half(tmp_path, kind):
    check_backup(tmp_path, kind, 4)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_backup_is_never_half_at_any_step(tmp_path, kind):
    check_backup(tmp_path, kind, 40)


def two_homes(tmp_path):
    """A home that has more, and others, than the backup of another; each forgot something."""
    claude = tmp_path / "claude"
    a, b = home_at(tmp_path / "a", claude), home_at(tmp_path / "b", claude)
    log, other = talk(log_in(claude), "shared"), log_in(claude, "2")
    mine = talk(copy_of(log), "here")
    talk(talk(log, "there"), f"tell of {WORD}").write()
    talk(other, "grows").write()
    refresh(a)
    mine.write()
    refresh(b)
    talk(other, "grown").write()
    talk(log_in(claude, "3"), "only there").write()
    refresh(a).backup.run(tmp_path / "backup")
    log_in(claude, "3").path.unlink()
    talk(log_in(claude, "4"), f"only here, {WORD}").write()
    refresh(b).forget.run(Target(matching=WORD))
    refresh(b)
    return b, tmp_path / "backup"


def check_restore(tmp_path, moments):
    b, place = two_homes(tmp_path)
    before = tmp_path / "before"
    shutil.copytree(b.home, before)
    steps = struck(b, -1, "restore", place)
    expected, every, asked = rows(refresh(again(b))), contents(b), prompts(b)
    assert {"shared", "here", "there", "grows", "grown", "only there"} < set(asked)
    for moment in range(moments):
        replaced(b.home, before)
        assert struck(b, 1 + steps * moment // moments, "restore", place) == 0
        halfway = refresh(again(b))
        assert verify(halfway.archive).damaged == ()
        assert {"shared", "here", "grows"} <= set(prompts(halfway))
        again(b).restore.run(place)
        assert (contents(b), prompts(b)) == (every, asked)
        assert rows(refresh(again(b))) == expected
        assert holding(b.home, WORD) == []


def rows(memex):
    """All rows, less what tells when they were made, and by how many readings."""
    found = story(memex, "created_at", "replaced_at", "first_seen", "last_seen")
    return {table: rows for table, rows in found.items() if table not in ("sources", "projects")}


def test_restore_goes_on(tmp_path):
    check_restore(tmp_path, 4)


@pytest.mark.parametrize("then", ["ingest", "restore"])
def test_what_a_restore_changed_is_read_when_it_was_killed(tmp_path, then):
    b, place = two_homes(tmp_path)
    assert struck(b, -1, "restore", place, unions=1) == 0
    stopped = again(b)
    assert "there" not in prompts(stopped)
    if then == "restore":
        report = stopped.restore.run(place)
        assert report.changed == 0 and report.sessions
    else:
        refresh(stopped)
    assert {"shared", "here", "there", "grows", "grown", "only there"} < set(prompts(stopped))
    before = prompts(stopped)
    stopped.ingest.rebuild()
    assert prompts(stopped) == before


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_restore_goes_on_at_any_step(tmp_path):
    check_restore(tmp_path, 30)


def test_damaged_backup_stays_damaged_after_a_kill(tmp_path):
    """A backup that a kill left without its manifest is none."""
    memex = home_at(tmp_path / "here")
    memex.backup.run(tmp_path / "backup")
    (tmp_path / "backup" / "manifest.json").unlink()
    with pytest.raises(BackupError, match="no backup"):
        memex.restore.run(tmp_path / "backup")
