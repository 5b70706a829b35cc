"""Lines of a log: whole, torn, padded, bad."""

import json

import pytest

from memex.sources.lines import MAX_LINE
from tests.logs import talk
from tests.sources.parsing import (
    answer,
    census,
    counted,
    lines,
    parse,
    prompts,
    user,
)


@pytest.mark.parametrize("between", [b"", b" ", b",", b" ,\t", b"\x00\x00", b"\r"])
def test_values_on_one_line_are_all_read(between):
    data = lines(user("one"), user("two"), user("three")).replace(b"}\n{", b"}" + between + b"{", 1)
    parsed = parse(data)
    assert prompts(parsed) == ["one", "two", "three"]
    assert (census(parsed).lines, counted(parsed), census(parsed).bad) == (2, {"user": 3}, [])


@pytest.mark.parametrize(
    "disturb",
    [
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: b"\x00\x00\n\x00" + data + b"\x00\x00\x00\n",
        lambda data: b"\n \n" + data.replace(b"\n", b"\n\n"),
        lambda data: b"\r\n" + data.replace(b"\n", b"\r\n\r\n"),
    ],
    ids=["BOM", "CRLF", "NUL", "blank lines", "blank lines of Windows"],
)
def test_padding_changes_nothing(disturb):
    parsed = parse(disturb(lines(user("one"), user("two"))))
    assert prompts(parsed) == ["one", "two"]
    assert (census(parsed).lines, census(parsed).bad, census(parsed).torn_bytes) == (2, [], 0)


@pytest.mark.parametrize("bad", [b"garbage", b'{"type":"user"', b'{"a":1} trailing', b"\xff\xfe", b"[1]", b"7", b'"x"'])
def test_bad_line_is_counted_with_its_offset(bad):
    good = lines(user("one"))
    parsed = parse(good + bad + b"\n" + lines(user("two")))
    assert prompts(parsed) == ["one", "two"]
    assert [line.offset for line in census(parsed).bad] == [len(good)]
    assert census(parsed).lines == 3


def test_torn_last_line_is_left_for_later():
    whole = lines(user("one"), user("two"))
    torn = whole[: -len(b'o"}}\n')]
    parsed = parse(torn)
    assert prompts(parsed) == ["one"]
    assert (census(parsed).lines, census(parsed).bad) == (1, [])
    assert census(parsed).torn_bytes == len(torn) - len(lines(user("one")))


def test_whole_last_object_needs_no_newline():
    parsed = parse(lines(user("one"), user("two"))[:-1])
    assert prompts(parsed) == ["one", "two"]
    assert census(parsed).torn_bytes == 0


def test_lone_surrogates_become_replacement_characters():
    data = b'{"type":"user","message":{"content":"caf\\ud83d"}}\n'
    data += rb'{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Write",'
    data += rb'"input":{"file_path":"/\udc00.txt","\udc01":["\udc02"]}}]}}' + b"\n"
    parsed = parse(data)
    assert prompts(parsed) == ["caf\ufffd"]
    assert parsed.calls[0].files == ("/\ufffd.txt",)
    assert json.loads(parsed.calls[0].input) == {"file_path": "/\ufffd.txt", "\ufffd": ["\ufffd"]}
    assert census(parsed).bad == []


def test_line_beyond_the_limit_is_bad():
    data = b'{"x":"' + b"a" * MAX_LINE + b'"}\n' + lines(user("one"))
    parsed = parse(data)
    assert prompts(parsed) == ["one"]
    assert [(line.offset, line.reason) for line in census(parsed).bad] == [(0, "longer than 64 MiB")]


def test_number_that_only_python_reads_is_accepted():
    assert prompts(parse(b'{"type":"user","x":NaN,"message":{"content":"one"}}\n')) == ["one"]


def test_repeated_uuid_counts_once(log):
    talk(log, "fix it")
    parsed = parse(log.lines() * 2)
    once = parse(log)
    assert prompts(parsed) == ["fix it"]
    assert (parsed.messages, parsed.calls) == (once.messages, once.calls)
    assert sum(uses.get("left out: the same record again", 0) for uses in census(parsed).records.values()) == len(
        log.records
    )


def test_snapshot_with_the_uuid_of_a_message_hides_nothing():
    snapshot = {"type": "file-history-snapshot", "uuid": "u1", "messageId": "u1"}
    assert prompts(parse(lines(snapshot, user("one", uuid="u1")))) == ["one"]


def test_unknown_records_are_counted_and_skipped():
    parsed = parse(lines(user("one"), {"type": "brand-new"}, {"type": "brand-new"}, {"x": 1}, {"type": 3}))
    assert counted(parsed) == {"user": 1, "brand-new": 2, "(no type)": 2}
    assert len(parsed.messages) == 1


def test_legacy_message_record_is_a_prompt():
    assert prompts(parse(lines({"type": "message", "message": {"role": "user", "content": "one"}}))) == ["one"]


def test_offsets_are_byte_offsets():
    first = lines(user("one")) + "不是 JSON\n".encode()
    assert [m.offset for m in parse(first + lines(user("two"))).messages] == [0, len(first)]


def test_ids_of_messages_are_unique(log):
    log.prompt("one", uuid=...).prompt("two", uuid=...).reply({"type": "thinking", "thinking": "hm"}, "three")
    answer(log, "toolu_gone", "42 passed", uuid=...)
    orphan = {"type": "tool_result", "tool_use_id": "toolu_lost", "content": "1 failed"}
    log.add("user", message={"content": [orphan, {"type": "text", "text": "[Request interrupted by user]"}]})
    ids = [m.id for m in parse(log).messages]
    assert len(ids) == len(set(ids)) == 7


def test_several_logs_make_one_session():
    both = parse(lines(user("p0"), user("x", uuid="u")), more=[lines(user("p1"), user("x", uuid="u"))])
    assert prompts(both) == ["p0", "x", "p1"]
    assert [sum(c.records["user"].values()) for c in both.census.values()] == [2, 2]
