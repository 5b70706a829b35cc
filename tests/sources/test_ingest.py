"""Ingest: logs on disk into archive and lake, and no write without a cause."""

import json
import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.settings import Settings
from memex.setup import open_memex
from memex.sources.claude import ClaudeAdapter
from memex.sources.ingest import BATCH_BYTES
from memex.sources.registry import ADAPTERS
from memex.store.schemas import TABLES
from tests.conftest import LONG_AGO, ingest, rows
from tests.logs import ClaudeLog, talk
from tests.sources.parsing import queue

RAW_TABLES = ("sources", "sessions", "talks", "messages", "tool_calls")


def versions(memex):
    return {table: memex.lake.dataset(table).version for table in TABLES}


def story(memex):
    """What the lake holds of all logs; the state of the files themselves is left out."""
    state = ("gone", "file_size", "file_mtime_ns", "file_ctime_ns")
    return {
        table: [{name: value for name, value in row.items() if name not in state} for row in rows(memex, table)]
        for table in RAW_TABLES
    }


def bytes_stored(memex):
    return sum(path.stat().st_size for path in memex.archive.root.rglob("*") if path.is_file())


def sibling(log, number):
    return ClaudeLog(log.path.with_name(f"22222222-0000-4000-8000-{number:012}.jsonl"), LONG_AGO)


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


def test_new_log_is_read(memex, log):
    talk(talk(log, "fix the login"), "and the docs").write()
    report = ingest(memex)
    counts = (report.sessions, report.files, report.talks, report.messages, report.tool_calls, report.bad_lines)
    assert counts == (1, 1, 2, 6, 2, 0)
    assert report.bytes_read == log.path.stat().st_size
    assert [t["prompt"] for t in rows(memex, "talks")] == ["fix the login", "and the docs"]
    assert [s["native_id"] for s in rows(memex, "sessions")] == [log.session]
    assert memex.lake.count("messages") == 6
    assert memex.lake.count("tool_calls") == 2


def test_bytes_are_archived(memex, log):
    talk(log, "fix the login").write()
    ingest(memex)
    [kept] = memex.archive.sources()
    assert memex.archive.read(kept) == log.lines()


def test_unchanged_logs_cause_no_write(memex, log):
    talk(log, "fix the login").write()
    ingest(memex)
    before, stored = versions(memex), bytes_stored(memex)
    plan = memex.ingest.plan()
    assert plan.empty
    assert (plan.batches, plan.gone, plan.unchanged) == ((), (), 1)
    assert memex.ingest.run(plan).sessions == 0
    assert versions(memex) == before
    assert bytes_stored(memex) == stored


def test_touched_log_changes_no_row(memex, log):
    talk(log, "fix the login").write()
    ingest(memex)
    before = versions(memex)
    os.utime(log.path, (1, 1))
    report = ingest(memex)
    assert (report.sessions, report.bytes_read) == (0, 0)
    changed = {table for table, version in versions(memex).items() if version != before[table]}
    assert changed == {"sources"}
    assert memex.ingest.plan().empty


def test_another_process_finds_nothing_to_do(memex, log):
    talk(log, "fix the login").write()
    plan = memex.ingest.plan()
    memex.ingest.run(plan)
    before = versions(memex)
    assert open_memex().ingest.run(plan).sessions == 0
    assert versions(memex) == before


def test_appended_lines_are_read(memex, log):
    talk(log, "fix the login").write()
    ingest(memex)
    before = {row["id"]: row for row in rows(memex, "messages")}
    added = talk(log, "and the docs").lines()[log.path.stat().st_size :]
    append(log.path, added)
    report = ingest(memex)
    assert (report.bytes_read, report.talks) == (len(added), 2)
    after = {row["id"]: row for row in rows(memex, "messages")}
    assert (len(before), len(after)) == (3, 6)
    assert before.items() <= after.items()
    assert memex.ingest.plan().empty


def test_appended_log_writes_only_what_is_new(memex, log):
    talk(log, "fix the login").write()
    ingest(memex)
    before = versions(memex)
    append(log.path, b'{"type": "brand-new"}\n')
    ingest(memex)
    changed = {table for table, version in versions(memex).items() if version != before[table]}
    assert changed == {"sources"}


