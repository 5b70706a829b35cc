"""When two memories are the same thing, and when they may be joined at all."""

import posixpath
import re
import unicodedata
from datetime import datetime

from memex.maintain.kinds import Kind
from memex.model import Memory
from memex.text import one_line

_PATH = re.compile(r"(?:(?:\.{1,2}|[\w.@~+-]*)[/\\])+[\w.@+-]*")


def identity(name: str) -> str:
    r"""Fold what does not tell two names apart: width, case, white space, and the spelling of a path.

    >>> identity(" Foo   Bar "), identity("./src\\a/../b.py")
    ('foo bar', 'src/b.py')
    """
    folded = one_line(unicodedata.normalize("NFKC", name)).casefold()
    return _PATH.sub(lambda found: _normal_path(found[0]), folded)


def scope_of(memory: Memory) -> tuple[str, str]:
    """Name the scope: owner and project, of which one is empty as a rule."""
    return memory.owner, memory.project_id


def compatible(a: Memory, b: Memory) -> bool:
    """Tell whether two memories may be joined: one kind, one scope, valid at the same time, both done or both not."""
    return (
        a.kind == b.kind
        and scope_of(a) == scope_of(b)
        and overlap(a, b)
        and a.fields.get("status", "") in ("", b.fields.get("status") or a.fields.get("status", ""))
    )


def overlap(a: Memory, b: Memory) -> bool:
    """Tell whether two intervals of validity share a moment, or one side is undated."""
    dated = [bool(one.valid_from or one.valid_to) for one in (a, b)]
    if not all(dated):
        return True
    return _starts_before_end(a.valid_from, b.valid_to) and _starts_before_end(b.valid_from, a.valid_to)


def same_identity(a: Memory, b: Memory, kind: Kind) -> bool:
    """Tell whether two memories of a kind with one memory a name have that name."""
    return kind.latest_only and bool(names_of(a) & names_of(b))


def names_of(memory: Memory) -> set[str]:
    """Give the folded names of a memory: its name, else its title."""
    names = (identity(memory.name), identity(memory.fields.get("title", "")))
    return {next((name for name in names if name), "")} - {""}


def _starts_before_end(start: datetime | None, end: datetime | None) -> bool:
    return start is None or end is None or start <= end


def _normal_path(path: str) -> str:
    return posixpath.normpath(path.replace("\\", "/")) if path not in ("/", "\\") else path
