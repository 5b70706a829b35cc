"""`memex providers`, `memex usage` and the price of a plan, as a person uses them."""

import json

import pytest
from typer.testing import CliRunner

import memex.cli.main  # noqa: F401
from memex.cli.app import app
from memex.setup import Memex
from tests.conftest import ingest
from tests.llm.models import compact, settings_for
from tests.llm.server import Script, serving
from tests.logs import talk


@pytest.fixture
def call(monkeypatch):
    """Run a command with the provider `compatible` at an address."""

    def called(endpoint, *arguments, **environ):
        values = {
            "PROVIDER": "compatible",
            "COMPATIBLE_ENDPOINT": endpoint,
            "COMPATIBLE_MODEL": "test-model",
            **environ,
        }
        for name, value in values.items():
            monkeypatch.setenv(f"MEMEX_COMPACT_{name}", value)
        return CliRunner().invoke(app, list(arguments))

    return called


def test_a_provider_that_works(call, home):
    with serving(Script(words={"colour": "red", "letters": 3})) as service:
        done = call(service.endpoint, "providers", "--json")
        assert done.exit_code == 0, done.output
        (found,) = json.loads(done.stdout)
    assert (found["reachable"], found["has_model"], found["answers"], found["has_shape"]) == (True, True, True, True)
    assert found["trouble"] == ""


@pytest.mark.parametrize(
    ("move", "model", "trouble", "hint"),
    [
        ("no_key", "test-model", "401", "api_key"),
        ("no_money", "test-model", "402", "credit"),
        ("no_model", "other", "404", "load it, or name one that it has"),
        ("prose", "test-model", "wrong shape", "another mode"),
    ],
)
def test_a_provider_that_does_not(call, home, move, model, trouble, hint):
    with serving(Script([move])) as service:
        done = call(service.endpoint, "providers", "--json", COMPATIBLE_MODEL=model)
        (found,) = json.loads(done.stdout)
    assert done.exit_code == 1
    assert found["reachable"] and trouble in found["trouble"] and hint in found["hint"]


def test_nobody_there(call, home):
    done = call("http://127.0.0.1:9/v1", "providers")
    assert done.exit_code == 1
    assert "is it running?" in done.stderr


def test_usage_tells_what_was_spent_and_what_is_left(call, home, claude_dir, log):
    talk(talk(log, "Add a flag"), "Document it").write()
    with serving() as service:
        memex = Memex(settings_for(home, service.endpoint))
        ingest(memex)
        priced = json.loads(call(service.endpoint, "compact", "--dry-run", "--json").stdout)
        assert priced["prices"]["talks"]["calls"] == 2
        compact(memex)
        told = json.loads(call(service.endpoint, "usage", "--json").stdout)
    (day,) = told["days"]
    assert (day["calls"], day["provider"]) == (5, "compatible")
    assert told["today"][0]["spent"] == day["tokens in"] + day["tokens out"] > 0
    assert told["savings"][1]["tokens to write them"] > 0
