"""What calls of models cost, and what they answered: one SQLite file that all processes share.

Before a request its worst case is reserved, after it the real price is settled, so that caps hold over all
processes. A reservation whose process died counts in full: it may have been paid. Answers stand here, safely on
disk, until the rows made of them are in the lake, so that a crash never pays twice.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from memex.errors import HomeError, Stopped, is_disk_full, translated_os_errors

DAY = 86_400.0
KEEP_CALLS = 40 * DAY
KEEP_ANSWERS = 30 * DAY
WAIT_SECONDS = 0.05
"""Between two looks whether calls that are under way left some of the budget."""

_TABLES = """
CREATE TABLE IF NOT EXISTS calls (
    id TEXT PRIMARY KEY, run_id TEXT NOT NULL, level TEXT NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL,
    tokens_input INTEGER NOT NULL, tokens_output INTEGER NOT NULL, tokens_cached INTEGER NOT NULL DEFAULT 0,
    cost_usd REAL NOT NULL, latency_ms REAL NOT NULL DEFAULT 0, called_at REAL NOT NULL,
    open_until REAL, told INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS calls_by_time ON calls (called_at);
CREATE TABLE IF NOT EXISTS closed (
    run_id TEXT NOT NULL, provider TEXT NOT NULL, reason TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (run_id, provider)
);
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL, made_at REAL NOT NULL);
"""
_SPENT = """
SELECT coalesce(sum(tokens_input + tokens_output), 0), coalesce(sum(cost_usd), 0.0),
       coalesce(sum((tokens_input + tokens_output) * (open_until > :now)), 0),
       coalesce(sum(cost_usd * (open_until > :now)), 0.0)
FROM calls WHERE called_at >= :since AND (:run = '' OR run_id = :run)
"""


@dataclass(frozen=True, slots=True)
class Caps:
    """What may be spent: in one run and in one day (UTC), in tokens and in US dollars; None is no cap."""

    run_tokens: int | None = None
    run_usd: float | None = None
    day_tokens: int | None = None
    day_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens and US dollars, and how much of them is reserved by calls that are under way."""

    tokens: int
    usd: float
    open_tokens: int
    open_usd: float


@dataclass(frozen=True, slots=True)
class Call:
    """One request: whose it is, and what it takes at most."""

    level: str
    provider: str
    model: str
    tokens_input: int
    tokens_output: int
    cost_usd: float