def test_torn_line_is_read_when_it_is_whole(memex, log):
    data = talk(log, "fix the login").prompt("and the docs").lines()
    log.path.parent.mkdir(parents=True)
    log.path.write_bytes(data[:-20])
    assert ingest(memex).talks == 1
    assert rows(memex, "sources")[0]["torn_bytes"] > 0
    log.path.write_bytes(data)
    assert ingest(memex).talks == 2
    assert rows(memex, "sources")[0]["torn_bytes"] == 0


def rewrite(memex, log):
    """Read two talks, then rewrite the log without the first; return the first bytes."""
    original = talk(talk(log, "fix the login"), "and the docs").write().read_bytes()
    ingest(memex)
    log.records = log.records[4:]
    log.write()
    ingest(memex)
    return original


def test_vanished_lines_stay_and_are_superseded(memex, log):
    rewrite(memex, log)
    texts = {row["text"]: row["superseded"] for row in rows(memex, "messages", "kind = 'prompt'")}
    assert texts == {"fix the login": True, "and the docs": False}
    assert [c["superseded"] for c in rows(memex, "tool_calls")] == [True, False]
    assert rows(memex, "sources")[0]["generation"] == 2
    assert memex.ingest.plan().empty


def test_vanished_lines_leave_the_talks(memex, log):
    rewrite(memex, log)
    assert [t["prompt"] for t in rows(memex, "talks", "NOT superseded")] == ["and the docs"]
    assert [s["talks"] for s in rows(memex, "sessions")] == [1]


def test_rewrite_of_the_same_size_is_read(memex, log):
    data = talk(log, "fix the login").write().read_bytes()
    ingest(memex)
    log.path.write_bytes(data.replace(b"fix the login", b"fix the logon"))
    os.utime(log.path, (1, 1))
    ingest(memex)
    assert [t["prompt"] for t in rows(memex, "talks")] == ["fix the logon"]
    assert memex.ingest.plan().empty


def test_restored_lines_are_live_again(memex, log):
    original = rewrite(memex, log)
    log.path.write_bytes(original)
    ingest(memex)
    for table in ("messages", "tool_calls", "talks"):
        assert [row["superseded"] for row in rows(memex, table)] == [False] * len(rows(memex, table))
    assert memex.archive.read(next(memex.archive.sources())) == original


def test_deleted_log_is_gone_and_its_rows_stay(memex, log):
    talk(log, "fix the login").write()
    ingest(memex)
    before = story(memex)
    log.path.unlink()
    plan = memex.ingest.plan()
    assert (plan.gone, plan.batches) == ((str(log.path),), ())
    assert not plan.empty
    assert memex.ingest.run(plan).gone == 1
    assert story(memex) == before
    assert [kept.gone for kept in memex.archive.sources()] == [True]
    assert memex.ingest.plan().empty


def test_returned_log_is_read_on(memex, log):
    talk(log, "fix the login").write()
    ingest(memex)
    log.path.unlink()
    ingest(memex)
    talk(log, "and the docs").write()
    assert ingest(memex).talks == 2
    assert [kept.gone for kept in memex.archive.sources()] == [False]
    assert memex.ingest.plan().empty


def test_lake_is_made_again_from_the_archive(memex, log):
    talk(log, "fix the login").write()
    ingest(memex)
    before = story(memex)
    log.path.unlink()
    shutil.rmtree(memex.home / "lake")
    again = open_memex()
    ingest(again)
    assert story(again) == before


def test_unreadable_log_is_reported_and_stops_no_other(memex, log):
    talk(log, "fix the login").write()
    dangling, queue_file = log.path.with_name("a.jsonl"), log.path.with_name("b.jsonl")
    dangling.symlink_to(log.path.with_name("nowhere"))
    os.mkfifo(queue_file)
    report = ingest(memex)
    assert sorted(problem.split(": ")[0] for problem in report.unreadable) == [str(dangling), str(queue_file)]
    assert (report.sessions, report.talks) == (1, 1)
    assert memex.ingest.plan().unchanged == 1


