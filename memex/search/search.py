"""The verb: find what there is at a level, or at all of them, and say which legs found it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memex.embed.base import Embedder
from memex.model import Hit
from memex.search.documents import content_of
from memex.search.fuse import fuse
from memex.search.query import Filters, SearchLevel
from memex.search.text import TextIndex
from memex.search.vectors import search_vectors
from memex.store.lake import Lake
from memex.store.schemas import SUMMARY_TABLES

DEPTH = 50
"""Candidates that each leg gives to the fusion, at least."""


@dataclass(frozen=True, slots=True)
class Found:
    """Hits, best first, and what the reader should know about them (a leg that did not answer)."""

    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Search:
    """The verb with its parts; lake and embedder are opened when a level needs them.

    Without an embedder the text leg answers alone.
    """

    open_lake: Callable[[], Lake]
    raw: TextIndex
    summaries: TextIndex
    open_embedder: Callable[[], Embedder | None]
    rrf_k: int = 60

    def run(self, text: str, level: SearchLevel, filters: Filters, limit: int) -> Found:
        """Search one level, or merge all four by their ranks."""
        if level == "raw":
            return Found(tuple(self._raw(text, filters, limit)))
        if level != "all":
            return self._summaries(text, level, filters, limit)
        raw = self._raw(text, filters, max(limit, DEPTH))
        others = [self._summaries(text, name, filters, max(limit, DEPTH)) for name in SUMMARY_TABLES]  # type: ignore[arg-type]
        rankings = {"raw": raw} | dict(zip(SUMMARY_TABLES, (list(f.hits) for f in others), strict=True))
        hits = {_identity(hit): hit for ranking in rankings.values() for hit in ranking}
        merged = fuse({name: [_identity(hit) for hit in ranking] for name, ranking in rankings.items()}, self.rrf_k)
        best = tuple(replace(hits[key], score=score) for key, score, _legs in merged[:limit])
        return Found(best, tuple(dict.fromkeys(note for found in others for note in found.notes)))

    def _raw(self, text: str, filters: Filters, limit: int) -> list[Hit]:
        rows = self.raw.search(text, replace(filters, levels=()), limit)
        return [_hit(row, row["key"], "raw", row["content"], row["ts"], row["score"], ("text",)) for row in rows]

    def _summaries(self, text: str, level: SearchLevel, filters: Filters, limit: int) -> Found:
        depth = max(limit, DEPTH)
        lexical = self.summaries.search(text, replace(filters, levels=(level,), role=""), depth)
        near, notes = self._near(text, level, filters, depth)
        rows: dict[str, dict[str, Any]] = {row["id"]: row | {"key": row["id"]} for row in near}
        rows |= {row["key"]: row for row in lexical}
        rankings = {"text": [row["key"] for row in lexical], "vector": [row["id"] for row in near]}
        hits = []
        for key, score, legs in fuse(rankings, self.rrf_k)[:limit]:
            row = rows[key]
            content = row.get("content") or content_of(level, row)
            hits.append(_hit(row, "", level, content, row.get("ts") or row.get("occurred_at"), score, legs))
        return Found(tuple(hits), notes)

    def _near(
        self, text: str, level: SearchLevel, filters: Filters, depth: int
    ) -> tuple[Sequence[dict[str, Any]], tuple[str, ...]]:
        lake, embedder, table = self.open_lake(), self.open_embedder(), SUMMARY_TABLES[level]
        if embedder is None:
            return (), ("vectors are switched off: ranked by words alone",)
        missing = lake.count(table, f"served AND (vector_model IS NULL OR vector_model != '{embedder.model}')")
        total = lake.count(table, "served")
        if total and missing == total:
            return (), (f"no {level} have vectors yet (memex index makes them): ranked by words alone",)
        rows = search_vectors(lake, embedder, level, text, filters, depth) if text.strip() else []
        return rows, ((f"{missing} of {total} {level} have no vector yet",) if missing else ())


def _hit(
    row: dict[str, Any],
    message_id: str,
    level: Any,
    content: str,
    ts: Any,
    score: float,
    legs: tuple[str, ...],
) -> Hit:
    return Hit(
        session_id=row["session_id"],
        message_id=message_id,
        prompt_number=row.get("prompt_number") or 0,
        level=level,
        content=content,
        score=score,
        project=row.get("project") or "",
        ts=ts,
        role=row.get("role") or "",
        legs=legs,
    )


def _identity(hit: Hit) -> tuple[str, str, str, int, str]:
    return (hit.level, hit.session_id, hit.message_id, hit.prompt_number, hit.content)
