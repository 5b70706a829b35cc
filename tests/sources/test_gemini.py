"""Gemini CLI's logs, parsed: documents and replayed lines in, records out."""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.setup import open_memex
from memex.sources.gemini import GeminiAdapter
from tests.conftest import ingest, rows
from tests.sources.parsing import Family, census, counted, parse, parse_in_pieces, prompts, texts

SAMPLE = Path(__file__).parents[2] / "data" / "gemini"
FOLDER = Path("/home/u/.gemini/tmp/app/chats")
LINES = FOLDER / "session-2026-09-01T08-00-0a1b2c3d.jsonl"
DOCUMENT = LINES.with_suffix(".json")
SESSION = "gemini:0a1b2c3d"
META = {
    "sessionId": "0a1b2c3d-0000-4000-8000-000000000001",
    "projectHash": "f" * 64,
    "startTime": "2026-09-01T08:00:00Z",
}


def jsonl(*records):
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def user(name, content, **more):
    return {"id": name, "timestamp": "2026-09-01T08:01:00Z", "type": "user", "content": content, **more}


def reply(name, content, **more):
    return {"id": name, "timestamp": "2026-09-01T08:02:00Z", "type": "gemini", "content": content, "model": "g", **more}


def call(name, tool, given, output, status="success", **more):
    response = {"functionResponse": {"id": name, "name": tool, "response": {"output": output}}}
    return {"id": name, "name": tool, "args": given, "result": [response], "status": status, **more}


def read(*records, path=LINES, family=None):
    data = jsonl(*records) if path.suffix == ".jsonl" else records[0]
    return parse(data, path=path, cli="gemini", session_id=SESSION, family=family)


def document(*messages, **more):
    return json.dumps({**META, **more, "messages": messages}, indent=2).encode()


@pytest.fixture
def chats(tmp_path):
    folder = tmp_path / "user" / ".gemini" / "tmp" / "app" / "chats"
    folder.mkdir(parents=True)
    return folder


class TestMessages:
    def test_talk_with_a_call(self):
        parsed = read(
            META,
            user("u1", "fix the login"),
            reply("g1", "", toolCalls=[call("c1", "replace", {"file_path": "a.py"}, "done")]),
            reply("g2", "Fixed.", thoughts=[{"subject": "Why", "description": "the token expired"}]),
            {"id": "i1", "type": "info", "content": "Update available"},
        )
        assert prompts(parsed) == ["fix the login"]
        assert texts(parsed) == ["", "Fixed."]
        assert texts(parsed, "thinking") == ["Why\nthe token expired"]
        [made] = parsed.calls
        assert (made.name, made.operation, made.output, made.files, made.answered) == (
            "replace", "edit", "done", ("a.py",), True,
        )  # fmt: skip
        assert (parsed.session.native_id, parsed.session.models) == (META["sessionId"], ("g",))
        assert texts(parsed, "notice") == ["Update available"]

    @pytest.mark.parametrize("text", ["", "  ", "/help", "?", "<session_context>x", "<hook_context>y"])
    def test_what_no_human_typed_starts_no_talk(self, text):
        assert prompts(read(META, user("u1", text), user("u2", [{"text": "real"}]))) == ["real"]

    def test_function_response_is_no_prompt(self):
        part = {"functionResponse": {"name": "x", "response": {"output": "42"}}}
        parsed = read(META, user("u1", [part]))
        assert prompts(parsed) == [] and texts(parsed, "notice") == ["42"]

    def test_prompt_is_what_was_typed_and_what_was_sent_is_kept(self):
        parsed = read(META, user("u1", [{"text": "see @a.py"}, {"text": "x = 1"}], displayContent="see @a.py"))
        assert prompts(parsed) == ["see @a.py"]
        assert texts(parsed, "notice") == ["see @a.py\nx = 1"]

    def test_picture_is_a_reference(self):
        parsed = read(META, user("u1", [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]))
        assert (parsed.messages[0].text, parsed.messages[0].images) == ("[image]", 1)

    def test_tokens_are_counted_once_and_input_as_what_is_new(self):
        tokens = [{"input": 100, "output": 10, "cached": 0, "thoughts": 5}, {"input": 130, "output": 7, "cached": 90}]
        first = reply("g1", "One", tokens=tokens[0])
        parsed = read(META, user("u1", "go"), first, {**first, "content": "One."}, reply("g2", "Two", tokens=tokens[1]))
        session = parsed.session
        assert (session.tokens_input, session.tokens_output, session.tokens_cached) == (130, 22, 90)

    @pytest.mark.parametrize(
        ("given", "output", "failed"),
        [
            ({"result": "plain"}, "plain", False),
            (
                {"result": [{"functionResponse": {"response": {"error": "no such file"}}}], "status": "error"},
                "no such file",
                True,
            ),
            ({"result": [], "resultDisplay": {"fileDiff": "+x"}}, "+x", False),
            ({"result": {"rows": 3}}, '{"rows": 3}', False),
        ],
    )
    def test_outputs_in_every_form(self, given, output, failed):
        parsed = read(
            META, user("u1", "go"), reply("g1", "", toolCalls=[{"id": "c", "name": "x", "args": {}, **given}])
        )
        assert (parsed.calls[0].output, parsed.calls[0].is_error) == (output, failed)

    def test_call_that_still_runs_has_no_answer(self):
        running = {"id": "c", "name": "run_shell_command", "args": {"command": "make"}, "status": "executing"}
        assert not read(META, user("u1", "go"), reply("g1", "", toolCalls=[running])).calls[0].answered


