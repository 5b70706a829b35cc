"""Summaries by a model, end to end: real logs, a real lake, a real HTTP server."""

import pytest

from memex.setup import Memex
from tests.conftest import ingest, rows
from tests.llm.models import LEVELS, compact, prices, settings_for
from tests.llm.server import INVENTED, Script, serving
from tests.logs import talk

TALKS = ("talks",)


@pytest.fixture
def open_with(home, claude_dir):
    """Open a home whose logs are read."""

    def opened(service, **changes) -> Memex:
        memex = Memex(settings_for(home, service.endpoint, **changes))
        ingest(memex)
        return memex

    return opened


@pytest.fixture
def one_talk(log):
    talk(log, "Add a flag to the parser").write()
    return log


def failures(memex):
    return [row["reason"] for row in rows(memex, "failures")]


def test_all_levels_are_written_by_a_model(open_with, log):
    talk(talk(log, "Add a flag to the parser"), "Document the flag").write()
    with serving() as service:
        memex = open_with(service)
        report = compact(memex)
        assert dict(report.made) == {"observations": 2, "talks": 2, "sessions": 1}
        assert (report.failed, report.stopped) == (0, "")
        assert len(service.requests) == 5
        assert memex.compact_at(LEVELS).plan().empty
    made = rows(memex, "talk_summaries")
    assert {(row["provider"], row["model"]) for row in made} == {("compatible", "test-model")}
    assert "The person asked: Add a flag to the parser" in {row["summary"] for row in made}
    assert len(rows(memex, "ledger")) == 5


def test_short_operations_of_a_talk_go_in_one_call(open_with, log):
    log.prompt("Rename it")
    for number in range(8):
        log.call("Edit", {"file_path": f"/src/app/{number}.py", "old_string": "a", "new_string": "b"}, "updated")
        log.call("Bash", {"command": f"grep -n b {number}.py"}, "1: b")
    log.reply("Renamed.").write()
    with serving() as service:
        memex = open_with(service)
        assert compact(memex, ("observations",)).made["observations"] == 16
        assert len(service.requests) == 2


@pytest.mark.parametrize("move", ["half", "prose", "wrong_types", "empty", "shell", "no_choices"])
def test_a_wrong_shape_is_asked_for_again_once(open_with, one_talk, move):
    with serving(Script([move, "ok"])) as service:
        memex = open_with(service)
        assert compact(memex, TALKS).made == {"talks": 1}
        assert [request["move"] for request in service.requests] == [move, "ok"]
    with serving(Script([move])) as service:
        memex = open_with(service)
        report = compact(memex, TALKS, force=True)
        assert (report.made["talks"], report.failed) == (0, 1)
        assert len(service.requests) == 2
    assert failures(memex)[0].startswith("InvalidAnswer")
    assert rows(memex, "talk_summaries", "served")  # the row of before stays


@pytest.mark.parametrize("mode", ["json_schema", "json", "tools", "markdown"])
def test_every_mode_of_answering(open_with, home, one_talk, mode):
    own = home.parent / "models.toml"
    own.write_text(f'[providers.compatible]\nmode = "{mode}"\n[models."test-model"]\nextra = {{ seed = 7 }}\n')
    with serving(Script(["wrong_types", "ok"])) as service:
        memex = open_with(service, models_file=own)
        report = compact(memex, ("talks", "sessions"))
        assert (dict(report.made), report.failed) == ({"talks": 1, "sessions": 1}, 0), failures(memex)
        assert len(service.requests) == 4
        assert {request["body"]["seed"] for request in service.requests} == {7}


def test_chatter_around_the_json_costs_nothing(open_with, one_talk):
    with serving(Script(["chatty"])) as service:
        memex = open_with(service)
        assert compact(memex, TALKS).made == {"talks": 1}
        assert len(service.requests) == 1


@pytest.mark.parametrize("move", ["busy", "broken", "overloaded", "error_200", "cut"])
def test_a_busy_provider_is_tried_again(open_with, one_talk, move):
    with serving(Script([move, "ok"], retry_after="0.1")) as service:
        memex = open_with(service)
        assert compact(memex, TALKS).made == {"talks": 1}
        assert len(service.requests) == 2


