"""What an answer may claim: only what its source says."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.llm.base import TalkInput
from memex.llm.grounding import Source, ungrounded, without_ungrounded
from memex.llm.outcome import dead_end
from memex.llm.replies import OperationsReply, TalkReply, is_shell
from memex.model import ToolCall

SOURCE = Source(
    [
        "edited /src/app/login.py with loginUser() at commit 4f3c2b1a9d, 12,345 rows in 3.5 s",
        '{"file_path": "C:\\\\Users\\\\ann\\\\b.py"}',
        "pytest tests/test_a.py::test_x; see https://docs.example/guide#top; export MAX_TOKENS=4096",
    ]
)


@pytest.mark.parametrize(
    ("text", "invented"),
    [
        ("Changed app/login.py and app/user.py.", ["app/user.py"]),
        ("Commit 4f3c2b1 came before deadbee1.", ["deadbee1"]),
        ("Called loginUser() and then logoutUser().", ["logoutUser"]),
        ("12345 rows, not 999, in 3.5 s or 3.6 s.", ["999", "3.6"]),
        ("See https://docs.example/guide and https://other.example/x.", ["https://other.example/x"]),
        ("Uses node.js and Next.js, e.g. for input/output and JSON/YAML.", []),
        ("改了login.py和user.py两个文件，共12345行", ["user.py"]),
        ("In C:/Users/ann/b.py and src/app/login.py:42", []),
        ("`pytest tests/test_a.py` passed", []),
        ("`pytest tests/test_b.py` passed", ["tests/test_b.py"]),
        ("Set max_tokens and min_tokens", ["min_tokens"]),
        ("Three files, 2 tests, 10 minutes", []),
    ],
)
def test_what_is_invented_is_found_and_nothing_else(text, invented):
    assert SOURCE.ungrounded(text) == invented


CLAIMS = [
    "/srv/ghost/a.py",
    "ghost/b.tsx",
    "c0ffee12",
    "https://ghost.example/x",
    "ghostCall()",
    "ghost_name",
    "`7777`",
]
SENTENCES = ["The login was slow.", "It is fast now,", "and loginUser() works", "为什么？", "因为它。"]
WORDS = st.lists(st.sampled_from(SENTENCES))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(WORDS, st.sampled_from(CLAIMS), WORDS), min_size=1, max_size=4))
def test_no_planted_claim_survives(parts):
    text = " ".join(" ".join([*before, claim, *after]) for before, claim, after in parts)
    reply = TalkReply(user_request="Make the login fast", summary=text, completed=text)
    left, dropped = without_ungrounded(reply, SOURCE)
    assert dropped == len({claim for _before, claim, _after in parts})
    told = left.user_request + left.summary + left.completed
    assert all(claim.strip("`").removesuffix("()") not in told for _b, claim, _a in parts)
    assert left.user_request == "Make the login fast"
    assert ungrounded(left, SOURCE) == []


def test_true_sentences_and_items_stay():
    reply = TalkReply(
        user_request="Fix it",
        summary="loginUser() was slow. The cause is in ghost.py. It takes 3.5 s now.",
        completed="Fixed login.py",
    )
    left, dropped = without_ungrounded(reply, SOURCE)
    assert (left.summary, left.completed, dropped) == ("loginUser() was slow. It takes 3.5 s now.", "Fixed login.py", 1)


@pytest.mark.parametrize(
    "text", ["N/A", "none", "...", "", "No summary available.", "无", "string", "Not applicable", "Summary"]
)
def test_empty_shells(text):
    assert is_shell(text)


@pytest.mark.parametrize("text", ["None of the tests ran", "No information leaks any more", "修复了登录"])
def test_short_true_answers_are_no_shells(text):
    assert not is_shell(text)


def test_near_words_and_loose_types_are_mended():
    entry = {"n": "1", "type": "Bug fix", "title": "Fixed it", "facts": "- one\n- two", "narrative": ["It was.", "So."]}
    reply = OperationsReply.model_validate({"entries": [entry], "extra": 1})
    assert (reply.entries[0].type, reply.entries[0].facts) == ("bugfix", ["one", "two"])
    assert reply.entries[0].narrative == "It was. So."


def call(output, error=False, mutates=False, command="pytest"):
    return ToolCall(
        id="1", session_id="s", prompt_number=1, seq=1, message_id="", name="Bash", operation="run",
        input=f'{{"command": "{command}"}}', output=output, answered=True, is_error=error, mutates=mutates,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("calls", "interrupted", "completed", "dead"),
    [
        ((call("3 passed"),), False, "All tests pass", False),
        ((call("1 failed, 2 passed"),), False, "All tests pass", True),
        ((call("1 failed"), call("3 passed")), False, "All tests pass", False),
        ((call("1 failed"),), False, "Wrote the parser", False),
        ((call("no such file", error=True, command="ls"),), False, "Listed the files", True),
        ((), True, "Added the flag", True),
        ((call("done", mutates=True, command="sed"),), True, "Changed the file", False),
        ((), False, "Answered the question", False),
        ((), True, "", False),
    ],
)
def test_a_dead_end_is_no_result(calls, interrupted, completed, dead):
    assert bool(dead_end(completed, TalkInput("Do it", (), calls, interrupted))) is dead