class TestReplay:
    def test_message_that_grew_counts_once(self):
        parsed = read(META, user("u1", "go"), reply("g1", "Lo"), reply("g1", "Looking."))
        assert texts(parsed) == ["Looking."]
        assert census(parsed).records["gemini"] == {"reply": 1, "the same message again": 1}

    def test_rewind_takes_back_the_message_and_all_after_it(self):
        parsed = read(
            META, user("u1", "one"), reply("g1", "1"), user("u2", "two"), reply("g2", "2"),
            {"$rewindTo": "u2"}, user("u3", "three"), reply("g3", "3"),
        )  # fmt: skip
        assert prompts(parsed) == ["one", "three"]
        assert [m.text for m in parsed.messages if m.superseded] == ["two", "2"]

    def test_rewind_into_a_talk_leaves_its_prompt(self):
        parsed = read(META, user("u1", "one"), reply("g1", "1"), {"$rewindTo": "g1"}, reply("g2", "better"))
        assert prompts(parsed) == ["one"]
        assert [m.text for m in parsed.messages if m.kind == "reply" and not m.superseded] == ["better"]

    def test_rewind_to_an_unknown_message_takes_all_back(self):
        parsed = read(META, user("u1", "one"), {"$rewindTo": "u9"}, user("u2", "two"))
        assert prompts(parsed) == ["two"]

    def test_set_replaces_all_messages(self):
        parsed = read(
            META, user("u1", "one"), user("u2", "two"), {"$set": {"messages": [user("u2", "two")], "summary": "S"}}
        )
        assert prompts(parsed) == ["two"]
        assert parsed.session.title == "S"
        assert [m.text for m in parsed.messages if m.superseded] == ["one"]

    def test_message_taken_back_and_said_again_stands(self):
        parsed = read(META, user("u1", "one"), {"$rewindTo": "u1"}, user("u1", "one"))
        assert prompts(parsed) == ["one"]
        assert not any(m.superseded for m in parsed.messages)


