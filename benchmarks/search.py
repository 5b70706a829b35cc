"""Full-text search against SQLite FTS5 and LanceDB, over the same messages in the same run.

    python benchmarks/search.py [--messages 100000] [--queries 40] [--skip lancedb]

The messages have the lengths and words of real ones: turns of coding sessions and, one in five, Chinese passages,
both cut and shuffled anew. Ratios count; the times are those of this machine at this moment.
"""

import argparse
import os
import random
import resource
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from evals.sets import cmrc2018, entire_cli
from memex.cli.output import print_table
from memex.search.part import Doc
from memex.search.query import Filters, Query
from memex.search.text import TextIndex

BENCH = Path(os.environ.get("MEMEX_SHARED", "../shared")) / "bench"
PROJECTS = 20
LIMIT = 10
NEW = 1000


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, as each engine takes it: words, or a phrase, in all projects or one."""

    words: tuple[str, ...]
    phrase: bool = False
    project: str = ""


class Engine(Protocol):
    """One way to search."""

    def build(self, docs: Sequence[Doc], folder: Path) -> None:
        """Index messages."""
        ...

    def ask(self, asked: Asked) -> int:
        """Answer a question; return the number of hits."""
        ...


class Ours:
    """The full-text index of Memex."""

    def build(self, docs: Sequence[Doc], folder: Path) -> None:
        """Index messages."""
        self.index = TextIndex(folder)
        self.add(docs)

    def add(self, docs: Sequence[Doc]) -> None:
        """Index messages of sessions that had none."""
        by_key = {doc.key: doc for doc in docs}
        sessions = sorted({doc.session_id for doc in docs})
        self.index.refresh(
            lambda: {key: doc.digest for key, doc in by_key.items()},
            lambda keys: (doc for doc in docs if doc.key in keys),
            sessions=sessions,
        )

    def ask(self, asked: Asked) -> int:
        """Answer a question."""
        text = " ".join(asked.words)
        query = Query(text, (text,) if asked.phrase else (), (), Filters(project=asked.project))
        return len(self.index.search(query, LIMIT))


class Fts5:
    """SQLite, with one of its tokenizers."""

    def __init__(self, tokenizer: str) -> None:
        self.tokenizer = tokenizer

    def build(self, docs: Sequence[Doc], folder: Path) -> None:
        """Index messages."""
        folder.mkdir(parents=True)
        self.db = sqlite3.connect(folder / "fts.sqlite")
        self.db.execute(
            f"CREATE VIRTUAL TABLE fts USING fts5(content, project UNINDEXED, tokenize = '{self.tokenizer}')"
        )
        self.add(docs)

    def add(self, docs: Sequence[Doc]) -> None:
        """Index more messages."""
        with self.db:
            self.db.executemany("INSERT INTO fts VALUES (?, ?)", ((doc.content, doc.project) for doc in docs))

    def ask(self, asked: Asked) -> int:
        """Answer a question."""
        terms = [" ".join(asked.words)] if asked.phrase else asked.words
        match = " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)
        where, values = ("AND project = ?", [asked.project]) if asked.project else ("", [])
        sql = f"SELECT content, bm25(fts) FROM fts WHERE fts MATCH ? {where} ORDER BY rank LIMIT {LIMIT}"
        return len(self.db.execute(sql, [match, *values]).fetchall())


class LanceFts:
    """LanceDB's own full text."""

    def build(self, docs: Sequence[Doc], folder: Path) -> None:
        """Index messages."""
        import lancedb
        import pyarrow as pa

        table = pa.table({"content": [d.content for d in docs], "project": [d.project for d in docs]})
        self.table = lancedb.connect(folder).create_table("messages", table)
        self.table.create_fts_index("content", use_tantivy=False, with_position=True)

    def ask(self, asked: Asked) -> int:
        """Answer a question."""
        from lancedb.query import MatchQuery, PhraseQuery

        text = " ".join(asked.words)
        found = self.table.search(
            PhraseQuery(text, "content") if asked.phrase else MatchQuery(text, "content"), query_type="fts"
        )
        if asked.project:
            found = found.where(f"project = '{asked.project}'", prefilter=True)
        return found.limit(LIMIT).to_arrow().num_rows


ENGINES: Mapping[str, Callable[[], Any]] = {
    "memex": Ours,
    "fts5 unicode61": lambda: Fts5("unicode61"),
    "fts5 trigram": lambda: Fts5("trigram"),
    "lancedb": LanceFts,
}