def test_what_hangs_is_given_up_in_time_and_counted(open_with, one_talk):
    with serving(Script(["hang", "ok"])) as service:
        memex = open_with(service, own={"timeout_seconds": 0.3})
        assert compact(memex, TALKS).made == {"talks": 1}
    assert len(rows(memex, "ledger")) == 2


@pytest.mark.parametrize("move", ["no_key", "no_money", "no_quota", "forbidden", "no_model"])
def test_a_closed_provider_is_asked_once_and_nothing_counts_as_failed(open_with, log, move, caplog):
    for number in range(8):
        talk(log, f"Add flag {number}")
    log.write()
    with serving(Script([move])) as service:
        memex = open_with(service, own={"workers": 1})
        report = compact(memex)
        assert len(service.requests) == 1
    assert (sum(report.made.values()), report.failed) == (0, 0)
    assert "no provider is left" in report.stopped
    assert failures(memex) == []
    assert caplog.text.count("left alone for this run") == 1
    assert memex.compact_at(TALKS).plan().pending == {"talks": 8}


def test_the_next_in_the_chain_writes_what_the_first_cannot(open_with, log):
    for number in range(4):
        talk(log, f"Add flag {number}")
    log.write()
    with serving(Script(["no_key"])) as first, serving() as second:
        memex = open_with(
            first,
            own={"workers": 1},
            fallback=["openai"],
            openai={"endpoint": second.endpoint, "model": "other-model", "api_key": "sk-x"},
        )
        report = compact(memex, TALKS)
        assert (report.made, len(first.requests), len(second.requests)) == ({"talks": 4}, 1, 4)
        assert memex.compact_at(TALKS).plan().empty
    assert {row["provider"] for row in rows(memex, "talk_summaries")} == {"openai"}


def test_a_prompt_that_is_too_long_is_shortened(open_with, log):
    log.prompt("Read it").reply("word " * 20_000).write()
    with serving(Script(limit=6000)) as service:
        memex = open_with(service, models_file=None)
        assert compact(memex, TALKS).made == {"talks": 1}
        assert [r["move"] for r in service.requests][-1] == "ok"


def test_what_a_filter_refuses_is_a_failure_and_the_rest_goes_on(open_with, log):
    for number in range(3):
        talk(log, f"Add flag {number}")
    log.write()
    with serving(Script(["filtered", "ok", "ok"])) as service:
        memex = open_with(service, own={"workers": 1})
        report = compact(memex, TALKS)
    assert (report.made, report.failed, report.stopped) == ({"talks": 2}, 1, "")
    assert failures(memex)[0].startswith("Refused")


def test_invented_claims_are_asked_about_once_then_dropped(open_with, log):
    talk(log, "Add a flag to the parser").write()
    with serving(Script(["invented"])) as service:
        memex = open_with(service)
        report = compact(memex)
        assert report.failed == 0
        assert len(service.requests) == 6  # each level, and each again
        assert "by_nobody.py" in service.requests[1]["body"]["messages"][-1]["content"]
    told = str([rows(memex, t) for t in ("observations", "talk_summaries", "session_summaries")])
    for claim in ("by_nobody", "deadbeef1", "nowhere.example"):
        assert claim in INVENTED and claim not in told
    assert "Add a flag to the parser" in told


def test_the_day_has_a_cap_in_money(open_with, home, log):
    for number in range(6):
        talk(log, f"Add flag {number}")
    log.write()
    with serving() as service:
        memex = open_with(service, own={"workers": 1}, models_file=prices(home), budget={"day_usd": 0.6})
        report = compact(memex, TALKS)
        assert "the cap of 0.6 US dollars a day is reached" in report.stopped
        assert 0 < report.made["talks"] < 6
        assert report.failed == 0 and failures(memex) == []
        assert memex.book.spent().usd <= 0.6
        before = len(service.requests)
        again = Memex(memex.settings)
        assert compact(again, TALKS).made == {"talks": 0}
        assert len(service.requests) == before
    assert sum(row["cost_usd"] for row in rows(memex, "ledger")) == pytest.approx(memex.book.spent().usd)
    assert all(row["cost_usd"] > 0 for row in rows(memex, "talk_summaries"))


