"""What summaries of real sessions take: tokens sent by Memex, against two ways without its care.

    python benchmarks/tokens.py [HOME] [--sessions N]

HOME holds `.claude` (default: the shared corpus). The answers come from the test service, so that only what is
sent is measured: (a) each tool call in a request of its own, uncut, and each talk whole; (b) the raw session whole.
"""

import argparse
import os
import tempfile
from pathlib import Path

from memex.cli.output import print_table
from memex.llm.asking import fixed_tokens
from memex.llm.tokens import count_tokens
from memex.setup import Memex
from memex.store.lake import in_list
from tests.llm.models import LEVELS, settings_for
from tests.llm.server import Service, serving

SHARED = Path(os.environ.get("MEMEX_SHARED", "../shared")) / "corpus" / "home"


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", nargs="?", type=Path, default=SHARED)
    parser.add_argument("--sessions", type=int, default=30)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, serving() as service:
        home = Path(folder, "memex")
        settings = settings_for(home, service.endpoint, own={"workers": 2, "timeout_seconds": 60})
        sources = settings.sources.model_copy(update={"claude_config_dir": given.home / ".claude"})
        memex = Memex(settings.model_copy(update={"sources": sources}))
        memex.ingest.run(memex.ingest.plan())
        batch = [name for batch in memex.compact_at(LEVELS).plan().batches for name in batch][: given.sessions]
        report = memex.compact_at(LEVELS).run(batch)
        print(f"{len(batch)} sessions: {dict(report.made)}, {report.failed} failed, {len(service.requests)} requests")
        _print(memex, service, batch)


def _print(memex: Memex, service: Service, batch: list[str]) -> None:
    where = in_list("session_id", batch)
    calls = memex.lake.scan("tool_calls", ["input", "output"], where).to_pylist()
    said = memex.lake.scan("messages", ["text"], f"{where} AND kind IN ('prompt', 'reply')").to_pylist()
    sent = prefix = 0
    for request in service.requests:
        first, *rest = (count_tokens(message["content"]) for message in request["body"]["messages"])
        prefix += first
        sent += first + sum(rest)
    words = sum(count_tokens(row["text"]) for row in said)
    outputs = sum(count_tokens(row["input"]) + count_tokens(row["output"]) for row in calls)
    raw = words + outputs
    each = outputs + len(calls) * fixed_tokens("observations", "en") + raw
    rows = [
        ("Memex, all levels", sent, len(service.requests), f"{prefix / sent:.0%}"),
        ("(a) each call alone, each talk whole", each, len(calls), "-"),
        ("(b) the raw session", raw, len(batch), "-"),
    ]
    columns = ["way", "tokens sent", "a session", "requests", "repeated prefix"]
    print_table(columns, [(way, n, n // len(batch), count, part) for way, n, count, part in rows], right=columns[1:])


if __name__ == "__main__":
    main()