class TestDocuments:
    def test_document_tells_the_same_as_lines(self):
        messages = [user("u1", "one"), reply("g1", "1"), user("u2", "二")]
        assert prompts(read(document(*messages), path=DOCUMENT)) == prompts(read(META, *messages)) == ["one", "二"]

    def test_document_under_way_is_left_for_the_next_time(self):
        data = document(user("u1", "one"), reply("g1", "1"))
        for cut in range(1, len(data) - 1):
            parsed = read(data[:cut], path=DOCUMENT)
            assert parsed.messages == () and census(parsed).torn_bytes == cut
        assert prompts(parse_in_pieces(data, [9, 60], DOCUMENT, "gemini")) == ["one"]

    def test_lines_in_a_document_are_read_as_lines(self):
        assert prompts(read(jsonl(user("u1", "one"), reply("g1", "1")), path=DOCUMENT)) == ["one"]

    def test_document_that_became_lines_is_not_doubled(self, memex, chats):
        old, new = chats / DOCUMENT.name, chats / LINES.name
        old.write_bytes(document(user("u1", "one"), reply("g1", "1")))
        ingest(memex)
        old.unlink()
        new.write_bytes(jsonl(META, user("u1", "one"), reply("g1", "1"), user("u2", "two"), reply("g2", "2")))
        ingest(memex)
        assert [t["prompt"] for t in memex.lake.scan("talks", None, "NOT superseded").to_pylist()] == ["one", "two"]
        assert memex.lake.count("messages", "kind = 'prompt'") == 2

    def test_message_that_a_new_document_dropped_is_superseded(self, memex, chats):
        log = chats / DOCUMENT.name
        log.write_bytes(document(user("u1", "one"), user("u2", "two")))
        ingest(memex)
        log.write_bytes(document(user("u1", "one"), user("u3", "three")))
        ingest(memex)
        rows = {r["text"]: r["superseded"] for r in memex.lake.scan("messages").to_pylist()}
        assert rows == {"one": False, "two": True, "three": False}


class TestPlaces:
    def test_logs_are_found_and_named(self, tmp_path):
        wanted = {
            "tmp/app/chats/session-2026-09-01T08-00-0a1b2c3d.jsonl": "0a1b2c3d",
            "tmp/app/chats/session-2026-09-01T08-00-0a1b2c3d.json": "0a1b2c3d",
            "tmp/app/chats/0a1b2c3d-0000-4000-8000-000000000001/agent-1.jsonl": "agent-1",
            "tmp/app/.project_root": "projects",
            "projects.json": "projects",
        }
        others = [
            "chats/session-x.jsonl.tmp-12",
            "chats/session-x.json.unreadable-1",
            "logs.json",
            "checkpoints/c.json",
        ]
        others = [f"tmp/app/{name}" for name in others]
        for name in (*wanted, *others):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}")
        found = {f.place.removeprefix(f"{tmp_path}/"): f.session_id for f in GeminiAdapter().discover(tmp_path)}
        assert found == {name: f"gemini:{native}" for name, native in wanted.items()}

    def test_subagent_knows_its_parent(self):
        path = FOLDER / META["sessionId"] / "agent-1.jsonl"
        parsed = read({**META, "kind": "subagent"}, user("u1", "look"), path=path)
        assert (parsed.session.kind, parsed.session.parent_id) == ("subagent", SESSION)

    def test_folder_is_what_the_session_says(self):
        assert read({**META, "directories": ["/src/app"]}, user("u1", "x")).session.cwd == "/src/app"

    def test_folder_is_read_beside_the_log(self, memex, chats):
        (chats / LINES.name).write_bytes(jsonl(META, user("u1", "x")))
        (chats.parent / ".project_root").write_text("/src/应用\n")
        ingest(memex)
        assert [s["cwd"] for s in memex.lake.scan("sessions").to_pylist()] == ["/src/应用"]

    def test_folder_is_known_by_its_hash(self):
        family = Family()
        hashed = hashlib.sha256(b"/src/app").hexdigest()
        family.files["/home/u/.gemini/projects.json"] = b'{"projects": {"/src/app": "other", "/src/b": "b"}}'
        parsed = read({**META, "projectHash": hashed}, user("u1", "x"), family=family)
        assert parsed.session.cwd == "/src/app"

    def test_folder_is_that_of_another_cli_with_the_same_hash(self, memex, log, chats):
        log.prompt("hello").reply("hi").write()
        ingest(memex)
        hashed = hashlib.sha256(b"/src/app").hexdigest()
        (chats / LINES.name).write_bytes(jsonl({**META, "projectHash": hashed}, user("u1", "x")))
        ingest(memex)
        assert {s["project"] for s in memex.lake.scan("sessions").to_pylist()} == {"app"}

    @pytest.mark.parametrize(
        ("retention", "days"),
        [({"enabled": True, "maxAge": "30d"}, 30), ({"enabled": False, "maxAge": "30d"}, None), ("x", None),
         ({"enabled": True, "maxAge": "soon"}, None)],
    )  # fmt: skip
    def test_retention_is_what_the_settings_say(self, tmp_path, retention, days):
        (tmp_path / "settings.json").write_text(json.dumps({"general": {"sessionRetention": retention}}))
        kept = GeminiAdapter().retention(tmp_path)
        assert (kept and kept.days) == days


