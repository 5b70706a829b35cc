"""What is forgotten leaves the graph of memories, and what may stay of it is made again."""

from memex.forget.target import Target
from memex.maintain.run import run_all
from memex.setup import Memex
from tests.conftest import ingest, rows
from tests.logs import ClaudeLog, talk


def fill(memex: Memex) -> None:
    ingest(memex)
    for batch in memex.compact.plan().batches:
        memex.compact.run(batch)
    run_all(memex.maintain, force=True)


def other_log(log: ClaudeLog) -> ClaudeLog:
    return ClaudeLog(log.path.with_name("22222222-0000-4000-8000-000000000002.jsonl"), log._now)


def test_a_session_leaves_the_graph_and_lets_go_what_it_held(memex: Memex, log: ClaudeLog):
    rule = "From now on always run the linter before a commit."
    talk(log, rule).write()
    other = other_log(log)
    talk(other, f"{rule} And rename the parrot module.").write()
    for n in range(12):
        talk(log, f"Change number {n} of the uploader.")
    log.write()
    other.write()
    fill(memex)
    assert [row["archived_reason"] for row in rows(memex, "memories", "kind = 'rule' AND archived")] == ["merged"]
    assert rows(memex, "memories", "level > 0")
    memex.forget.run(Target(f"claude:{log.session}"))
    gone = f"claude:{log.session}"
    for table in ("memories", "digests", "journal", "extractions"):
        for row in rows(memex, table):
            assert gone not in str(row)
            assert "uploader" not in str(row)
    assert not rows(memex, "memories", "level > 0")
    fill(memex)
    [kept] = rows(memex, "memories", "kind = 'rule' AND NOT archived")
    assert kept["session_id"] == f"claude:{other.session}"


def test_a_secret_leaves_every_memory(memex: Memex, log: ClaudeLog):
    for n in range(12):
        talk(log, f"Always use the key swordfish{n % 2} for the uploader of part {n}.")
    log.write()
    fill(memex)
    assert any("swordfish" in str(row) for row in rows(memex, "memories"))
    memex.forget.run(Target(matching="swordfish[0-9]"))
    fill(memex)
    for table in ("memories", "digests", "journal", "edges"):
        assert not any("swordfish" in str(row) for row in rows(memex, table))


def test_what_a_person_said_is_forgotten_too(memex: Memex, log: ClaudeLog):
    talk(log, "Change the uploader.").write()
    fill(memex)
    memex.maintain.remember("The key is swordfish9.", "fact", rows(memex, "sessions")[0]["project_id"])
    memex.forget.run(Target(matching="swordfish[0-9]"))
    fill(memex)
    assert "swordfish" not in str(rows(memex, "memories"))
    assert "swordfish" not in (memex.home / "archive" / "acts.jsonl").read_text()
