"""What was forgotten is taken out of what is read, before it is kept; files on disk are known again all the same."""

import json

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.sources import erase
from memex.sources.acts import Acts
from memex.sources.archive import Archive, UnreadableSource
from memex.sources.base import Found
from memex.sources.blobs import KeptBlob
from memex.sources.copies import Copies, name_mark, record_mark
from memex.sources.secrets import Secrets
from memex.sources.tombstones import Tombstones, packed_marks
from memex.sources.verify import verify

SECRET = b"hunter2-secret"
MARKER = b"[forgotten...]"


@pytest.fixture
def archive(tmp_path):
    return Archive(tmp_path / "archive")


def forget(archive, *texts, sessions=(), marks=()):
    act = {"sessions": [name_mark(name) for name in sessions], "marks": packed_marks(marks)}
    Acts(archive.root).add("forget", id="1", **act, **({"secrets": Secrets.of(texts).written()} if texts else {}))


def take(archive, path, data=None, role="log"):
    if data is not None:
        path.write_bytes(data)
    [kept] = archive.take([Found("claude", str(path), "claude:session", role)])
    assert not isinstance(kept, UnreadableSource)
    return kept


def line(text, **more):
    return json.dumps({"uuid": text, "text": text, **more}).encode() + b"\n"


def test_nothing_forgotten_changes_nothing(archive, tmp_path):
    assert not Tombstones.of(archive.root)
    assert Tombstones.of(archive.root).cleaner("claude", "log", "/a.jsonl") is None
    kept = take(archive, tmp_path / "a.jsonl", line(SECRET.decode()))
    assert set(kept.chunks[0].event()["chunk"]) == {"generation", "at", "size", "stored_at", "stored", "sha256"}


def test_text_is_taken_out_before_it_is_kept(archive, tmp_path):
    forget(archive, SECRET)
    data = line("a") + line("the hunter2-secret is") + line("b")
    kept = take(archive, tmp_path / "a.jsonl", data)
    assert archive.read(kept) == data.replace(SECRET, MARKER)
    assert verify(archive, disk=True).differs == ()


def test_file_that_still_holds_it_grows_in_its_generation(archive, tmp_path):
    forget(archive, SECRET)
    path, data = tmp_path / "a.jsonl", line("the hunter2-secret is")
    take(archive, path, data)
    for text in ("more", "again hunter2-secret", "end"):
        data += line(text)
        kept = take(archive, path, data)
    assert (kept.generation, len(kept.chunks)) == (1, 4)
    assert archive.read(kept) == data.replace(SECRET, MARKER)
    assert verify(archive, disk=True).differs == ()
    assert take(archive, path, data.replace(b"again", b"AGAIN")).generation == 2


def test_text_forgotten_later_is_taken_out_of_what_is_kept(archive, tmp_path):
    path, old, new = tmp_path / "a.jsonl", line("hunter2-secret old"), line("x") + line("new hunter2-secret")
    take(archive, path, old)
    take(archive, path, new[:20])
    take(archive, path, new)
    forget(archive, SECRET)
    [kept] = archive.sources()
    assert erase.rewrite(archive.log_of(kept), kept, Tombstones.of(archive.root))
    [clean] = archive.sources()
    assert archive.read(clean, 1) == old.replace(SECRET, MARKER)
    assert archive.read(clean, 2) == new.replace(SECRET, MARKER)
    assert (clean.stat, clean.first_at, clean.generation) == (kept.stat, kept.first_at, kept.generation)
    assert not erase.rewrite(archive.log_of(clean), clean, Tombstones.of(archive.root))
    grown = take(archive, path, new + line("more"))
    assert (grown.generation, archive.read(grown)) == (2, new.replace(SECRET, MARKER) + line("more"))
    assert verify(archive, disk=True).differs == verify(archive).damaged == ()


CUTS = st.lists(st.integers(1, 400), max_size=6)


@settings(max_examples=60, deadline=None)
@given(cuts=CUTS, forgotten=st.integers(0, 6))
def test_text_read_in_pieces_is_taken_out_like_one_read_at_once(tmp_path_factory, cuts, forgotten):
    folder = tmp_path_factory.mktemp("pieces")
    archive, path = Archive(folder / "archive"), folder / "a.jsonl"
    data = line("one") + line("say hunter2-secret twice: hunter2-secret") + line("copied") + line("end hunter2-secret")
    record = json.loads(line("copied"))
    for number, end in enumerate([*sorted(set(cuts)), len(data)]):
        if number == forgotten:
            forget(archive, SECRET, marks=[record_mark(record)], sessions=["claude:other"])
        take(archive, path, data[:end])
        if number == forgotten:
            [kept] = archive.sources()
            erase.rewrite(archive.log_of(kept), kept, Tombstones.of(archive.root))
    [kept] = archive.sources()
    clean = data.replace(SECRET, MARKER).replace(line("copied"), b" " * (len(line("copied")) - 1) + b"\n")
    if forgotten <= len(set(cuts)):
        assert archive.read(kept) == clean
    assert kept.generation == 1
    assert verify(archive, disk=True).differs == ()
    assert erase.sweep(archive.root) == 0


