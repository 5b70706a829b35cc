"""Backups that are damaged, foreign, newer, older, or made to do harm."""

import hashlib
import io
import shutil
import tarfile

import orjson
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memex.backup.manifest import head
from memex.errors import BackupError
from tests.backup.homes import KINDS, home_at, log_in, refresh, story, target, tree
from tests.logs import talk


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A backup of each kind, and all rows of their home."""
    folder = tmp_path_factory.mktemp("whole")
    memex = home_at(folder)
    talk(log_in(folder / "claude"), "one").write()
    memex.acts.add("merge_projects", source="dir:/a", target="dir:/b")
    refresh(memex)
    for kind in KINDS:
        memex.backup.run(target(folder, kind))
    return folder, story(memex)


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory):
    """Another home, with something in it."""
    folder = tmp_path_factory.mktemp("lived")
    memex = home_at(folder)
    talk(log_in(folder / "claude", "2"), "two").write()
    return refresh(memex)


def refused(memex, place, says):
    before = tree(memex.archive.root), story(memex), sorted(path.name for path in memex.home.iterdir())
    with pytest.raises(BackupError, match=says) as caught:
        memex.restore.run(place)
    after = tree(memex.archive.root), story(memex), sorted(path.name for path in memex.home.iterdir())
    assert {*after[2]} - {*before[2]} <= {"restore.lock"}
    assert after[:2] == before[:2]
    assert caught.value.hint
    return caught.value


def repacked(place, change):
    """Pack a backup again, its members changed: a list of (member, bytes)."""
    plain = zstandard.ZstdDecompressor().stream_reader(place.read_bytes()).read()
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        members = [(member, tar.extractfile(member).read()) for member in tar]
    change(members)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for member, data in members:
            if member.isreg():
                member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    place.write_bytes(zstandard.ZstdCompressor().compress(packed.getvalue()))


def mine(whole, tmp_path, kind):
    place = target(tmp_path, kind)
    (shutil.copy if kind == "tar" else shutil.copytree)(target(whole[0], kind), place)
    return place


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.floats(0, 0.999), cut=st.booleans())
def test_damaged_file(whole, lived_in, tmp_path, at, cut):
    data = bytearray(target(whole[0], "tar").read_bytes())
    place = int(at * len(data))
    if cut:
        del data[place:]
    else:
        data[place] ^= 0x10
    (tmp_path / "bad.tar.zst").write_bytes(data)
    refused(lived_in, tmp_path / "bad.tar.zst", "is damaged|is no backup")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(which=st.integers(0, 10**6), at=st.floats(0, 0.999), how=st.sampled_from(["flip", "cut", "delete"]))
def test_damaged_folder(whole, lived_in, tmp_path, which, at, how):
    shutil.rmtree(tmp_path / "backup", ignore_errors=True)
    folder = mine(whole, tmp_path, "folder")
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json")
    victim = files[which % len(files)]
    data = bytearray(victim.read_bytes())
    if how == "delete":
        victim.unlink()
    elif how == "cut":
        victim.write_bytes(data[: int(at * len(data))])
    else:
        data[int(at * len(data))] ^= 0x10
        victim.write_bytes(data)
    assert "use another" in refused(lived_in, folder, "is damaged").hint


@pytest.mark.parametrize(
    ("content", "says"), [(b"", "no backup"), (b"{", "no backup"), (b"[]", "no backup"), (b"{}", "no backup")]
)
def test_foreign_manifest(lived_in, tmp_path, content, says):
    (tmp_path / "manifest.json").write_bytes(content)
    refused(lived_in, tmp_path, says)


@pytest.mark.parametrize("kind", ["plain", "zst", "tar"])
def test_foreign_file(lived_in, tmp_path, kind):
    place = tmp_path / "other.tar.zst"
    if kind == "plain":
        place.write_bytes(b"hello")
    elif kind == "zst":
        place.write_bytes(zstandard.ZstdCompressor().compress(b"hello" * 1000))
    else:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("readme.txt"), io.BytesIO())
        place.write_bytes(zstandard.ZstdCompressor().compress(packed.getvalue()))
    refused(lived_in, place, "no backup|is damaged")


@pytest.mark.parametrize("version", ["memex_backup", "schema"])
@pytest.mark.parametrize("kind", KINDS)
def test_newer_backup(whole, lived_in, tmp_path, kind, version):
    place = mine(whole, tmp_path, kind)
    newer = orjson.dumps(head() | {version: 99})
    if kind == "tar":
        repacked(place, lambda members: members.__setitem__(0, (members[0][0], newer)))
    else:
        body = orjson.loads((place / "manifest.json").read_bytes())
        (place / "manifest.json").write_bytes(orjson.dumps(body | {version: 99}))
    assert "update Memex" in refused(lived_in, place, "newer Memex").hint
    with pytest.raises(BackupError, match="newer Memex"):
        lived_in.backup.run(place)


def test_older_backup_lacks_columns(whole, tmp_path):
    folder = mine(whole, tmp_path, "folder")
    for path in (folder / "rows").glob("*.parquet"):
        rows = pq.read_table(path)
        pq.write_table(rows.select([name for name in rows.column_names if name != "project_id"]), path)
    body = orjson.loads((folder / "manifest.json").read_bytes())
    body["schema"] = 1
    for name, entry in body["files"].items():
        if name.startswith("rows/"):
            data = (folder / name).read_bytes()
            entry["parts"] = [[len(data), hashlib.sha256(data).hexdigest()]]
    (folder / "manifest.json").write_bytes(orjson.dumps(body))
    there = home_at(tmp_path / "there")
    there.restore.run(folder)
    assert story(there) == whole[1]


EVIL = [
    "../evil", "/tmp/evil", "archive/../../evil", "archive/claude/../../../evil", "rows/../evil.parquet", "evil",
    "archive/claude/ab/../../../../evil.jsonl", "archive\\..\\evil", "archive/claude/ab/ab.jsonl/evil",
    "rows/sessions.parquet",
]  # fmt: skip


@pytest.mark.parametrize("name", EVIL)
def test_name_that_leads_out(whole, lived_in, tmp_path, name):
    place = mine(whole, tmp_path, "tar")
    repacked(place, lambda members: members.insert(1, (tarfile.TarInfo(name), b"evil")))
    refused(lived_in, place, "which no backup of Memex does")
    assert not list(tmp_path.rglob("*evil*"))
    folder = mine(whole, tmp_path, "folder")
    body = orjson.loads((folder / "manifest.json").read_bytes())
    body["files"][name] = {"stored": name, "parts": []}
    (folder / "manifest.json").write_bytes(orjson.dumps(body))
    refused(lived_in, folder, "which no backup of Memex does")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_what_is_no_plain_file(whole, lived_in, tmp_path, kind):
    place = mine(whole, tmp_path, "tar")
    member = tarfile.TarInfo("archive/acts.jsonl")
    member.type, member.linkname = kind, "/etc/passwd"
    repacked(place, lambda members: members.insert(1, (member, b"")))
    refused(lived_in, place, "no plain file")


@pytest.mark.parametrize("how", ["stored", "link", "linked folder"])
def test_folder_that_leads_elsewhere(whole, lived_in, tmp_path, how):
    folder = mine(whole, tmp_path, "folder")
    (tmp_path / "outside").write_bytes((folder / "archive" / "acts.jsonl").read_bytes())
    if how == "stored":
        body = orjson.loads((folder / "manifest.json").read_bytes())
        body["files"]["archive/acts.jsonl"]["stored"] = "../outside"
        (folder / "manifest.json").write_bytes(orjson.dumps(body))
    elif how == "link":
        (folder / "archive" / "acts.jsonl").unlink()
        (folder / "archive" / "acts.jsonl").symlink_to(tmp_path / "outside")
    else:
        shutil.move(folder / "archive", tmp_path / "elsewhere")
        (folder / "archive").symlink_to(tmp_path / "elsewhere")
    refused(lived_in, folder, "is damaged")


def test_file_that_comes_twice_or_after_the_end(whole, lived_in, tmp_path):
    place = mine(whole, tmp_path, "tar")
    repacked(place, lambda members: members.insert(2, members[1]))
    refused(lived_in, place, "twice")
    place = mine(whole, tmp_path, "tar")
    repacked(place, lambda members: members.append(members[1]))
    refused(lived_in, place, "follows its end")
    place = mine(whole, tmp_path, "tar")
    repacked(place, lambda members: members.pop(1))
    refused(lived_in, place, "not what the manifest says")
