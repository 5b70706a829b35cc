"""The doctor: a well home is well; each fault is found, and mended when it can be."""

import shutil

import pytest

from memex.store.schemas import rows_to_arrow
from tests.cli.test_cli import memex as command
from tests.conftest import rows


def states(memex, mend=False):
    return {finding.what: finding.state for finding in memex.examine.run(mend) if finding.state != "well"}


def lose_index(memex):
    shutil.rmtree(memex.raw_index.root)


def lose_part(memex):
    for part in memex.summary_index.root.glob("*.duckdb"):
        part.unlink()


def garble_part(memex):
    for part in memex.raw_index.root.glob("*.duckdb"):
        part.write_bytes(b"no database" * 1000)


def lose_messages(memex):
    memex.lake.delete("messages", "role = 'user'")


def lose_session(memex):
    memex.lake.delete("sessions", f"id = '{rows(memex, 'sessions')[0]['id']}'")


def lose_source(memex):
    memex.lake.delete("sources", f"id = '{rows(memex, 'sources')[0]['id']}'")


def read_half(memex):
    half = [{**row, "size": row["size"] // 2} for row in rows(memex, "sources")[:1]]
    memex.lake.upsert("sources", rows_to_arrow("sources", half))


def test_what_is_well_is_left_alone(filled):
    before = {path: path.stat().st_mtime_ns for path in filled.home.rglob("*") if path.is_file()}
    assert states(filled) == states(filled, mend=True) == {}
    assert {path: path.stat().st_mtime_ns for path in filled.home.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("harm", "part"),
    [
        (lose_index, "raw text index"),
        (lose_part, "summary text index"),
        (garble_part, "raw text index"),
        (lose_messages, "what sessions hold"),
        (lose_session, "rows of sessions"),
        (lose_source, "archive and lake"),
        (read_half, "archive and lake"),
    ],
)
def test_each_fault_is_found_and_mended(filled, harm, part):
    harm(filled)
    assert states(filled)[part] == "ill"
    assert states(filled, mend=True)[part] == "mended"
    assert states(filled) == {}


def test_command_tells_what_helps_and_fails(filled):
    lose_source(filled)
    done = command("doctor")
    assert done.returncode == 1
    assert "memex ingest" in done.stderr
    assert command("doctor", "--mend").returncode == 0
    assert command("doctor").returncode == 0
