"""The verb: find what there is at a level, or at all of them, and say which legs found it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memex.embed.base import Embedder
from memex.model import Hit
from memex.search.calibration import language, load_calibrations
from memex.search.documents import content_of
from memex.search.fuse import fuse
from memex.search.query import Filters, SearchLevel
from memex.search.text import TextIndex
from memex.search.vectors import SUMMARIES, count_vectors, search_vectors
from memex.store.lake import Lake, in_list

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
    embed_raw: bool = False
    calibrations: Path | None = None

    def run(self, text: str, level: SearchLevel, filters: Filters, limit: int) -> Found:
        """Search one level, or merge all four by their ranks."""
        if level == "raw":
            return self._raw(text, filters, limit)
        if level != "all":
            return self._summaries(text, level, filters, limit)
        depth = max(limit, DEPTH)
        found = {"raw": self._raw(text, filters, depth)}
        found |= {name: self._summaries(text, name, filters, depth) for name in SUMMARIES}  # type: ignore[arg-type]
        hits = {_identity(hit): hit for one in found.values() for hit in one.hits}
        merged = fuse({name: [_identity(hit) for hit in one.hits] for name, one in found.items()}, self.rrf_k)
        best = tuple(replace(hits[key], score=score) for key, score, _legs in merged[:limit])
        return Found(best, tuple(dict.fromkeys(note for one in found.values() for note in one.notes)))

    def _raw(self, text: str, filters: Filters, limit: int) -> Found:
        """Rank messages and calls by words and, where raw talks have vectors, talks by meaning."""
        rows = self.raw.search(text, replace(filters, levels=()), max(limit, DEPTH) if self.embed_raw else limit)
        hits = [_hit(row, row["key"], "raw", row["content"], row["ts"], row["score"], ("text",)) for row in rows]
        if not self.embed_raw:
            return Found(tuple(hits))
        near, notes = self._near(text, "raw", replace(filters, role=""), DEPTH)
        prompts = [hit for hit in self._prompts(near) if filters.role in ("", hit.role)]
        known = {hit.message_id: hit for hit in (*prompts, *hits)}
        rankings = {"text": [hit.message_id for hit in hits], "vector": [hit.message_id for hit in prompts]}
        fused = fuse(rankings, self.rrf_k)[:limit]
        return Found(tuple(replace(known[key], score=score, legs=legs) for key, score, legs in fused), notes)

    def _prompts(self, talks: Sequence[dict[str, Any]]) -> list[Hit]:
        """Read the prompts of talks, in the same order."""
        lake = self.open_lake()
        mine = sorted({talk["session_id"] for talk in talks})
        where = f"{in_list('session_id', mine)} AND kind = 'prompt' AND NOT superseded"
        rows = lake.scan("messages", ["id", "session_id", "prompt_number", "role", "text", "ts"], where).to_pylist()
        hits = {
            (row["session_id"], row["prompt_number"]): _hit(row, row["id"], "raw", row["text"], row["ts"], 0.0, ())
            for row in rows
        }
        return [
            replace(hits[talk["session_id"], talk["prompt_number"]], project=talk["project"])
            for talk in talks
            if (talk["session_id"], talk["prompt_number"]) in hits
        ]

    def _summaries(self, text: str, level: SearchLevel, filters: Filters, limit: int) -> Found:
        depth = max(limit, DEPTH)
        lexical = self.summaries.search(text, replace(filters, levels=(level,), role=""), depth)
        near, notes = self._near(text, level, filters, depth)
        rows: dict[str, dict[str, Any]] = {row["id"]: row | {"key": row["id"]} for row in near}
        rows |= {row["key"]: row for row in lexical}
        rankings = {"text": [row["key"] for row in lexical], "vector": [row["id"] for row in near]}
        cosines = {row["id"]: row["cosine"] for row in near}
        similar = self._similarity(text)
        hits = []
        for key, score, legs in fuse(rankings, self.rrf_k)[:limit]:
            row = rows[key]
            content = row.get("content") or content_of(level, row)
            hit = _hit(row, "", level, content, row.get("ts") or row.get("occurred_at"), score, legs)
            hits.append(replace(hit, similarity=similar(content, cosines[key])) if key in cosines else hit)
        return Found(tuple(hits), notes)

    def _similarity(self, text: str) -> Callable[[str, float], float | None]:
        """Give the function from a passage and its cosine with the question to their calibrated similarity."""
        embedder = self.open_embedder()
        maps = load_calibrations(self.calibrations, embedder.model)[1] if self.calibrations and embedder else {}

        def similar(passage: str, cosine: float) -> float | None:
            calibration = maps.get(("query", language(text), language(passage)))
            return round(calibration(cosine), 4) if calibration else None

        return similar

    def _near(
        self, text: str, level: SearchLevel, filters: Filters, depth: int
    ) -> tuple[Sequence[dict[str, Any]], tuple[str, ...]]:
        lake, embedder = self.open_lake(), self.open_embedder()
        if embedder is None:
            return (), ("vectors are switched off: ranked by words alone",)
        have, total = count_vectors(lake, level, embedder.model)
        if total and not have:
            return (), (f"no {level} have vectors yet (memex index makes them): ranked by words alone",)
        rows = search_vectors(lake, embedder, level, text, filters, depth) if text.strip() else []
        return rows, ((f"{total - have} of {total} {level} have no vector yet",) if have < total else ())


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
