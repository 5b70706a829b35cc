from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memex.maintain.compress import reachable
from memex.maintain.run import STEPS, Maintain, StepName, StepReport, run_all
from memex.maintain.stored import read_records
from memex.setup import Memex
from tests.conftest import rows


def maintain(memex: Memex, **options: Any) -> Maintain:
    """The verb, with some options of `maintain` changed."""
    verb = memex.maintain
    return replace(verb, settings=verb.settings.model_copy(update=options))


def run(verb: Maintain, steps: Sequence[StepName] = STEPS, **options: Any) -> dict[str, StepReport]:
    return {report.step: report for report in run_all(verb, None, steps, **options)}


def snapshot(memex: Memex) -> dict[str, list[dict]]:
    """All rows of the graph, without what a clock or a model wrote."""
    unsaid = ("created_at", "ingested_at", "vector", "vector_model")
    return {
        table: [{k: v for k, v in row.items() if k not in unsaid} for row in rows(memex, table)]
        for table in ("memories", "edges", "digests")
    }


def test_the_sample_becomes_a_graph(filled: Memex):
    done = run(maintain(filled), force=True)
    found = rows(filled, "memories")
    assert done["derive"].derived.new > 10
    assert {row["kind"] for row in found} >= {"event"}
    assert {row["project_id"] for row in found if row["kind"] != "preference"} <= {
        row["project_id"] for row in rows(filled, "sessions")
    }
    assert all(row["sources"] for row in found)
    memories = read_records(filled.lake, "memories", "true")
    assert reachable(memories) == {m.id for m in memories}
    assert filled.lake.count("digests") > 0


def test_a_second_run_writes_nothing(filled: Memex):
    run(maintain(filled), force=True)
    tables = ("memories", "edges", "digests", "journal", "extractions")
    before = [filled.lake.dataset(table).version for table in tables]
    again = run(maintain(filled), force=True)
    assert [filled.lake.dataset(table).version for table in tables] == before
    assert sum(report.units for report in again.values()) == 0


def test_a_dry_run_shows_what_a_run_does(filled: Memex):
    verb = maintain(filled)
    run(verb, ["derive"])
    for step in ("consolidate", "compress", "rollup"):
        before = snapshot(filled)
        shown = run(verb, [step], force=True, dry_run=True)[step]
        assert snapshot(filled) == before
        done = run(verb, [step], force=True)[step]
        keys = [[(scope, unit.key, unit.members) for scope, unit in report.planned] for report in (shown, done)]
        assert keys[0] == keys[1]


def test_every_row_reads_back_as_it_was_written(filled: Memex):
    run(maintain(filled), force=True)
    for row in rows(filled, "memories", "level > 0"):
        children = rows(filled, "memories", f"parent_id = '{row['id']}'")
        assert sorted(row["child_ids"]) == sorted(child["id"] for child in children)
        assert row["seq_from"] == min(c["seq_from"] for c in children)
        assert row["seq_to"] == max(c["seq_to"] for c in children)
        assert row["served"] is True


def test_ids_do_not_depend_on_when_things_are_read(filled: Memex, sample: Memex):
    run(maintain(filled), force=True)
    once = snapshot(filled)
    for table in ("memories", "edges", "digests", "extractions", "journal"):
        filled.lake.clear(table)
    run(replace(maintain(filled), clock=lambda: datetime(2030, 1, 1, tzinfo=UTC)), force=True)
    assert snapshot(filled) == once


@pytest.mark.parametrize("every", [1, 3])
def test_compression_waits_for_so_many_talks(filled: Memex, every: int):
    verb = maintain(filled, compression_every_n=500)
    run(verb, ["derive"])
    assert run(verb, ["compress"])["compress"].units == 0
    verb = maintain(filled, compression_every_n=every)
    run(verb, ["compress"])
    assert filled.lake.count("journal", "step = 'compress' AND count > 0") > 0


def test_sleep_is_off_and_asks_before_the_first_time(filled: Memex):
    later = datetime.now(UTC) + timedelta(days=400)
    verb = replace(maintain(filled), clock=lambda: later)
    run(maintain(filled), ["derive"])
    assert run(verb, ["sleep"], force=True)["sleep"].units == 0
    awake = filled.lake.count("memories", "NOT archived")
    projects = verb.scopes()
    refused = verb.step("sleep", projects, threshold=0.5)
    assert any("more than half" in note for note in refused.notes)
    slept = verb.step("sleep", projects, threshold=0.5, yes=True)
    assert slept.changed > 0
    assert filled.lake.count("memories", "NOT archived") == awake - slept.changed
    assert verb.step("sleep", projects, threshold=0.5).units == 0
