"""Real logs: everything is taken in, counted, summarised within bounds, and found again."""

import csv
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from memex.search.query import Query
from memex.search.refresh import refresh_raw
from memex.settings import Settings
from memex.setup import Memex, open_memex
from memex.text import units

pytestmark = pytest.mark.corpus


def wired(home: Path, logs: Path) -> Memex:
    return open_memex(
        Settings.model_validate({"home": home, "sources": {"claude_config_dir": logs}, "embed": {"provider": "none"}})
    )


@pytest.fixture(scope="module")
def read(corpus, tmp_path_factory) -> Memex:
    """All logs of Claude Code, read, summarised and indexed."""
    memex = wired(tmp_path_factory.mktemp("corpus") / "memex", corpus / ".claude")
    memex.ingest.run(memex.ingest.plan())
    refresh_raw(memex.lake, memex.raw_index)
    for batch in memex.compact.plan().batches:
        memex.compact.run(batch)
    return memex


def logs(corpus: Path) -> list[Path]:
    return sorted((corpus / ".claude" / "projects").rglob("*.jsonl"))


def test_every_file_is_kept_byte_for_byte(read, corpus):
    kept = {source.path: source for source in read.archive.sources()}
    assert set(kept) == {str(path) for path in logs(corpus)}
    for path in logs(corpus):
        assert read.archive.read(kept[str(path)]) == path.read_bytes()


def test_nothing_is_dropped_without_being_counted(read, corpus):
    sources = {row["path"]: row for row in read.lake.scan("sources").to_pylist()}
    for path in logs(corpus):
        lines = [line for line in path.read_bytes().split(b"\n") if line.strip()]
        row = sources[str(path)]
        records = sum(n for uses in json.loads(row["records"]).values() for n in uses.values())
        bad = json.loads(row["bad_lines"])
        assert row["lines"] + bool(row["torn_bytes"]) == len(lines), path
        assert records >= row["lines"] - len(bad), path


def test_prompts_typed_by_humans_start_talks(read, shared, corpus):
    """The table counts typed prompts apart from commands and queued ones, so talks may be more."""
    talks = {}
    for row in read.lake.scan("talks", ["session_id"]).to_pylist():
        talks[row["session_id"]] = talks.get(row["session_id"], 0) + 1
    with (shared / "corpus" / "SOURCES.tsv").open() as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["file"].startswith(".claude")]
    assert len(rows) == len(logs(corpus))
    for row in rows:
        assert talks.get(f"claude:{Path(row['file']).stem}", 0) >= int(row["prompts"]), row["file"]
    assert sum(talks.values()) < 1.5 * sum(int(row["prompts"]) for row in rows)


def test_what_no_human_typed_starts_no_talk(read):
    injected = re.compile(
        r"<(?:system-reminder|task-notification|local-command|command-name|command-message|bash-std|teammate)|"
        r"\[Request interrupted|Caveat:|This session is being continued|Stop hook feedback"
    )
    prompts = read.lake.scan("talks", ["prompt"])["prompt"].to_pylist()
    assert [p for p in prompts if injected.match(p)] == []


def test_tool_results_are_joined(read):
    calls = read.lake.frame("tool_calls", ["answered", "output"])
    assert calls["answered"].mean() > 0.97
    assert len(calls) == len(read.lake.scan("tool_calls", ["id"])["id"].unique())


def test_usage_is_counted_once_a_message(read, corpus):
    best: dict[str, int] = {}
    for path in logs(corpus):
        for line in path.read_bytes().split(b"\n"):
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            message = record.get("message") if record.get("type") == "assistant" else None
            if message and message.get("usage") and message.get("model") != "<synthetic>":
                key = path.stem + message["id"]
                best[key] = max(best.get(key, 0), message["usage"].get("output_tokens", 0))
    assert read.lake.frame("sessions", ["tokens_output"])["tokens_output"].sum() == sum(best.values())


def test_a_second_run_has_nothing_to_do(read):
    versions = {t: read.lake.dataset(t).version for t in ("sources", "sessions", "talks", "messages", "tool_calls")}
    assert read.ingest.plan().empty
    assert read.compact.plan().empty
    read.ingest.run(read.ingest.plan())
    assert {t: read.lake.dataset(t).version for t in versions} == versions


def test_summaries_keep_their_bounds(read):
    talks = read.lake.scan("talk_summaries", None, "served").to_pylist()
    wanted = read.lake.count("talks", "answered AND NOT superseded") - _probe_talks(read)
    assert len(talks) == wanted
    for row in talks:
        assert row["user_request"].strip() and row["summary"].strip() and row["completed"].strip()
        assert units(row["user_request"]) <= 130
        assert units(row["summary"]) <= 150
    sessions = read.lake.scan("session_summaries", None, "served").to_pylist()
    assert len(sessions) == len({row["session_id"] for row in talks})
    for row in sessions:
        assert 0 < units(row["summary"]) < 100
        assert 1 <= len(row["key_points"]) <= 7
    big = [row for row in sessions if len(row["sources"]) >= 3]
    assert all(len(row["key_points"]) >= 3 for row in big)


