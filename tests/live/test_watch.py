"""`memex watch`, as a real process over real files."""

import json
import os
import shutil
import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memex.settings import Settings
from memex.setup import open_memex
from memex.sources.ingest import BATCH_SESSIONS
from tests.conftest import LONG_AGO, ingest, rows
from tests.live.watching import MEMEX, Watching, append, finds, long_ago, served, until
from tests.logs import ClaudeLog, talk

CODEX = sorted((Path(__file__).parents[2] / "data").rglob("rollout-*.jsonl"))


@pytest.fixture
def live_log(claude_dir) -> ClaudeLog:
    """A log whose records are of now."""
    path = claude_dir / "projects" / "-src-live" / "44444444-0000-4000-8000-000000000004.jsonl"
    return ClaudeLog(path, datetime.now(UTC) - timedelta(minutes=3))


def test_an_appended_line_is_found_by_the_command(memex, live_log):
    talk(live_log, "Where does the parrot live?").write()
    with Watching():
        until(lambda: finds(memex, "parrot"))
        known = len(live_log.records)
        live_log.reply("It lives in the aviary.")
        append(live_log, known)
        until(lambda: finds(memex, "aviary"))
        found = subprocess.run([*MEMEX, "search", "aviary", "--json"], capture_output=True, check=True)
        assert json.loads(found.stdout)["hits"][0]["session_id"] == f"claude:{live_log.session}"
    assert memex.ingest.plan().empty
    assert memex.stale_indexes() in ([], ["summaries"])


