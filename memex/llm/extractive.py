"""The writer that needs no model: it picks sentences and facts out of a talk and invents none.

Deterministic: the same talk gives the same words. It says what was really asked, what was changed, which
commands passed or failed, what was decided and how it ended.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath

from memex.llm import salient
from memex.llm.answers import ObservationAnswer, SessionAnswer, TalkAnswer
from memex.llm.base import OperationInput, Price, SessionInput, SummaryLevel, TalkInput, TalkOutline
from memex.llm.language import language_of, phrases
from memex.llm.prose import paragraph, request_lines, statements
from memex.llm.rank import central
from memex.model import ObservationType, ToolCall
from memex.text import clip_units, one_line, unique, units

REQUEST_UNITS = 70
SUMMARY_UNITS = 140
TITLE_UNITS = 18
KEY_POINT_UNITS = 60
SENTENCE_UNITS = 95

_DECISION = re.compile(
    r"\b(?:decided|decision|going with|went with|chose|opt(?:ed|ing) for|instead of|rather than|trade-?off|"
    r"root cause|the (?:issue|problem|bug|reason|cause) (?:is|was)|because|turns out)\b|"
    r"决定|采用|改用|选择|根因|原因是|问题在于|因为|而不是|ため|理由|原因",
    re.IGNORECASE,
)
_FIX = re.compile(
    r"\b(?:fix|bug|broken|error|fail|crash|regress|issue)\w*|修复|修正|错误|报错|失败|崩溃|バグ|修正|エラー|버그|오류",
    re.IGNORECASE,
)
_REFACTOR = re.compile(
    r"\b(?:refactor|renam|clean ?up|simplif|extract|restructur|move)\w*|重构|重命名|整理|リファクタ|리팩",
    re.IGNORECASE,
)
_FEATURE = re.compile(
    r"\b(?:add|implement|creat|build|introduc|support|new)\w*|新增|添加|实现|增加|支持|追加|実装|추가|구현",
    re.IGNORECASE,
)


class ExtractiveWriter:
    """Writes all three levels from what is there."""

    provider = "extractive"
    model = "extractive"
    version = "1"
    context_tokens = 1_000_000_000
    workers = 1
    local = True

    def version_of(self, _level: SummaryLevel) -> str:
        """Tell the version of the rules, one for all levels."""
        return self.version

    def observation(self, given: OperationInput) -> ObservationAnswer:
        """Describe a group of like operations: what, on which files, how it ended."""
        calls = given.calls
        say = phrases(language_of(given.request))
        title = _capital(_deed(calls, say, given.cwd))
        facts = [fact for call in calls[:6] for fact in _facts(call, given.cwd)]
        bad = sum(map(salient.failed, calls))
        outcome = say["and_failed"].format(failed=bad, count=len(calls)) if bad else ""
        subtitle = one_line(" ".join(salient.salient_lines(calls[-1].output, 1))) if len(calls) == 1 else outcome
        story = say["joined"].join(unique([title, outcome if len(calls) > 1 else "", *facts]))
        return ObservationAnswer(
            type=_type_of(given),
            title=clip_units(title, TITLE_UNITS)[:160],
            subtitle=subtitle[:300],
            facts=tuple(unique(fact[:240] for fact in facts))[:12],
            narrative=story[:1500],
        )

    def observations(self, given: Sequence[OperationInput]) -> list[ObservationAnswer | Exception]:
        """Describe operations one by one."""
        return [self._described(one) for one in given]

    def talk(self, given: TalkInput) -> TalkAnswer:
        """Summarise a talk: its request, the sentences that carry the replies, and what was finished."""
        say = phrases(language_of(given.request + " " + " ".join(given.replies[-1:])))
        completed = _completed(given, say)
        told = _told(given.replies, SUMMARY_UNITS)
        return TalkAnswer(
            user_request=_request(given, say),
            summary=paragraph(told) or _capital(completed),
            completed=_capital(completed),
        )

    def session(self, given: SessionInput) -> SessionAnswer:
        """Summarise a session from its talk summaries."""
        talks = given.talks
        say = phrases(language_of(" ".join(t.user_request for t in talks)))
        return SessionAnswer(
            summary=_sentence(talks, say),
            key_points=tuple(_key_points(talks, say)),
            technologies=technologies(path for talk in talks for path in talk.files),
        )

    def price(self, _level: SummaryLevel, _sizes: Sequence[int]) -> Price:
        """It is free."""
        return Price()

    def spent(self) -> tuple[()]:
        """Nothing is paid for."""
        return ()

    def committed(self) -> None:
        """Nothing is kept until then."""

    def _described(self, given: OperationInput) -> ObservationAnswer | Exception:
        try:
            return self.observation(given)
        except Exception as error:
            return error


def technologies(paths: Iterable[str]) -> tuple[str, ...]:
    """Name the technologies behind file names, the most frequent first."""
    table = _technologies()
    counts: dict[str, int] = {}
    for path in paths:
        name = PurePosixPath(path.replace("\\", "/"))
        known = table["names"].get(name.name) or table["suffixes"].get(name.suffix[1:].lower())
        if known:
            counts[known] = counts.get(known, 0) + 1
    return tuple(sorted(counts, key=lambda name: (-counts[name], name)))[:8]


@cache
def _technologies() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(files("memex.llm").joinpath("technologies.toml").read_text("utf-8"))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _deed(calls: Sequence[ToolCall], say: Mapping[str, str], cwd: str) -> str:
    """Say in a few words what a group of like calls did."""
    operation = calls[0].operation
    paths = [path for call in calls for path in call.files]
    if operation in ("edit", "write", "read") and paths:
        text = say[operation].format(files=salient.names(paths, cwd))
        return text if len(unique(paths)) >= len(calls) else say["times"].format(what=text, count=len(calls))
    if operation == "run" and len(calls) == 1 and salient.runs_tests(calls[0]):
        return _verdict(calls[0], say)
    key = operation if operation in say else "other"
    subjects = unique(clip_units(_subject(call), 14) for call in calls)
    what = ", ".join(subjects[:3]) + (" …" if len(subjects) > 3 else "")
    return say[key].format(what=what or calls[0].name, files=what or calls[0].name)


def _subject(call: ToolCall) -> str:
    """Name what a call was about, from its arguments."""
    given = salient.arguments(call)
    if call.operation == "run":
        return salient.label_of(call)
    for key in ("pattern", "query", "url", "description", "question", "prompt", "skill", "command", "path"):
        if isinstance(given.get(key), str):
            return one_line(str(given[key]))
    questions = given.get("questions")
    if isinstance(questions, list) and questions and isinstance(questions[0], dict):
        return one_line(str(questions[0].get("question") or ""))
    return call.name


def _facts(call: ToolCall, cwd: str) -> list[str]:
    """List what is worth keeping of one call."""
    lines = salient.salient_lines(call.output)
    match call.operation:
        case "read" if not salient.failed(call):
            return []
        case "search" if not salient.failed(call):
            return salient.first_lines(call.output, 3)
        case "edit":
            old, new = map(_first_line, salient.change_of(call))
            change = f"`{old}` → `{new}`" if old and new and old != new else (new or old)
            return [f"{salient.names(call.files, cwd)}: {change}"] if change and not salient.failed(call) else lines
        case "write":
            size = salient.change_of(call)[1].count("\n") + 1
            return [
                f"{salient.names(call.files, cwd)}: {size} lines",
                *(lines if salient.failed(call) else []),
            ]
        case "run":
            return [f"$ {clip_units(salient.command_of(call), 40)}", *lines]
        case _:
            return lines


def _first_line(text: object) -> str:
    lines = [one_line(line) for line in str(text or "").splitlines() if line.strip()]
    return clip_units(lines[0], 16)[:120] if lines else ""


def _type_of(given: OperationInput) -> ObservationType:
    operation = given.calls[0].operation
    if operation == "ask":
        return "decision"
    if operation not in ("edit", "write") and not salient.commits(given.calls):
        return "discovery"
    if _FIX.search(given.request):
        return "bugfix"
    if _REFACTOR.search(given.request):
        return "refactor"
    return "feature" if operation == "write" or _FEATURE.search(given.request) else "change"


def _request(given: TalkInput, say: Mapping[str, str]) -> str:
    """Keep the words of the human: whole when short, else its head and what it asks for."""
    lines = request_lines(given.request)
    text = " ".join(lines)
    if units(text) > REQUEST_UNITS:
        asks = [line for line in lines[1:] if line.endswith(("?", "？"))]
        head = clip_units(lines[0], REQUEST_UNITS)
        rest = [line for line in unique([*asks, *lines[1:]]) if line != lines[0]]
        room = REQUEST_UNITS - units(head)
        kept = {head}
        for line in rest:
            if units(line) <= room:
                kept.add(line)
                room -= units(line)
        text = " ".join(line for line in [head, *lines[1:]] if line in kept)
    text = clip_units(text, REQUEST_UNITS + 1) or "…"
    if given.question:
        return say["in_reply_to"].format(request=text, question=clip_units(given.question, 30))
    return text


def _told(replies: Sequence[str], room: int) -> list[str]:
    """Choose the sentences of the replies that tell the outcome, in their order.

    The last reply closes the talk, so it goes first; sentences that give a reason or a decision come from
    anywhere; what room is left goes to the most central sentences.
    """
    last = statements(replies[-1]) if replies else []
    before = [s for reply in replies[:-1] for s in statements(reply)]
    reasons = [s for s in [*last, *before] if _DECISION.search(s)]
    ranked = unique([*last[:2], *reasons[:4], *central(last, 6), *last, *central(before, 4)])
    chosen: set[str] = set()
    for sentence in ranked:
        size = units(sentence)
        if size <= room:
            chosen.add(sentence)
            room -= size
        elif not chosen:
            return [clip_units(sentence, room)]
    return [s for s in unique([*before, *last]) if s in chosen]


def _completed(given: TalkInput, say: Mapping[str, str]) -> str:
    """Say what the calls achieved: files, tests, commits, and how it ended."""
    calls = given.calls
    good = [c for c in calls if not salient.failed(c)]
    parts = []
    written = unique(path for c in good if c.operation == "write" for path in c.files)
    edited = unique(path for c in good if c.operation == "edit" for path in c.files if path not in written)
    if edited:
        parts.append(say["edit"].format(files=salient.names(edited, given.cwd)))
    if written:
        parts.append(say["write"].format(files=salient.names(written, given.cwd)))
    parts += _test_result(calls, say)
    parts += [say["committed"].format(what=clip_units(what, 20)) for what in salient.commits(good)[-3:]]
    parts += [say["opened"].format(what=link) for link in salient.pull_requests(good)[-2:]]
    if not parts:
        parts += _deeds(calls, say)
    if given.interrupted:
        parts.append(say["interrupted"])
    elif not given.replies or not given.replies[-1].strip():
        parts.append(say["no_reply"])
    return say["joined"].join(parts) or say["answered"]


def _test_result(calls: Sequence[ToolCall], say: Mapping[str, str]) -> list[str]:
    """Tell how the last test run ended."""
    runs = [c for c in calls if salient.runs_tests(c)]
    return [_verdict(runs[-1], say)] if runs else []


def _verdict(run: ToolCall, say: Mapping[str, str]) -> str:
    """Tell how a test run ended, with the line of its output that says so."""
    command = f"`{clip_units(salient.command_of(run), 12)}`"
    result = salient.result_line(run.output)
    what = f"{command} ({clip_units(result, 14)})" if result else command
    if not run.answered:
        return say["run"].format(what=command)
    return say["run_failed" if salient.has_failed_tests(run) else "run_passed"].format(what=what)


def _deeds(calls: Sequence[ToolCall], say: Mapping[str, str]) -> list[str]:
    """Without a change to tell: the commands that may have changed something, and the last failure."""
    acts = {_subject(c): c for c in calls if c.operation in ("run", "delegate") and c.mutates}
    return [
        say["run_failed" if salient.failed(c) else "run"].format(what=clip_units(subject, 14))
        for subject, c in list(acts.items())[-2:]
    ]


def _sentence(talks: Sequence[TalkOutline], say: Mapping[str, str]) -> str:
    """One sentence, under 100 units: the main request, and what came of the session."""
    first = clip_units(talks[0].user_request, 40)
    deeds = [t for t in talks if _changed(t, say)]
    result = clip_units(_result((deeds or talks)[-1], say), 30)
    main = max(talks, key=lambda t: (_changed(t, say), len(t.files)))
    if main is not talks[0]:
        first = say["over_talks"].format(
            first=clip_units(talks[0].user_request, 25),
            last=clip_units(main.user_request, 25),
            count=len(talks),
        )
    return clip_units(f"{first} — {result}", SENTENCE_UNITS)


def _key_points(talks: Sequence[TalkOutline], say: Mapping[str, str]) -> list[str]:
    """3 to 7 points: the talks that changed most, each as request and result, in order."""
    if len(talks) < 3:
        told = unique(s for t in talks for s in (_result(t, say), *central(statements(t.summary), 6 // len(talks))))
        files = unique(path for t in talks for path in t.files)
        spare = [] if len(told) > 2 else [talks[0].user_request, ", ".join(files[:5])]
        points = unique([*spare[:1], *told, *spare[1:]])
        return list(unique(clip_units(point, KEY_POINT_UNITS).strip() for point in points))[:7] or ["…"]
    weight = {i: (_changed(t, say), len(t.files), units(t.summary)) for i, t in enumerate(talks)}
    chosen = sorted(sorted(weight, key=lambda i: weight[i], reverse=True)[:7])
    pairs = (f"{clip_units(talks[i].user_request, 24)} → {_result(talks[i], say)}" for i in chosen)
    return list(unique(clip_units(point, KEY_POINT_UNITS) for point in pairs))


def _changed(talk: TalkOutline, say: Mapping[str, str]) -> bool:
    return talk.completed != _capital(say["answered"])


def _result(talk: TalkOutline, say: Mapping[str, str]) -> str:
    """Tell what a talk achieved; one that changed nothing is told by what it said."""
    told = statements(talk.summary)
    return talk.completed if _changed(talk, say) or not told else told[0]
