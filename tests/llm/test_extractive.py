"""The extractive writer: true to the talk, bounded, deterministic, in the language of the talk."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.llm.base import OperationInput, SessionInput, TalkInput, TalkOutline
from memex.llm.extractive import ExtractiveWriter, technologies
from memex.llm.language import language_of, phrases
from memex.llm.prose import question, readable, statements
from memex.llm.rank import central
from memex.llm.salient import commits, has_failed_tests, runs_tests, short_path
from memex.model import ToolCall
from memex.sources.tools import operation_of
from memex.text import units

WRITER = ExtractiveWriter()


def call(name, output="ok", error=False, answered=True, **given):
    files = tuple(given[key] for key in ("file_path",) if key in given)
    return ToolCall(
        id=f"c{abs(hash((name, output, str(given))))}", session_id="s", prompt_number=1, seq=1, message_id="m",
        name=name,
        operation=operation_of(name, given), input=json.dumps(given), output=output, is_error=error, answered=answered,
        mutates=operation_of(name, given) in ("edit", "write", "run"), files=files,
    )  # fmt: skip


def edit(path, old="a", new="b"):
    return call("Edit", file_path=path, old_string=old, new_string=new)


def bash(command, output="", error=False, answered=True):
    return call("Bash", output, error, answered, command=command)


def talk(request, *replies, calls=(), **fields):
    return WRITER.talk(TalkInput(request, replies, tuple(calls), cwd="/src/app", **fields))


def test_a_talk_tells_request_outcome_and_changes():
    answer = talk(
        "Fix the login, it fails with a 500.",
        "Let me look.",
        "The root cause is a missing null check in `login.py`. I added it.",
        calls=[
            edit("/src/app/login.py"),
            bash("pytest -q", "3 passed in 0.2s"),
            bash("git commit -am x", "[main 1a2b3c4] Fix the login\n 1 file changed"),
        ],
    )
    assert answer.user_request == "Fix the login, it fails with a 500."
    assert answer.summary == "The root cause is a missing null check in `login.py`. I added it."
    assert (
        answer.completed == "Edited login.py; passed: `pytest -q` (3 passed in 0.2s); committed 1a2b3c4 Fix the login"
    )


def test_a_chinese_talk_is_told_in_chinese():
    answer = talk("修复登录接口", "已经修好：根因是没有检查空值。", calls=[edit("/src/app/login.py")])
    assert (answer.summary, answer.completed) == ("已经修好：根因是没有检查空值。", "修改了 login.py")


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (bash("pytest -q", "3 passed in 1s"), "Passed: `pytest -q`"),
        (bash("pytest -q", "1 failed, 2 passed in 1s", error=True), "Failed: `pytest -q`"),
        (bash("go test ./... | tail -3", "FAIL\tapp/login\t0.2s"), "Failed: `go test"),
        (bash("npx mocha | cat", "  3 passing\n  2 failing"), "Failed: `npx mocha"),
        (bash("npm test", "1 failed\nall done, completed"), "Failed: `npm test`"),
        (bash("pytest -q", "", answered=False), "Ran: `pytest -q`"),
        (bash("pip install pytest", "Successfully installed pytest"), "Ran: pip install pytest"),
        (bash("cat jest.config.js", "module.exports = {}"), "Ran: cat jest.config.js"),
    ],
)
def test_a_test_run_is_told_as_it_ended(run, expected):
    assert talk("check it", "Checked.", calls=[run]).completed.startswith(expected)


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("pytest", True), ("cd app && npm run test:ci", True), ("CI=1 uv run pytest -x", True), ("make test", True),
        ("python -m pytest", True), (".venv/bin/pytest tests", True), ("grep pytest x", False),
        ("pip install tox", False), ("echo npm test", False), ("git commit -m 'go test passes'", False),
    ],
)  # fmt: skip
def test_which_commands_run_tests(command, runs):
    assert runs_tests(bash(command)) is runs


def test_failures_count_by_what_they_say():
    assert has_failed_tests(bash("pytest", "2 errors in 1s"))
    assert not has_failed_tests(bash("pytest", "0 failed, 3 passed"))


def test_an_interrupted_talk_says_so():
    assert talk("go", calls=[edit("/src/app/a.py")], interrupted=True).completed == "Edited a.py; stopped by the user"


def test_a_terse_request_is_shown_with_its_question():
    assert talk("yes", "Done.", question="Shall I delete it?").user_request == "yes (in reply to: Shall I delete it?)"


def test_logs_and_code_pasted_into_a_request_are_left_out():
    request = (
        "why does this fail?\n```\nTraceback (most recent call last)\n```\n2026-01-01T10:00:00 ERROR boom\n$ make\n"
    )
    assert talk(request, "Because.").user_request == "why does this fail?"


def test_announcements_offers_and_questions_are_no_statements():
    text = "Let me check the file. The cache was stale. Would you like a test?\n## Heading\n- Cleared the old cache\n"
    table = "| a | b |\n|---|---|\n| the key | one value |"
    assert statements(text + table) == ["The cache was stale.", "Cleared the old cache", "the key: one value"]
    assert question(text) == "Would you like a test?"


def test_code_spans_keep_their_characters():
    assert readable("see `a_*<b>[c](d)` and **bold** [link](x)") == "see `a_*<b>[c](d)` and bold link"


def test_an_observation_names_files_and_outcomes_of_a_whole_run():
    calls = tuple(edit(f"/src/app/{name}.py") for name in "abc")
    answer = WRITER.observation(OperationInput("rename the flag", calls, "/src/app"))
    assert (answer.type, answer.title) == ("refactor", "Edited a.py, b.py, c.py")
    assert len(answer.facts) == 3
    failed = (bash("make", "ok"), bash("make b", "Exit code 2\nerror: no rule"), bash("make c", "done"))
    assert "1 of 3 failed" in WRITER.observation(OperationInput("build", failed)).narrative


def test_a_session_tells_the_talks_that_changed_something():
    talks = [
        TalkOutline(f"request {n}", f"Answer number {n} was given.", f"Edited f{n}.py", (f"f{n}.py",)) for n in range(9)
    ]
    answer = WRITER.session(SessionInput("app", tuple(talks)))
    assert units(answer.summary) < 100
    assert len(answer.key_points) == 7
    assert answer.technologies == ("Python",)


def test_helpers_tell_facts():
    assert commits([bash("git commit", "[dev (root-commit) abcdef1] First\n")]) == ["abcdef1 First"]
    assert short_path("C:\\src\\app\\a.py", "C:\\src\\app") == "a.py"
    assert technologies(["Dockerfile", "a.ts", "b.ts", "c.unknown"]) == ("TypeScript", "Docker")
    assert [language_of(text) for text in ("fix it", "修复登录", "ログインを直して", "로그인 수정")] == [
        "en",
        "zh",
        "ja",
        "ko",
    ]
    assert {tuple(phrases(language)) for language in ("zh", "ja", "ko")} == {tuple(phrases("en"))}


def test_ranking_is_stable_and_keeps_order():
    sentences = [f"The cache of module {n} is stale and slow." for n in range(30)]
    chosen = central(sentences, 5)
    assert chosen == central(sentences, 5)
    assert chosen == [s for s in sentences if s in chosen]


TEXT = st.text(max_size=300) | st.sampled_from(
    ["认证", "# a\n", "- b\n", "| c |\n", "```", "`", "...", "Exit code 1", "\n"]
)


@settings(deadline=None, max_examples=120)
@given(request=TEXT, replies=st.lists(TEXT, max_size=4), output=TEXT, question_text=TEXT)
def test_any_talk_is_written_the_same_way_twice_and_within_bounds(request, replies, output, question_text):
    given = TalkInput(request, tuple(replies), (bash("pytest", output), edit("/src/app/a.py")), False, question_text)
    answer = WRITER.talk(given)
    assert answer == WRITER.talk(given)
    assert units(answer.summary) <= 150
    outline = TalkOutline(answer.user_request, answer.summary, answer.completed, ())
    assert WRITER.session(SessionInput("p", (outline,))).key_points


LONG = 200_000
HOSTILE = {
    "one word": "w" * LONG, "stars": "*" * LONG, "brackets": "[a " * (LONG // 3), "links": "[x](" * (LONG // 4),
    "tags": "<a " * (LONG // 3), "ticks": "`" * LONG, "spaces": "a" + " " * LONG, "dots": ". " * (LONG // 2),
    "lines": "- \n" * (LONG // 3), "boxes": "★ ───" * (LONG // 5), "errors": "wError " * (LONG // 7),
    "sentences": ". ".join(f"Sentence number {n} says something about topic {n % 50} because" for n in range(3000)),
    "distinct": "\n".join(f"Line {n} is distinct with word{n % 300} and word{n * 7 % 311}." for n in range(4000)),
}  # fmt: skip


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_bounded_in_time_and_size(name):
    text = HOSTILE[name]
    answer = WRITER.talk(TalkInput(text, (text, text), (bash("pytest", text), bash(text, text))))
    assert len(answer.user_request + answer.summary + answer.completed) < 12_000
    observation = WRITER.observation(OperationInput(text, (bash(text, text), bash("pytest", text))))
    assert len(observation.model_dump_json()) < 12_000
