"""`memex watch`, measured from outside: how soon a line is found, what waiting costs, whether a burst is kept up with.

    python benchmarks/live.py [--appends 40] [--files 10000] [--idle 60] [--burst 20] [--lines 10000] [--rate 20]

A watcher is started over `--files` logs of a few lines each, all of them read, in a home and folders of its own.
Another one has `--lines` lines appended under it, `--rate` a second, or each when the one before is found (0); then
its lake is read beside a copy of it that was optimized. A number of 0 leaves a part out.
Times are those of this machine at this moment; the shares and ratios count.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memex.cli.output import print_table
from memex.search.query import Filters, Query
from memex.search.refresh import refresh_raw
from memex.settings import Settings
from memex.setup import Memex, open_memex
from memex.store.lake import in_list
from memex.store.schemas import TABLES

TICKS = os.sysconf("SC_CLK_TCK")
MEMEX = [sys.executable, "-m", "memex.cli.main"]


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--appends", type=int, default=40)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--idle", type=float, default=60)
    parser.add_argument("--burst", type=float, default=20)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=20)
    given = parser.parse_args()
    if given.files:
        watched(given)
    if given.lines:
        growth(given.lines, given.rate)


def watched(given: argparse.Namespace) -> None:
    """Measure one watcher over many files."""
    with tempfile.TemporaryDirectory(prefix="memex-live-") as name:
        folder = Path(name)
        memex = filled(folder, given.files)
        with Watcher(folder) as watcher:
            latency(memex, watcher, folder, given.appends)
            idle(watcher, given.idle)
            burst(memex, watcher, folder, given.burst)


def growth(lines: int, rate: float, sessions: int = 10) -> None:
    """Let logs grow line by line under a watcher; count the files of the lake, and read it beside an optimized copy."""
    with tempfile.TemporaryDirectory(prefix="memex-live-") as name:
        folder = Path(name)
        memex = opened(folder, folder / "memex")
        logs = [Log(folder, f"-grows{number}", datetime.now(UTC)) for number in range(sessions)]
        with Watcher(folder) as watcher:
            started = time.monotonic()
            before = {table: memex.lake.dataset(table).version for table in TABLES}
            for number in range(lines):
                logs[number % sessions].append(f"growing line {number} about word{number}")
                until = started + number / rate if rate else 0
                while time.monotonic() < until or (not rate and memex.raw_index.count() <= number):
                    time.sleep(0.005)
            while memex.raw_index.count() < lines:
                time.sleep(0.1)
            print(
                f"{lines} lines appended and found in {time.monotonic() - started:.0f} s; load {os.getloadavg()[0]:.1f}"
            )
            watcher.quiet()
        print_table(
            ["table", "rows", "commits", "data files", "files", "versions", "MB"],
            [
                (
                    table,
                    memex.lake.count(table),
                    dataset.version - before[table],
                    len(dataset.get_fragments()),
                    *size_of(Path(dataset.uri)),
                )
                for table in TABLES
                if (dataset := memex.lake.dataset(table)).version > before[table]
            ],
            right=["rows", "commits", "data files", "files", "versions", "MB"],
        )
        compare_reads(memex, optimized(memex, folder), f"claude:{logs[0].session}", lines)


def size_of(table: Path) -> tuple[int, int, str]:
    """Count the files and versions of a table, and its megabytes."""
    sizes = [path.stat().st_size for path in table.rglob("*") if path.is_file()]
    return len(sizes), len(list((table / "_versions").iterdir())), f"{sum(sizes) / 1e6:.1f}"


def optimized(memex: Memex, folder: Path) -> Memex:
    """Copy a home, optimize every table, and build the full text anew."""
    shutil.copytree(memex.home, folder / "optimized")
    other = opened(folder, folder / "optimized")
    for table in TABLES:
        other.lake.optimize(table)
    refresh_raw(other.lake, other.raw_index, whole=True)
    return other


def compare_reads(grown: Memex, fresh: Memex, session: str, lines: int, rounds: int = 25) -> None:
    """Time the same reads in both, by turns, and print the medians."""
    key = grown.lake.scan("messages", ["id"], in_list("session_id", [session]))["id"][0].as_py()
    reads: dict[str, Callable[[Memex], object]] = {
        "a message by id": lambda m: m.lake.scan("messages", None, in_list("id", [key])),
        "a session's messages": lambda m: m.lake.scan("messages", None, in_list("session_id", [session])),
        "all messages": lambda m: m.lake.scan("messages"),
        "all talks": lambda m: m.lake.scan("talks"),
        "all sessions": lambda m: m.lake.scan("sessions"),
        "all sources": lambda m: m.lake.scan("sources"),
        "rare word": lambda m: m.raw_index.search(Query(f"word{lines // 2}"), 20),
        "common word": lambda m: m.raw_index.search(Query("growing line"), 20),
    }
    rows = []
    for name, read in reads.items():
        times: dict[str, list[float]] = {"grown": [], "fresh": []}
        for number in range(rounds):
            pair = [("grown", grown), ("fresh", fresh)]
            for which, memex in pair if number % 2 else reversed(pair):
                times[which].append(timed(lambda memex=memex: read(memex)))  # noqa: B023 - called at once
        a, b = at(times["grown"], 0.5), at(times["fresh"], 0.5)
        rows.append((name, f"{1000 * a:.1f}", f"{1000 * b:.1f}", f"{a / b:.2f}"))
    columns = ["read, ms", "after live appends", "optimized", "ratio"]
    print_table(columns, rows, right=columns[1:])


def opened(folder: Path, home: Path) -> Memex:
    """Open a home over the logs of the benchmark."""
    return open_memex(Settings.model_validate({"home": home, "sources": sources(folder)}))


def filled(folder: Path, files: int) -> Memex:
    """Write many small logs, read, summarise and index them."""
    old = datetime.now(UTC) - timedelta(days=1)
    for number in range(files):
        log = Log(folder, f"-src-app{number % 200}", old)
        log.append(f"the question of log {number}", f"the answer of log {number}")
        os.utime(log.path, (old.timestamp(), old.timestamp()))
    memex = opened(folder, folder / "memex")
    started = time.monotonic()
    subprocess.run([*MEMEX, "ingest"], env=environment(folder), check=True, capture_output=True)
    for batch in memex.compact.plan().batches:
        memex.compact.run(batch)
    print(f"{files} logs read and summarised in {time.monotonic() - started:.0f} s; load {os.getloadavg()[0]:.1f}")
    return memex


def latency(memex: Memex, watcher: "Watcher", folder: Path, appends: int) -> None:
    """Append single lines, and time until each is found: by the index, and by the whole command."""
    log = Log(folder, "-live", datetime.now(UTC))
    log.append("a first line", "and its answer")
    watcher.quiet()
    rows: dict[str, list[float]] = {"in the index": [], "by `memex search`": []}
    for number in range(appends):
        for name in rows:
            word = f"needle{uuid.uuid4().hex[:10]}"
            started = time.monotonic()
            log.append(f"line {number} about {word}")
            while not (found(memex, word) if name == "in the index" else found_by_command(folder, word)):
                time.sleep(0.01)
            rows[name].append(time.monotonic() - started)
            time.sleep(1.0)
    search = [timed(lambda: found_by_command(folder, "answer")) for _ in range(10)]
    rows["for comparison: `memex search` alone"] = search
    print_table(
        ["a line is found, s", "p50", "p95", "max"],
        [(name, *(f"{at(times, share):.2f}" for share in (0.5, 0.95, 1))) for name, times in rows.items()],
        right=["p50", "p95", "max"],
    )


def idle(watcher: "Watcher", seconds: float) -> None:
    """Let the watcher wait, and count the processor's time that it takes."""
    watcher.quiet()
    time.sleep(10)  # what was pending after the last lines
    before, started = watcher.cpu(), time.monotonic()
    time.sleep(seconds)
    share = (watcher.cpu() - before) / (time.monotonic() - started)
    print(f"idle: {100 * share:.2f} % of one processor over {seconds:.0f} s, {watcher.memory() / 1e6:.0f} MB resident")


