"""Forgetting beside others: searches see no error, and nobody writes back what was read before."""

import os
import subprocess
import sys
import textwrap

import pytest

from memex.compact.run import Compact
from memex.embed.usem3 import Usem3
from memex.errors import StoreBusy
from memex.forget.target import Target
from memex.llm.extractive import ExtractiveWriter
from memex.search.query import Query
from memex.search.vectors import fill_vectors
from memex.settings import CompactSettings
from memex.sources.ingest import ingest_lock
from tests.conftest import SAMPLE
from tests.forget.home import WORD, holding, log_at, refresh
from tests.logs import talk

SEARCH = textwrap.dedent("""
    import sys
    from pathlib import Path
    from memex.search.query import Filters, Query
    from memex.setup import open_memex
    memex, searches = open_memex(), 0
    while not Path(sys.argv[1]).exists():
        found = memex.search.run(Query("test", filters=Filters(project="shelf")), "all", 5)
        memex.search.run(Query("export"), "raw", 5)
        searches += 1
        if searches == 1:
            Path(sys.argv[2]).touch()
    print(searches, len(found.notes))
""")
FORGET = [sys.executable, "-m", "memex.cli.main", "forget", "--yes"]


class ForgetfulWriter(ExtractiveWriter):
    """Has what it is about to summarise forgotten meanwhile."""

    def __init__(self, verb, target):
        self.verb, self.target = verb, target

    def talk(self, given):
        answer = super().talk(given)
        self.verb.run(self.target)
        return answer


class ForgetfulEmbedder(Usem3):
    """Has what it is about to embed forgotten meanwhile."""

    def __init__(self, verb, target):
        super().__init__()
        self.verb, self.target = verb, target

    def passages(self, texts):
        vectors = super().passages(texts)
        self.verb.run(self.target)
        return vectors


@pytest.fixture(params=[Target(session="1111"), Target(matching=WORD)], ids=["session", "text"])
def target(request, claude_dir):
    talk(log_at(claude_dir, "target", "-src-app", "/src/app"), f"tell of {WORD}").write()
    return request.param


def test_summary_of_what_is_forgotten_meanwhile_is_not_written(memex, target):
    memex.ingest.run(memex.ingest.plan())
    verb = Compact(memex.lake, ForgetfulWriter(memex.forget, target), CompactSettings(), ("talks",))
    [batch] = verb.plan().batches
    with pytest.raises(StoreBusy, match="forgotten meanwhile"):
        verb.run(batch)
    refresh(memex)
    assert holding(memex.home, WORD) == []
    assert memex.lake.count("talk_summaries") == (1 if target.matching else 0)


def test_vectors_of_what_is_forgotten_meanwhile_are_not_written(memex, target):
    refresh(memex)
    with pytest.raises(StoreBusy, match="forgotten meanwhile"):
        fill_vectors(memex.lake, ForgetfulEmbedder(memex.forget, target))
    assert holding(memex.home, WORD) == []
    assert memex.lake.count("session_summaries") == memex.lake.count("talk_summaries") == 0


def test_searches_go_on(filled, tmp_path):
    embedder = Usem3()
    fill_vectors(filled.lake, embedder)
    stop, begun = tmp_path / "stop", tmp_path / "begun"
    environ = {**os.environ, "MEMEX_EMBED_PROVIDER": "local:usem3"}
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", SEARCH, str(stop), str(begun)],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _reader in range(2)
    ]
    while not begun.exists():
        assert all(reader.poll() is None for reader in readers), readers[0].communicate()
    for target in (["--matching", "EMFILE"], ["1e6d90ab"], ["--matching", "trigram"], ["8f2b7a10"]):
        subprocess.run([*FORGET, *target], check=True, capture_output=True, timeout=300)
    stop.touch()
    answers = [reader.communicate(timeout=120) for reader in readers]
    assert [reader.returncode for reader in readers] == [0, 0], answers
    assert filled.search.run(Query("认证"), "raw", 5).hits == ()
    assert holding(filled.home, "EMFILE", "trigram") == []


def test_ingest_and_forget_take_turns(memex, target):
    environ = {**os.environ, "CLAUDE_CONFIG_DIR": str(SAMPLE)}
    refresh(memex)
    with ingest_lock(memex.home):
        waiting = subprocess.Popen([*FORGET, target.session or "--matching", target.matching or "--yes"])
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(5)
    ingest = subprocess.Popen([sys.executable, "-m", "memex.cli.main", "ingest"], env=environ)
    assert (waiting.wait(120), ingest.wait(120)) == (0, 0)
    assert holding(memex.home, WORD) == []
    assert memex.lake.count("sessions", "id LIKE 'claude:5d0c1f52%'") == 1
