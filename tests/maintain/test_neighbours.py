"""Neighbours by vector, in a real lake."""

from dataclasses import fields

from memex.maintain.neighbours import nearest_by_vector, vectors_of
from memex.maintain.stored import row_of
from memex.store.schemas import rows_to_arrow
from tests.maintain.making import memory

MODEL = "local:a"


def test_memories_that_have_no_vector_yet_have_no_neighbours_by_vector(memex):
    new = [memory("a"), memory("b")]
    rows = [row_of({field.name: getattr(one, field.name) for field in fields(one)}) for one in new]
    memex.lake.upsert("memories", rows_to_arrow("memories", rows))
    assert nearest_by_vector(memex.lake, new, MODEL, 5) == {}
    memex.lake.set_dimension("memories", 4)
    assert nearest_by_vector(memex.lake, new, MODEL, 5) == {}
    names, vectors = vectors_of(memex.lake, ["a", "b"], MODEL)
    assert (names, vectors.shape) == ([], (0, 4))
