"""Build a large home of Claude Code logs out of the shapes of real ones, for benchmarks.

    python benchmarks/big_home.py TARGET [--files 10000] [--megabytes 2000] [--largest 500] [--line 50]

Every file is a stretch of a real log under ids of its own, so that none is taken for a copy of another. One
file has `--largest` MB, one line `--line` MB (a pasted picture). The same arguments give the same bytes.
"""

import argparse
import os
import random
import uuid
from itertools import count
from pathlib import Path

SHARED = Path(os.environ.get("MEMEX_SHARED", "../shared")) / "corpus" / "home"


def main() -> None:
    """Build the home, and say what it holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--megabytes", type=float, default=2000)
    parser.add_argument("--largest", type=float, default=500)
    parser.add_argument("--line", type=float, default=50)
    given = parser.parse_args()
    build(given.target, given.files, *(int(1e6 * size) for size in (given.megabytes, given.largest, given.line)))
    files = list(given.target.rglob("*.jsonl"))
    print(f"{len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.0f} MB in {given.target}")


def build(target: Path, files: int, total: int, largest: int, line: int) -> None:
    """Write `files` logs of `total` bytes below `target/.claude`, one of `largest` bytes, one with a long line."""
    logs = [path.read_bytes().splitlines(keepends=True) for path in sorted(SHARED.glob(".claude/projects/**/*.jsonl"))]
    logs = [lines for lines in logs if len(lines) > 20]
    generator = random.Random(7)
    usual = (total - largest - line) // max(1, files - 2)
    for number in range(files):
        size = largest if number == 0 else line + 1000 if number == 1 else int(usual * generator.uniform(0.2, 1.8))
        session = str(uuid.UUID(int=generator.getrandbits(128)))
        path = target / ".claude" / "projects" / f"-src-app{number % 200}" / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            if number == 1:
                file.write(pasted_picture(session, line))
            write_log(file, logs, size, generator)


def write_log(file, logs: list[list[bytes]], size: int, generator: random.Random) -> None:
    """Write stretches of real logs, each with its ids made new."""
    for stretch in count():
        lines = generator.choice(logs)
        mark = b"%08x" % generator.getrandbits(32)
        for text in lines:
            if file.tell() >= size:
                return
            text = text.replace(b'uuid":"', b'uuid":"' + mark).replace(b'"msg_', b'"msg_' + mark)
            file.write(text.replace(b"toolu_", b"toolu_" + mark).replace(b'"parentUuid":"', b'"parentUuid":"' + mark))
        assert stretch < 1_000_000


def pasted_picture(session: str, size: int) -> bytes:
    """Make a prompt with a picture of `size` bytes on one line."""
    return (
        b'{"type":"user","uuid":"picture","timestamp":"2026-09-01T08:00:00Z","sessionId":"%s","cwd":"/src/app",'
        b'"message":{"role":"user","content":[{"type":"text","text":"what is on this picture?"},'
        b'{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]}}\n'
    ) % (session.encode(), b"A" * size)


if __name__ == "__main__":
    main()