def test_log_that_became_unreadable_keeps_its_rows(memex, log):
    talk(log, "fix the login").write()
    ingest(memex)
    before = story(memex)
    log.path.unlink()
    os.mkfifo(log.path)
    assert len(ingest(memex).unreadable) == 1
    assert story(memex) == before


def test_bad_lines_are_reported_with_file_and_offset(memex, log):
    talk(log, "fix the login").write()
    offset = log.path.stat().st_size
    append(log.path, b"garbage\n" + json.dumps({"type": "brand-new"}).encode() + b"\n")
    assert ingest(memex).bad_lines == 1
    [source] = rows(memex, "sources")
    assert source["path"] == str(log.path)
    assert json.loads(source["bad_lines"]) == [{"offset": offset, "reason": "not a JSON object"}]
    assert json.loads(source["records"]) == {
        "user": {"prompt": 1, "tool result": 1},
        "assistant": {"reply": 2},
        "brand-new": {"in the archive only": 1},
    }
    assert source["lines"] == 6
    assert source["size"] == log.path.stat().st_size


def test_excluded_logs_are_left_alone(log, claude_dir):
    talk(log, "fix the login").write()
    other = claude_dir / "projects" / "-src-secret" / "22222222-0000-4000-8000-000000000002.jsonl"
    talk(ClaudeLog(other, LONG_AGO), "the secret").write()
    config = {"claude_config_dir": claude_dir, "exclude": ["*/-src-secret/*"]}
    memex = open_memex(Settings.model_validate({"home": claude_dir.parent / "home", "sources": config}))
    assert ingest(memex).sessions == 1
    assert [t["prompt"] for t in rows(memex, "talks")] == ["fix the login"]
    assert [kept.path for kept in memex.archive.sources()] == [str(log.path)]


def test_log_excluded_later_is_not_gone(memex, log):
    talk(log, "fix the login").write()
    ingest(memex)
    assert replace(memex.ingest, exclude=("*.jsonl",)).plan().empty


def test_source_that_is_switched_off_is_not_read(memex, log):
    talk(log, "fix the login").write()
    assert replace(memex.ingest, roots={}).plan().empty
    ingest(memex)
    log.path.unlink()
    assert replace(memex.ingest, roots={}).plan().empty


def test_side_files_belong_to_their_session(memex, log):
    whole = "first\n" * 5_000
    path = log.path.with_suffix("") / "tool-results" / "b1.txt"
    log.prompt("test").call("Bash", {"command": "pytest"}, f"<persisted-output>Full output saved to: {path}\n")
    log.write()
    ingest(memex)
    path.parent.mkdir(parents=True)
    path.write_text(whole)
    assert ingest(memex).sessions == 1
    assert [c["output"] for c in rows(memex, "tool_calls")] == [whole]
    assert {row["session_id"] for row in rows(memex, "sources")} == {f"claude:{log.session}"}
    assert memex.ingest.plan().empty


def test_unchanged_session_is_left_alone(memex, log):
    other = sibling(log, 1)
    for one in (log, other):
        talk(one, "fix the login").write()
    assert ingest(memex).sessions == 2
    talk(other, "and the docs").write()
    plan = memex.ingest.plan()
    assert (plan.batches, plan.unchanged) == (((f"claude:{other.session}",),), 1)
    assert memex.ingest.run(plan).sessions == 1


def test_unchanged_file_of_a_changed_session_is_left_alone(memex, log):
    side = log.path.with_suffix("") / "tool-results" / "b1.txt"
    side.parent.mkdir(parents=True)
    side.write_text("whole")
    talk(log, "fix the login").write()
    ingest(memex)
    [kept] = (source for source in memex.archive.sources() if source.role == "side")
    [events] = (memex.home / "archive").rglob(f"{kept.id}.jsonl")
    before = events.read_bytes()
    talk(log, "and the docs").write()
    assert ingest(memex).sessions == 1
    assert events.read_bytes() == before


