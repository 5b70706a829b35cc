"""What holds for any log at all."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sources.parsing import (
    census,
    lines,
    parse,
    parse_in_pieces,
    tool,
    user,
    words,
)

TEXT = st.text(max_size=12) | st.sampled_from(
    ["<system-reminder>x</system-reminder>", "Caveat: x", "/usage", "a", "ab"]
)
BLOCK = st.one_of(
    st.builds(words, TEXT),
    st.fixed_dictionaries({"type": st.just("thinking"), "thinking": TEXT}),
    st.builds(tool, st.sampled_from(["t1", "t2"]), st.sampled_from(["Bash", "Edit", "x"]), command=TEXT),
    st.fixed_dictionaries(
        {"type": st.just("tool_result"), "tool_use_id": st.sampled_from(["t1", "t3"]), "content": TEXT | st.none()}
    ),
    st.sampled_from([{"type": "image"}, {"type": "new"}, {}, None, 3, "bare"]),
)
CONTENT = TEXT | st.lists(BLOCK, max_size=3) | st.none() | st.integers()
ENVELOPE = st.fixed_dictionaries(
    {},
    optional={
        "uuid": st.sampled_from(["u1", "u2", "u3", None]),
        "timestamp": st.sampled_from(["2026-09-01T08:00:00Z", "2020-01-01", 1767225600, -1, None, "x"]),
        "cwd": st.sampled_from(["/src/app", "/src/修", "", 3]),
        "isMeta": st.sampled_from([True, False, None]),
        "isCompactSummary": st.booleans(),
        "toolUseResult": st.sampled_from([{"agentId": "a1"}, "text", {}, None]),
    },
)
MESSAGE = st.fixed_dictionaries(
    {"content": CONTENT},
    optional={
        "id": st.sampled_from(["m1", "m2", None, 5]),
        "role": st.sampled_from(["user", "assistant"]),
        "stop_reason": st.sampled_from(["end_turn", "tool_use", None]),
        "usage": st.sampled_from([{"output_tokens": 3}, {"output_tokens": "x"}, {}, None]),
        "model": st.sampled_from(["claude-test", None]),
    },
)
BODY = st.one_of(
    st.fixed_dictionaries({"type": st.sampled_from(["user", "assistant"]), "message": MESSAGE | st.none() | TEXT}),
    st.fixed_dictionaries({"type": st.just("system"), "content": CONTENT}),
    st.fixed_dictionaries({"type": st.sampled_from(["summary", "ai-title", "new", None]), "summary": TEXT | st.none()}),
    st.fixed_dictionaries(
        {"type": st.just("attachment"), "attachment": st.sampled_from([None, {"type": "x", "content": "y"}])}
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("queue-operation"),
            "operation": st.sampled_from(["enqueue", "dequeue", "remove", "popAll", None]),
            "content": st.sampled_from(["queued one", "queued two", None]),
        }
    ),
)
RECORD = st.builds(lambda body, envelope: {**envelope, **body}, BODY, ENVELOPE)
VALUES = st.lists(RECORD, min_size=1, max_size=2).map(lambda records: "".join(map(json.dumps, records)).encode())
GARBAGE = st.sampled_from([b"", b"  ", b"\x00\x00", b"garbage", b'{"type": "us', b"\xff\xfe{}", b"7"])
LOG = st.lists(VALUES | VALUES | GARBAGE, max_size=10).map(lambda whole: b"".join(line + b"\n" for line in whole))


@settings(deadline=None, max_examples=100)
@given(data=LOG, share=st.floats(0, 1))
def test_part_of_a_log_is_part_of_its_story(data, share):
    part = parse(data[: round(share * len(data))])
    whole = parse(data)
    if b"queue-operation" not in data:  # what waits in the queue may be withdrawn later
        assert len(part.talks) <= len(whole.talks)
    assert census(part).lines <= census(whole).lines
    assert [b for b in census(whole).bad if b in census(part).bad] == census(part).bad


def said(identity, *blocks, **more):
    return {"type": "assistant", "message": {"id": identity, "content": list(blocks), **more}}


def result(identity, text):
    block = {"type": "tool_result", "tool_use_id": identity, "content": text}
    return {"type": "user", "message": {"content": [block]}}


OPEN_ENDED = [
    *({"type": "queue-operation", "operation": o, "content": "x"} for o in ("enqueue", "dequeue", "remove", "popAll")),
    user("x"),
    user("y", uuid="u1", parentUuid="u0", timestamp="2026-09-01T08:00:00Z"),
    user("z", uuid="u2", parentUuid="u0", timestamp="2026-09-01T08:00:05Z"),
    {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "x"}},
    {
        "type": "attachment",
        "timestamp": "2026-09-01T08:00:01Z",
        "attachment": {"type": "queued_command", "prompt": "w"},
    },
    said("m1", words("one"), timestamp="2026-09-01T08:00:02Z"),
    said("m1", words("one more"), stop_reason="end_turn", usage={"output_tokens": 7}),
    said("m2", tool("t1")),
    said("m3", tool("t1", file_path="a.py"), tool("t2")),
    result("t1", "first"),
    result("t2", "second"),
]
"""Records whose fate later records decide."""


@settings(deadline=None, max_examples=300)
@given(records=st.lists(st.sampled_from(OPEN_ENDED), max_size=12), cuts=st.lists(st.integers(0, 12), max_size=3))
def test_what_later_records_decide_is_decided_again(records, cuts):
    whole = [lines(record) for record in records]
    data = b"".join(whole)
    assert parse_in_pieces(data, [len(b"".join(whole[:cut])) for cut in cuts]) == parse(data)


@settings(deadline=None, max_examples=100)
@given(data=LOG, shares=st.lists(st.floats(0, 1), max_size=4))
def test_log_that_grows_ends_like_one_read_at_once(data, shares):
    """Torn anywhere."""
    assert parse_in_pieces(data, [round(share * len(data)) for share in shares]) == parse(data)


@settings(deadline=None, max_examples=60)
@given(data=LOG)
def test_same_bytes_give_the_same_records(data):
    assert parse(data) == parse(bytes(bytearray(data)))


@settings(deadline=None, max_examples=100)
@given(whole=st.lists(st.lists(RECORD, min_size=1, max_size=2) | GARBAGE, max_size=8), cut=st.integers(0, 60))
def test_every_line_is_counted(whole, cut):
    written = [b"".join(json.dumps(r).encode() for r in line) if isinstance(line, list) else line for line in whole]
    tail = b'{"type": "user", "message": {"content": "a prompt that is torn"}}'[:cut]
    found = census(parse(b"".join(line + b"\n" for line in written) + tail))
    starts = [sum(len(before) + 1 for before in written[:n]) for n in range(len(written))]
    assert [b.offset for b in found.bad] == [
        s for s, line in zip(starts, whole, strict=True) if isinstance(line, bytes) and line.strip(b" \x00")
    ]
    assert sum(n for uses in found.records.values() for n in uses.values()) == sum(
        len(line) for line in whole if isinstance(line, list)
    )
    assert found.lines == len([line for line in written if line.strip(b" \x00")])
    assert found.torn_bytes == len(tail)


@settings(deadline=None, max_examples=60)
@given(data=LOG)
def test_talks_cover_their_messages(data):
    parsed = parse(data)
    assert [t.prompt_number for t in parsed.talks] == list(range(1, len(parsed.talks) + 1))
    spoken = [m for m in parsed.messages if m.prompt_number > 0]
    assert sum(t.messages for t in parsed.talks) == len(spoken)
    assert all(t.seq_from <= t.seq_to for t in parsed.talks)
    assert [m.seq for m in parsed.messages] == sorted(m.seq for m in parsed.messages)