def burst(memex: Memex, watcher: "Watcher", folder: Path, seconds: float, sessions: int = 10, rate: int = 100) -> None:
    """Write to several sessions at once, and see how far the watcher is behind at the end."""
    logs = [Log(folder, f"-burst{n}", datetime.now(UTC)) for n in range(sessions)]
    memory, cpu, started, lines = watcher.memory(), watcher.cpu(), time.monotonic(), 0
    while (now := time.monotonic() - started) < seconds:
        while lines < now * rate:
            for number, log in enumerate(logs):
                log.append(f"burst line {lines} of session {number}")
            lines += 1
        time.sleep(0.005)
    last = [f"burst line {lines - 1} of session {number}" for number in range(sessions)]
    written = time.monotonic()
    for number, words in enumerate(last):
        while not any(words in hit for hit in contents(memex, words, logs[number].session)):
            time.sleep(0.05)
    behind = time.monotonic() - written
    share = (watcher.cpu() - cpu) / (time.monotonic() - started)
    watcher.quiet()
    stored = memex.lake.count("messages", "text LIKE 'burst line %'")
    print(
        f"burst: {sessions} sessions x {lines / seconds:.0f} lines/s for {seconds:.0f} s: the last lines are found "
        f"{behind:.2f} s later, {stored} of {lines * sessions} lines stored, {100 * share:.0f} % of one processor, "
        f"{memory / 1e6:.0f} -> {watcher.memory() / 1e6:.0f} MB resident"
    )