def test_a_line_is_read_when_it_is_whole(memex, live_log):
    live_log.prompt("Is it whole?").reply("Only the antelope is whole.")
    *_rest, last = live_log.lines().splitlines(keepends=True)
    with Watching() as watching:
        live_log.path.parent.mkdir(parents=True)
        live_log.path.write_bytes(live_log.lines()[: -len(last) // 2])
        watching.told("read")
        assert not finds(memex, "antelope")
        with live_log.path.open("ab") as file:
            file.write(live_log.lines()[live_log.path.stat().st_size :])
        until(lambda: finds(memex, "antelope"))
    assert memex.lake.count("messages") == 2


def test_folders_and_roots_that_appear_later_are_watched(memex, live_log, claude_dir, tmp_path):
    shutil.rmtree(claude_dir)
    with Watching(CODEX_HOME=str(tmp_path / "codex")) as watching:
        watching.told("for the first log")
        talk(live_log, "Say gondola").write()
        until(lambda: finds(memex, "gondola"))
        known = len(live_log.records)
        live_log.reply("Now say lighthouse.")
        append(live_log, known)
        until(lambda: finds(memex, "lighthouse"))
        other = ClaudeLog(claude_dir / "projects" / "-src-new" / "sub" / "55555555.jsonl", LONG_AGO)
        talk(other, "And say marmalade").write()
        until(lambda: finds(memex, "marmalade"))
        target = tmp_path / "codex" / "sessions" / "2026" / "10" / "01" / CODEX[0].name
        target.parent.mkdir(parents=True)
        shutil.copy(CODEX[0], target)
        until(lambda: memex.lake.count("sessions", "cli = 'codex'") == 1)
        shutil.rmtree(claude_dir)
        until(lambda: memex.lake.count("sources", "gone") == 2)
        again = ClaudeLog(live_log.path.with_name("66666666.jsonl"), LONG_AGO)
        talk(again, "Back with a pelican").write()
        until(lambda: finds(memex, "pelican"))
    assert memex.lake.count("sessions", "cli = 'claude'") == 3


def test_what_is_deleted_moved_or_rewritten_is_noticed_and_nothing_of_it_lost(memex, live_log):
    talk(live_log, "Keep the zeppelin").write()
    with Watching():
        until(lambda: finds(memex, "zeppelin"))
        live_log.path.rename(live_log.path.with_name("77777777.jsonl"))
        until(lambda: memex.lake.count("sources", "gone") == 1 and memex.lake.count("sessions") == 2)
        rewritten = ClaudeLog(live_log.path.with_name("77777777.jsonl"), LONG_AGO)
        talk(rewritten, "A walrus instead").write()
        until(lambda: finds(memex, "walrus"))
    kept = memex.lake.scan("messages", ["session_id"], "text LIKE '%zeppelin%'")["session_id"].to_pylist()
    assert kept == [f"claude:{live_log.session}"], "what was moved is a copy, and a copy is stored once"
    assert memex.lake.count("sources", "generation = 2") == 1


def test_a_folder_that_is_renamed_is_followed_and_what_it_was_is_gone(memex, live_log):
    talk(live_log, "Mind the yak").write()
    with Watching():
        until(lambda: finds(memex, "yak"))
        folder = live_log.path.parent.rename(live_log.path.parent.with_name("-src-renamed"))
        until(lambda: memex.lake.count("sources", "gone") == 1 and memex.lake.count("sources", "NOT gone") == 1)
        live_log.path = folder / live_log.path.name
        known = len(live_log.records)
        live_log.reply("The yak became a heron.")
        append(live_log, known)
        until(lambda: finds(memex, "heron"))
    assert memex.lake.count("sessions") == 1
    assert memex.lake.count("messages", "text LIKE '%yak%' AND NOT superseded") == 2


def test_a_line_written_while_everything_is_watched_anew_is_found(memex, live_log, claude_dir):
    history = claude_dir / "history.jsonl"
    history.write_text("")
    talk(live_log, "Begin with a wombat").write()
    with Watching():
        until(lambda: finds(memex, "wombat"))
        for number in range(400):
            if number % 40 == 0:
                (claude_dir / "aside").write_text("")
                (claude_dir / "aside").replace(history)
            other = ClaudeLog(live_log.path.with_name(f"{number:08}.jsonl"), LONG_AGO)
            talk(other, f"Number {number}").write()
            time.sleep(0.01)
        until(lambda: memex.lake.count("sessions") == 401)
        until(lambda: memex.ingest.plan().empty)


def test_more_folders_that_a_pattern_matches_later_are_read(memex, live_log, tmp_path):
    with Watching(MEMEX_SOURCES_CLAUDE_EXTRA=f'["{tmp_path}/backup*"]'):
        talk(live_log, "Begin with a wombat").write()
        until(lambda: finds(memex, "wombat"))
        talk(ClaudeLog(tmp_path / "backup1" / "projects" / "-src-app" / "99999999.jsonl", LONG_AGO), "A jackal").write()
        until(lambda: finds(memex, "jackal"))


def test_a_copied_session_finds_the_one_it_was_copied_from_as_with_ingest(memex, live_log, claude_dir, tmp_path):
    copy = ClaudeLog(live_log.path.with_name("00000000-0000-4000-8000-000000000000.jsonl"), LONG_AGO)
    talk(live_log, "The original").write()
    copy.records = [{**record, "sessionId": copy.session} for record in live_log.records]
    long_ago(talk(copy, "And the copy").write())
    for number in range(BATCH_SESSIONS):
        other = ClaudeLog(claude_dir / "projects" / "-src-many" / f"{number:08}.jsonl", LONG_AGO)
        os.utime(talk(other, f"Number {number}").write(), (1_700_000_001, 1_700_000_001))
    by_hand = open_memex(Settings.model_validate({"home": tmp_path / "by hand"}))
    by_hand.ingest.run(by_hand.ingest.plan())
    with Watching() as watching:
        until(lambda: memex.lake.count("sessions") == BATCH_SESSIONS + 2)
        until(lambda: memex.ingest.plan().empty)
        assert watching.end() == 0
    assert rows(memex, "messages") == rows(by_hand, "messages")


def test_a_talk_is_summarised_when_the_next_prompt_comes_and_the_session_when_it_is_silent(memex, live_log):
    talk(live_log, "Add a flag").write()
    with Watching(MEMEX_COMPACT_IDLE_MINUTES="0.4") as watching:
        until(lambda: finds(memex, "flag"))
        begun = time.monotonic()
        while time.monotonic() < begun + 32:  # longer than it takes to be silent
            known = len(live_log.records)
            live_log.reply(f"still at it {known}") if known > 4 else talk(live_log, "Document the flag")
            append(live_log, known)
            assert served(memex, "session_summaries") == []
            assert served(memex, "talk_summaries") in ([], [1])
            time.sleep(1)
        until(lambda: served(memex, "talk_summaries") == [1])
        until(lambda: served(memex, "session_summaries") == [0])
        assert served(memex, "talk_summaries") == [1, 2]
        until(lambda: memex.stale_indexes() == [])
        assert watching.end() == 0
    assert memex.lake.count("session_summaries") == 1, "it was made once"
    assert memex.lake.count("talk_summaries") == 2
    assert memex.compact.plan().pending == {"talks": 1, "sessions": 1} or memex.compact.plan().empty


def test_an_old_log_that_comes_in_now_is_not_summarised_until_it_is_whole(memex, log):
    with Watching(MEMEX_COMPACT_IDLE_MINUTES="0.3"):
        talk(talk(log, "Add a flag"), "Document the flag").write()
        until(lambda: served(memex, "talk_summaries") == [1])
        assert served(memex, "session_summaries") == []
        until(lambda: served(memex, "session_summaries") == [0])
        assert served(memex, "talk_summaries") == [1, 2]


def test_what_is_pending_at_the_start_is_done(memex, log):
    long_ago(talk(log, "Where is the kettle?").write())
    with Watching() as watching:
        until(lambda: served(memex, "session_summaries") == [0])
        until(lambda: memex.stale_indexes() == [])
        assert finds(memex, "kettle")
        assert watching.end() == 0
    versions = {table: memex.lake.dataset(table).version for table in ("messages", "sources", "talk_summaries")}
    with Watching() as watching:
        time.sleep(3)
        assert watching.end() == 0
    assert {table: memex.lake.dataset(table).version for table in versions} == versions


def test_summaries_that_a_killed_watch_left_unfindable_are_found(memex, log):
    long_ago(talk(log, "Where is the kettle?").write())
    ingest(memex)
    for batch in memex.compact.plan().batches:
        memex.compact.run(batch)
    assert memex.stale_indexes() == ["raw text", "summaries"]
    with Watching():
        until(lambda: memex.stale_indexes() == [])


def test_a_session_at_which_somebody_else_is_keeps_nobody_from_reading(memex, log, live_log):
    long_ago(talk(log, "Where is the kettle?").write())
    with memex.lake.alone_with([f"claude:{log.session}"]), Watching() as watching:
        watching.told("to summarise")
        talk(live_log, "Where does the parrot live?").write()
        until(lambda: finds(memex, "parrot"))
        assert served(memex, "session_summaries") == []
    with Watching():
        until(lambda: served(memex, "session_summaries") == [0])


def test_a_second_watch_is_told_who_the_first_is(memex):
    with Watching() as first:
        second = subprocess.run([*MEMEX, "watch"], capture_output=True, text=True, timeout=120, check=False)
        assert second.returncode == 11
        assert f"process {first.process.pid}, since 20" in second.stderr and "Traceback" not in second.stderr
        assert first.end() == 0
    with Watching() as again:
        assert again.end() == 0


def test_another_home_has_a_watch_of_its_own(memex, tmp_path):
    with Watching(), Watching(MEMEX_HOME=str(tmp_path / "other")) as other:
        assert other.end() == 0


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(memex, live_log, how):
    talk(live_log, "Begin").write()
    with Watching() as watching:
        watching.told("read")
        assert watching.end(how) == 0
        assert "stopped" in watching.lines[-1] and not any("Traceback" in line for line in watching.lines)
    assert not (memex.home / "watch.json").exists()


LIMITED = 'echo "$1" > "/proc/sys/user/max_inotify_$0"; shift; exec "$@"'


def may_limit() -> bool:
    """Tell whether this system lets us make a user namespace with limits of its own."""
    test = "echo 3 > /proc/sys/user/max_inotify_watches"
    return shutil.which("unshare") is not None and subprocess.call(["unshare", "-Ur", "sh", "-c", test]) == 0


@pytest.mark.skipif(not may_limit(), reason="no user namespaces here, and so no limit of our own")
@pytest.mark.parametrize(
    ("what", "limit", "at_once"), [("watches", 3, True), ("watches", 14, False), ("instances", 0, True)]
)
def test_where_the_system_cannot_watch_it_looks_and_says_so(memex, live_log, claude_dir, what, limit, at_once):
    def many(name):
        for number in range(8):
            (claude_dir / "projects" / f"-{name}{number}").mkdir()

    many("before")
    with Watching("unshare", "-Ur", "sh", "-c", LIMITED, what, str(limit)) as watching:
        if not at_once:
            talk(live_log, "Look for the marten").write()
            until(lambda: finds(memex, "marten"))
            assert not any("max_user_" in line for line in watching.lines)
            many("after")
        watching.told("max_user_")
        for name in ("-before7", "-after7"):
            log = ClaudeLog(claude_dir / "projects" / name / f"{name}.jsonl", LONG_AGO)
            talk(log, f"Look for the ocelot{name}").write()
            until(lambda: finds(memex, f"ocelot{name}"))  # noqa: B023 - called at once
            log.reply("The end of the ocelot.").path.unlink()
            until(lambda: memex.lake.count("sources", f"gone AND path = '{log.path}'") == 1)  # noqa: B023
        assert watching.end() == 0


def test_a_burst_of_many_sessions_is_read_whole(memex, claude_dir):
    logs = [ClaudeLog(claude_dir / "projects" / f"-b{n}" / f"{n:08}.jsonl", datetime.now(UTC)) for n in range(10)]
    with Watching():
        for line in range(200):
            for log in logs:
                known = len(log.records)
                log.prompt(f"question {line}") if line % 20 == 0 else log.reply(f"answer {line}")
                append(log, known)
            time.sleep(0.01)
        until(lambda: memex.lake.count("messages") == 2000)
        until(lambda: memex.raw_index.count() == 2000)
    assert memex.ingest.plan().empty
    for log in logs:
        kept = memex.archive.find("claude", log.path)
        assert kept and memex.archive.read(kept) == log.path.read_bytes()


def test_files_that_are_none_of_ours_or_excluded_are_left_alone(memex, live_log, claude_dir):
    with Watching(MEMEX_SOURCES_EXCLUDE='["*/-secret/*"]'):
        (claude_dir / "projects" / "notes.txt").write_text("a mongoose")
        talk(ClaudeLog(claude_dir / "projects" / "-secret" / "88888888.jsonl", LONG_AGO), "A mongoose").write()
        talk(live_log, "The last one").write()
        until(lambda: finds(memex, "last"))
    assert memex.lake.count("sources") == 1
    assert not finds(memex, "mongoose")


def test_a_full_disk_is_told_and_what_was_missed_is_read_later(memex, home, live_log, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    home.mkdir(mode=0o700, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(home)], check=True)
    try:
        with Watching() as watching:
            for number in range(60):
                live_log.prompt(f"run {number}").reply(os.urandom(60_000).hex())
            live_log.prompt("Find the narwhal").reply("Found.").write()
            watching.told("no space left")
            subprocess.run(["mount", "-o", "remount,size=200m", str(home)], check=True)
            until(lambda: finds(memex, "narwhal"))
            assert watching.end() == 0
    finally:
        subprocess.run(["umount", "-l", str(home)], check=True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no file here that is always full")
def test_it_goes_on_when_what_it_tells_cannot_be_written(memex, live_log):
    with Path("/dev/full").open("w") as full:
        process = subprocess.Popen([*MEMEX, "watch"], stderr=full)
        try:
            talk(live_log, "Find the narwhal").write()
            until(lambda: finds(memex, "narwhal"))
            assert process.poll() is None
        finally:
            process.kill()
            process.wait()


def test_summaries_that_cost_nothing_are_written_here_while_the_server_does_not_answer(memex, log):
    long_ago(talk(log, "Where is the kettle?").write())
    with Watching(PREFECT_API_URL="http://127.0.0.1:9/api", DO_NOT_TRACK="1") as watching:
        until(lambda: served(memex, "session_summaries") == [0])
        watching.told("session/session")
