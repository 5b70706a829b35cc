"""What a model gets to read: bounded whatever comes, the telling parts kept; and the facts and prompts behind it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.errors import ConfigError
from memex.llm.base import OperationInput, SessionInput, TalkInput, TalkOutline
from memex.llm.facts import model_facts
from memex.llm.prompts import WRITTEN_IN, language_line, load_prompt, prompt_version
from memex.llm.render import Renderer
from memex.llm.tokens import count_tokens, cut
from memex.model import ToolCall
from memex.text import digest

RENDERER = Renderer(lambda text: text)
WORDS = st.sampled_from(["word ", "中文字", "x", "\n", "é\x1b[0m"])
TEXT = st.one_of(st.text(max_size=200), st.builds(lambda word, count: word * count, WORDS, st.integers(0, 3000)))


def call(number=1, output="ok", command="ls", error=False, mutates=False):
    return ToolCall(
        id=str(number), session_id="s", prompt_number=1, seq=number, message_id="", name="Bash", operation="run",
        input=f'{{"command": "{command}"}}', output=output, answered=True, is_error=error, mutates=mutates,
    )  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(TEXT, st.integers(20, 500))
def test_a_cut_text_fits_and_keeps_head_and_tail(text, limit):
    short = cut(text, limit)
    assert count_tokens(short) <= max(limit, 20) + 2
    if short != text:
        assert "left out" in short
        assert text.startswith(short.split("\n[…")[0][:20])


@settings(max_examples=60, deadline=None)
@given(TEXT, st.lists(TEXT, max_size=6), st.lists(TEXT, max_size=12), st.integers(300, 3000))
def test_a_talk_fits_its_room(request_text, replies, outputs, room):
    calls = tuple(call(n, output) for n, output in enumerate(outputs))
    text = RENDERER.talk(TalkInput(request_text, tuple(replies), calls), room)
    assert count_tokens(text) <= room * 1.15 + 80


def test_speech_is_kept_before_output_and_failures_before_quiet_calls():
    calls = [call(n, "quiet " * 300, f"cat {n}.txt") for n in range(60)]
    calls[30] = call(30, "Error: no such table users", "psql", error=True)
    text = RENDERER.talk(TalkInput("Why is it slow?", ("I looked. " * 50, "The index is missing."), tuple(calls)), 800)
    assert "Why is it slow?" in text and "The index is missing." in text
    assert "no such table users" in text and "calls left out" in text


def test_an_operation_says_what_failed():
    text = RENDERER.operations([OperationInput("Fix it", (call(1, "boom", "make", error=True),), "/src")])
    assert '<operation n="1">' in text and "[Bash FAILED] command: make\n=> boom" in text


def test_a_session_lists_its_talks():
    text = RENDERER.session(SessionInput("app", (TalkOutline("Add it", "Added.", "", ("a.py",)),)))
    assert "<project>app</project>" in text and "completed: nothing" in text and "files: a.py" in text


def test_chinese_is_not_counted_as_if_it_were_english():
    assert count_tokens("我们决定采用新的缓存方案") >= 10


RECORDED = {
    ("observations", "1"): "90b5895320c0ab5497a60baf461a585e",
    ("talks", "1"): "0222548560fbda2451ef172a9d2946f6",
    ("sessions", "1"): "f71cc7187af2ce703e0e03f9565e6466",
}


@pytest.mark.parametrize("level", ["observations", "talks", "sessions"])
def test_a_changed_prompt_has_a_new_version(level):
    """When this fails: raise the version in the first line of the prompt, and record its digest here."""
    texts = [load_prompt(level, language).text for language in WRITTEN_IN]
    assert digest(*texts) == RECORDED[level, prompt_version(level)]


def test_prompts_come_in_the_language_of_the_talk():
    assert "总结" in load_prompt("talks", "zh").text
    assert load_prompt("talks", "ko") == load_prompt("talks", "en")
    assert "Korean" in language_line("ko")


def test_own_facts_lie_over_those_shipped(tmp_path):
    own = tmp_path / "models.toml"
    own.write_text('[models."gpt-4o-mini"]\nprice_input = 1.0\n[providers.compatible]\nmode = "markdown"\n')
    known = model_facts("openai", "gpt-4o-mini", "https://api.openai.com/v1", own)
    assert (known.price_input, known.price_output, known.context) == (1.0, 0.6, 128_000)
    assert model_facts("compatible", "x", "https://a.example/v1", own).mode == "markdown"
    own.write_text('[models."gpt-4o-mini"]\ncolour = "red"\n')
    with pytest.raises(ConfigError, match="colour"):
        model_facts("openai", "gpt-4o-mini", "", own)


@pytest.mark.parametrize(
    ("endpoint", "paid"),
    [("http://localhost:1/v1", False), ("http://127.0.0.1:1/v1", False), ("https://api.example/v1", True)],
)
def test_an_unknown_model_costs_nothing_only_on_this_machine(endpoint, paid):
    assert model_facts("compatible", "x", endpoint).paid is paid
