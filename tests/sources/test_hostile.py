"""Logs and folders that nobody meant well with: clear counts, no crash, nothing read outside the folder."""

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.sources.verify import verify
from tests.conftest import LONG_AGO, ingest
from tests.logs import ClaudeLog, talk
from tests.sources.parsing import census, new_log, parse, prompts


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


@settings(deadline=None, max_examples=100)
@given(
    number=st.integers(0, 11),
    damage=st.sampled_from([b"garbage", b'{"type": "us', b"\xff\xfe\x00", b"[1, 2", b"}" * 9, b'"text"', b"\x00" * 7]),
)
def test_damage_to_one_line_costs_that_line_only(number, damage):
    log = new_log()
    for request in ("one", "two", "three"):
        talk(log, request)
    whole = log.lines().splitlines(keepends=True)
    sound = {m.id: (m.text, m.kind) for m in parse(log).messages}
    lost = {m.id for m in parse(log).messages if m.offset == len(b"".join(whole[:number]))}
    damaged = parse(b"".join([*whole[:number], damage + b"\n", *whole[number + 1 :]]))
    kept = {m.id: (m.text, m.kind) for m in damaged.messages if m.role != "tool"}
    assert kept.items() <= sound.items()
    assert sound.keys() - kept.keys() <= lost
    blank = not damage.strip(b"\x00")
    assert [bad.offset for bad in census(damaged).bad] == ([] if blank else [len(b"".join(whole[:number]))])


@pytest.mark.parametrize(
    "name",
    ["修复 登录.jsonl", "two\nlines.jsonl", " spaces and 'quotes\" .jsonl", "%41*?[x].jsonl", "-rf.jsonl", "é.jsonl"],
)
def test_any_file_name_will_do(memex, claude_dir, name):
    log = ClaudeLog(claude_dir / "projects" / "-src app 项目\n" / name, LONG_AGO)
    talk(log, "fix the login").write()
    assert ingest(memex).sessions == 1
    append(log.path, talk(log, "and the docs").lines()[log.path.stat().st_size :])
    assert ingest(memex).talks == 2
    assert memex.ingest.plan().empty
    assert [kept.path for kept in memex.archive.sources()] == [str(log.path)]


def test_links_lead_nowhere_outside(memex, log, claude_dir, tmp_path):
    talk(log, "fix the login").write()
    outside = tmp_path / "outside"
    talk(ClaudeLog(outside / "secret.jsonl", LONG_AGO), "a secret").write()
    projects = claude_dir / "projects"
    (projects / "loop").symlink_to(projects, target_is_directory=True)
    (projects / "out").symlink_to(outside, target_is_directory=True)
    (projects / "-src-app" / "out.jsonl").symlink_to(outside / "secret.jsonl")
    (projects / "-src-app" / "self.jsonl").symlink_to(projects / "-src-app" / "self.jsonl")
    (projects / "-src-app" / "inside.jsonl").symlink_to(log.path)
    report = ingest(memex)
    assert sorted(problem.split(": ", 1)[0].rsplit("/", 1)[1] for problem in report.unreadable) == [
        "out", "out.jsonl", "self.jsonl",
    ]  # fmt: skip
    assert "a secret" not in memex.lake.scan("messages", ["text"])["text"].to_pylist()
    assert all("outside" not in kept.path for kept in memex.archive.sources())


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../../../../../../etc/passwd", "tool-results/../../../../../etc/passwd", "\\\\server\\passwd", ""],
)
def test_persisted_output_leads_nowhere_outside(memex, log, path):
    (log.path.with_suffix("") / "tool-results").mkdir(parents=True)
    output = f"<persisted-output>\nFull output saved to: {path}\n</persisted-output>"
    log.prompt("show").call("Bash", {"command": "cat"}, output, toolUseResult={"persistedOutputPath": path}).write()
    ingest(memex)
    assert memex.lake.scan("tool_calls", ["output"])["output"].to_pylist() == [output]


def test_link_among_tool_results_leads_nowhere_outside(memex, log, tmp_path):
    (tmp_path / "secret.txt").write_text("a secret")
    results = log.path.with_suffix("") / "tool-results"
    results.mkdir(parents=True)
    (results / "b1.txt").symlink_to(tmp_path / "secret.txt")
    output = f"<persisted-output>\nFull output saved to: {results / 'b1.txt'}\n</persisted-output>"
    log.prompt("show").call("Bash", {"command": "cat"}, output).write()
    assert any("out of the folder" in problem for problem in ingest(memex).unreadable)
    assert "a secret" not in memex.lake.scan("tool_calls", ["output"])["output"].to_pylist()[0]


@pytest.mark.parametrize("depth", [900, 5_000, 200_000])
def test_deep_nesting_costs_its_line_at_most(log, depth):
    log.prompt("one").reply("1")
    deep = b'{"type":"user","message":{"content":' + b"[" * depth + b"]" * depth + b"}}\n"
    call = b'{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"X","input":' + (
        b'{"a":' * depth + b"1" + b"}" * depth + b"}]}}\n"
    )
    parsed = parse(log.lines() + deep + call + log.lines().replace(b"1111-", b"9999-").replace(b"msg_", b"msg_x"))
    assert prompts(parsed)[0] == "one" and len(prompts(parsed)) == 2


READ = """
import sys
from memex.settings import Settings
from memex.setup import open_memex
memex = open_memex(Settings.model_validate(
    {"home": sys.argv[1], "sources": {"claude_config_dir": sys.argv[2]}, "embed": {"provider": "none"}}))
report = memex.ingest.run(memex.ingest.plan())
import resource
print(report.sessions, report.talks, report.bad_lines, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def read_apart(home, folder):
    """Ingest in a process of its own; give sessions, talks, bad lines and peak memory in MB."""
    done = subprocess.run([sys.executable, "-c", READ, home, folder], check=True, capture_output=True, text=True)
    return list(map(int, done.stdout.split()))


@pytest.mark.long
def test_a_million_tiny_lines(memex, log, claude_dir):
    log.prompt("one").write()
    with log.path.open("ab") as file:
        for start in range(0, 1_000_000, 50_000):
            file.write(b"".join(b'{"type":"tick","n":%d}\n' % n for n in range(start, start + 50_000)))
    append(log.path, log.prompt("two").lines().splitlines(keepends=True)[-1])
    sessions, talks, bad, peak = read_apart(memex.home, claude_dir)
    assert (sessions, talks, bad) == (1, 2, 0)
    assert peak < 500
    records = json.loads(memex.lake.scan("sources", ["records"])["records"].to_pylist()[0])
    assert records["tick"] == {"in the archive only": 1_000_000}


@pytest.mark.long
def test_strings_of_100_mb(memex, log, claude_dir):
    log.prompt("one").write()
    append(log.path, b'{"type":"user","message":{"content":"' + b"a" * 100_000_000 + b'"}}\n')
    append(log.path, log.prompt("two").lines().splitlines(keepends=True)[-1])
    append(log.path, b'{"type":"user","uuid":"p","message":{"content":[{"type":"image","source":{"data":"')
    append(log.path, b"A" * 50_000_000 + b'"}}]}}\n')
    append(log.path, b'{"type":"user","message":{"content":"torn ' + b"b" * 100_000_000)
    sessions, talks, bad, peak = read_apart(memex.home, claude_dir)
    assert (sessions, talks, bad) == (1, 3, 1)
    assert peak < 1000
    assert verify(memex.archive, disk=True).differs == ()
