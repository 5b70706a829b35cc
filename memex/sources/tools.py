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
}  # fmt: skip
_FILE_KEYS = ("file_path", "notebook_path", "path", "filePath")
_READ_ONLY = re.compile(
    r"^(?:ls|cat|head|tail|grep|rg|ag|find|wc|pwd|which|file|stat|du|df|tree|echo|diff|jq|sort|cd|"
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


def operation_of(name: str) -> Operation:
    """Tell what kind of operation a tool performs, from its name."""
    return OPERATIONS.get(name, "other")


def may_change(operation: Operation, given: dict[str, Any]) -> bool:
    """Tell whether a call may change something. A shell command counts unless it is known to only read."""
    if operation != "run":
        return operation in ("edit", "write", "delegate", "other")
    command = str(given.get("command") or "").strip()
    parts = (part.strip() for part in re.split(r"&&|\|\||[;|\n]", command))
    return bool(_WRITES.search(command)) or not all(_READ_ONLY.match(part) for part in parts if part)


def files_of(given: dict[str, Any]) -> tuple[str, ...]:
    """List the files that the arguments name."""
    return unique(given[key] for key in _FILE_KEYS if isinstance(given.get(key), str))


def says_nothing(output: str) -> bool:
    """Tell whether an output is empty, or only says that there is nothing."""
    return not output or output.isspace() or bool(_NOTHING.match(output))
