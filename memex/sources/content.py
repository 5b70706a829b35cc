"""What the JSON of a log holds: text in blocks, times in several notations."""

import json
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from memex.text import plain


def flatten(content: Any, with_results: bool = True, with_calls: bool = False) -> str:
    """Join the text of a content field: a string, or blocks of text, tool results and tool calls."""
    if isinstance(content, str):
        return plain(content)
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return ""
    parts = []
    for block in content:
        if isinstance(block, str):
            parts.append(plain(block))
        elif isinstance(block, dict):
            match block.get("type"):
                case "text" | "input_text" | "output_text" | "summary_text" | "reasoning_text":
                    parts.append(clean(block.get("text")))
                case "tool_result" if with_results:
                    parts.append(flatten(block.get("content")))
                case "tool_use" if with_calls:
                    parts.append(f"[{block.get('name')}] {json.dumps(block.get('input'), ensure_ascii=False)}")
                case "image" | "document" as kind:
                    parts.append(f"[{kind}]")
                case "input_image":
                    parts.append("[image]")
    return "\n".join(part for part in parts if part)


def clean(text: Any) -> str:
    """Take a string without terminal escapes and NULs; anything else is no text."""
    return plain(text) if isinstance(text, str) else ""


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file; one that is missing, unreadable or something else is empty."""
    try:
        return json_object(path.read_bytes())
    except OSError:
        return {}


def json_object(data: bytes) -> dict[str, Any]:
    """Read a JSON object; anything else is empty."""
    import orjson

    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def read_time(value: Any) -> datetime | None:
    """Read RFC 3339, or epoch seconds or milliseconds; anything else is no time."""
    if isinstance(value, str):
        return _read_text(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
        except (ValueError, OverflowError, OSError):
            pass
    return None


@lru_cache(maxsize=256)  # one record is asked for its time several times
def _read_text(value: str) -> datetime | None:
    try:
        ts = datetime.fromisoformat(value)
        return ts.astimezone(UTC) if ts.tzinfo else ts.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