def _probe_talks(read) -> int:
    probes = read.lake.scan("sessions", ["id"], "kind = 'probe'")["id"].to_pylist()
    return sum(read.lake.count("talks", f"session_id = '{probe}' AND answered") for probe in probes)


def test_no_change_and_no_failure_is_pruned(read):
    calls = read.lake.frame(
        "tool_calls", ["id", "session_id", "prompt_number"], "is_error OR operation IN ('edit', 'write')"
    )
    observed = {i for ids in read.lake.scan("observations", ["sources"], "served")["sources"].to_pylist() for i in ids}
    served = {
        (r["session_id"], r["prompt_number"])
        for r in read.lake.scan("talk_summaries", ["session_id", "prompt_number"]).to_pylist()
    }
    lost = [i for i, s, n in calls.iter_rows() if (s, n) in served and i not in observed]
    assert lost == []


def test_summaries_name_only_what_the_talk_holds(read):
    """An extractive summary invents nothing: every commit hash and path in it stands in the raw text."""
    raw: dict[str, str] = {}
    for table, columns in (("messages", ["text"]), ("tool_calls", ["input", "output"])):
        for row in read.lake.scan(table, ["session_id", *columns]).to_pylist():
            raw[row["session_id"]] = raw.get(row["session_id"], "") + "\n".join(row[c] for c in columns)
    for row in read.lake.scan("talk_summaries", None, "served").to_pylist():
        text = f"{row['user_request']} {row['summary']} {row['completed']}"
        for name in re.findall(r"\b[0-9a-f]{7,40}\b|\b[\w-]+\.(?:py|go|ts|tsx|rs|md|json|toml|yaml)\b", text):
            assert name in raw[row["session_id"]], (row["session_id"], name)


def test_search_finds_the_sessions_that_grep_finds(read):
    rows = read.lake.scan("messages", ["session_id", "text"], "kind IN ('prompt', 'reply')").to_pylist()
    generator = random.Random(5)
    words = set()
    for row in generator.sample(rows, 150):
        words.update(generator.sample(re.findall(r"\b[a-z]{4,12}\b", row["text"]) or ["the"], 1))
        words.update(re.findall("[\u4e00-\u9fff\u3040-\u30ff]{1,3}", row["text"])[:2])
    for word in sorted(words)[:120]:
        pattern = re.compile(
            rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])" if word.isascii() else re.escape(word)
        )
        grep = {row["session_id"] for row in rows if pattern.search(row["text"])}
        found = {row["session_id"] for row in read.raw_index.search(Query(word), 5000)}
        assert grep <= found, (word, grep - found)


@pytest.mark.parametrize(
    "growth", ["ClusterCockpit__cc-backend", "FSM1__cipher-box", "JanDeDobbeleer__oh-my-posh", "entireio__git-sync"]
)
def test_a_session_that_grows_ends_like_one_read_at_once(growth, shared, tmp_path):
    for session in sorted((shared / "corpus" / "growth" / "claude" / growth).iterdir()):
        steps = sorted(session.glob("*.jsonl"))
        grown = wired(tmp_path / session.name / "grown", tmp_path / session.name / "a")
        whole = wired(tmp_path / session.name / "whole", tmp_path / session.name / "a")
        log = tmp_path / session.name / "a" / "projects" / "-p" / f"{session.name}.jsonl"
        log.parent.mkdir(parents=True)
        for step in steps:
            log.write_bytes(step.read_bytes())
            os.utime(log, ns=(0, log.stat().st_mtime_ns + 10**9 * len(step.name)))
            grown.ingest.run(grown.ingest.plan())
        whole.ingest.run(whole.ingest.plan())
        for table in ("sessions", "talks", "messages", "tool_calls"):
            where = None if table == "sessions" else "NOT superseded"
            rows = [sorted(m.lake.scan(table, None, where).to_pylist(), key=lambda r: r["id"]) for m in (grown, whole)]
            assert rows[0] == rows[1], table


PEAK = """
import sys
from pathlib import Path
from memex.settings import Settings
from memex.setup import open_memex
memex = open_memex(Settings.model_validate(
    {"home": sys.argv[1], "sources": {"claude_config_dir": sys.argv[2]}, "embed": {"provider": "none"}}))
memex.ingest.run(memex.ingest.plan())
for batch in memex.compact.plan().batches:
    memex.compact.run(batch)
import resource
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_memory_stays_small_and_does_not_grow_with_the_number_of_files(corpus, tmp_path):
    peaks = []
    for copies in (1, 3):
        logs_folder = tmp_path / f"logs{copies}"
        for copy in range(copies):
            for path in logs(corpus):
                target = logs_folder / "projects" / f"{copy}{path.parent.name}" / f"{copy}{path.name}"
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes().replace(b'uuid":"', b'uuid":"%d' % copy))  # else it is a fork
        command = [sys.executable, "-c", PEAK, str(tmp_path / f"home{copies}"), str(logs_folder)]
        peaks.append(int(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    print(f"peak memory: {peaks[0]} MB at 1x, {peaks[1]} MB at 3x")
    assert max(peaks) < 1000
    assert peaks[1] < 1.35 * peaks[0]
