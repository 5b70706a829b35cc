"""The verb: find what there is at a level, or at all of them, and say which legs found it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from memex.embed.base import Embedder
from memex.model import Hit
from memex.search.calibration import language, load_calibrations
from memex.search.documents import content_of
from memex.search.fold import fold
from memex.search.fuse import Merged, Scored, fuse, mix
from memex.search.query import Query, SearchLevel
from memex.search.text import TextIndex
from memex.search.vectors import SUMMARIES, count_vectors, search_vectors
from memex.store.lake import Lake, in_list

DEPTH = 50
"""Candidates that each leg gives to the fusion, at least."""
EVERY = 100_000
"""More answers than anybody has."""


@dataclass(frozen=True, slots=True)
class Found:
    """Hits, best first, and what the reader should know about them (a leg that did not answer)."""

    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fusion:
    """How the legs of a level are merged: `mix` their scores, vectors with a weight, or `rrf` their ranks."""

    method: Literal["mix", "rrf"] = "mix"
    vector_weight: float = 0.5
    rrf_k: int = 60

    def of(self, text: Scored[str], vector: Scored[str]) -> Merged[str]:
        """Merge two rankings."""
        rankings = {"text": text, "vector": vector}
        if self.method == "mix":
            return mix(rankings, {"text": 1 - self.vector_weight, "vector": self.vector_weight})
        return fuse({leg: [key for key, _score in ranking] for leg, ranking in rankings.items()}, self.rrf_k)


@dataclass(frozen=True, slots=True)
class Search:
    """The verb with its parts; lake and embedder are opened when a level needs them.

    Without an embedder the text leg answers alone.
    """

    open_lake: Callable[[], Lake]
    raw: TextIndex
    summaries: TextIndex
    open_embedder: Callable[[], Embedder | None]
    fusion: Fusion = Fusion()
    embed_raw: bool = False
    calibrations: Path | None = None

    def run(self, query: Query, level: SearchLevel, limit: int) -> Found:
        """Search one level, or all four: then a session is one hit, with its best evidence."""
        if level == "raw":
            return self._raw(query, limit)
        if level != "all":
            return self._summaries(query, level, limit)
        depth = max(limit, DEPTH)
        found = {name: self._summaries(query, name, depth) for name in SUMMARIES}  # type: ignore[arg-type]
        found["raw"] = self._raw(query, depth)
        hits = {_identity(hit): hit for one in found.values() for hit in one.hits}
        merged = fuse({name: [_identity(hit) for hit in one.hits] for name, one in found.items()}, self.fusion.rrf_k)
        scores = {key: score for key, score, _levels in merged}
        scored = [replace(hit, score=scores[key]) for key, hit in hits.items()]
        sessions = fold(scored, lambda hit: hit.session_id, lambda hit: hit.score)
        best = tuple(map(_with_evidence, sessions[:limit]))
        return Found(best, tuple(dict.fromkeys(note for one in found.values() for note in one.notes)))

    def _raw(self, query: Query, limit: int) -> Found:
        """Rank messages and calls by words and, where raw talks have vectors, talks by meaning."""
        rows = self.raw.search(query, max(limit, DEPTH) if self.embed_raw else limit)
        hits = {
            row["key"]: _hit(row, row["key"], "raw", row["content"], row["ts"], row["score"], ("text",)) for row in rows
        }
        if not self.embed_raw:
            return Found(tuple(hits.values()))
        if query.is_exact:
            return Found(tuple(hits.values())[:limit], ("phrases, files and refusals are looked for by words alone",))
        role = query.filters.role
        near, notes = self._near(replace(query, filters=replace(query.filters, role="")), "raw", DEPTH)
        cosines = {(talk["session_id"], talk["prompt_number"]): talk["cosine"] for talk in near}
        prompts = {hit.message_id: hit for hit in self._prompts(near) if role in ("", hit.role)}
        fused = self.fusion.of(
            [(key, hit.score) for key, hit in hits.items()],
            [(key, cosines[hit.session_id, hit.prompt_number]) for key, hit in prompts.items()],
        )
        known = prompts | hits
        return Found(tuple(replace(known[key], score=score, legs=legs) for key, score, legs in fused[:limit]), notes)

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

    def _summaries(self, query: Query, level: SearchLevel, limit: int) -> Found:
        depth = max(limit, DEPTH)
        query = replace(query, filters=replace(query.filters, levels=(level,), role=""))
        lexical = self.summaries.search(query, depth)
        only = [row["key"] for row in self.summaries.search(replace(query, text=""), EVERY)] if query.is_exact else None
        near, notes = self._near(query, level, depth, only)
        rows: dict[str, dict[str, Any]] = {row["id"]: row for row in near}
        rows |= {row["key"]: row for row in lexical}
        cosines = {row["id"]: row["cosine"] for row in near}
        similar = self._similarity(query.text)
        hits = []
        fused = self.fusion.of([(row["key"], row["score"]) for row in lexical], list(cosines.items()))
        for key, score, legs in fused[:limit]:
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
        self, query: Query, level: SearchLevel, depth: int, only: Sequence[str] | None = None
    ) -> tuple[Sequence[dict[str, Any]], tuple[str, ...]]:
        """Find the rows nearest in meaning, among `only` these where given; say what there was no vector for."""
        lake, embedder = self.open_lake(), self.open_embedder()
        if embedder is None:
            return (), ("vectors are switched off: ranked by words alone",)
        have, total = count_vectors(lake, level, embedder.model)
        if total and not have:
            return (), (f"no {level} have vectors yet (memex index makes them): ranked by words alone",)
        text = query.text.strip()
        rows = search_vectors(lake, embedder, level, text, query.filters, depth, only) if text else []
        return rows, ((f"{total - have} of {total} {level} have no vector yet",) if have < total else ())


def _with_evidence(session: Sequence[Hit]) -> Hit:
    """Take the best hit of a session; of hits that are as good, the one that says most in few words comes first."""
    levels: dict[str, Hit] = {}
    for hit in session:
        levels.setdefault(hit.level, hit)
    best, *others = levels.values()
    return replace(best, evidence=tuple(others))


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