def test_subagent_is_read_beside_its_parent(memex, log):
    fields = {"isSidechain": True, "agentId": "7be41c02"}
    agent = ClaudeLog(log.path.with_suffix("") / "subagents" / "agent-7be41c02.jsonl", LONG_AGO)
    agent.prompt("Look.", **fields).reply("Found.", **fields).write()
    log.prompt("find it").call("Task", {}, "Found.", toolUseResult={"agentId": "7be41c02"}).write()
    ingest(memex)
    parent, child = f"claude:{log.session}", "claude:agent-7be41c02"
    assert {s["id"]: s["parent_id"] for s in rows(memex, "sessions")} == {parent: "", child: parent}
    assert [c["agent_session_id"] for c in rows(memex, "tool_calls")] == [child]


def test_many_logs_go_in_batches(memex, log):
    for number in range(201):
        sibling(log, number).prompt("hello").write()
    batches = memex.ingest.plan().batches
    assert [len(batch) for batch in batches] == [200, 1]
    assert len({session for batch in batches for session in batch}) == 201


def test_large_log_is_a_batch_of_its_own(memex, log):
    for number in range(3):
        sibling(log, number).prompt("hello").write()
    os.truncate(sibling(log, 1).path, BATCH_BYTES + 1)
    assert [len(batch) for batch in memex.ingest.plan().batches] == [1, 1, 1]


class Older(ClaudeAdapter):
    """A parser that made one message more of a log."""

    parser_version = 1

    def reader(self, *about):
        reader = super().reader(*about)
        reader.transcript.say("system", "notice", "more", offset=0, native="more")
        return reader


def test_new_parser_reads_the_archive_again(memex, log):
    talk(log, "fix the login").write()
    older = replace(memex.ingest, adapters={**ADAPTERS, "claude": Older()})
    older.run(older.plan())
    log.path.unlink()
    assert memex.ingest.plan().sessions == 1
    ingest(memex)
    assert {s["parser_version"] for s in rows(memex, "sessions")} == {ClaudeAdapter.parser_version}
    assert memex.ingest.plan().empty


def test_row_that_a_new_parser_no_longer_makes_is_deleted(memex, log):
    talk(log, "fix the login").write()
    older = replace(memex.ingest, adapters={**ADAPTERS, "claude": Older()})
    older.run(older.plan())
    assert memex.lake.count("messages") == 4
    ingest(memex)
    assert memex.lake.count("messages", "NOT superseded") == memex.lake.count("messages") == 3


STEP = st.one_of(
    st.tuples(st.just("talk"), st.sampled_from(["fix it", "修复登录", "<command-name>/x</command-name>"])),
    st.tuples(st.just("prompt"), st.sampled_from(["go on", "", "<task-notification>done"])),
    st.tuples(st.just("reply"), st.sampled_from(["Done.", "完成。"])),
    st.tuples(st.just("queue"), st.sampled_from(["and the docs", "and the tests"])),
    st.tuples(st.just("line"), st.sampled_from(["", "garbage", '{"type": "brand-new"}', '{"type": "us'])),
    st.tuples(st.just("summary"), st.sampled_from(["a title", "another title"])),
)


def written(log, steps):
    data = b""
    for what, text in steps:
        before = len(log.lines())
        match what:
            case "talk":
                talk(log, text)
            case "prompt":
                log.prompt(text)
            case "reply":
                log.reply(text, {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text})
            case "queue":
                queue(queue(log, "enqueue", text), "remove")
            case "summary":
                log.add("summary", summary=text)
        data += text.encode() + b"\n" if what == "line" else log.lines()[before:]
    return data


def unique_keys(memex):
    return all(len({row["id"] for row in of}) == len(of) for of in story(memex).values())


@pytest.fixture(scope="module")
def new_home(tmp_path_factory):
    """Make homes that read the logs below a folder, each a copy of an empty one."""
    empty = tmp_path_factory.mktemp("empty") / "memex"
    open_memex(Settings.model_validate({"home": empty})).lake.exists()

    def copied(folder):
        home = tmp_path_factory.mktemp("home") / "memex"
        shutil.copytree(empty, home)
        memex = open_memex(Settings.model_validate({"home": home, "sources": {"claude_config_dir": folder}}))
        memex.ingest = replace(memex.ingest, checkpoint_from=0)  # go on from where the last read ended, always
        return memex

    return copied


def empty_log(folder):
    log = ClaudeLog(folder / "projects" / "-src-app" / "s.jsonl", LONG_AGO)
    log.write()
    return log


