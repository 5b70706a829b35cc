"""From what a person names (a session, a project, a pattern) to the act that is written down.

The act outlives what it names, so it holds hashes only: of the names of sessions, of their records, of texts.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from memex.errors import DamagedArchive
from memex.forget.rows import SUMMARIES, texts_of
from memex.sources.acts import Acts
from memex.sources.archive import Archive
from memex.sources.blobs import KeptBlob
from memex.sources.clean import blocks, is_in_lines, lines_in
from memex.sources.copies import name_mark, prompt_mark, record_mark, records_on
from memex.sources.redact import is_marker, strings_of
from memex.sources.secrets import Secrets
from memex.sources.tombstones import LISTS, packed_marks
from memex.store.lake import Lake, in_list
from memex.store.views import find_project, find_session

SHORTEST = 4
"""Bytes. Shorter texts stand everywhere, and overwriting them would tear up every later log."""
MOST = 1000
"""Different texts that one pattern may match: each of them is looked for in everything that is read later."""

Act = Mapping[str, Any]


class BadPattern(ValueError):
    """A pattern that is no regular expression, or that matches too much."""


@dataclass(frozen=True, slots=True)
class Target:
    """One of: a session (or the beginning of its id), a project (its name or id), a regular expression."""

    session: str = ""
    project: str = ""
    matching: str = ""


def act_of(archive: Archive, lake: Lake, target: Target) -> Act:
    """Work out the act; it is empty when nothing matches a pattern.

    Raises:
        NotFound: no session or project is called so, or more than one.
        BadPattern: the pattern is no regular expression, or matches too much.
    """
    if target.matching:
        return _text_act(archive, lake, compiled(target.matching))
    named = [find_session(lake, target.session)] if target.session else _sessions_in(lake, target.project)
    sessions = with_subagents(lake, named)
    return {
        "sessions": sorted(map(name_mark, sessions)),
        "marks": packed_marks(_marks_of(archive, lake, sessions)),
        **_hashed(archive, "places", _places_of(lake, sessions)),
    }


def compiled(pattern: str) -> "re.Pattern[str]":
    """Compile a pattern.

    Raises:
        BadPattern: it is no regular expression, or matches the empty text.
    """
    try:
        found = re.compile(pattern)
    except re.error as error:
        raise BadPattern(f"{pattern!r} is no regular expression: {error}") from error
    if found.search(""):
        raise BadPattern(f"{pattern!r} matches the empty text, and so everything")
    return found


def with_subagents(lake: Lake, sessions: Collection[str]) -> list[str]:
    """Add the subagents of sessions, and theirs."""
    rows = lake.scan("sessions", ["id", "parent_id"], "kind = 'subagent'").to_pylist()
    family = set(sessions)
    while more := {row["id"] for row in rows if row["parent_id"] in family} - family:
        family |= more
    return sorted(family)


def _sessions_in(lake: Lake, project: str) -> list[str]:
    mine = in_list("project_id", [find_project(lake, project)])
    return list(lake.scan("sessions", ["id"], mine)["id"].to_pylist())


def _marks_of(archive: Archive, lake: Lake, sessions: Collection[str]) -> set[int]:
    """Mark what these sessions wrote themselves, and what was typed in them.

    What they copied from a session that stays is that session's.
    """
    mine = {mark for record in _records_of(archive, lake, sessions) for mark in [record_mark(record)]}
    theirs = {record_mark(record) for record in _records_of(archive, lake, _origins_of(lake, sessions))}
    prompts = lake.scan("messages", ["text"], f"{in_list('session_id', sorted(sessions))} AND kind = 'prompt'")
    return (mine - theirs) | set(map(prompt_mark, prompts["text"].to_pylist()))


def _places_of(lake: Lake, sessions: Collection[str]) -> set[bytes]:
    """Name the folders that only these sessions had: those they worked in, those of their files."""
    worked = lake.scan("sessions", ["id", "cwd"]).to_pylist()
    kept = [row for row in lake.scan("sources", ["session_id", "path"]).to_pylist() if not row["path"].endswith(LISTS)]
    gone = {row["cwd"] for row in worked if row["id"] in sessions}
    gone |= {part for row in kept if row["session_id"] in sessions for part in PurePath(row["path"]).parent.parts}
    stay = [row["cwd"] for row in worked if row["id"] not in sessions]
    stay += [row["path"] for row in kept if row["session_id"] not in sessions]
    every = "\n".join(stay)
    return {name for place in gone if place not in every and len(name := place.encode()) >= SHORTEST}


def _origins_of(lake: Lake, sessions: Collection[str]) -> set[str]:
    """Name the sessions from which these may have copied records, and theirs, as far as they stay."""
    parents = dict(lake.frame("sessions", ["id", "parent_id"]).iter_rows())
    origins: set[str] = set()
    todo = list(sessions)
    while todo:
        parent = parents.get(todo.pop(), "")
        if parent and parent not in origins:
            origins.add(parent)
            todo.append(parent)
    return origins - set(sessions)


def _records_of(archive: Archive, lake: Lake, sessions: Collection[str]) -> Iterator[dict[str, Any]]:
    """Read the records of all logs of sessions, in every generation."""
    rows = lake.scan("sources", ["cli", "id"], in_list("session_id", sorted(sessions))).to_pylist()
    for kept in filter(None, (archive.load(row["cli"], row["id"]) for row in rows)):
        for generation in range(1, kept.generation + 1) if kept.role == "log" else ():
            try:
                for block in blocks(KeptBlob(archive, kept, generation).pieces()):
                    yield from (record for line in lines_in(block) for record in records_on(line))
            except DamagedArchive:
                continue


def _text_act(archive: Archive, lake: Lake, pattern: "re.Pattern[str]") -> Act:
    found = {text for text in _matches(archive, lake, pattern) if not is_marker(text)}
    if not found:
        return {}
    short = min(found, key=len)
    if len(short) < SHORTEST:
        raise BadPattern(f"{pattern.pattern!r} matches texts of less than {SHORTEST} bytes, which stand everywhere")
    if len(found) > MOST:
        raise BadPattern(f"{pattern.pattern!r} matches {len(found)} different texts; {MOST} are the most")
    return _hashed(archive, "secrets", found)


def _hashed(archive: Archive, kind: str, texts: Collection[bytes]) -> Act:
    """Hash texts under the key of earlier ones, so that all of them are looked for at once."""
    known = (act[kind]["key"] for act in Acts(archive.root).read("forget") if kind in act)
    return {kind: Secrets.of(texts, bytes.fromhex(next(known, ""))).written()} if texts else {}


def _matches(archive: Archive, lake: Lake, pattern: "re.Pattern[str]") -> Iterator[bytes]:
    """Find every text that a pattern matches, in all that is kept."""
    for text in _texts(archive, lake):
        for match in pattern.finditer(text.decode("utf-8", "surrogateescape")):
            if match[0]:
                yield match[0].encode("utf-8", "surrogateescape")


def _texts(archive: Archive, lake: Lake) -> Iterator[bytes]:
    for kept in archive.sources():
        yield kept.path.encode("utf-8", "surrogateescape")
        for generation in range(1, kept.generation + 1):
            try:
                yield from _texts_in(KeptBlob(archive, kept, generation))
            except DamagedArchive:
                continue
    for table in (*SUMMARIES, "sessions"):
        for batch in lake.batches(table, 1000):
            for row in batch.to_pylist():
                yield from texts_of(row)


def _texts_in(blob: KeptBlob) -> Iterator[bytes]:
    """Read the texts of a file: of its lines, or of the whole."""
    if is_in_lines(blob.kept.role, blob.kept.path):
        for block in blocks(blob.pieces()):
            for line in lines_in(block):
                yield from strings_of(line)
    else:
        yield from strings_of(b"".join(blob.pieces()))
