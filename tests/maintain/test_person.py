"""What a person remembers and takes back, through the verb and the commands."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from memex.errors import CannotUndo, NotFound
from memex.maintain.recalls import note_recall
from memex.maintain.run import run_all
from memex.setup import Memex
from tests.conftest import rows

GRAPH = ("memories", "edges", "digests")


def graph(memex: Memex, *unsaid: str) -> dict[str, list[dict]]:
    """The rows of the graph; `settled` is no part of it, and the clock none of its business."""
    left = {"settled", "vector", "vector_model", "created_at", "ingested_at", *unsaid}
    return {t: [{k: v for k, v in row.items() if k not in left} for row in rows(memex, t)] for t in GRAPH}


def test_undo_of_everything_restores_the_graph(filled: Memex):
    run_all(filled.maintain, None, ["derive"])
    before = graph(filled)
    run_all(filled.maintain, None, force=True)
    assert graph(filled) != before
    active = rows(filled, "memories", "NOT archived")
    note_recall(filled.home / "journal", [row["id"] for row in active], datetime.now(UTC))
    run_all(filled.maintain, None, ["derive"])
    for _unit in range(filled.maintain.journal.heads("undoable AND state = 'done'").height):
        filled.maintain.undo()
    with pytest.raises(NotFound):
        filled.maintain.undo()
    counters = ("access_count", "importance", "last_access_at")
    assert graph(filled, *counters) == {
        table: [{k: v for k, v in row.items() if k not in counters} for row in found] for table, found in before.items()
    }


def test_what_was_taken_back_is_not_done_again(filled: Memex):
    run_all(filled.maintain, None, force=True)
    verb = filled.maintain
    while True:
        entry = verb.undo()
        if entry.unit.step == "compress":
            break
    compressed = filled.lake.count("memories", "archived_reason = 'compressed'")
    verb = replace(verb, settings=verb.settings.model_copy(update={"compression_every_n": 1}))
    run_all(verb, None, ["compress"])
    assert filled.lake.count("memories", "archived_reason = 'compressed'") == compressed


def test_undo_is_refused_when_it_was_changed_since(filled: Memex):
    run_all(filled.maintain, None, force=True)
    heads = filled.maintain.journal.heads("step = 'compress' AND undoable").to_dicts()
    child = heads[0]["members"][1]
    row = {**rows(filled, "memories", f"id = '{child}'")[0], "parent_id": "else"}
    from memex.store.schemas import rows_to_arrow

    filled.lake.upsert("memories", rows_to_arrow("memories", [row]))
    with pytest.raises(CannotUndo):
        filled.maintain.undo(heads[0]["id"])


def test_an_undo_that_a_crash_cut_short_is_finished(filled: Memex):
    run_all(filled.maintain, None, force=True)
    entry = filled.maintain.journal.find()
    filled.acts.add("undo", entry=entry.id, unit=entry.unit.key, step=entry.unit.step, members=[])
    run_all(filled.maintain, None, ["derive"])
    assert filled.maintain.journal.entries(entry.scope, f"id = '{entry.id}'")[0].state == "undone"


def test_an_open_unit_is_carried_out_by_whoever_comes_next(filled: Memex):
    run_all(filled.maintain, None, ["derive"])
    before = {t: filled.lake.dataset(t).version for t in GRAPH}
    run_all(filled.maintain, None, ["consolidate", "compress", "rollup"], force=True)
    done = graph(filled)
    for table, version in before.items():  # as if the process had died between the journal and the tables
        dataset = filled.lake.dataset(table)
        dataset.checkout_version(version).restore()
    opened = [{**row, "state": "open"} for row in rows(filled, "journal")]
    from memex.store.schemas import rows_to_arrow

    filled.lake.upsert("journal", rows_to_arrow("journal", opened))
    run_all(filled.maintain, None, force=True)
    assert graph(filled) == done
    assert {row["state"] for row in rows(filled, "journal")} == {"done"}


def test_a_recall_is_folded_in_once(filled: Memex):
    run_all(filled.maintain, None, ["derive"])
    one = rows(filled, "memories")[0]["id"]
    note_recall(filled.home / "journal", [one], datetime.now(UTC))
    for _again in range(2):
        run_all(filled.maintain, None, ["derive"])
    assert rows(filled, "memories", f"id = '{one}'")[0]["access_count"] == 1


def test_what_a_person_said_survives_a_loss_of_the_lake(filled: Memex):
    made = filled.maintain.remember("Never deploy on Fridays.", "rule", rows(filled, "sessions")[0]["project_id"])
    kept = rows(filled, "memories", f"id = '{made.id}'")[0]
    assert (kept["text"], kept["importance"], kept["kind"]) == ("Never deploy on Fridays.", 9.0, "rule")
    for table in ("memories", "journal"):
        filled.lake.clear(table)
    run_all(filled.maintain, None, ["derive"])
    again = rows(filled, "memories", f"id = '{made.id}'")[0]
    assert {k: v for k, v in again.items() if not k.endswith("_at")} == {
        k: v for k, v in kept.items() if not k.endswith("_at")
    }


def test_what_a_person_said_can_be_taken_back_for_good(filled: Memex):
    made = filled.maintain.remember("Never deploy on Fridays.", "rule", rows(filled, "sessions")[0]["project_id"])
    filled.maintain.undo()
    run_all(filled.maintain, None, ["derive"])
    assert rows(filled, "memories", f"id = '{made.id}'") == []


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "memex.cli.main", *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False, env={**os.environ})


def test_the_commands(filled: Memex):
    shown = json.loads(command("maintain", "--dry-run", "--json").stdout)
    assert next(report for report in shown if report["step"] == "derive")["derived"]["talks"] == 11
    assert rows(filled, "memories") == []
    assert "new" in command("maintain", "--force").stderr
    listed = json.loads(command("memories", "--kind", "event", "--json").stdout)
    parent = next(row for row in listed if row["level"] == 1)
    one = json.loads(command("memory", parent["id"][:8], "--json").stdout)
    assert len(one["children"]) == 3
    assert all(source["lines"] for source in one["sources"])
    assert {"source_id", "offset"} <= one["sources"][0]["lines"][0].keys()
    assert parent["id"] in command("memory", parent["id"]).stdout
    project = parent["project_id"]
    told = json.loads(
        command("remember", "Ship on Mondays.", "--kind", "decision", "--project", project, "--json").stdout
    )
    assert json.loads(command("memory", told["id"], "--json").stdout)["memory"]["text"] == "Ship on Mondays."
    assert json.loads(command("undo", "--json").stdout)["step"] == "remember"
    assert command("memory", told["id"]).returncode == 6
    assert "threshold 0.1153" in command("sleep", "--horizon", "90d", "--dry-run").stderr
    assert command("sleep", "--horizon", "soon", "--dry-run").returncode == 2
    assert command("maintain", "--step", "dream").returncode == 2
    assert command("remember", "x", "--kind", "dream").returncode == 2
    assert json.loads(command("memories", "--archived", "--json").stdout)
    assert "consolidate" in command("undo", "--list").stdout or "compress" in command("undo", "--list").stdout
