"""Whether a talk can have completed anything: a dead end is never reported as a result."""

import re

from memex.llm.base import TalkInput
from memex.llm.salient import failed, has_failed_tests, runs_tests

_PASSING = re.compile(
    r"\b(?:all|every|the)\b.{0,20}\btests? (?:now )?(?:pass|succeed|are green)|\btests? (?:now )?pass(?:es|ed)?\b|"
    r"\bpassing\b|\bworks?\b|\bfixed\b|通过|修复|成功|正常",
    re.IGNORECASE,
)


def dead_end(completed: str, given: TalkInput) -> str:
    """Say why nothing can have been completed, when something is claimed to be; else ""."""
    if not completed:
        return ""
    if given.interrupted and not any(call.mutates and not failed(call) for call in given.calls):
        return "The person interrupted this before anything was changed: leave `completed` empty."
    if given.calls and all(map(failed, given.calls)):
        return "Every operation failed: leave `completed` empty."
    tests = [call for call in given.calls if runs_tests(call)]
    if tests and has_failed_tests(tests[-1]) and _PASSING.search(completed):
        return "The last test run failed: do not call it passing."
    return ""