class Book:
    """The file, as one run sees it.

    >>> book = Book(Path("/tmp/calls.db"), Caps(day_usd=1.0))          # doctest: +SKIP
    >>> call = book.reserve(Call("talks", "openai", "gpt", 900, 400, 0.001), 60)   # doctest: +SKIP
    >>> book.settle(call, 850, 120, 0, 0.0004, 900.0)                  # doctest: +SKIP
    """

    def __init__(self, path: Path, caps: Caps, run_id: str = "", clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._caps = caps
        self._clock = clock
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None
        self.run_id = run_id or uuid4().hex

    def reserve(self, call: Call, seconds: float) -> str:
        """Set the worst case of a request aside, for so many seconds; give its name.

        Waits while calls under way hold what it needs, for they may settle for less.

        Raises:
            Stopped: a cap does not let it through.
        """
        while True:
            with self._transaction() as db:
                now = self._clock()
                waits = [self._check(db, call, now, run) for run in (self.run_id, "")]
                if not any(waits):
                    name = uuid4().hex
                    db.execute(
                        "INSERT INTO calls (id, run_id, level, provider, model, tokens_input, tokens_output, cost_usd,"
                        " called_at, open_until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        (
                            name, self.run_id, call.level, call.provider, call.model, call.tokens_input,
                            call.tokens_output, call.cost_usd, now, now + seconds,
                        ),
                    )  # fmt: skip
                    return name
            time.sleep(WAIT_SECONDS)

    def settle(
        self,
        name: str,
        tokens_input: int,
        tokens_output: int,
        tokens_cached: int,
        cost_usd: float,
        latency_ms: float,
    ) -> None:
        """Put the real price in the place of the reserved one."""
        with self._transaction() as db:
            db.execute(
                "UPDATE calls SET tokens_input = ?, tokens_output = ?, tokens_cached = ?, cost_usd = ?,"
                " latency_ms = ?, open_until = NULL WHERE id = ?",
                (tokens_input, tokens_output, tokens_cached, cost_usd, latency_ms, name),
            )

    def release(self, name: str) -> None:
        """Drop the reservation of a request that was not answered, and so costs nothing."""
        with self._transaction() as db:
            db.execute("DELETE FROM calls WHERE id = ?", (name,))

    def spent(self, today: bool = True) -> Spent:
        """Sum up this day, or this run."""
        now = self._clock()
        with self._transaction() as db:
            return _sum(db, now, "" if today else self.run_id)

    def close(self, provider: str, reason: str) -> bool:
        """Ask nothing more of a provider in this run; tell whether that is news."""
        with self._transaction() as db:
            row = (self.run_id, provider, reason, self._clock())
            return db.execute("INSERT OR IGNORE INTO closed VALUES (?, ?, ?, ?)", row).rowcount > 0

    def closed(self) -> dict[str, str]:
        """List the providers of which nothing more is asked in this run, with the reasons."""
        with self._transaction() as db:
            return dict(db.execute("SELECT provider, reason FROM closed WHERE run_id = ?", (self.run_id,)).fetchall())

    def answer(self, key: str) -> str | None:
        """Look up an answer that no row in the lake was made of yet."""
        with self._transaction() as db:
            row = db.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def keep(self, key: str, answer: str) -> None:
        """Write an answer down; it is on disk when this returns."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", (key, answer, self._clock()))

    def drop(self, keys: Iterable[str]) -> None:
        """Forget answers: the rows made of them are in the lake."""
        with self._transaction() as db:
            db.executemany("DELETE FROM answers WHERE key = ?", [(key,) for key in keys])

    def untold(self) -> list[dict[str, Any]]:
        """List settled calls that the lake's ledger does not have yet, as its rows."""
        columns = (
            "id", "run_id", "level", "provider", "model", "tokens_input", "tokens_output", "tokens_cached",
            "cost_usd", "latency_ms", "called_at",
        )  # fmt: skip
        wanted = "NOT told AND (open_until IS NULL OR open_until < ?)"
        with self._transaction() as db:
            rows = db.execute(f"SELECT {', '.join(columns)} FROM calls WHERE {wanted}", (self._clock(),)).fetchall()
        told = [dict(zip(columns, row, strict=True)) for row in rows]
        return [{**row, "called_at": datetime.fromtimestamp(row["called_at"], UTC)} for row in told]

    def tell(self, names: Sequence[str]) -> None:
        """Note that the ledger has these calls."""
        with self._transaction() as db:
            db.executemany("UPDATE calls SET told = 1 WHERE id = ?", [(name,) for name in names])

    def _check(self, db: sqlite3.Connection, call: Call, now: float, run: str) -> bool:
        """Tell whether to wait; raise when even the calls under way cannot help."""
        spent = _sum(db, now, run)
        caps = self._caps
        tokens, usd = (caps.run_tokens, caps.run_usd) if run else (caps.day_tokens, caps.day_usd)
        period = "run" if run else "day"
        asked = call.tokens_input + call.tokens_output
        wait = False
        for cap, used, held, more, unit in (
            (tokens, spent.tokens, spent.open_tokens, asked, "tokens"),
            (usd, spent.usd, spent.open_usd, call.cost_usd, "US dollars"),
        ):
            if cap is None or used + more <= cap or more == 0:
                continue
            if used - held + more > cap:
                raise Stopped(
                    f"the cap of {cap:,} {unit} a {period} is reached: {used - held:,.{0 if unit == 'tokens' else 4}f}"
                    " are spent",
                    f"what is left stays pending; raise {period}_{'tokens' if unit == 'tokens' else 'usd'}"
                    " under [compact.budget], or run it again later",
                )
            wait = True
        return wait

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _translated(self._path):
            db = self._db = self._db or _opened(self._path, self._clock())
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")


def forget_answers(path: Path) -> None:
    """Drop all answers that wait for the lake, and leave nothing of them on disk."""
    if not path.exists():
        return
    with _translated(path):
        db = _opened(path, time.time())
        db.execute("DELETE FROM answers")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()


def _sum(db: sqlite3.Connection, now: float, run: str) -> Spent:
    since = 0.0 if run else now - now % DAY
    row = db.execute(_SPENT, {"now": now, "since": since, "run": run}).fetchone()
    return Spent(int(row[0]), float(row[1]), int(row[2]), float(row[3]))


def _opened(path: Path, now: float) -> sqlite3.Connection:
    with translated_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    db = sqlite3.connect(path, timeout=120, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA secure_delete = ON")
    db.executescript(_TABLES)
    db.execute("DELETE FROM answers WHERE made_at < ?", (now - KEEP_ANSWERS,))
    db.execute("DELETE FROM closed WHERE at < ?", (now - DAY,))
    db.execute("DELETE FROM calls WHERE told AND called_at < ?", (now - KEEP_CALLS,))
    return db


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        if is_disk_full(error) or "disk is full" in str(error):
            from memex.errors import DISK_FULL_HINT, DiskFull

            raise DiskFull(f"no space left while writing {path}", DISK_FULL_HINT) from error
        raise HomeError(f"cannot use {path}: {error}", "is it on a local disk that you can write?") from error
