"""Real logs of Codex: everything is counted, every prompt is one talk, and growing logs end like whole ones."""

import csv
import json
import os
import re
from pathlib import Path

import orjson
import pytest

from memex.settings import Settings
from memex.setup import Memex, open_memex
from memex.sources.ingest import Ingest
from memex.sources.registry import ADAPTERS
from memex.text import one_line
from tests.sources.parsing import Family, parse, prompts

pytestmark = pytest.mark.corpus

FORK = "019d7e2f-0041-7310-951c-94020254dfc9"


def wired(home: Path, logs: Path) -> tuple[Memex, Ingest]:
    settings = {"home": home, "sources": {"claude": False}, "embed": {"provider": "none"}}
    memex = open_memex(Settings.model_validate(settings))
    return memex, Ingest(memex.archive, memex.lake, ADAPTERS, {"codex": (logs,)})


def logs(corpus: Path) -> list[Path]:
    return sorted((corpus / ".codex" / "sessions").rglob("*.jsonl"))


def session_of(path: Path) -> str:
    return f"codex:{path.stem[-36:]}"


def payloads(path: Path, kind: str) -> list[dict]:
    """Every payload of an event, read without our code."""
    found = []
    for line in path.read_bytes().split(b"\n"):
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if record["type"] == "event_msg" and record["payload"].get("type") == kind:
            found.append(record["payload"])
    return found


@pytest.fixture(scope="module")
def read(corpus, tmp_path_factory) -> Memex:
    """All logs of Codex, read and summarised."""
    memex, ingest = wired(tmp_path_factory.mktemp("codex") / "memex", corpus / ".codex")
    ingest.run(ingest.plan())
    assert ingest.plan().empty
    for batch in memex.compact.plan().batches:
        memex.compact.run(batch)
    return memex


def test_every_file_is_kept_and_every_record_counted(read, corpus):
    sources = {row["path"]: row for row in read.lake.scan("sources").to_pylist()}
    kept = {source.path: source for source in read.archive.sources()}
    assert set(sources) == set(kept) == {str(path) for path in logs(corpus)}
    for path in logs(corpus):
        assert read.archive.read(kept[str(path)]) == path.read_bytes()
        row = sources[str(path)]
        lines = [line for line in path.read_bytes().split(b"\n") if line.strip()]
        records = sum(n for uses in json.loads(row["records"]).values() for n in uses.values())
        assert row["lines"] == len(lines)
        assert records == len(lines) - len(json.loads(row["bad_lines"])), path


def test_every_prompt_is_one_talk(read, shared, corpus):
    """In these logs each prompt has an event, which is all that is compared here."""
    talks: dict[str, list[str]] = {}
    rows = read.lake.scan("talks", ["session_id", "prompt_number", "prompt"]).to_pylist()
    for row in sorted(rows, key=lambda row: row["prompt_number"]):
        talks.setdefault(row["session_id"], []).append(one_line(row["prompt"]))
    with (shared / "corpus" / "SOURCES.tsv").open() as file:
        wanted = {row["file"]: int(row["prompts"]) for row in csv.DictReader(file, delimiter="\t")}
    for path in logs(corpus):
        told = talks[session_of(path)]
        assert len(told) == wanted[str(path.relative_to(corpus))], path
        assert told == [one_line(event["message"]) for event in payloads(path, "user_message")]


def test_what_no_human_typed_starts_no_talk(read):
    injected = re.compile(r"\s*(?:<(?!div)[\w -]+>|# AGENTS\.md|Warning:)")
    talks = read.lake.scan("talks", ["prompt"])["prompt"].to_pylist()
    assert [prompt for prompt in talks if injected.match(prompt)] == []


def test_tokens_are_those_of_the_last_total(read, corpus):
    for row in read.lake.scan("sessions").to_pylist():
        path = next(path for path in logs(corpus) if session_of(path) == row["id"])
        last = [event["info"] for event in payloads(path, "token_count") if event["info"]][-1]["total_token_usage"]
        assert row["tokens_input"] + row["tokens_cached"] == last["input_tokens"], path
        assert (row["tokens_cached"], row["tokens_output"]) == (last["cached_input_tokens"], last["output_tokens"])


