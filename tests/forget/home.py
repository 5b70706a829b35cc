"""A home that holds a text in every place where one can stand, and a search through every byte of it."""

import json
import os
import pickle
from contextlib import closing
from pathlib import Path

import duckdb
import lance
import zstandard

from memex.search.refresh import refresh_raw, refresh_summaries
from memex.setup import Memex
from memex.sources.ingest import Ingest
from memex.store.schemas import TABLES
from tests.conftest import LONG_AGO
from tests.logs import ClaudeLog, talk

WORD, CHINESE = "xyzzy-plugh-42", "紫色的犀牛"
NEEDLES = (WORD, CHINESE)
MAGIC = b"\x28\xb5\x2f\xfd"
IDS = {
    "target": "11111111-0000-4000-8000-000000000001",
    "other": "22222222-0000-4000-8000-000000000002",
    "far": "33333333-0000-4000-8000-000000000003",
}


def refresh(memex: Memex) -> None:
    """Read, summarise and index everything."""
    memex.ingest.run(memex.ingest.plan())
    for batch in memex.compact.plan().batches:
        memex.compact.run(batch)
    refresh_raw(memex.lake, memex.raw_index)
    refresh_summaries(memex.lake, memex.summary_index)


def with_small_checkpoints(memex: Memex) -> Memex:
    """Set readers aside for logs of any size."""
    ingest = memex.ingest
    memex.ingest = Ingest(ingest.archive, ingest.lake, ingest.adapters, ingest.roots, ingest.exclude, 0)
    return memex


def log_at(claude_dir: Path, name: str, folder: str, cwd: str) -> ClaudeLog:
    return ClaudeLog(claude_dir / "projects" / folder / f"{IDS.get(name, name)}.jsonl", LONG_AGO, cwd)


def target_log(claude_dir: Path) -> ClaudeLog:
    """A log with the needles in its path, its title, and everything that was said and done."""
    log = log_at(claude_dir, "target", f"-src-{WORD}", f"/src/{WORD}")
    talk(log, f"please use {WORD} 和{CHINESE}", f'It is "{WORD}"\nnow, {CHINESE}好')
    log.prompt([{"type": "text", "text": f"again: \x1b[1m{CHINESE}\x1b[0m, {WORD[:5]}\x1b[31m{WORD[5:]}"}])
    log.reply({"type": "thinking", "thinking": f"{WORD}? {CHINESE}!"}, stop=None)
    log.call("Bash", {"command": f"git commit -m '{WORD}: {CHINESE}'"}, f"[main 1a2b3c4] {WORD}: {CHINESE}")
    log.call("Write", {"file_path": f"/src/{WORD}/{CHINESE}.py", "content": json.dumps({"k": f'"{CHINESE}"\n{WORD}'})})
    log.call("Bash", {"command": "make"}, persisted(log, f"{WORD}\n{CHINESE}\n" * 50))
    log.add("custom-title", customTitle=f"{CHINESE} {WORD}")
    log.add("file-history-snapshot", snapshot={f"/src/{WORD}": {"backup": CHINESE}}, uuid=...)
    return log.reply(f"Done with {WORD}.")


def persisted(log: ClaudeLog, output: str) -> str:
    """Write an oversized output beside its log, and give what the log says instead."""
    place = log.path.with_suffix("") / "tool-results" / "out1.txt"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(output)
    return f"<persisted-output>\nToo large. Full output saved to: {place}\n</persisted-output>"


def agent_of(log: ClaudeLog, text: str) -> ClaudeLog:
    """A subagent of a session."""
    path = log.path.with_suffix("") / "subagents" / "agent-7be41c02.jsonl"
    agent = ClaudeLog(path, LONG_AGO, "/src/agent")
    agent.prompt(text, isSidechain=True, sessionId=log.session, agentId="7be41c02")
    return agent.reply(f"I did {text}", isSidechain=True, sessionId=log.session, agentId="7be41c02")


def fork_of(log: ClaudeLog, name: str) -> ClaudeLog:
    """A log that begins with the records of another, under a session id of its own."""
    fork = ClaudeLog(log.path.with_name(f"{name}.jsonl"), LONG_AGO)
    fork.records = [{**record, "sessionId": name} for record in log.records]
    return fork


def history_line(text: str, session: str, number: int = 1) -> bytes:
    entry = {"display": text, "timestamp": 1788249600000 + number, "project": "/src/h", "sessionId": session}
    return json.dumps({key: value for key, value in entry.items() if value}, ensure_ascii=False).encode() + b"\n"


