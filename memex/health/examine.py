"""The verb: compare the parts of a home with each other, and mend what can be made again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from memex.errors import MemexError
from memex.search.documents import raw_digests, summary_digests
from memex.search.refresh import refresh_raw, refresh_summaries
from memex.search.text import TextIndex
from memex.sources.archive import Archive
from memex.sources.ingest import Ingest
from memex.store.lake import Lake
from memex.store.schemas import SCHEMA_VERSION, SUMMARY_TABLES, TABLES

State = Literal["well", "ill", "mended"]
_COUNTED = ("talks", "messages", "tool_calls")
_OF_SESSIONS = ("talks", "messages", "tool_calls", *SUMMARY_TABLES.values())


@dataclass(frozen=True, slots=True)
class Finding:
    """What one look found: `what` was looked at, how it is, and, if it is ill, what is wrong and what helps."""

    what: str
    state: State
    wrong: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Examine:
    """The verb with its parts."""

    archive: Archive
    lake: Lake
    ingest: Ingest
    raw: TextIndex
    summaries: TextIndex

    def run(self, mend: bool = False) -> Iterator[Finding]:
        """Look at each part; with `mend`, make anew what is wrong and can be made from what is right."""
        for what, look, remedy, cure in self._looks():
            try:
                wrong = look()
            except MemexError as error:
                wrong = str(error)
            if not wrong:
                yield Finding(what, "well")
            elif mend and cure:
                cure()
                again = look()
                yield Finding(what, "ill" if again else "mended", again or wrong, remedy if again else "")
            else:
                yield Finding(what, "ill", wrong, remedy)

    def _looks(self) -> Iterator[tuple[str, Callable[[], str], str, Callable[[], object] | None]]:
        """List what is looked at: its name, what tells what is wrong, the remedy in words, and the remedy."""
        yield "tables", self._tables, "update Memex, or restore a backup", None
        yield "archive and lake", self._sources, "memex ingest, or memex rebuild", self.ingest.rebuild
        yield "rows of sessions", self._orphans, "memex rebuild", self.ingest.rebuild
        yield "what sessions hold", self._counts, "memex rebuild", self.ingest.rebuild
        yield "ids", self._doubles, "memex rebuild; for summaries restore a backup", self.ingest.rebuild
        yield "raw text index", self._raw, "memex index", lambda: refresh_raw(self.lake, self.raw, whole=True)
        yield (
            "summary text index",
            self._summaries,
            "memex index",
            lambda: refresh_summaries(self.lake, self.summaries, whole=True),
        )

    def _tables(self) -> str:
        """Open every table."""
        if (version := self.lake.version()) != SCHEMA_VERSION:
            return f"the lake has schema {version}, this Memex {SCHEMA_VERSION}"
        for table in TABLES:
            self.lake.count(table)
        return ""

    def _sources(self) -> str:
        """Compare what is kept with what was read of it."""
        read = {row["id"]: row for row in self.lake.scan("sources", ["id", "generation", "size"]).to_pylist()}
        kept = {source.id: source for source in self.archive.sources()}
        unread = sum(1 for key in kept if key not in read)
        unkept = sum(1 for key in read if key not in kept)
        behind = sum(
            1
            for key, source in kept.items()
            if key in read and (source.generation, source.size) != (read[key]["generation"], read[key]["size"])
        )
        told = {"kept and not read": unread, "read and not kept": unkept, "kept beyond what was read": behind}
        return _joined({name: count for name, count in told.items() if count}, "sources")

    def _orphans(self) -> str:
        """Find rows of sessions that there are not."""
        known = set(self.lake.scan("sessions", ["id"])["id"].to_pylist())
        lost = {
            table: len(set(self.lake.scan(table, ["session_id"])["session_id"].unique().to_pylist()) - known)
            for table in _OF_SESSIONS
        }
        return _joined({f"in {table}": count for table, count in lost.items() if count}, "unknown sessions")

    def _counts(self) -> str:
        """Compare the rows of each session with what it says to have."""
        import polars as pl

        told = self.lake.frame("sessions", ["id", *_COUNTED])
        wrong = {}
        for table in _COUNTED:
            where = None if table == "tool_calls" else "NOT superseded"
            found = self.lake.frame(table, ["session_id"], where).group_by(id="session_id").len()
            both = told.select("id", table).join(found, on="id", how="left").with_columns(pl.col("len").fill_null(0))
            wrong[table] = both.filter(pl.col(table) != pl.col("len")).height
        return _joined({f"with other {table} than they say": n for table, n in wrong.items() if n}, "sessions")

    def _doubles(self) -> str:
        """Find ids that are there twice."""
        ids = {table: self.lake.scan(table, ["id"])["id"] for table in TABLES if table != "ledger"}
        double = {table: len(column) - len(column.unique()) for table, column in ids.items()}
        return _joined({f"in {table}": count for table, count in double.items() if count}, "ids twice")

    def _raw(self) -> str:
        return _difference(self.raw, raw_digests(self.lake))

    def _summaries(self) -> str:
        return _difference(self.summaries, summary_digests(self.lake))


def _difference(index: TextIndex, wanted: dict[str, str]) -> str:
    change = index.compare(wanted)
    told = {"to add": len(change.add), "to take out": len(change.void)}
    return _joined({name: count for name, count in told.items() if count}, "documents")


def _joined(counts: dict[str, int], what: str) -> str:
    return f"{what}: " + ", ".join(f"{count} {name}" for name, count in counts.items()) if counts else ""