def messages(count: int, seed: int = 1) -> Iterator[Doc]:
    """Make messages of real words and lengths, one in five Chinese."""
    dice = random.Random(seed)
    lines = [line for one in entire_cli(BENCH).documents for line in one.text.splitlines() if line.strip()]
    sizes = [max(1, one.text.count("\n") + 1) for one in entire_cli(BENCH).documents]
    passages = [piece for one in cmrc2018(BENCH).documents for piece in one.text.split("。") if piece]
    for number in range(count):
        if number % 5 == 4:
            content = "。".join(dice.choices(passages, k=dice.randint(1, 6)))
        else:
            content = "\n".join(dice.choices(lines, k=min(40, dice.choice(sizes))))
        content += f"\nnote n{number:07d}"
        yield Doc(
            f"m{number}", "1", f"claude:s{number // 50}", 1, "raw", "claude", "user", "prompt",
            f"p{number % PROJECTS}", f"p{number % PROJECTS}", None, content,
        )  # fmt: skip


def questions(docs: Sequence[Doc], count: int, seed: int = 2) -> Mapping[str, list[Asked]]:
    """Draw questions of each class from what is there."""
    dice = random.Random(seed)
    sample = dice.sample(docs, min(len(docs), 5000))
    words = Counter(
        word for doc in sample for word in set(doc.content.lower().split()) if word.isascii() and word.isalpha()
    )
    frequent = [word for word, _times in words.most_common(120) if len(word) > 2]
    rare = [word for word, times in words.items() if times == 1 and len(word) > 3]
    english = [doc.content.split() for doc in sample if doc.content.isascii()]
    chinese = [doc.content.replace("。", "").replace("，", "") for doc in sample if not doc.content[:8].isascii()]

    def phrase() -> Asked:
        text = dice.choice([one for one in english if len(one) > 6])
        at = dice.randrange(len(text) - 2)
        return Asked(tuple(text[at : at + 2]), phrase=True)

    def piece(size: int) -> str:
        text = dice.choice([one for one in chinese if len(one) > 20])
        at = dice.randrange(len(text) - size - 10)
        return text[at : at + size]

    return {
        "common": [Asked(tuple(dice.sample(frequent, 3))) for _ in range(count)],
        "rare": [Asked(tuple(dice.sample(rare, 3))) for _ in range(count)],
        "phrase": [phrase() for _ in range(count)],
        "filtered": [
            Asked(tuple(dice.sample(frequent, 2)), project=f"p{dice.randrange(PROJECTS)}") for _ in range(count)
        ],
        "chinese": [Asked((piece(4),)) for _ in range(count)],
    }


def timed(ask: Callable[[Asked], int], asked: Sequence[Asked]) -> tuple[float, float, float]:
    """Give p50 and p95 in ms, and the share of questions that found something."""
    times, found = [], 0
    for one in asked:
        started = time.perf_counter()
        found += ask(one) > 0
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times), statistics.quantiles(times, n=20)[18], found / len(asked)


def main() -> None:
    """Measure and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--skip", nargs="*", default=[])
    given = parser.parse_args()
    docs = list(messages(given.messages))
    asked = questions(docs, given.queries)
    megabytes = sum(len(doc.content.encode()) for doc in docs) / 1e6
    print(f"{len(docs):,} messages, {megabytes:.0f} MB, {given.queries} questions of each class")
    built, rows = [], []
    with tempfile.TemporaryDirectory() as root:
        for name, make in ENGINES.items():
            if name in given.skip:
                continue
            folder, engine = Path(root) / name.replace(" ", "-"), make()
            started = time.perf_counter()
            engine.build(docs, folder)
            seconds = time.perf_counter() - started
            size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            for kind, of_kind in asked.items():
                middle, high, share = timed(engine.ask, of_kind)
                rows.append((kind, name, f"{middle:.1f}", f"{high:.1f}", f"{high / middle:.1f}", f"{share:.2f}"))
            more = list(messages(given.messages + NEW, seed=3))[-NEW:] if hasattr(engine, "add") else []
            started = time.perf_counter()
            if more:
                engine.add(more)
            added = f"{100 * (time.perf_counter() - started) / seconds:.1f} %" if more else "-"
            built.append((name, f"{seconds:.1f}", f"{size:.0f}", added, f"{peak:.0f}"))
            shutil.rmtree(folder)
    print_table(
        ["engine", "build s", "MB", f"{NEW:,} more, of a build", "peak MB so far"],
        built,
        right=["build s", "MB", f"{NEW:,} more, of a build", "peak MB so far"],
    )
    print_table(
        ["questions", "engine", "p50 ms", "p95 ms", "p95 / p50", "found"],
        sorted(rows, key=lambda row: list(asked).index(row[0])),
        right=["p50 ms", "p95 ms", "p95 / p50", "found"],
    )


if __name__ == "__main__":
    main()
