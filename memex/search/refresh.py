"""Bring the full-text indexes to what the lake holds."""

from collections.abc import Sequence

from memex.search.documents import raw_digests, raw_documents, summary_digests, summary_documents
from memex.search.text import TextIndex
from memex.store.lake import Lake


def refresh_raw(lake: Lake, index: TextIndex, whole: bool = False, of: Sequence[str] | None = None) -> int:
    """Index new and changed messages and tool calls, of all sessions or some; return documents written.

    `whole` builds the index anew. With `of` the work grows with those sessions, not with the lake.
    """
    return index.refresh(lambda: raw_digests(lake, of), lambda keys: raw_documents(lake, keys, of), whole, of)


def refresh_summaries(lake: Lake, index: TextIndex, whole: bool = False, of: Sequence[str] | None = None) -> int:
    """Index new and changed summaries, of all sessions or some; return documents written."""
    return index.refresh(lambda: summary_digests(lake, of), lambda keys: summary_documents(lake, keys, of), whole, of)


def stale_text(lake: Lake, raw: TextIndex, summaries: TextIndex) -> list[str]:
    """Name the indexes that do not hold just what the lake holds."""
    states = {
        "raw text": raw.compare(raw_digests(lake)),
        "summaries": summaries.compare(summary_digests(lake)),
    }
    return [name for name, change in states.items() if not change.empty]
