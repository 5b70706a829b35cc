"""What holds for any log of Codex at all, read at once or in pieces."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from memex.sources.parse import SessionParse
from memex.sources.registry import ADAPTERS
from tests.codex_logs import NATIVE, CodexLog, turn_id
from tests.sources.parsing import Family, MemoryBlob, census, parse, parsed

PATH = CodexLog().path
SESSION = f"codex:{NATIVE}"
PARENT = "0199f000-0000-7000-8000-0000000000ff"
PARENT_LOG = CodexLog(native=PARENT).meta().turn(turn_id(1)).typed("one").reply("Yes.").lines()
FAMILY = Family(**{f"codex_{PARENT.replace('-', '_')}": ("", PARENT_LOG)})

TEXT = st.text(max_size=12) | st.sampled_from(
    [
        "one", "two", "two\n", "<environment_context>x</environment_context>", "<turn_aborted>", "<new>x</new>",
        "# AGENTS.md", "Exit code: 1\nWall time: 1 seconds\nOutput:\nbad", "Script running with cell ID 7\n",
        '{"output":"x","metadata":{"exit_code":2}}', '{"output":"x","session_id":7,"exit_code":null}',
    ]
)  # fmt: skip
ODD = st.none() | st.integers() | st.booleans() | TEXT | st.lists(TEXT, max_size=2)
BLOCK = st.one_of(
    st.builds(lambda kind, text: {"type": kind, "text": text}, st.sampled_from(["input_text", "output_text"]), TEXT),
    st.sampled_from([{"type": "input_image"}, {"type": "new"}, {}, None, 3, "bare"]),
)
CONTENT = st.lists(BLOCK, max_size=3) | ODD
CALL = st.sampled_from(["c1", "c2", "c3", None, 5])
COUNTS = st.sampled_from([3, 5, -1, "x", None])
USAGE = st.fixed_dictionaries(
    {}, optional={"input_tokens": COUNTS, "cached_input_tokens": COUNTS, "output_tokens": COUNTS}
)
ITEM = st.one_of(
    st.builds(
        lambda role, content: {"type": "message", "role": role, "content": content},
        st.sampled_from(["user", "user", "assistant", "developer", None]), CONTENT,
    ),
    st.builds(lambda summary: {"type": "reasoning", "summary": summary}, CONTENT),
    st.builds(
        lambda name, given, call: {"type": "function_call", "name": name, "arguments": given, "call_id": call},
        st.sampled_from(["shell", "exec_command", "write_stdin", "spawn_agent", None]),
        st.sampled_from(['{"cmd":"ls"}', '{"command":["bash","-lc","ls"]}', '{"session_id":7}', "{", "[1]", None, 3]),
        CALL,
    ),
    st.builds(
        lambda name, given, call: {"type": "custom_tool_call", "name": name, "input": given, "call_id": call},
        st.sampled_from(["exec", "apply_patch"]),
        st.sampled_from(['await tools.exec_command({cmd:"ls"})', "*** Add File: a\n+x", "tools.wait()", None]), CALL,
    ),
    st.builds(
        lambda kind, output, call: {"type": kind, "output": output, "call_id": call},
        st.sampled_from(["function_call_output", "custom_tool_call_output", "tool_search_output"]),
        CONTENT | st.sampled_from([{"content": "x", "success": False}, {"output": {}}]), CALL,
    ),
    st.sampled_from(["web_search_call", "local_shell_call", "image_generation_call", "ghost_snapshot", "x"]).map(
        lambda kind: {"type": kind, "action": {"type": "exec", "command": ["ls"]}}
    ),
)  # fmt: skip
EVENT = st.one_of(
    st.builds(lambda text: {"type": "user_message", "message": text}, ODD),
    st.builds(
        lambda last, total: {"type": "token_count", "info": {"last_token_usage": last, "total_token_usage": total}},
        USAGE | st.none(), st.sampled_from([{"total_tokens": 1}, {"total_tokens": 2}, None]),
    ),
    st.builds(lambda turns: {"type": "thread_rolled_back", "num_turns": turns}, st.sampled_from([1, 2, 9, -1, "x"])),
    st.builds(
        lambda kind, call, result: {"type": kind, "call_id": call, "success": False, "result": result, "turn_id": 3},
        st.sampled_from(["mcp_tool_call_end", "patch_apply_end", "web_search_end", "task_started", "x"]),
        CALL | st.just("exec-1"), st.sampled_from([{"Ok": {"content": [], "isError": True}}, {"Err": "x"}, None, 3]),
    ),
    st.sampled_from(["turn_aborted", "task_complete", "agent_message", "item_completed", "error"]).map(
        lambda kind: {"type": kind, "message": "x", "item": {"text": "plan"}}
    ),
)  # fmt: skip
META = st.fixed_dictionaries(
    {},
    optional={
        "id": ODD, "cwd": ODD, "git": ODD, "forked_from_id": st.sampled_from([PARENT, "unknown", None, 3]),
        "source": st.sampled_from(["cli", {"subagent": "review"}, {"subagent": {"thread_spawn": {}}}, {"subagent": 3}]),
    },
)  # fmt: skip
TURN = st.builds(
    lambda turn, cwd: {"turn_id": turn, "cwd": cwd, "model": "m"}, st.sampled_from([turn_id(1), turn_id(2), None]), ODD
)
STAMP = st.sampled_from(["2026-09-01T08:00:00Z", "2020-01-01", 1767225600, None, "x"])
WRAPPED = st.builds(
    lambda body, stamp: {"timestamp": stamp, "type": body[0], "payload": body[1]},
    st.one_of(
        st.tuples(st.just("response_item"), ITEM), st.tuples(st.just("response_item"), ITEM),
        st.tuples(st.just("event_msg"), EVENT), st.tuples(st.just("session_meta"), META),
        st.tuples(st.just("turn_context"), TURN), st.tuples(st.just("compacted"), st.just({"message": ""})),
        st.tuples(st.sampled_from(["world_state", "response_item", "event_msg", "compacted", None]), ODD),
    ),
    STAMP,
)  # fmt: skip
RECORD = WRAPPED | WRAPPED | ITEM | st.dictionaries(st.sampled_from(["type", "payload", "id", "timestamp"]), ODD)
VALUES = st.lists(RECORD, min_size=1, max_size=2).map(lambda records: "".join(map(json.dumps, records)).encode())
GARBAGE = st.sampled_from([b"", b"\x00\x00", b"garbage", b'{"type": "event', b"\xff\xfe{}", b"7"])
LOG = st.lists(VALUES | VALUES | GARBAGE, max_size=14).map(lambda whole: b"".join(line + b"\n" for line in whole))
STORY = st.lists(WRAPPED, max_size=30).map(lambda records: b"".join(json.dumps(r).encode() + b"\n" for r in records))


def read(data):
    return parse(data, path=PATH, cli="codex", session_id=SESSION, family=FAMILY)


def read_in_pieces(data, ends):
    """Read a log as it grows to each of these sizes, going on each time where the last read ended."""
    before = saved = None
    for end in ends:
        reading = SessionParse(
            ADAPTERS["codex"], SESSION, [MemoryBlob("log0", PATH, data[:end], 7)], 1, end, {}, {}, FAMILY, saved
        )
        before = parsed(reading, before)
        saved = reading.saved
    return before


@settings(deadline=None, max_examples=300)
@given(data=LOG | STORY, shares=st.lists(st.floats(0, 1), max_size=5))
def test_a_log_read_in_pieces_tells_the_same_as_read_at_once(data, shares):
    ends = sorted(round(share * len(data)) for share in shares)
    assert read_in_pieces(data, [*ends, len(data)]) == read(data)


@settings(deadline=None, max_examples=30)
@given(data=STORY)
def test_a_log_read_line_by_line_tells_the_same_as_read_at_once(data):
    ends = [at + 1 for at, byte in enumerate(data) if byte == 10]
    assert read_in_pieces(data, [*ends, len(data)]) == read(data)


@settings(deadline=None, max_examples=200)
@given(whole=st.lists(st.lists(RECORD, min_size=1, max_size=2) | GARBAGE, max_size=10))
def test_every_record_is_counted_once(whole):
    written = [b"".join(json.dumps(r).encode() for r in line) if isinstance(line, list) else line for line in whole]
    found = census(read(b"".join(line + b"\n" for line in written)))
    assert sum(n for uses in found.records.values() for n in uses.values()) == sum(
        len(line) for line in whole if isinstance(line, list)
    )


@settings(deadline=None, max_examples=60)
@given(data=LOG)
def test_same_bytes_give_the_same_rows(data):
    assert read(data) == read(bytes(bytearray(data)))


@settings(deadline=None, max_examples=200)
@given(data=LOG | STORY)
def test_every_row_has_an_id_and_a_place_of_its_own(data):
    reading = SessionParse(ADAPTERS["codex"], SESSION, [MemoryBlob("log0", PATH, data)], 1, len(data), {}, {}, FAMILY)
    places: dict[str, int] = {}
    for rows in reading.rows():
        for row in (*rows.messages, *rows.calls):
            assert places.setdefault(row.id, row.seq) == row.seq
    owners = {(seq, identity.removesuffix(":thinking")) for identity, seq in places.items()}
    assert len(owners) == len({seq for seq, _identity in owners})


@settings(deadline=None, max_examples=60)
@given(data=STORY)
def test_talks_cover_their_messages(data):
    whole = read(data)
    spoken = [m for m in whole.messages if m.prompt_number and not m.superseded]
    assert sum(talk.messages for talk in whole.talks) == len(spoken)
