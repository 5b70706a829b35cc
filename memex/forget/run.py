"""The verb: forget a session, a project or a text, everywhere and for good.

The act is on disk before it takes effect, and a second one says that it was carried out. So whoever writes next
finishes what a crash interrupted: every step is found anew from what there still is, what was made last goes first,
and nothing that leads to something else goes before it.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from memex.forget.files import clean_files, drop_stopped_restore
from memex.forget.rows import RAW, SUMMARIES, Going
from memex.forget.survey import Survey, rows_of, survey
from memex.forget.target import Act, Target, act_of
from memex.llm.book import forget_answers
from memex.search.refresh import refresh_raw, refresh_summaries
from memex.search.text import TextIndex
from memex.sources.acts import Acts
from memex.sources.archive import Archive
from memex.sources.erase import erase, rewrite, sweep
from memex.sources.frames import Kept
from memex.sources.ingest import Ingest, ingest_lock
from memex.sources.tombstones import Tombstones
from memex.store.lake import Lake, in_list
from memex.store.schemas import TABLES, rows_to_arrow

IDS = 2000
"""Rows that one statement deletes."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A session that is reached: what of it goes (`all` of it, or so many lines), and its `kind` and project."""

    session_id: str
    kind: str
    project: str
    lines: int | None = None


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """What would go.

    sessions: those reached. texts: different texts that match. files, bytes: what the archive deletes. lines:
    those that are blanked or overwritten in files that stay. rows: those that go or change, by table. on_disk:
    files of CLIs that hold it; they are not ours. damaged: archived files that cannot be looked into.
    """

    sessions: tuple[Reached, ...] = ()
    texts: int = 0
    files: int = 0
    bytes: int = 0
    lines: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)
    on_disk: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to forget."""
        return not (self.sessions or self.files or self.lines or self.rows or self.texts)


@dataclass(frozen=True, slots=True)
class Forget:
    """The verb with its parts."""

    home: Path
    archive: Archive
    acts: Acts
    lake: Lake
    ingest: Ingest
    raw_index: TextIndex
    summary_index: TextIndex

    def plan(self, target: Target) -> ForgetPlan:
        """See what would go, and change nothing.

        Raises:
            NotFound: no session or project is called so, or more than one.
            BadPattern: the pattern is no regular expression, or matches too much.
        """
        act = act_of(self.archive, self.lake, target)
        return self._told(act, self._survey([act])) if act else ForgetPlan()

    def run(self, target: Target) -> ForgetPlan:
        """Forget it; what went is told as in a plan. Everybody else who writes waits.

        Raises:
            NotFound, BadPattern: as for `plan`.
            DiskFull: no space left for what must be written anew; the same command, or the next ingest, goes on.
        """
        with ingest_lock(self.home):
            act = act_of(self.archive, self.lake, target)
            if not act:
                return ForgetPlan()
            self.acts.add("forget", id=uuid4().hex, **act)
            self.lake.begin_epoch()
            found = self._survey(())
            told = self._told(act, found)
            self._carry_out(found)
        return told

    def finish(self) -> int:
        """Carry out acts that were interrupted; return how many there were."""
        if not self._unfinished():
            return 0
        with ingest_lock(self.home):
            unfinished = self._unfinished()  # another process may have carried them out meanwhile
            if unfinished:
                self.lake.begin_epoch()
                self._carry_out(self._survey(()))
        return len(unfinished)

    def _unfinished(self) -> list[str]:
        done = {name for act in self.acts.read("forgotten") for name in act["of"]}
        return [act["id"] for act in self.acts.read("forget") if act["id"] not in done]

    def _tombstones(self, more: Iterable[Act] = ()) -> Tombstones:
        return Tombstones.merged([*self.acts.read("forget"), *more])

    def _survey(self, more: Iterable[Act]) -> Survey:
        return survey(self.archive, self.lake, self._tombstones(more))

    def _carry_out(self, found: Survey) -> None:
        """Do all that a survey found. What was made last goes first: what it was made from leads to it."""
        tombstones = self._tombstones()
        drop_stopped_restore(self.home)
        clean_files(self.home, tombstones, {key for ids in found.going.rows.values() for key in ids})
        self.acts.overwrite(tombstones.clean)
        forget_answers(self.home / "journal" / "calls.db")
        self._delete_derived(found.going)
        self._delete_raw(found)
        for kept in found.gone:
            erase(self.archive.log_of(kept), kept)
        for change in found.changed:
            rewrite(self.archive.log_of(change.kept), change.kept, tombstones)
        sweep(self.archive.root)
        self.ingest.reread({name: self._as_kept_now(group) for name, group in found.reread.items()})
        self._delete_empty_histories()
        self.ingest.forget_projects()
        for table in TABLES:
            self.lake.purge(table)
        refresh_raw(self.lake, self.raw_index, whole=True)
        refresh_summaries(self.lake, self.summary_index, whole=True)
        self.acts.add("forgotten", of=self._unfinished())

    def _delete_derived(self, going: Going) -> None:
        for table, rows in going.released.items():
            self.lake.upsert(table, rows_to_arrow(table, rows))
        for table in reversed(SUMMARIES):
            self._delete(table, "id", going.rows[table])

    def _delete_raw(self, found: Survey) -> None:
        """Delete the rows of sessions that go, and messages and calls of those that are read again.

        These are marked as unread first: whoever comes after a crash reads them again.
        """
        again = [kept for group in found.reread.values() for kept in group]
        rows = self.lake.scan("sources", None, in_list("id", sorted(kept.id for kept in again))).to_pylist()
        hidden = self.lake.scan("sessions", None, in_list("id", sorted(found.reread))).to_pylist()
        unread = [{**row, "generation": 0, "size": 0, "parser_version": 0} for row in rows]
        self.lake.upsert("sources", rows_to_arrow("sources", unread))
        # others learn of a folder's name by its hash, as long as a session says it
        self.lake.upsert("sessions", rows_to_arrow("sessions", [{**row, "cwd": ""} for row in hidden]))
        for table in RAW:
            for where in rows_of(again):
                self.lake.delete(table, where)
            self._delete(table, "session_id", found.sessions)
        for table, column in (("talks", "session_id"), ("sessions", "id"), ("sources", "session_id")):
            self._delete(table, column, found.sessions)

    def _as_kept_now(self, group: Iterable[Kept]) -> list[Kept]:
        return [now for kept in group if (now := self.archive.load(kept.cli, kept.id))]

    def _delete_empty_histories(self) -> None:
        """Delete the sessions known from a history of prompts of which no prompt is left."""
        known = set(self.lake.scan("sessions", ["id"], "kind = 'history'")["id"].to_pylist())
        spoken = self.lake.scan("messages", ["session_id"], in_list("session_id", sorted(known)))
        empty = known - set(spoken["session_id"].to_pylist())
        self._delete("talks", "session_id", empty)
        self._delete("sessions", "id", empty)

    def _delete(self, table: str, column: str, values: Collection[str]) -> None:
        ordered = sorted(values)
        for at in range(0, len(ordered), IDS):
            self.lake.delete(table, in_list(column, ordered[at : at + IDS]))

    def _told(self, act: Act, found: Survey) -> ForgetPlan:
        """Say what a survey found."""
        lines: dict[str, int] = {}
        for change in found.changed:
            lines[change.kept.session_id] = lines.get(change.kept.session_id, 0) + change.lines
        about = {row["id"]: row for row in self.lake.scan("sessions", ["id", "kind", "project"]).to_pylist()}
        reached = {**dict.fromkeys(sorted(found.sessions)), **lines}
        nothing = {"kind": "", "project": ""}
        sources = [*found.gone, *(change.kept for change in found.changed)]
        return ForgetPlan(
            sessions=tuple(
                Reached(name, (row := about.get(name, nothing))["kind"], row["project"], count)
                for name, count in reached.items()
            ),
            texts=len(act["secrets"]["texts"]) if "secrets" in act else 0,
            files=len(found.gone),
            bytes=sum(chunk.stored for kept in found.gone for chunk in kept.chunks),
            lines=sum(lines.values()),
            rows={table: len(ids) for table, ids in found.rows.items() if ids},
            on_disk=tuple(sorted(kept.path for kept in sources if Path(kept.path).exists())),
            damaged=found.damaged,
        )
