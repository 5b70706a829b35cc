"""The contract of the store: rows by id, written once, whoever writes."""

import math
import multiprocessing
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import lancedb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.errors import DiskFull, SchemaError, StoreBusy, StoreError
from memex.model import Message
from memex.store import lake as lake_module
from memex.store.lake import Lake, in_list, tail_of
from memex.store.migrations import migrate
from memex.store.readers import Readers
from memex.store.schemas import SCHEMA_VERSION, TABLES, has_vector, schema, to_arrow


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    lake.prepare()
    return lake


def messages(ids, text="hello", session="claude:s"):
    return to_arrow(
        "messages",
        [
            Message(id=i, session_id=session, prompt_number=1, seq=n, role="user", kind="prompt", text=text)
            for n, i in enumerate(ids)
        ],
    )


def stored(lake: Lake) -> dict[str, str]:
    rows = lake.scan("messages", ["id", "text"]).to_pylist()
    assert len({row["id"] for row in rows}) == len(rows), "doubled rows"
    return {row["id"]: row["text"] for row in rows}


def test_upsert_inserts_and_replaces_by_id(lake):
    assert lake.upsert("messages", messages(["a", "b"])) == 2
    lake.upsert("messages", messages(["b", "c"], "new"))
    assert stored(lake) == {"a": "hello", "b": "new", "c": "new"}


def fragments(lake: Lake, table: str) -> int:
    return len(list(lake.dataset(table).get_fragments()))


def write_one_by_one(lake: Lake, count: int) -> None:
    for n in range(count):
        lake.upsert("messages", messages([str(n)]))


def test_what_is_written_in_bulk_is_tidied_once_at_its_end(lake):
    with lake.in_bulk():
        write_one_by_one(lake, 12)
        assert fragments(lake, "messages") >= 12
    assert fragments(lake, "messages") == 1
    assert len(stored(lake)) == 12


def test_after_a_bulk_that_failed_the_next_write_tidies(lake):
    def fail():
        with lake.in_bulk():
            write_one_by_one(lake, 12)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert fragments(lake, "messages") >= 12
    lake.upsert("messages", messages(["last"]))
    assert fragments(lake, "messages") <= 3
    assert len(stored(lake)) == 13


def test_of_a_key_twice_in_one_batch_the_last_wins(lake):
    both = pa.concat_tables([messages(["a"], "first"), messages(["a"], "last")])
    assert lake.upsert("messages", both) == 1
    assert stored(lake) == {"a": "last"}


def test_an_empty_batch_commits_nothing(lake):
    before = lake.dataset("messages").version
    assert lake.upsert("messages", messages([])) == 0
    assert lake.dataset("messages").version == before


@settings(max_examples=15, deadline=None)
@given(batches=st.lists(st.lists(st.tuples(st.sampled_from("abcdef'"), st.text(max_size=5)), max_size=6), max_size=5))
def test_any_batches_leave_what_a_dict_would_hold(tmp_path_factory, batches):
    lake = Lake(tmp_path_factory.mktemp("lake"))
    lake.prepare()
    expected: dict[str, str] = {}
    for batch in batches:
        expected.update(batch)
        rows = [
            Message(id=i, session_id="s", prompt_number=1, seq=0, role="user", kind="prompt", text=text)
            for i, text in batch
        ]
        lake.upsert("messages", to_arrow("messages", rows))
    assert stored(lake) == expected
    for key in expected:
        assert lake.count("messages", in_list("id", [key])) == 1


UPSERT_SAME_KEYS = textwrap.dedent("""
    import sys
    from tests.store.test_lake import messages
    from memex.store.lake import Lake
    lake = Lake(sys.argv[1])
    print("ready", flush=True)
    sys.stdin.readline()
    for round in range(15):
        lake.upsert("messages", messages([f"k{n}" for n in range(40)], sys.argv[2] + str(round)))
""")


def test_two_processes_upserting_the_same_keys_double_nothing(lake):
    command = [sys.executable, "-c", UPSERT_SAME_KEYS, lake.root]
    writers = [
        subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
        for name in ("left", "right")
    ]
    for writer in writers:
        assert writer.stdout and writer.stdout.readline() == b"ready\n"
    for writer in writers:
        assert writer.stdin
        writer.stdin.write(b"\n")
        writer.stdin.flush()
    assert [writer.wait(120) for writer in writers] == [0, 0]
    assert set(stored(lake)) == {f"k{n}" for n in range(40)}


