"""The archive gives back every byte that was ever there."""

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.errors import HomeError, StoreError
from memex.sources.archive import CHUNK, Archive, UnreadableSource
from memex.sources.base import Found

TORN_EVENT = b'{"chunk":{"generation":1,"at":0,"si'


@pytest.fixture
def archive(tmp_path):
    return Archive(tmp_path / "archive")


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"one\n")
    return path


def take(archive, path, data=None):
    if data is not None:
        path.write_bytes(data)
    [kept] = archive.take([Found("claude", str(path), "claude:session")])
    if isinstance(kept, UnreadableSource):
        raise kept
    return kept


def log_of(archive):
    [log] = archive.root.rglob("*.jsonl")
    return log


def frames_of(archive, generation=1):
    return log_of(archive).with_suffix(f".{generation:04}.zst")


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


def test_taken_bytes_come_back(archive, source):
    kept = take(archive, source, b"\x00\xff \n\r\n{")
    assert archive.read(kept) == b"\x00\xff \n\r\n{"
    assert (kept.generation, kept.size, kept.gone) == (1, 7, False)
    assert (kept.cli, kept.path, kept.session_id, kept.role) == ("claude", str(source), "claude:session", "log")


def test_growth_adds_to_the_same_generation(archive, source):
    take(archive, source)
    kept = take(archive, source, b"one\ntwo\n")
    assert (kept.generation, kept.size) == (1, 8)
    assert [(c.at, c.size) for c in kept.chunks] == [(0, 4), (4, 4)]
    assert archive.read(kept) == b"one\ntwo\n"


@pytest.mark.parametrize(
    "data", [b"ONE\ntwo\n", b"on", b"two\n", b"oNe\n"], ids=["rewrite", "cut", "swap", "same size"]
)
def test_rewrite_starts_a_generation_and_keeps_the_old_one(archive, source, data):
    take(archive, source)
    kept = take(archive, source, data)
    assert (kept.generation, kept.size, kept.chunks[-1].stored_at) == (2, len(data), 0)
    assert archive.read(kept) == data
    assert archive.read(kept, 1) == b"one\n"


def test_rewritten_source_grows_in_its_new_generation(archive, source):
    for data in (b"one\n", b"two\n", b"two\nthree\n"):
        kept = take(archive, source, data)
    assert [c.generation for c in kept.chunks] == [1, 2, 2]
    assert archive.read(kept) == b"two\nthree\n"


def test_old_view_reads_its_bytes_after_growth(archive, source):
    before = take(archive, source)
    take(archive, source, b"one\ntwo\n")
    assert archive.read(before) == b"one\n"


def test_empty_source_is_kept_and_may_grow(archive, source):
    assert archive.read(take(archive, source, b"")) == b""
    kept = take(archive, source, b"one\n")
    assert (kept.generation, archive.read(kept)) == (1, b"one\n")


