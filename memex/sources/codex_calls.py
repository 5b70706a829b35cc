"""What Codex calls and what comes back, in the shape that the calls of other CLIs have.

A shell command is text under `command`, whether it was given as text, as a list or inside a script. An output is
what the command printed; that it failed, and whether it still runs, is told as other CLIs tell it.
"""

import json
import re
import shlex
from dataclasses import dataclass
from typing import Any

from memex.sources.content import clean, flatten

_SHELLS = ("bash", "sh", "zsh", "dash", "fish", "pwsh", "powershell", "cmd")
_ENVELOPE = ("type", "id", "status", "call_id", "timestamp", "internal_chat_message_metadata_passthrough")
_SCRIPTED = re.compile(r"\btools\.exec_command\(")
_COMMAND = re.compile(r"""\bcmd["']?\s*:\s*("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`)""", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_HEADER = re.compile(
    r"(?:Command: .*?\n)?(?:Chunk ID: [^\n]*\n)?(?P<script>Script [^\n]*\n)?(?:Exit code: (?P<exit>-?\d+)\n)?"
    r"Wall time:? [^\n]*\n(?:Process exited with code (?P<code>-?\d+)\n)?"
    r"(?P<running>Process running with session ID \S+\n)?"
    r"(?:Original token count: \d+\n)?(?:Total output lines: \d+\n)?\n?Output:\n{0,2}",
    re.DOTALL,
)
_EXITED = re.compile(r"^Process exited with code (-?\d+)", re.MULTILINE)
_FAILED = re.compile(
    r"Script failed|apply_patch verification failed|exec_command failed|failed to parse function arguments|"
    r"unsupported (?:call|custom tool)|execution error|aborted(?: by user)?\b|command timed out"
)
_RUNNING = re.compile(r"^(?:Process running with session|Script running with cell) ID (\w+)", re.MULTILINE)
_POLLED = re.compile(r"""\bsession_id["']?\s*:\s*["']?(\w+)""")
_RESULT = {
    "output", "metadata", "exit_code", "chunk_id", "wall_time_seconds", "wall_time", "original_token_count",
    "session_id", "content", "success", "isError", "is_error",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Output:
    """What a call returned. `running` names the process that goes on, by which a later call asks for more."""

    text: str
    is_error: bool = False
    running: str = ""


def call_of(payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Read the name and the arguments of a `…_call` item."""
    name = payload.get("name")
    if not isinstance(name, str) or not name:
        name = str(payload.get("type")).removesuffix("_call")
    namespace = payload.get("namespace")
    if isinstance(namespace, str) and namespace.startswith("mcp__"):
        name = f"{namespace}__{name}"
    return name, _with_command(name, _arguments(payload))


def polled_by(given: dict[str, Any]) -> str:
    """Name the running process that a call asks for more output, or ""."""
    for key in ("session_id", "cell_id"):
        if isinstance(given.get(key), int | str):
            return str(given[key])
    found = _POLLED.search(clean(given.get("input")))
    return found[1] if found else ""


def output_of(payload: dict[str, Any]) -> Output:
    """Read the output of a `…_output` item: a string, blocks, an object, or an object written as a string."""
    value = payload.get("output", payload.get("tools"))
    if isinstance(value, list):
        parts = [_read(_text_of(block)) for block in value]
    elif isinstance(value, dict):
        parts = [_of_object(value)]
    else:
        parts = [_read(clean(value) if isinstance(value, str) else "" if value is None else _dump(value))]
    text = "\n".join(part.text for part in parts if part.text)
    running = next((part.running for part in parts if part.running), "")
    return Output(text, any(part.is_error for part in parts) or payload.get("success") is False, running)


def call_in_script(payload: dict[str, Any]) -> tuple[str, dict[str, Any], Output]:
    """Read name, arguments and result of a call that a script made, from its event: it has no item of its own."""
    made, result = payload.get("invocation"), payload.get("result")
    if not isinstance(made, dict):  # a search tells it without these wrappers
        made, result = {"tool": "web_search", "arguments": payload.get("action")}, {"content": payload.get("results")}
    if isinstance(result, dict) and len(result) == 1:
        result = result.get("Ok", result.get("Err", result))
    server = clean(made.get("server"))
    name = f"mcp__{server}__{clean(made.get('tool'))}" if server else clean(made.get("tool"))
    return name or "unknown", _arguments(made), output_of({"output": result})


def has_failed(payload: dict[str, Any]) -> bool:
    """Tell whether a call failed, according to what its event or its own status says."""
    result, code = payload.get("result"), payload.get("exit_code")
    done = result.get("Ok") if isinstance(result, dict) else None
    return (
        (isinstance(result, dict) and "Err" in result)
        or (isinstance(done, dict) and done.get("isError") is True)
        or payload.get("success") is False
        or payload.get("status") == "failed"
        or _is_bad(code)
    )


def _arguments(payload: dict[str, Any]) -> dict[str, Any]:
    for key in ("arguments", "input", "action"):
        given = payload.get(key)
        if isinstance(given, str):
            parsed = _object(given) if key == "arguments" else None
            return {"input": given} if parsed is None else parsed
        if isinstance(given, dict):
            return dict(given)
        if given is not None:
            return {"input": given}
    skipped = (*_ENVELOPE, "name", "namespace", "result")  # the result of an image is its bytes
    return {key: value for key, value in payload.items() if value is not None and key not in skipped}


def _with_command(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Put the shell command of a call, if it has one, as text under `command`."""
    if name == "exec" and isinstance(given.get("input"), str):
        command = "\n".join(_scripted(given["input"]))
        return {**given, "command": command} if command else given
    key = "cmd" if "cmd" in given else "command"
    value = given.get(key)
    rest = {name: item for name, item in given.items() if name != key}
    if isinstance(value, str):
        return {"command": value, **rest}
    if not isinstance(value, list) or not value:
        return given
    words = [word if isinstance(word, str) else _dump(word) for word in value]
    shell = re.split(r"[\\/]", words[0])[-1].lower().removesuffix(".exe")
    if len(words) > 2 and shell in _SHELLS and all(word.startswith(("-", "/")) for word in words[1:-1]):
        return {"command": words[-1], "shell": shlex.join(words[:-1]), **rest}
    return {"command": shlex.join(words), **rest}


def _scripted(code: str) -> list[str]:
    """List the shell commands that a script runs; one that is not written out is an ellipsis."""
    commands = [_ESCAPE.sub(_unescaped, found[1:-1]) for found in _COMMAND.findall(code)]
    hidden = len(_SCRIPTED.findall(code)) > len(commands) > 0
    return [*commands, "…"] if hidden else commands


def _unescaped(match: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t"}.get(match[1], match[1])


def _read(text: str) -> Output:
    """Take the frame off the output of a command, whichever of its forms it has."""
    value = _object(text)
    if value is not None and (isinstance(value.get("metadata"), dict) or "exit_code" in value or "chunk_id" in value):
        return _of_object(value)
    header = _HEADER.match(text)
    if header is None:
        exited = _EXITED.search(text[:400])
        bad = bool(_FAILED.match(text)) or bool(exited and exited[1] != "0")
        return Output(text, bad, _running(text))
    code = header["exit"] or header["code"] or "0"
    kept = header["running"] or ""
    if header["script"] and not header["script"].startswith("Script completed"):
        kept += header["script"]
    return _ended(kept + text[header.end() :], "" if code == "0" else code, bool(_FAILED.match(kept)))


def _of_object(value: dict[str, Any]) -> Output:
    metadata = value.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else value.get("exit_code")
    failed = value.get("success") is False or True in (value.get("isError"), value.get("is_error"))
    body = value.get("output", value.get("content"))
    if not isinstance(body, str | list) or not value.keys() <= _RESULT:
        return Output(_dump(value), failed or _is_bad(code))
    text = clean(body) if isinstance(body, str) else "\n".join(filter(None, map(_text_of, body)))
    if isinstance(value.get("session_id"), int | str):
        text = f"Process running with session ID {value['session_id']}\n{text}"
    return _ended(text, str(code) if _is_bad(code) else "", failed)


def _ended(text: str, code: str, failed: bool) -> Output:
    """Tell a failure in the words that every CLI's output has."""
    return Output(f"Exit code {code}\n{text}" if code else text, failed or bool(code), _running(text))


def _running(text: str) -> str:
    found = _RUNNING.match(text)
    return found[1] if found else ""


def _text_of(block: Any) -> str:
    """Give the text of a block; one that is not text is given as JSON."""
    empty = block == "" or (isinstance(block, dict) and block.get("text") == "")
    return flatten([block]) or ("" if empty else _dump(block))


def _is_bad(code: Any) -> bool:
    return isinstance(code, int) and code != 0


def _object(text: str) -> dict[str, Any] | None:
    """Decode a string that holds a JSON object; None when it holds anything else."""
    import orjson

    if not text.lstrip().startswith("{"):
        return None
    try:
        value = orjson.loads(text.encode("utf-8", "replace"))
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _dump(value: Any) -> str:
    try:
        return clean(json.dumps(value, ensure_ascii=False, default=str))
    except RecursionError:
        return "(nested too deep)"