def test_a_stale_handle_doubles_nothing(lake):
    stale = Lake(lake.root)
    assert stale.count("messages") == 0
    lake.upsert("messages", messages(["a", "b"]))
    stale.upsert("messages", messages(["a", "b"], "later"))
    assert stored(lake) == {"a": "later", "b": "later"}


def test_many_small_commits_are_compacted(lake):
    for number in range(60):
        lake.upsert("messages", messages([f"m{number}"]))
        assert len(lake.dataset("messages").get_fragments()) <= lake_module.TAIL + 2
    assert len(stored(lake)) == 60


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=300))
def test_commits_of_any_sizes_leave_few_files_and_rewrite_each_row_a_few_times(commits):
    files, rewritten = [], 0
    for rows in commits:
        files.append(rows)
        tail = tail_of(files)
        if len(tail) > lake_module.TAIL:
            files[-len(tail) :] = [sum(tail)]
            rewritten += sum(tail)
        orders = math.log(sum(files), lake_module.GROWTH)
        assert len(files) <= lake_module.TAIL + orders + 1
    assert rewritten <= sum(commits) * lake_module.GROWTH * (orders + 1)


def test_small_commits_to_a_large_table_rewrite_the_small_files_only(lake):
    lake.upsert("messages", messages([f"old{number}" for number in range(3000)]))
    lake.optimize("messages")
    [large] = [fragment.fragment_id for fragment in lake.dataset("messages").get_fragments()]
    for number in range(100):
        lake.upsert("messages", messages([f"new{number}", f"old{number}"]))
    fragments = lake.dataset("messages").get_fragments()
    assert fragments[0].fragment_id == large
    assert len(fragments) <= lake_module.TAIL + 4
    assert len(stored(lake)) == 3100
    assert lake.count("messages", "id = 'new7'") == lake.count("messages", "id = 'old7'") == 1


def files(lake: Lake, table: str) -> int:
    return sum(path.is_file() for path in Path(lake.root, f"{table}.lance").rglob("*"))


def commit_often(lake: Lake, commits: int) -> None:
    for number in range(commits):
        lake.upsert("messages", messages(["a", "b"], f"round {number}"))


def test_thousands_of_commits_leave_a_bounded_number_of_files(lake):
    busy = Lake(lake.root, fresh_seconds=0)
    commit_often(busy, 3 * lake_module.MAX_VERSIONS)
    assert files(busy, "messages") < 500
    assert len(busy.dataset("messages").versions()) <= lake_module.MAX_VERSIONS + lake_module.CLEAN_EVERY + 1
    assert set(stored(busy).values()) == {f"round {3 * lake_module.MAX_VERSIONS - 1}"}


def test_versions_of_the_last_hour_stay_while_they_are_few(lake):
    busy = Lake(lake.root, fresh_seconds=0)
    busy.upsert("messages", messages(["a"], "first"))
    first = busy.dataset("messages")
    commit_often(busy, lake_module.CLEAN_EVERY)
    busy.optimize("messages")
    assert first.to_table()["text"].to_pylist() == ["first"]


def kept(lake: Lake, version: int) -> bool:
    return version in {made["version"] for made in lake.dataset("messages").versions()}


def test_what_a_slow_reader_reads_stays_through_any_number_of_commits(lake):
    busy = Lake(lake.root, fresh_seconds=0)
    busy.upsert("messages", messages(["a", "b"], "as it was"))
    version = busy.dataset("messages").version
    reading = busy.batches("messages", 1)
    read = next(reading).to_pylist()
    commit_often(busy, 2 * lake_module.MAX_VERSIONS)
    assert kept(busy, version)
    read += [row for batch in reading for row in batch.to_pylist()]
    assert {row["id"]: row["text"] for row in read} == {"a": "as it was", "b": "as it was"}
    commit_often(busy, lake_module.CLEAN_EVERY + 1)
    assert not kept(busy, version)


ANNOUNCE = textwrap.dedent("""
    import sys
    from memex.store.lake import Lake
    with Lake(sys.argv[1]).reading():
        print("ready", flush=True)
        sys.stdin.readline()
""")


def test_a_reader_that_was_killed_holds_nothing_back(lake):
    command = [sys.executable, "-c", ANNOUNCE, lake.root]
    reader = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    assert reader.stdout and reader.stdout.readline() == b"ready\n"
    readers = Readers(Path(lake.root, ".locks", "readers"))
    [file] = readers.folder.iterdir()
    os.utime(file, (1000, 1000))
    assert readers.oldest(2000) == 1000
    reader.kill()
    reader.wait()
    assert readers.oldest(2000) == 2000
    assert list(readers.folder.iterdir()) == []