def test_large_source_is_kept_in_pieces(archive, source):
    data = os.urandom(CHUNK // 8) * 9
    kept = take(archive, source, data)
    assert [c.size for c in kept.chunks] == [CHUNK, CHUNK // 8]
    kept = take(archive, source, data + b"more")
    assert archive.read(kept) == data + b"more"
    assert len(kept.chunks) == 3


def test_unchanged_file_is_current(archive, source):
    kept = take(archive, source)
    assert archive.is_current(kept, source)
    assert archive.is_current(archive.find("claude", source), source)


def test_unknown_file_is_not_current(archive, source):
    assert archive.find("claude", source) is None
    assert not archive.is_current(None, source)


def test_grown_file_is_not_current(archive, source):
    kept = take(archive, source)
    append(source, b"two\n")
    os.utime(source, ns=(kept.stat[1], kept.stat[1]))
    assert not archive.is_current(kept, source)


def test_touch_adds_no_bytes(archive, source):
    kept = take(archive, source)
    stored = frames_of(archive).read_bytes()
    os.utime(source, (1, 1))
    assert not archive.is_current(kept, source)
    again = take(archive, source)
    assert again.chunks == kept.chunks
    assert frames_of(archive).read_bytes() == stored
    assert archive.is_current(again, source)


def test_sources_list_what_was_kept(archive, source, tmp_path):
    other = tmp_path / "other.jsonl"
    kept = [take(archive, source), take(archive, other, b"two\n")]
    assert sorted(archive.sources(), key=lambda k: k.id) == sorted(kept, key=lambda k: k.id)
    assert archive.find("claude", other) == kept[1]
    assert archive.find("codex", other) is None


def test_same_file_of_two_clis_is_two_sources(archive, source):
    one = take(archive, source)
    [other] = archive.take([Found("codex", str(source), "codex:session")])
    assert one.id != other.id
    assert {kept.cli for kept in archive.sources()} == {"claude", "codex"}


def test_unreadable_file_stops_no_other(archive, tmp_path):
    paths = [tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.jsonl")]
    for path in (paths[0], paths[2]):
        path.write_bytes(path.name.encode())
    taken = list(archive.take([Found("claude", str(path), f"claude:{path.stem}") for path in paths]))
    [problem] = (one for one in taken if isinstance(one, UnreadableSource))
    assert "b.jsonl" in str(problem)
    kept = [one for one in taken if one is not problem]
    assert [archive.read(one) for one in kept] == [b"a.jsonl", b"c.jsonl"]
    assert [one.session_id for one in kept] == ["claude:a", "claude:c"]


def test_gone_source_keeps_its_bytes(archive, source):
    kept = take(archive, source)
    source.unlink()
    archive.mark_gone(kept)
    [gone] = archive.sources()
    assert gone.gone
    assert archive.read(gone) == b"one\n"


def test_returned_source_is_no_longer_gone(archive, source):
    archive.mark_gone(take(archive, source))
    assert not archive.is_current(archive.find("claude", source), source)
    kept = take(archive, source)
    assert not kept.gone
    assert (kept.generation, len(kept.chunks)) == (1, 1)
    assert archive.is_current(kept, source)


@pytest.mark.parametrize("torn", [b"{", TORN_EVENT, TORN_EVENT + b"\n", b'{"read":{"size":4,"mtime_ns":1', b"\x00" * 9])
def test_torn_event_never_happened(archive, source, torn):
    take(archive, source)
    append(log_of(archive), torn)
    assert archive.read(archive.find("claude", source)) == b"one\n"
    kept = take(archive, source, b"one\ntwo\n")
    assert archive.read(kept) == archive.read(archive.find("claude", source)) == b"one\ntwo\n"
    assert archive.is_current(kept, source)


@pytest.mark.parametrize("garbage", [b"\x00", b"x" * 5_000])
@pytest.mark.parametrize("data", [b"one\ntwo\n", b"rewritten\n"])
def test_frame_without_an_event_is_overwritten(archive, source, garbage, data):
    take(archive, source)
    append(frames_of(archive), garbage)
    assert archive.read(archive.find("claude", source)) == b"one\n"
    kept = take(archive, source, data)
    assert archive.read(kept) == data
    assert archive.read(kept, 1)[:4] == b"one\n"


def test_overwritten_frame_leaves_no_rest(archive, source):
    take(archive, source)
    append(frames_of(archive), b"x" * 5_000)
    kept = take(archive, source, b"one\ntwo\n")
    assert frames_of(archive).stat().st_size == sum(c.stored for c in kept.chunks)


@pytest.mark.parametrize("events", [1, 2], ids=["no frame", "a frame but no state"])
def test_events_lost_in_a_crash_are_written_again(archive, source, events):
    take(archive, source)
    log = log_of(archive)
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:events]))
    assert not archive.is_current(archive.find("claude", source), source)
    kept = take(archive, source)
    assert archive.read(kept) == b"one\n"
    assert len(kept.chunks) == 1
    assert archive.is_current(kept, source)


