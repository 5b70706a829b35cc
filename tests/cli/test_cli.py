"""The commands, as a person types them: a real process, a real home."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memex.store.lake import Lake
from memex.store.schemas import SCHEMA_VERSION
from tests.logs import ClaudeLog, talk

MEMEX = [sys.executable, "-m", "memex.cli.main"]


def memex(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MEMEX, *arguments], capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environ}
    )


def test_a_developer_reads_summarises_indexes_and_finds(log: ClaudeLog, home: Path):
    talk(log, "Please add a quiet flag to the uploader").write()
    assert memex("ingest").returncode == 0
    hit = json.loads(memex("search", "quiet", "flag", "--json").stdout)["hits"][0]
    assert hit["session_id"] == f"claude:{log.session}" and hit["level"] == "raw"
    assert memex("compact").returncode == 0
    assert memex("index").returncode == 0
    shown = memex("show", log.session[:8]).stdout
    assert "Please add a quiet flag" in shown and "a.py" in shown
    assert memex("search", "uploader", "--level", "talks").stdout.startswith("1. ")
    again = memex("ingest")
    assert "nothing new" in again.stderr


def test_version_is_that_of_the_package():
    from memex import __version__

    assert memex("--version").stdout == f"memex {__version__}\n"


def test_status_explains_the_numbers(filled):
    state = json.loads(memex("status", "--json").stdout)
    assert state["memory"]["sessions"] == 5
    assert state["memory"]["of which subagents"] == 1
    assert (
        state["memory"]["talks"]
        == state["memory"]["talk summaries (L2)"] + state["memory"]["of which without an answer"]
    )
    assert sum(row["count"] for row in state["records"]) == state["sources"]["lines read"]
    assert {row["became"] for row in state["records"] if row["record"] == "file-history-snapshot"} == {
        "in the archive only"
    }
    assert state["failures"] == [] and state["unreadable lines"] == []


@pytest.mark.parametrize(
    "command",
    [
        ["sessions"],
        ["projects"],
        ["show", "5d0c1f52"],
        ["status"],
        ["config"],
        ["sql", "select 1 as one"],
        ["search", "export"],
    ],
)
def test_reading_commands_speak_json(filled, command):
    plain, as_json = memex(*command), memex(*command, "--json")
    assert (plain.returncode, as_json.returncode) == (0, 0)
    assert plain.stdout.strip()
    assert json.loads(as_json.stdout)


@pytest.mark.parametrize("level", ["raw", "observations", "talks", "session"])
def test_a_session_is_shown_at_every_level(filled, level):
    assert "export" in memex("show", "5d0c1f52", "--level", level).stdout.lower()


def test_sql_reads_every_table_and_changes_none(filled):
    rows = json.loads(
        memex("sql", "select count(*) as n from talks join sessions s on s.id = session_id", "--json").stdout
    )
    assert rows == [{"n": 12}]
    assert memex("sql", "delete from talks").returncode == 7
    assert memex("sql", "copy (select 1) to '/tmp/memex-must-not-exist.csv'").returncode == 7
    assert not Path("/tmp/memex-must-not-exist.csv").exists()
    assert filled.lake.count("talks") == 12


def test_a_dry_run_shows_what_is_pending_and_makes_nothing(sample):
    memex("ingest")
    pending = json.loads(memex("compact", "--dry-run", "--json").stdout)
    assert pending["talks"] == 11 and pending["sessions"] == 5
    assert sample.lake.count("talk_summaries") == 0


def test_one_session_and_one_level_are_compacted_alone(sample):
    memex("ingest")
    assert memex("compact", "--session", "5d0c1f52", "--level", "talks").returncode == 0
    assert sample.lake.count("talk_summaries") == 3
    assert sample.lake.count("session_summaries") == sample.lake.count("observations") == 0


def test_config_says_where_each_value_comes_from(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("[compact]\nidle_minutes = 9\n")
    listed = memex("config", "--json", MEMEX_CONFIG=str(file), MEMEX_SEARCH_LIMIT="3")
    origin = {setting["key"]: (setting["value"], setting["origin"]) for setting in json.loads(listed.stdout)}
    assert origin["compact.idle_minutes"] == ("9.0", "file")
    assert origin["search.limit"] == ("3", "environment")
    assert origin["search.rrf_k"] == ("60", "default")


def test_secrets_are_not_shown(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('[compact.openai]\napi_key = "${SECRET_OF_MINE}"\n')
    shown = memex("config", MEMEX_CONFIG=str(file), SECRET_OF_MINE="sk-very-secret")
    assert shown.returncode == 0 and "sk-very-secret" not in shown.stdout + shown.stderr


def test_two_projects_become_one(filled):
    names = [row["name"] for row in json.loads(memex("projects", "--json").stdout)]
    assert len(names) >= 2
    source, target = names[:2]
    assert memex("projects", "merge", source, source).returncode == 2
    assert "are part of" in memex("projects", "merge", source, target).stderr
    assert [row["name"] for row in json.loads(memex("projects", "--json").stdout)] == [target]
    again = memex("projects", "merge", source, target)
    assert again.returncode == 6 and "no project is called" in again.stderr
    assert memex("search", "export", "--project", source).stdout == ""


class TestTrouble:
    """Each trouble has a message that says what to do, an exit code, and loses nothing."""

    def test_bad_config(self, tmp_path):
        file = tmp_path / "config.toml"
        file.write_text('[compact.l1]\nprovider = "ollama"\n')
        answer = memex("status", MEMEX_CONFIG=str(file))
        assert answer.returncode == 2
        assert "write it as `provider` under [compact]" in answer.stderr and "Traceback" not in answer.stderr

    def test_unknown_provider(self):
        answer = memex("compact", MEMEX_COMPACT_PROVIDER="clippy")
        assert answer.returncode == 2 and "compact.provider" in answer.stderr and "extractive" in answer.stderr

    def test_home_is_a_file(self, tmp_path):
        (tmp_path / "file").touch()
        answer = memex("status", MEMEX_HOME=str(tmp_path / "file"))
        assert answer.returncode == 3 and "MEMEX_HOME" in answer.stderr

    def test_unreadable_home(self, tmp_path):
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o000)
        drop = ["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
        command = [*(drop if os.geteuid() == 0 else []), *MEMEX, "status"]
        answer = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "MEMEX_HOME": str(locked / "memex"), "MEMEX_CONFIG": os.devnull},
        )
        assert answer.returncode == 3, answer.stderr
        assert "ermission denied" in answer.stderr and "Traceback" not in answer.stderr

    def test_a_lake_of_a_newer_schema(self, filled):
        Lake(filled.home / "lake").set_version(SCHEMA_VERSION + 1)
        answer = memex("status")
        assert answer.returncode == 4 and "update Memex" in answer.stderr

    def test_a_corrupt_log(self, log):
        talk(log, "Add a flag").write()
        log.path.write_bytes(log.path.read_bytes() + b'{"type": "user", "mess\n\xff\xfe not json\n')
        assert memex("ingest").returncode == 0
        state = json.loads(memex("status", "--json").stdout)
        assert [bad["file"] for bad in state["unreadable lines"]] == [str(log.path)] * 2
        assert memex("search", "flag").stdout.startswith("1. ")

    def test_no_such_session(self, filled):
        assert memex("show", "nothing-like-it").returncode == 6

    def test_bad_level_and_bad_date(self, filled):
        for wrong in (["--level", "everything"], ["--since", "yesterdayish"], ["--limit", "0"]):
            answer = memex("search", "x", *wrong)
            assert answer.returncode == 2 and "Traceback" not in answer.stderr

    @pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
    def test_a_full_disk_loses_nothing(self, log, tmp_path):
        home = tmp_path / "small"
        home.mkdir()
        for number in range(40):
            log.call("Bash", {"command": f"run {number}"}, os.urandom(60_000).hex())
        talk(log, "Fill the disk").write()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(home)], check=True)
        try:
            full = memex("ingest", MEMEX_HOME=str(home))
            assert full.returncode == 5, full.stderr
            assert "no space left" in full.stderr and "Traceback" not in full.stderr
            subprocess.run(["mount", "-o", "remount,size=64m", str(home)], check=True)
            assert memex("ingest", MEMEX_HOME=str(home)).returncode == 0
            rows = json.loads(
                memex("sql", "select count(*) as n from tool_calls", "--json", MEMEX_HOME=str(home)).stdout
            )
            assert rows == [{"n": 41}]
            assert memex("search", "disk", MEMEX_HOME=str(home)).stdout.startswith("1. ")
        finally:
            subprocess.run(["umount", str(home)], check=True)


HEAVY = {"polars", "pyarrow", "lance", "lancedb", "prefect", "openai", "numpy"}


def loaded(code: str) -> set[str]:
    """The modules that some code imports, in a fresh process."""
    report = "\nimport sys; print(*sys.modules, file=sys.stderr)"
    answer = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, check=True)
    return set(answer.stderr.split())


def test_help_imports_nothing_heavy():
    assert loaded("import memex.cli.main") & {*HEAVY, "duckdb", "pydantic", "rich"} == set()


def test_a_raw_search_loads_no_lake(filled):
    modules = loaded("from memex.cli.main import app; app(['search', 'export', '--json'], standalone_mode=False)")
    assert "duckdb" in modules
    assert modules & HEAVY == set()


def test_home_is_backed_up_and_restored(log: ClaudeLog, home: Path, tmp_path: Path):
    talk(log, "Please add a quiet flag to the uploader").write()
    assert memex("ingest").returncode == 0
    made = memex("backup", str(tmp_path / "home.tar.zst"), "--json")
    assert json.loads(made.stdout)["sources"] == 1
    other = {"MEMEX_HOME": str(tmp_path / "other"), "HOME": str(tmp_path / "nobody")}
    assert "sources" in memex("restore", str(tmp_path / "home.tar.zst"), **other).stdout
    hits = json.loads(memex("search", "quiet", "flag", "--json", **other).stdout)["hits"]
    assert hits[0]["session_id"] == f"claude:{log.session}"
    assert "nothing new" in memex("restore", str(tmp_path / "home.tar.zst"), **other).stderr
    refused = memex("restore", str(log.path), **other)
    assert refused.returncode == 12 and "is no backup of Memex" in refused.stderr