def test_calls_are_joined_with_their_outputs(read):
    calls = read.lake.scan("tool_calls", ["id", "session_id", "answered", "name"]).to_pylist()
    bad = {s["session_id"] for s in read.lake.scan("sources").to_pylist() if s["bad_lines"] != "[]"}
    assert len(calls) == len({call["id"] for call in calls}) > 1400
    assert {call["session_id"] for call in calls if not call["answered"]} <= bad
    assert "unknown" not in {call["name"] for call in calls}


def test_commands_and_patches_are_understood(read):
    calls = read.lake.frame("tool_calls", ["name", "operation", "mutates", "is_error", "input", "files"])
    shell = calls.filter(calls["name"].is_in(["shell_command", "exec_command"]))
    assert set(shell["operation"]) == {"run"}
    assert all(isinstance(json.loads(given)["command"], str) for given in shell["input"])
    assert 0.2 < shell["mutates"].mean() < 0.8
    assert 0.01 < shell["is_error"].mean() < 0.2
    patches = calls.filter(calls["name"] == "apply_patch")
    assert set(patches["operation"]) <= {"edit", "write"}
    assert all(len(files) for files in patches["files"])


def test_a_fork_is_cut_where_its_own_turns_begin(corpus):
    """The parent's log is not in the corpus; what the fork copied of it stands in for it."""
    path = next(path for path in logs(corpus) if FORK in path.name)
    lines = path.read_bytes().splitlines(keepends=True)
    parent = orjson.loads(lines[0])["payload"]["forked_from_id"]
    known = Family(**{f"codex_{parent.replace('-', '_')}": ("", b"".join(lines[1:339]))})
    alone, cut = (
        parse(path.read_bytes(), path=path, cli="codex", session_id=f"codex:{FORK}", family=family)
        for family in (None, known)
    )
    assert (len(prompts(alone)), len(alone.calls)) == (9, 77)
    assert (len(prompts(cut)), cut.session.kind, cut.session.agent_type) == (1, "subagent", "explorer")
    assert cut.session.parent_id == f"codex:{parent}"
    assert len(cut.calls) == sum(b'"function_call"' in line for line in lines[339:])
    copied = sum(uses.get(f"copied from codex:{parent}", 0) for uses in cut.census["log0"].records.values())
    assert copied == 338
    counts = [event["info"]["total_token_usage"] for event in payloads(path, "token_count") if event["info"]]
    before = max(total["output_tokens"] for total in counts if total["output_tokens"] <= 21505)
    assert cut.session.tokens_output == counts[-1]["output_tokens"] - before


def test_every_answered_talk_is_summarised(read):
    assert read.lake.count("talk_summaries", "served") == read.lake.count("talks", "answered") > 40
    failed = read.lake.frame("tool_calls", ["id", "session_id", "prompt_number"], "is_error")
    observed = {i for ids in read.lake.scan("observations", ["sources"], "served")["sources"].to_pylist() for i in ids}
    assert [i for i, _session, _number in failed.iter_rows() if i not in observed] == []


def growing() -> list[Path]:
    root = Path(os.environ.get("MEMEX_SHARED", "../shared")) / "corpus" / "growth" / "codex"
    return sorted(root.glob("*/*"))


@pytest.mark.parametrize("session", growing(), ids=lambda path: path.name)
def test_a_session_that_grows_ends_like_one_read_at_once(session, tmp_path):
    log = tmp_path / "codex" / "sessions" / "2026" / "07" / "13" / f"rollout-2026-07-13T08-00-00-{session.name}.jsonl"
    log.parent.mkdir(parents=True)
    grown, step_by_step = wired(tmp_path / "grown", tmp_path / "codex")
    whole, at_once = wired(tmp_path / "whole", tmp_path / "codex")
    for number, step in enumerate(sorted(session.glob("*.jsonl"))):
        log.write_bytes(step.read_bytes())
        os.utime(log, ns=(0, 10**18 + number * 10**9))
        step_by_step.run(step_by_step.plan())
    at_once.run(at_once.plan())
    for table in ("sessions", "talks", "messages", "tool_calls"):
        where = None if table == "sessions" else "NOT superseded"
        rows = [sorted(m.lake.scan(table, None, where).to_pylist(), key=lambda row: row["id"]) for m in (grown, whole)]
        assert rows[0] == rows[1], table
    assert grown.lake.count("talks", "NOT superseded") > 1