ODD = st.sampled_from([None, 3, "x", [], {}, [None, 3, {"text": "t"}], {"functionResponse": {"response": None}}])
RECORD = st.one_of(
    st.builds(user, st.sampled_from(["u1", "u2"]), st.sampled_from(["a", "/x", ["b"], [{"text": "c"}]]) | ODD),
    st.builds(reply, st.sampled_from(["g1", "g2"]), st.sampled_from(["r", ""]) | ODD),
    st.builds(
        lambda name, calls: reply(name, "", toolCalls=calls, tokens=calls, thoughts=calls),
        st.sampled_from(["g1", "g3"]),
        st.lists(
            st.fixed_dictionaries({"id": st.sampled_from(["c1", None]), "result": ODD, "args": ODD, "name": ODD}),
            max_size=2,
        )
        | ODD,
    ),
    st.fixed_dictionaries({"$rewindTo": st.sampled_from(["u1", "u2", "g1", "none", None])}),
    st.fixed_dictionaries(
        {
            "$set": st.just({"summary": "S"})
            | st.fixed_dictionaries({"messages": st.just([user("u1", "a")]) | ODD})
            | ODD
        }
    ),
    st.just(META),
    st.dictionaries(st.sampled_from(["type", "id", "content", "x"]), ODD, max_size=3),
)


@settings(deadline=None, max_examples=200)
@given(records=st.lists(RECORD, max_size=10), shares=st.lists(st.floats(0, 1), max_size=3))
def test_log_that_grows_ends_like_one_read_at_once(records, shares):
    data = jsonl(*records)
    whole = parse(data, path=LINES, cli="gemini")
    assert parse_in_pieces(data, [round(share * len(data)) for share in shares], LINES, "gemini") == whole
    assert sum(counted(whole).values()) == len(records)
    assert len({m.id for m in whole.messages}) == len(whole.messages)


def test_sample_is_read_whole(memex, monkeypatch):
    monkeypatch.setenv("GEMINI_CLI_HOME", str(SAMPLE))
    sample = open_memex()
    ingest(sample)
    (session,) = rows(sample, "sessions")
    assert session["project"] == "shelf" and session["cwd"] == "/home/mira/src/shelf"
    prompts = [row for row in rows(sample, "messages") if row["kind"] == "prompt"]
    assert [row["superseded"] for row in sorted(prompts, key=lambda row: row["ts"])] == [False, True, False]
    calls = rows(sample, "tool_calls")
    assert len(calls) == 6 and [call["is_error"] for call in calls].count(True) == 1
    assert {row["bad_lines"] for row in rows(sample, "sources")} == {"[]"}
