"""What a tool call does, told from its name and its arguments."""

import re
from typing import Any

from memex.model import Operation
from memex.text import unique

OPERATIONS: dict[str, Operation] = {
    "Read": "read", "NotebookRead": "read", "LS": "search", "Glob": "search", "Grep": "search",
    "ToolSearch": "search", "LSP": "search", "Edit": "edit", "MultiEdit": "edit", "NotebookEdit": "edit",
    "Write": "write", "Bash": "run", "PowerShell": "run", "BashOutput": "read", "KillShell": "other",
    "WebFetch": "fetch", "WebSearch": "fetch", "Task": "delegate", "Agent": "delegate", "Skill": "other",
    "TodoWrite": "plan", "TodoRead": "plan", "TaskCreate": "plan", "TaskUpdate": "plan", "TaskList": "plan",
    "TaskGet": "plan", "TaskOutput": "read", "EnterPlanMode": "plan", "ExitPlanMode": "plan",
    "AskUserQuestion": "ask",
    # Codex
    "shell": "run", "shell_command": "run", "local_shell": "run", "exec_command": "run", "exec": "run",
    "write_stdin": "read", "wait": "read", "apply_patch": "edit", "update_plan": "plan", "create_goal": "plan",
    "update_goal": "plan", "get_goal": "plan", "view_image": "read", "read_file": "read", "list_dir": "search",
    "grep_files": "search", "tool_search": "search", "web_search": "fetch", "web__run": "fetch",
    "spawn_agent": "delegate", "send_input": "delegate", "send_message": "delegate", "followup_task": "delegate",
    "wait_agent": "read", "list_agents": "read", "request_user_input": "ask",
    # Gemini CLI
    "read_many_files": "read", "list_directory": "search", "glob": "search", "search_file_content": "search",
    "grep_search": "search", "write_file": "write", "replace": "edit", "run_shell_command": "run",
    "web_fetch": "fetch", "google_web_search": "fetch", "save_memory": "write", "write_todos": "plan",
}  # fmt: skip
_SCRIPT_TOOL = re.compile(r"\btools\.(\w+)")
_PATCHED = re.compile(r"\*\*\* (Add|Update|Delete) File: ([^\n\\\"'`]+)")
_FILE_KEYS = ("file_path", "notebook_path", "path", "filePath", "absolute_path")
_READ_ONLY = re.compile(
    r"^(?:ls|cat|head|tail|grep|rg|ag|find|wc|pwd|which|file|stat|du|df|tree|echo|diff|jq|sort|cd|nl|"
    r"sed\s+-n\s+['\"]?[\d,$;]+p['\"]?|"
    r"git\s+(?:-C\s+\S+\s+)?(?:status|log|diff|show|blame|rev-parse|ls-files|"
    r"branch(?:\s+(?:-a|-r|-vv?|--all|--list|--remotes|--show-current))*\s*$|remote(?:\s+(?:-v|show\b.*))?\s*$))(?:\s|$)"
)
_WRITES = re.compile(
    r"(?<![0-9&])>{1,2}\s*(?!/dev/null|&)\S|\btee\b|\bxargs\b|\s-(?:exec|execdir|ok|delete|fprint\w*|fls)\b|--output|"
    r"\b(?:sort|tree)\b.*\s-o|\$\(|`|(?<![&>])&(?![&>\d])"
)
_NOTHING = re.compile(
    r"\s*(?:\(no (?:content|output)\)|no (?:matches|files|results)(?: were)? found\.?|"
    r"\(?bash completed with no output\)?|found 0 \w+|\[\]|\{\}|null)\s*\Z",
    re.IGNORECASE,
)


def operation_of(name: str, given: dict[str, Any]) -> Operation:
    """Tell what kind of operation a call performs: from its name, and what a shell, a patch or a script was given."""
    operation = OPERATIONS.get(name, "other")
    if name in ("write_stdin", "wait") and (given.get("command") or given.get("chars")):
        return "run"
    if operation in ("run", "edit") and (patched := _patched(given)):
        return "write" if all(verb == "Add" for verb, _path in patched) else "edit"
    if name == "exec" and not given.get("command"):
        done = {OPERATIONS.get(tool, "other") for tool in _SCRIPT_TOOL.findall(str(given.get("input")))}
        return done.pop() if len(done) == 1 else "other"
    return operation


def may_change(operation: Operation, given: dict[str, Any]) -> bool:
    """Tell whether a call may change something. A shell command counts unless it is known to only read."""
    if operation != "run":
        return operation in ("edit", "write", "delegate", "other")
    command = str(given.get("command") or "").strip()
    parts = [part.strip() for part in re.split(r"&&|\|\||[;|\n]", command) if part.strip()]
    return not parts or bool(_WRITES.search(command)) or not all(map(_READ_ONLY.match, parts))


def files_of(given: dict[str, Any]) -> tuple[str, ...]:
    """List the files that the arguments name: by a key, or in a patch."""
    named = (given[key] for key in _FILE_KEYS if isinstance(given.get(key), str))
    return unique([*named, *(path for _verb, path in _patched(given))])


def _patched(given: dict[str, Any]) -> list[tuple[str, str]]:
    """List (verb, path) of the files that a patch in the arguments touches."""
    texts = (given.get(key) for key in ("input", "patch", "command"))
    return [
        (verb, path.strip())
        for text in texts
        if isinstance(text, str) and "*** " in text
        for verb, path in _PATCHED.findall(text)
    ]


def says_nothing(output: str) -> bool:
    """Tell whether an output is empty, or only says that there is nothing."""
    return not output or output.isspace() or bool(_NOTHING.match(output))