@settings(deadline=None, max_examples=10)
@given(steps=st.lists(STEP, min_size=1, max_size=8), shares=st.lists(st.floats(0, 1), max_size=3))
def test_reading_in_pieces_gives_the_rows_of_reading_at_once(tmp_path_factory, new_home, steps, shares):
    folder = tmp_path_factory.mktemp("claude")
    log = empty_log(folder)
    data = written(log, steps)
    pieces, whole = new_home(folder), new_home(folder)
    for share in [*sorted(shares), 1]:
        log.path.write_bytes(data[: round(share * len(data))])
        ingest(pieces)
        assert unique_keys(pieces)
    ingest(whole)
    assert story(pieces) == story(whole)
    assert pieces.ingest.plan().empty


@settings(deadline=None, max_examples=10)
@given(kept=st.lists(st.lists(st.booleans(), min_size=8, max_size=8), min_size=1, max_size=3))
def test_rewriting_never_loses_or_doubles_a_row(tmp_path_factory, new_home, kept):
    folder = tmp_path_factory.mktemp("claude")
    log = empty_log(folder)
    whole = talk(talk(log, "fix it"), "and the docs").records
    log.write()
    memex = new_home(folder)
    ingest(memex)
    before = {table: {row["id"] for row in of} for table, of in story(memex).items()}
    for keep in kept:
        log.records = [record for record, stays in zip(whole, keep, strict=True) if stays] or whole[:1]
        log.write()
        ingest(memex)
        assert unique_keys(memex)
    after = {table: {row["id"] for row in of} for table, of in story(memex).items()}
    assert all(before[table] <= after[table] for table in ("sources", "sessions", "messages", "tool_calls"))
    prompts = memex.lake.count("messages", "NOT superseded AND kind = 'prompt'")
    talks = rows(memex, "talks", "NOT superseded")
    assert [t["prompt_number"] for t in talks] == [*range(1, prompts + 1)]


def test_log_with_a_name_that_is_not_utf8_is_reported(memex, log):
    talk(log, "fix the login").write()
    odd = os.fsencode(log.path.parent) + b"/we'ird \xff name.jsonl"
    with open(odd, "wb") as file:  # noqa: PTH123 - pathlib cannot write such a name down
        file.write(log.lines())
    plan = memex.ingest.plan()
    assert "not UTF-8" in plan.unreadable[0]
    assert memex.ingest.run(plan).sessions == 1
    assert memex.ingest.plan().empty


class Stumbling(ClaudeAdapter):
    """A parser that fails on one session."""

    def reader(self, session_id, *about):
        if session_id.endswith("1"):
            raise KeyError("surprise")
        return super().reader(session_id, *about)


def test_session_that_the_parser_cannot_take_stops_no_other(memex, log):
    talk(log, "fix the login").write()
    talk(sibling(log, 2), "fix the logout").write()
    stumbling = replace(memex.ingest, adapters={**ADAPTERS, "claude": Stumbling()})
    report = stumbling.run(stumbling.plan())
    assert (report.sessions, report.bad_lines) == (1, 1)
    assert stumbling.plan().empty
    reasons = memex.lake.scan("sources", ["bad_lines"], "bad_lines != '[]'")["bad_lines"].to_pylist()
    assert "the parser failed: KeyError" in reasons[0]


@pytest.mark.parametrize(("days", "expiring"), [(None, 1), (30, 1), (99, 0), ("x", 1), (10, 2)])
def test_logs_that_their_cli_will_soon_delete_are_named(memex, log, claude_dir, days, expiring):
    now = datetime(2026, 9, 30, tzinfo=UTC)
    for path, age in ((log.write(), 25), (sibling(log, 1).write(), 5)):
        os.utime(path, ((now - timedelta(days=age)).timestamp(),) * 2)
    if days is not None:
        (claude_dir / "settings.json").write_text(json.dumps({"cleanupPeriodDays": days}))
    found = list(memex.ingest.expiring(now, timedelta(days=7)))
    assert [file.session_id for file, _end in found][:expiring] == [file.session_id for file, _end in found]
    assert len(found) == expiring
    if expiring == 1:
        assert found[0][1] == now + timedelta(days=5)