@pytest.mark.parametrize("position", [0, 3, -1])
def test_damaged_frame_is_an_error(archive, source, position):
    kept = take(archive, source, b"one two three four\n")
    frame = bytearray(frames_of(archive).read_bytes())
    frame[position] ^= 0x10
    frames_of(archive).write_bytes(frame)
    with pytest.raises(StoreError, match=r"session\.jsonl"):
        archive.read(kept)


def test_cut_frame_is_an_error(archive, source):
    kept = take(archive, source)
    frames_of(archive).write_bytes(frames_of(archive).read_bytes()[:-3])
    with pytest.raises(StoreError):
        archive.read(kept)


def test_bytes_that_were_never_read_are_an_error(archive, source):
    kept = take(archive, source)
    [chunk] = kept.chunks
    with pytest.raises(StoreError):
        archive.read(replace(kept, chunks=(replace(chunk, sha256="0" * 64),)))


def test_source_that_cannot_be_opened_is_unreadable(archive, tmp_path):
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    for name in ("folder.jsonl", "dangling.jsonl", "missing.jsonl"):
        with pytest.raises(UnreadableSource, match=name):
            take(archive, tmp_path / name)
    assert list(archive.sources()) == []


def test_archive_that_cannot_be_written_is_an_error(tmp_path, source):
    (tmp_path / "archive").write_text("a file")
    with pytest.raises(HomeError):
        take(Archive(tmp_path / "archive"), source)


DATA = st.binary(min_size=1, max_size=30) | st.sampled_from([b"a", b"ab", b"abc", b"b"])
STEP = st.one_of(
    st.tuples(st.just("append"), st.just(b"") | DATA),
    st.tuples(st.just("replace"), DATA),
    st.tuples(st.just("crash"), DATA),
)


def crash(archive, garbage):
    """Leave what a killed process leaves: a frame without its event, and half an event."""
    for log in archive.root.rglob("*.jsonl"):
        append(log, TORN_EVENT)
        append(max(log.parent.glob(f"{log.stem}.*.zst"), default=log.with_suffix(".0001.zst")), garbage)


def follow(generations, data):
    """The generations after a file with these bytes was read."""
    if generations and data.startswith(generations[-1]):
        return [*generations[:-1], data]
    return [*generations, data]


@settings(deadline=None, max_examples=60)
@given(steps=st.lists(STEP, max_size=10))
def test_every_generation_reads_back(steps):
    with tempfile.TemporaryDirectory() as folder:
        archive, path = Archive(Path(folder, "archive")), Path(folder, "s.jsonl")
        content, generations = b"", []
        for what, data in steps:
            if what == "crash":
                crash(archive, data)
                continue
            content = content + data if what == "append" else data
            generations = follow(generations, content)
            kept = take(archive, path, content)
            assert archive.is_current(kept, path)
            assert archive.read(kept) == content
            assert [archive.read(kept, n) for n in range(1, len(generations) + 1)] == generations
            assert kept.size == len(content)


def test_emptied_file_starts_an_empty_generation(archive, source):
    take(archive, source)
    kept = take(archive, source, b"")
    assert (kept.generation, kept.size, archive.read(kept)) == (2, 0, b"")
    assert archive.read(kept, 1) == b"one\n"


def test_lost_frames_are_an_error(archive, source):
    kept = take(archive, source)
    frames_of(archive).unlink()
    with pytest.raises(StoreError, match="lost generation 1"):
        archive.read(kept)


@pytest.mark.parametrize("left", [b"", b'{"source":{"cli":"cla'])
def test_log_without_its_first_event_never_began(archive, source, left):
    take(archive, source)
    log_of(archive).write_bytes(left)
    assert list(archive.sources()) == []
    assert archive.find("claude", source) is None
    kept = take(archive, source)
    assert archive.read(kept) == b"one\n"