def lived(memex: Memex, claude_dir: Path) -> Memex:
    """Logs that hold the needles in one session and its subagent, beside two that hold none; one was rewritten."""
    log = target_log(claude_dir)
    agent_of(log, f"find the {CHINESE} {WORD}").write()
    talk(log, f"a prompt that a rewrite drops: {WORD} {CHINESE}").write()
    other = log_at(claude_dir, "other", "-src-app", "/src/app")
    talk(talk(other, "fix the login"), "修复登录").write()
    (claude_dir / "history.jsonl").write_bytes(
        history_line(f"please use {WORD} 和{CHINESE}", log.session)
        + history_line("of a session that is gone", "99999999-0000-4000-8000-000000000009", 2)
        + history_line(f"please use {WORD} 和{CHINESE}", "", 3)
    )
    refresh(memex)
    log.records = log.records[:-4]
    log.write()
    far = log_at(claude_dir, "far", "-src-far", "/src/far")
    talk(far, "add a flag").write()
    refresh(memex)
    for _record in range(4):  # so that no id comes again
        log.add("mode")
    talk(log, f"grown with {WORD}").write()
    talk(other, "one more").write()
    refresh(memex)
    return memex


def story(memex: Memex, skip: frozenset[str] = frozenset()) -> dict[str, list[dict]]:
    """All rows of all tables that tell of other sessions than these; the history is one of them."""

    def tells(table: str, row: dict) -> bool:
        return row.get("session_id" if table != "sessions" else "id") not in skip

    found = {table: [row for row in memex.lake.scan(table).to_pylist() if tells(table, row)] for table in TABLES}
    return {table: sorted(rows, key=lambda row: row["id"]) for table, rows in found.items()}


def holding(home: Path, *needles: str) -> list[str]:
    """Name the places that hold one of the needles: files as they are, unpacked, and the rows they keep."""
    variants = {v for needle in needles for v in _variants(needle)}
    found = [
        f"{path.relative_to(home)}{how}"
        for path in _files(home)
        for how, data in _contents(path)
        if _any(data, variants)
    ]
    return [*found, *_in_lake(home, variants), *_in_indexes(home, variants)]


def fingerprints(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in _files(home)}


def _variants(needle: str) -> set[bytes]:
    once = json.dumps(needle)[1:-1]
    return {needle.encode(), once.encode(), once.replace("\\", "\\\\").encode(), needle.encode("utf-16-le")}


def _any(data: bytes, variants: set[bytes]) -> bool:
    return any(variant in data for variant in variants)


def _files(home: Path) -> list[Path]:
    return sorted(Path(folder, name) for folder, _folders, names in os.walk(home) for name in names)


def _contents(path: Path) -> list[tuple[str, bytes]]:
    data = path.read_bytes()
    contents = [("", data), (" (name)", str(path).encode())]
    while MAGIC in data[:4]:
        data = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress(data)
        contents.append((" (unpacked)", data))
    return contents


def _in_lake(home: Path, variants: set[bytes]) -> list[str]:
    found = []
    for table in sorted((home / "lake").glob("*.lance")):
        for version in lance.dataset(str(table)).versions():
            rows = lance.dataset(str(table), version=version["version"]).to_table().to_pylist()
            if _any(json.dumps(rows, default=str, ensure_ascii=False).encode(), variants):
                found.append(f"{table.name} version {version['version']}")
    return found


def _in_indexes(home: Path, variants: set[bytes]) -> list[str]:
    found = []
    for part in sorted((home / "index").rglob("*.duckdb")):
        with closing(duckdb.connect(str(part), read_only=True)) as connection:
            for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
                rows = connection.execute(f"SELECT * FROM {table}").fetchall()
                if _any(json.dumps(rows, default=str, ensure_ascii=False).encode(), variants):
                    found.append(f"{part.name} {table}")
    return found


def unreferenced(home: Path) -> list[str]:
    """Name data files of the lake that no row is read from: what was deleted may still stand in them."""
    stray = []
    for table in sorted((home / "lake").glob("*.lance")):
        dataset = lance.dataset(str(table))
        used = {Path(file.path).name for fragment in dataset.get_fragments() for file in fragment.data_files()}
        deleted = sum(fragment.num_deletions for fragment in dataset.get_fragments())
        stray += [f"{table.name}/{path.name}" for path in (table / "data").glob("*") if path.name not in used]
        stray += [f"{table.name}: {deleted} deleted rows"] * bool(deleted) + [f"{table.name}: old versions"] * (
            len(dataset.versions()) - 1
        )
    return stray


def readers_of(home: Path) -> list[object]:
    """Load the readers that were set aside."""
    paths = (home / "cache" / "readers").rglob("*.zst")
    return [pickle.loads(zstandard.ZstdDecompressor().decompress(path.read_bytes())) for path in paths]
