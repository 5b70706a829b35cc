"""Several processes at once over one home: no error, no lost row, no doubled row."""

import os
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from memex.settings import Settings
from memex.setup import open_memex
from memex.store.schemas import TABLES
from tests.conftest import SAMPLE

INGEST = [sys.executable, "-m", "memex.cli.main", "ingest"]
SEARCH = textwrap.dedent("""
    import sys
    from pathlib import Path
    from memex.search.query import Query
    from memex.setup import open_memex
    memex, searches = open_memex(), 0
    while not Path(sys.argv[1]).exists():
        memex.search.run(Query("test"), "raw", 5)
        searches += 1
    print(searches)
""")


def check(tmp_path: Path, logs: Path) -> None:
    environ = {**os.environ, "CLAUDE_CONFIG_DIR": str(logs)}
    stop = tmp_path / "stop"
    reader = subprocess.Popen([sys.executable, "-c", SEARCH, str(stop)], env=environ, stdout=subprocess.PIPE, text=True)
    writers = [subprocess.Popen(INGEST, env=environ, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [writer.communicate(timeout=300)[1] for writer in writers]
    stop.touch()
    searches, _ = reader.communicate(timeout=60)
    assert [w.returncode for w in writers] == [0, 0], errors
    assert reader.returncode == 0
    assert int(searches) > 0
    together = open_memex()
    alone = open_memex(Settings.model_validate({"home": tmp_path / "alone", "sources": {"claude_config_dir": logs}}))
    alone.ingest.run(alone.ingest.plan())
    for table in TABLES:
        ids = Counter(together.lake.scan(table, ["id"])["id"].to_pylist())
        assert set(ids.values()) <= {1}, table
        assert set(ids) == set(alone.lake.scan(table, ["id"])["id"].to_pylist()), table
    assert together.stale_indexes() == ["summaries"] or together.stale_indexes() == []


def test_two_ingests_and_a_search(tmp_path):
    check(tmp_path, SAMPLE)


@pytest.mark.corpus
def test_two_ingests_and_a_search_over_real_logs(tmp_path, corpus):
    check(tmp_path, corpus / ".claude")
