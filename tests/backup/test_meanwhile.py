"""Backups beside others: nobody waits, each is whole in itself, and none holds what is forgotten meanwhile."""

import os
import subprocess
import sys
import textwrap

import pytest

from memex.errors import StoreBusy
from memex.forget.target import Target
from memex.sources.verify import verify
from tests.backup.homes import KINDS, again, home_at, log_in, refresh, target, tree
from tests.forget.home import holding
from tests.logs import talk

WORD = "xyzzy-plugh-42"
WRITE = textwrap.dedent("""
    import sys
    from pathlib import Path
    from memex.setup import open_memex
    memex = open_memex()
    log = Path(sys.argv[1])
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:3]))
    for number, line in enumerate(lines[3:]):
        with log.open("ab") as out:
            out.write(line)
        memex.ingest.run(memex.ingest.plan())
        memex.acts.add("merge_projects", source=f"dir:/{number}", target="dir:/all")
        if number == 3:
            Path(sys.argv[2]).touch()
""")


@pytest.mark.parametrize("kind", KINDS)
def test_backup_beside_an_ingest(tmp_path, kind):
    memex = home_at(tmp_path / "a")
    log = log_in(tmp_path / "a" / "claude")
    for number in range(15):
        talk(log, f"talk {number}")
    log.write()
    env = {**os.environ, "MEMEX_HOME": str(memex.home), "CLAUDE_CONFIG_DIR": str(tmp_path / "a" / "claude")}
    writer = subprocess.Popen([sys.executable, "-c", WRITE, str(log.path), str(tmp_path / "go")], env=env)
    beside = 0
    while writer.poll() is None:
        memex.backup.run(target(tmp_path, kind))
        beside += (tmp_path / "go").exists()
        there = home_at(tmp_path / f"there-{beside}")
        there.restore.run(target(tmp_path, kind))
        assert verify(there.archive).damaged == ()
        kept = tree(there.archive.root)
        assert all(tree(memex.archive.root)[name].startswith(data) for name, data in kept.items())
    assert writer.returncode == 0 and beside
    memex.backup.run(target(tmp_path, kind))
    last = home_at(tmp_path / "last")
    last.restore.run(target(tmp_path, kind))
    assert tree(last.archive.root) == tree(memex.archive.root)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_forgotten_meanwhile_is_not_in_the_backup(tmp_path, kind):
    memex = home_at(tmp_path / "a")
    talk(log_in(tmp_path / "a" / "claude", "1"), f"tell of {WORD}").write()
    talk(log_in(tmp_path / "a" / "claude", "2"), "stay").write()
    refresh(memex)
    forgotten = []

    def forget(_done):
        if not forgotten:
            forgotten.append(again(memex).forget.run(Target(matching=WORD)))

    memex.backup.run(target(tmp_path, kind), forget)
    there = home_at(tmp_path / "there")
    there.restore.run(target(tmp_path, kind))
    assert forgotten
    assert holding(there.home, WORD) == []
    assert tree(there.archive.root) == tree(memex.archive.root)


def test_what_is_forgotten_while_a_backup_is_restored_does_not_come_in(tmp_path):
    a, b = home_at(tmp_path / "a", tmp_path / "claude"), home_at(tmp_path / "b", tmp_path / "claude")
    talk(log_in(tmp_path / "claude", "1"), f"tell of {WORD}").write()
    refresh(a).backup.run(tmp_path / "backup")
    refresh(b)
    done = []

    def forgetting_home(folder):
        """Opens the home laid out aside, and has more forgotten meanwhile."""
        if not done:
            done.append(again(b).forget.run(Target(matching="tell")))
        return type(b)(b.settings.model_copy(update={"home": folder})).parts

    b.forget.run(Target(matching=WORD))
    restore = type(b.restore)(b.restore.home, forgetting_home)
    with pytest.raises(StoreBusy):
        restore.run(tmp_path / "backup")
    assert not (b.home / "restoring").exists()
    again(b).restore.run(tmp_path / "backup")
    assert holding(b.home, WORD, "tell of") == []


def test_forgetting_reaches_what_a_stopped_restore_left(tmp_path):
    memex = home_at(tmp_path / "a")
    talk(log_in(tmp_path / "a" / "claude", "1"), f"tell of {WORD}").write()
    refresh(memex)
    (memex.home / "restoring").mkdir()
    (memex.home / "restoring" / "left").write_text(WORD)
    memex.forget.run(Target(matching=WORD))
    assert holding(memex.home, WORD) == []