class Log:
    """A log of Claude Code that grows by single lines: prompts and replies in turn."""

    def __init__(self, folder: Path, project: str, now: datetime) -> None:
        self.session = str(uuid.uuid4())
        self.path = folder / "claude" / "projects" / project / f"{self.session}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._now, self._lines = now, 0

    def append(self, *texts: str) -> None:
        """Write one line a text, at once."""
        with self.path.open("ab") as file:
            for text in texts:
                file.write(json.dumps(self._record(text)).encode() + b"\n")

    def _record(self, text: str) -> dict[str, object]:
        kind = "user" if self._lines % 20 == 0 else "assistant"
        self._lines += 1
        self._now += timedelta(milliseconds=10)
        message = {"role": kind, "content": text if kind == "user" else [{"type": "text", "text": text}]}
        about = {"id": f"msg_{self._lines}", "model": "claude-test"} if kind == "assistant" else {}
        return {
            "type": kind, "uuid": f"{self.session}-{self._lines}", "sessionId": self.session, "cwd": "/src/app",
            "timestamp": self._now.isoformat(), "message": message | about,
        }  # fmt: skip


class Watcher:
    """A `memex watch` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen([*MEMEX, "watch"], env=environment(folder), stderr=subprocess.PIPE, text=True)
        self._told = time.monotonic()
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> "Watcher":
        self.quiet()
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.terminate()
        self._process.wait(60)

    def _listen(self) -> None:
        assert self._process.stderr
        for _line in self._process.stderr:
            self._told = time.monotonic()

    def quiet(self) -> None:
        """Wait until nothing was told for a while."""
        self._told = time.monotonic()
        while time.monotonic() < self._told + 6:
            time.sleep(0.2)

    def cpu(self) -> float:
        """Processor time so far, in seconds."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self) -> float:
        """Resident memory, in bytes."""
        return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def sources(folder: Path) -> dict[str, object]:
    """Read the logs of the benchmark, and no others."""
    return {"claude_config_dir": folder / "claude", "codex": False, "gemini": False}


def environment(folder: Path) -> dict[str, str]:
    """The same for a process."""
    return {
        **os.environ, "MEMEX_HOME": str(folder / "memex"), "CLAUDE_CONFIG_DIR": str(folder / "claude"),
        "MEMEX_SOURCES_CODEX": "false", "MEMEX_SOURCES_GEMINI": "false", "MEMEX_EMBED_PROVIDER": "none",
    }  # fmt: skip


def found(memex: Memex, word: str) -> bool:
    """Ask the index. A word that is cut into tokens finds others like it, too."""
    return any(word in row["content"] for row in memex.raw_index.search(Query(word), 50))


def contents(memex: Memex, words: str, session: str) -> list[str]:
    """Search one session."""
    return [row["content"] for row in memex.raw_index.search(Query(words, filters=Filters(session=session)), 50)]


def found_by_command(folder: Path, word: str) -> bool:
    """Ask as a person does."""
    done = subprocess.run([*MEMEX, "search", word, "--json"], env=environment(folder), check=True, capture_output=True)
    return any(word in hit["content"] for hit in json.loads(done.stdout)["hits"])


def timed(what) -> float:
    """Time one call, in seconds."""
    started = time.monotonic()
    what()
    return time.monotonic() - started


def at(times: list[float], share: float) -> float:
    """Give the time that a share of all does not exceed."""
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


if __name__ == "__main__":
    main()
