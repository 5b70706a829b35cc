"""What matters in a tool call: how it ended, and the few lines of its output that say why."""

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

import orjson

from memex.model import ToolCall
from memex.text import clip_units, one_line, unique

_OUTCOME = re.compile(
    r"\b(?:\d+\s+(?:passed|failed|failures?|errors?|warnings?|tests?)|tests? (?:passed|failed)|"
    r"build (?:failed|succeeded)|"
    r"all checks passed|FAIL(?:ED)?|PASS(?:ED)?|ok\s+\S+\s+[\d.]+s|success(?:fully)?|completed?)\b|通过|成功|完成",
    re.IGNORECASE,
)
_TROUBLE = re.compile(
    r"(?:\b\w*(?:Error|Exception)\b|\berror\b|\bfatal\b|\bpanic\b|\bcannot\b|\bnot found\b|\bdenied\b|\bundefined\b|"
    r"\bfailed\b|--- FAIL|✗|✘|❌|错误|失败|异常|エラー|失敗)",
    re.IGNORECASE,
)
_COMMIT = re.compile(
    r"^\[(?P<branch>[^\s\]]+)(?: \([^)]*\))? (?P<hash>[0-9a-f]{7,40})\] (?P<subject>.+)$", re.MULTILINE
)
_PULL = re.compile(r"https://[\w.-]+/\S+/(?:pull|merge_requests)/\d+")
_RUNNER = re.compile(
    r"^(?:\w+=\S*\s+)*(?:(?:sudo|time|npx|bunx|timeout\s+\S+|python[\d.]*\s+-m|(?:uv|poetry|pipenv|pdm|hatch|rye)\s+run|"
    r"env(?:\s+\w+=\S*)*|mise\s+exec\s+--|pnpm\s+exec|yarn\s+run|bundle\s+exec)\s+)*"
    r"(?:\S*/)?(?:pytest|unittest|jest|vitest|mocha|rspec|phpunit|ctest|tox|nox|gotestsum|"
    r"(?:go|cargo|npm|pnpm|yarn|bun|make|mix|dotnet|mvn|gradle|gradlew|mise\s+run|just|deno|swift)\s+(?:run\s+)?test\S*)(?:\s|$)"
)
_TESTS_FAILED = re.compile(r"\bFAIL(?:ED|URES)?\b|\b[1-9]\d* (?:failed|failing|failures?|errors?)\b")
_EXIT = re.compile(r"^(?:Error: )?Exit code (\d+)", re.MULTILINE)
_NOISE = re.compile(r"^[\s\W_\d]*$")
_PATCH_LINE = re.compile(r"^([-+])(?!\1)(.*)$", re.MULTILINE)


def arguments(call: ToolCall) -> dict[str, object]:
    """Read the arguments of a call."""
    value = orjson.loads(call.input or "{}")
    return value if isinstance(value, dict) else {}


def command_of(call: ToolCall) -> str:
    """Give the shell command of a call, on one line; "" when it runs none."""
    return one_line(str(arguments(call).get("command") or ""))


def change_of(call: ToolCall) -> tuple[str, str]:
    """Give the text that an edit took away and the text that it put there, from its arguments or its patch."""
    given = arguments(call)
    old, new = (str(given.get(key) or "") for key in ("old_string", "new_string"))
    if old or new or given.get("content"):
        return old, new or str(given.get("content") or "")
    patch = str(given.get("input") or given.get("command") or "")
    if "\n*** " not in patch:  # written inside a script
        patch = patch.replace("\\n", "\n")
    lines = _PATCH_LINE.findall(patch) if "*** " in patch else []
    gone, come = ("\n".join(text for sign, text in lines if sign == wanted) for wanted in "-+")
    return gone, come


def label_of(call: ToolCall) -> str:
    """Say what a command is for: the description that came with it, else the command itself."""
    described = arguments(call).get("description")
    return one_line(str(described)) if described else clip_units(command_of(call), 16)


def runs_tests(call: ToolCall) -> bool:
    """Tell whether a call runs a test suite."""
    parts = re.split(r"&&|\|\||[;|]", command_of(call)) if call.operation == "run" else []
    return any(_RUNNER.match(part.strip()) for part in parts)


def failed(call: ToolCall) -> bool:
    """Tell whether a call ended badly: marked as an error, or a non-zero exit code."""
    code = _EXIT.search(call.output[:200])
    return call.is_error or bool(code and code[1] != "0")


def commits(calls: Iterable[ToolCall]) -> list[str]:
    """List the commits made, as `hash subject`."""
    found = (m for c in calls if c.operation == "run" for m in _COMMIT.finditer(c.output))
    return list(unique(f"{m['hash']} {m['subject'].strip()}" for m in found))


def pull_requests(calls: Iterable[ToolCall]) -> list[str]:
    """List the pull requests that a command created or named in its output."""
    made = (c for c in calls if c.operation == "run" and "create" in command_of(c))
    return list(unique(match for c in made for match in _PULL.findall(c.output)))


def salient_lines(output: str, limit: int = 3) -> list[str]:
    """Pick the lines that tell the outcome: trouble first found first, then results, last ones first."""
    lines = [one_line(line) for line in output.splitlines() if not _NOISE.match(line)]
    trouble = [line for line in lines if _TROUBLE.search(line)]
    results = [line for line in reversed(lines) if _OUTCOME.search(line)]
    chosen = unique([*trouble[: max(1, limit - 1)], *results])[:limit] or tuple(lines[-1:])
    return [clip_units(line, 30)[:240] for line in chosen]


def result_line(output: str) -> str:
    """Return the last line that sums up an outcome, such as `3 passed in 1.9s`, or ""."""
    found = [line for line in output.splitlines() if _OUTCOME.search(line)]
    return one_line(found[-1]).strip("=- ") if found else ""


def has_failed_tests(run: ToolCall) -> bool:
    """Tell whether a test run failed: by its exit, or by what its last lines say, for a pipe hides the exit."""
    return failed(run) or bool(_TESTS_FAILED.search("\n".join(run.output.splitlines()[-40:])))


def first_lines(output: str, limit: int) -> list[str]:
    """Give the first lines that hold words."""
    lines = (one_line(line) for line in output.splitlines() if not _NOISE.match(line))
    return [clip_units(line, 30)[:240] for line, _n in zip(lines, range(limit), strict=False)]


def short_path(path: str, cwd: str = "") -> str:
    """Write a path relative to the working folder where it lies below it."""
    clean, base = path.replace("\\", "/"), cwd.replace("\\", "/").rstrip("/")
    return clean[len(base) + 1 :] if base and clean.startswith(base + "/") else clean


def names(paths: Sequence[str], cwd: str = "", limit: int = 4) -> str:
    """Name a few paths in a sentence: `a.py, b.py and 3 more`."""
    shown = unique(short_path(p, cwd) for p in paths)
    if len(shown) > limit:
        shown = unique(PurePosixPath(p).name for p in shown)
    more = len(shown) - limit
    return ", ".join(shown[:limit]) + (f" and {more} more" if more > 0 else "")