@pytest.mark.parametrize("name", ["out.txt", "doc.json"])
def test_side_files_are_cleaned_as_a_whole(archive, tmp_path, name):
    forget(archive, b"two\nlines")
    path = tmp_path / name
    take(archive, path, b"before two\n", role="side")
    kept = take(archive, path, b"before two\nlines after", role="side")
    assert archive.read(kept) == b"before ********* after"
    assert verify(archive, disk=True).differs == ()


def test_packed_logs_are_unpacked_and_packed_again(archive, tmp_path):
    forget(archive, SECRET)
    lines = b"".join(line(f"{number} hunter2-secret") for number in range(500))
    path = tmp_path / "a.jsonl.zst"
    kept = take(archive, path, zstandard.ZstdCompressor(19).compress(lines))
    assert b"".join(KeptBlob(archive, kept, 1).pieces()) == lines.replace(SECRET, MARKER)
    assert verify(archive, disk=True).differs == ()
    again = take(archive, path, path.read_bytes())
    assert (again.generation, len(again.chunks)) == (1, 1)
    more = zstandard.ZstdCompressor().compress(line("more hunter2-secret"))
    grown = take(archive, path, path.read_bytes() + more)
    assert grown.generation == 2
    told = b"".join(KeptBlob(archive, grown, 2).pieces())
    assert told == (lines + line("more hunter2-secret")).replace(SECRET, MARKER)


def test_packed_log_without_it_stays_verbatim(archive, tmp_path):
    forget(archive, SECRET)
    data = zstandard.ZstdCompressor(19).compress(line("nothing"))
    kept = take(archive, tmp_path / "a.jsonl.zst", data)
    assert archive.read(kept) == data and kept.chunks[0].disk is None


def test_packed_log_that_grows_into_it(archive, tmp_path):
    forget(archive, SECRET)
    path, first = tmp_path / "a.jsonl.zst", zstandard.ZstdCompressor().compress(line("nothing"))
    take(archive, path, first)
    kept = take(archive, path, first + zstandard.ZstdCompressor().compress(line("hunter2-secret")))
    told = b"".join(b"".join(KeptBlob(archive, kept, g).pieces()) for g in range(1, kept.generation + 1))
    assert SECRET not in told and MARKER in told
    assert verify(archive, disk=True).differs == ()


def test_path_is_cleaned_too(archive, tmp_path):
    forget(archive, SECRET)
    folder = tmp_path / "hunter2-secret"
    folder.mkdir()
    kept = take(archive, folder / "a.jsonl", line("x"))
    assert kept.path == str(tmp_path / MARKER.decode() / "a.jsonl")
    assert take(archive, folder / "a.jsonl", line("x") + line("y")).id == kept.id


def test_files_of_forgotten_sessions_are_passed_over(archive, tmp_path):
    forget(archive, sessions=["claude:session"])
    path = tmp_path / "a.jsonl"
    path.write_bytes(line("x"))
    assert list(archive.take([Found("claude", str(path), "claude:session")])) == []
    assert list(archive.sources()) == []


class TestSweep:
    def test_what_no_log_counts_is_deleted(self, archive, tmp_path):
        kept = take(archive, tmp_path / "a.jsonl", line("x"))
        log = archive.log_of(kept)
        for name in (f"{kept.id}.0001.3.zst", f"{kept.id}.aside", "0" * 32 + ".jsonl", "0" * 32 + ".0001.zst"):
            (log.parent / name).write_bytes(b"")
        with kept.frames(log).open("ab") as file:
            file.write(b"what a crash left")
        assert erase.sweep(archive.root) == 4
        assert archive.read(kept) == line("x")
        assert kept.frames(log).stat().st_size == kept.chunks[-1].stored
        assert sorted(path.name for path in log.parent.iterdir()) == [f"{kept.id}.0001.zst", f"{kept.id}.jsonl"]

    def test_erased_source_leaves_no_file(self, archive, tmp_path):
        path = tmp_path / "a.jsonl"
        take(archive, path, line("x"))
        kept = take(archive, path, line("y"))
        erase.erase(archive.log_of(kept), kept)
        assert list(archive.log_of(kept).parent.iterdir()) == []


class TestCopies:
    def test_copy_is_known_by_id_and_time(self):
        record = {"uuid": "u", "timestamp": "t", "sessionId": "s", "text": "x"}
        assert record_mark(record) == record_mark({**record, "sessionId": "other", "text": "y"})
        assert record_mark(record) != record_mark({**record, "timestamp": "later"})

    def test_copies_without_ids_stand_together(self):
        said = [{"type": "say", "payload": {"text": text}, "timestamp": n} for n, text in enumerate(["a", "go on"])]
        own = {"type": "say", "payload": {"text": "own"}}
        copies = Copies("codex", {"-"}, set(map(record_mark, said)))
        lines = [{"type": "meta", "id": 1}, *({**record, "timestamp": 9} for record in said), own, said[1]]
        assert [copies.holds(json.dumps(one).encode()) for one in lines] == [False, True, True, False, False]

    @pytest.mark.parametrize("odd", [b"", b"\n", b"7\n", b"[]\n", b"{torn", b'{"uuid": 3}\n', b"\xff\n", b" \n"])
    def test_odd_lines_are_no_copies(self, odd):
        assert not Copies("claude", {"-"}, {1}).holds(odd)
