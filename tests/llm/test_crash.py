"""Kills, caps and places over several processes, against a server that logs every request."""

import json
import os
import subprocess
import sys
import time
from collections import Counter

import pytest

from memex.setup import Memex
from tests.conftest import ingest, rows
from tests.llm.models import prices, settings_for
from tests.llm.server import Script, serving
from tests.logs import ClaudeLog, talk

pytestmark = pytest.mark.crash


def write_logs(claude_dir, sessions, talks):
    from tests.conftest import LONG_AGO

    for number in range(sessions):
        path = claude_dir / "projects" / "-src-app" / f"{number:08}-0000-4000-8000-000000000001.jsonl"
        log = ClaudeLog(path, LONG_AGO)
        for each in range(talks):
            talk(log, f"Add flag {each} of session {number}")
        log.write()


def run_memex(endpoint, *arguments, **environ):
    variables = {
        "MEMEX_COMPACT_PROVIDER": "compatible",
        "MEMEX_COMPACT_COMPATIBLE_ENDPOINT": endpoint,
        "MEMEX_COMPACT_COMPATIBLE_MODEL": "test-model",
        **environ,
    }
    return subprocess.Popen(
        [sys.executable, "-m", "memex.cli.main", *arguments],
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def asked(service):
    return Counter(json.dumps(r["body"]["messages"], sort_keys=True) for r in service.answered)


def test_a_kill_in_the_middle_pays_nothing_twice(home, claude_dir):
    write_logs(claude_dir, 4, 5)
    with serving(Script(["ok"] * 9 + ["hang"] * 1000, hang=600)) as service:
        memex = Memex(settings_for(home, service.endpoint))
        ingest(memex)
        workers = {"MEMEX_COMPACT_COMPATIBLE_WORKERS": "3"}
        process = run_memex(service.endpoint, "compact", "--level", "talks", **workers)
        wait_until(lambda: service.under_way == 3 and len(service.answered) == 9)
        process.kill()
        process.communicate()
        assert rows(memex, "talk_summaries") == []
        service.script = Script()
        process = run_memex(service.endpoint, "compact", "--level", "talks", "--json", **workers)
        out, err = process.communicate(timeout=120)
        assert json.loads(out) == {"talks": 20}, err
        paid = asked(service)
        assert len(paid) == 20 and max(paid.values()) == 1
    made = rows(memex, "talk_summaries")
    assert len({row["prompt_number"] for row in made}) == 5 and len(made) == 20
    assert sum(row["tokens_output"] > 0 for row in rows(memex, "ledger")) >= 20


def test_a_cap_holds_for_eight_workers_in_two_processes(home, claude_dir):
    write_logs(claude_dir, 8, 6)
    with serving(Script(delay=0.02)) as service:
        memex = Memex(settings_for(home, service.endpoint, models_file=prices(home)))
        ingest(memex)
        variables = {
            "MEMEX_COMPACT_COMPATIBLE_WORKERS": "8",
            "MEMEX_COMPACT_BUDGET_DAY_TOKENS": "12000",
            "MEMEX_COMPACT_BUDGET_DAY_USD": "1000",
            "MEMEX_COMPACT_BATCH_SESSIONS": "1",
        }
        halves = [str(name) for name in memex.lake.scan("sessions", ["id"])["id"].to_pylist()]
        processes = [
            run_memex(service.endpoint, "compact", "--level", "talks", *[f"--session={s}" for s in half], **variables)
            for half in (halves[:4], halves[4:])
        ]
        told = [process.communicate(timeout=240)[1] for process in processes]
        assert [process.returncode for process in processes] == [0, 0], told
        assert any("the cap of 12,000 tokens a day is reached" in one for one in told), told
        spent = memex.book.spent()
        assert 10_000 < spent.tokens <= 12_000
        assert service.most_under_way <= 8
        assert len(service.answered) == len(rows(memex, "talk_summaries")) == len(rows(memex, "ledger")) < 48
    assert rows(memex, "failures") == []


def test_places_at_a_provider_are_shared_by_processes(home, claude_dir):
    write_logs(claude_dir, 2, 6)
    with serving(Script(delay=0.1)) as service:
        memex = Memex(settings_for(home, service.endpoint))
        ingest(memex)
        names = memex.lake.scan("sessions", ["id"])["id"].to_pylist()
        processes = [
            run_memex(
                service.endpoint, "compact", "--level", "talks", "--session", name,
                MEMEX_COMPACT_COMPATIBLE_WORKERS="3",
            )
            for name in names
        ]  # fmt: skip
        for process in processes:
            process.communicate(timeout=120)
        assert len(service.answered) == 12
        assert service.most_under_way == 3