def test_a_clock_that_was_put_back_piles_nothing_up(lake):
    busy = Lake(lake.root, fresh_seconds=0, clock=lambda: time.time() - 86_400)
    commit_often(busy, 3 * lake_module.MAX_VERSIONS)
    assert len(busy.dataset("messages").versions()) <= lake_module.MAX_VERSIONS + lake_module.CLEAN_EVERY + 1


def test_a_reader_from_before_the_clock_was_put_back_keeps_what_it_reads(lake):
    busy = Lake(lake.root, fresh_seconds=0)
    readers = Readers(Path(lake.root, ".locks", "readers"))
    busy.upsert("messages", messages(["a"], "as it was"))
    version = busy.dataset("messages").version
    with readers.announced():
        [file] = readers.folder.iterdir()
        os.utime(file, (time.time() + 3600,) * 2)
        commit_often(busy, 2 * lake_module.MAX_VERSIONS)
        assert kept(busy, version)
    (readers.folder / "dead.lock").touch()
    os.utime(readers.folder / "dead.lock", (time.time() + 3600,) * 2)
    assert readers.oldest(1e9) == 1e9
    assert list(readers.folder.iterdir()) == []


def test_every_table_opens_with_lancedb(lake):
    lake.upsert("messages", messages(["a"]))
    database = lancedb.connect(lake.root)
    for table in TABLES:
        assert database.open_table(table).count_rows() == (1 if table == "messages" else 0)


def test_ids_are_primary_keys_with_an_index(lake):
    for table in TABLES:
        field = schema(table).field("id")
        assert not field.nullable
        assert field.metadata == {b"lance-schema:unenforced-primary-key": b"true"}
        assert "id" in {column for index in lake.dataset(table).describe_indices() for column in index.field_names}


def test_vectors_of_another_dimension_replace_the_column(lake):
    tables = [table for table in TABLES if has_vector(table)]
    assert {"observations", "talk_summaries", "session_summaries"} <= set(tables)
    assert lake.dimension("observations") == 0
    for dimension in (384, 512, 512):
        lake.set_dimension("observations", dimension)
        assert lake.dimension("observations") == dimension


def test_a_newer_lake_is_refused_and_left_alone(lake):
    lake.set_version(SCHEMA_VERSION + 1)
    with pytest.raises(SchemaError, match="knows schemas up to"):
        Lake(lake.root).prepare()
    assert stored(lake) == {}


def test_migrations_run_once_in_order_from_an_old_lake(lake):
    ran = []
    steps = {
        SCHEMA_VERSION + 1: lambda _lake: ran.append("first"),
        SCHEMA_VERSION + 2: lambda _lake: ran.append("second"),
    }
    target = SCHEMA_VERSION + 2
    assert migrate(lake, steps, target) == [SCHEMA_VERSION + 1, SCHEMA_VERSION + 2]
    assert migrate(lake, steps, target) == []
    assert ran == ["first", "second"]


def test_a_blank_lake_needs_no_migration(lake):
    assert lake.version() == SCHEMA_VERSION
    assert migrate(lake) == []


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (RuntimeError("lance error: Retryable commit conflict for version 3"), StoreBusy),
        (RuntimeError("Dataset at path x was not found"), StoreBusy),
        (RuntimeError("Ambiguous merge insert"), StoreError),
        (RuntimeError("column must not be nullable"), StoreError),
        (OSError(28, "No space left on device"), DiskFull),
        (RuntimeError("LanceError(IO): No space left on device (os error 28)"), DiskFull),
    ],
)
def test_errors_of_lance_are_translated(raised, expected):
    with pytest.raises(expected), lake_module._translated("messages"):
        raise raised


def test_in_list_quotes(lake):
    lake.upsert("messages", messages(["it's", "b"]))
    assert lake.count("messages", in_list("id", ["it's"])) == 1
    assert lake.count("messages", in_list("id", [])) == 0


def test_reading_goes_on_while_another_process_writes(lake):
    context = multiprocessing.get_context("spawn")
    writer = context.Process(target=_write_rounds, args=(lake.root, 20))
    writer.start()
    seen = 0
    while writer.is_alive():
        count = lake.count("messages")
        assert count >= seen
        seen = count
    writer.join()
    assert writer.exitcode == 0
    assert len(stored(lake)) == 20


def _write_rounds(root: str, rounds: int) -> None:
    lake = Lake(root)
    for number in range(rounds):
        lake.upsert("messages", messages([f"m{number}"]))