def test_another_model_makes_everything_again_and_the_first_is_free_to_return_to(open_with, log):
    for number in range(3):
        talk(log, f"Add flag {number}")
    log.write()
    with serving() as service:
        memex = open_with(service)
        compact(memex)
        first = len(service.requests)
        other = Memex(settings_for(memex.home, service.endpoint, own={"model": "another"}))
        plan = other.compact_at(LEVELS).plan()
        assert plan.pending == {"observations": 3, "talks": 3, "sessions": 1} and plan.reasons == {"changed": 7}
        compact(other)
        assert len(service.requests) == 2 * first
        assert {row["model"] for row in rows(memex, "talk_summaries", "served")} == {"another"}
        assert len(rows(memex, "talk_summaries", "NOT served")) == 3  # kept as history
        compact(memex)
        assert len(service.requests) == 2 * first
        assert {row["model"] for row in rows(memex, "talk_summaries", "served")} == {"test-model"}


def test_a_session_made_again_by_force_asks_again(open_with, one_talk):
    with serving() as service:
        memex = open_with(service)
        compact(memex, TALKS)
        compact(memex, TALKS, force=True)
        assert len(service.requests) == 2
    assert len(rows(memex, "talk_summaries")) == 1


def test_a_chinese_talk_is_asked_about_and_answered_in_chinese(open_with, log):
    log.prompt("为什么登录这么慢？请修复").reply("因为缺少索引。").write()
    with serving() as service:
        memex = open_with(service)
        assert compact(memex, TALKS).made == {"talks": 1}
        system, user = service.requests[0]["body"]["messages"]
    assert "总结" in system["content"] and user["content"].endswith("请用中文回答（代码、路径和名称保持原样）。")


def test_an_answer_in_another_language_is_asked_about_once(open_with, log):
    log.prompt("为什么登录这么慢？请修复").reply("因为缺少索引。").write()
    english = {"user_request": "Fix the login", "summary": "The login was slow."}
    with serving(Script(words=english)) as service:
        memex = open_with(service)
        assert compact(memex, TALKS).made == {"talks": 1}
        assert len(service.requests) == 2
        assert "请用中文回答" in service.requests[1]["body"]["messages"][-1]["content"]


def test_the_beginning_of_every_question_is_the_same(open_with, log):
    for number in range(3):
        talk(log, f"Add flag {number}")
    log.write()
    with serving() as service:
        compact(open_with(service), TALKS)
        assert len({request["body"]["messages"][0]["content"] for request in service.requests}) == 1


def test_what_failed_claims_no_result(open_with, log):
    log.prompt("Fix the tests").call("Bash", {"command": "pytest"}, "1 failed, 2 passed", error=True)
    log.reply("All tests pass now.").write()
    with serving(Script(words={"completed": "All tests pass"})) as service:
        memex = open_with(service)
        compact(memex, TALKS)
        assert "leave `completed` empty" in service.requests[1]["body"]["messages"][-1]["content"]
    assert rows(memex, "talk_summaries")[0]["completed"] == ""


def test_forgetting_leaves_no_answer_that_waits(open_with, log):
    from memex.forget.target import Target

    talk(log, "Add a flag to the zebra").write()
    with serving() as service:
        memex = open_with(service)
        compact(memex)
        memex.book.keep("waiting", "an answer about the zebra")
        memex.forget.run(Target(f"claude:{log.session}", "", ""))
        assert memex.book.answer("waiting") is None
    files = (memex.home / "journal").rglob("*")
    assert not any(b"zebra" in path.read_bytes() for path in files if path.is_file())


def test_ready_secrets_of_errors_stay_out_of_failures(open_with, one_talk):
    with serving(Script(["filtered"], words={})) as service:
        memex = open_with(service, own={"api_key": "sk-proj-" + "a1" * 20})
        compact(memex, TALKS)
        assert service.requests[0]["key"] == "Bearer sk-proj-" + "a1" * 20
    assert "a1a1" not in str(rows(memex, "failures"))
