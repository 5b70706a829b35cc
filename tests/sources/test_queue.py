"""Prompts that were typed while the CLI was busy."""

import pytest

from tests.sources.parsing import (
    parse,
    prompts,
    queue,
    words,
)


def test_queued_prompt_without_another_record_is_a_prompt(log):
    log.prompt("fix it")
    queue(log, "enqueue", "and the docs")
    queue(log.reply("Fixing."), "remove").reply("Docs too.")
    parsed = parse(log)
    assert prompts(parsed) == ["fix it", "and the docs"]
    assert [(m.prompt_number, m.text) for m in parsed.messages if m.kind == "reply"] == [
        (1, "Fixing."),
        (2, "Docs too."),
    ]


def test_dequeued_prompt_with_its_user_record_counts_once(log):
    queue(log.prompt("fix it"), "enqueue", "and the docs")
    queue(log.reply("Fixing."), "dequeue").prompt("and the docs").reply("Docs too.")
    assert prompts(parse(log)) == ["fix it", "and the docs"]


def test_withdrawn_prompts_are_none(log):
    queue(log.prompt("fix it"), "enqueue", "and the docs")
    queue(log, "enqueue", "and the tests")
    queue(queue(log, "popAll"), "remove").reply("Fixed.")
    assert prompts(parse(log)) == ["fix it"]


def test_prompt_still_in_the_queue_was_typed_all_the_same(log):
    queue(log.prompt("fix it"), "enqueue", "and the docs").reply("Fixed.")
    parsed = parse(log)
    assert prompts(parsed) == ["fix it", "and the docs"]
    assert [talk.answered for talk in parsed.talks] == [True, False]


def test_same_words_typed_and_queued_are_two_prompts(log):
    log.prompt("continue").reply("Done.")
    queue(queue(log, "enqueue", "continue"), "remove").reply("Done again.")
    assert prompts(parse(log)) == ["continue", "continue"]


def test_queue_is_delivered_in_order(log):
    log.prompt("fix it")
    for text in ("one", "two"):
        queue(log, "enqueue", text)
    queue(queue(log.reply("Fixing."), "remove"), "dequeue").prompt("two")
    assert prompts(parse(log)) == ["fix it", "one", "two"]


def test_oldest_prompt_is_delivered_first(log):
    for text in ("one", "two"):
        queue(log, "enqueue", text)
    queue(log, "remove")
    log.reply("Going.")
    first, second = parse(log).talks
    assert (first.prompt, first.answered, second.prompt, second.answered) == ("one", True, "two", False)


def test_dequeued_prompt_leaves_the_queue(log):
    for text in ("one", "two"):
        queue(log, "enqueue", text)
    queue(queue(log, "dequeue").prompt("one").reply("Going."), "remove")
    assert prompts(parse(log)) == ["one", "two"]


def test_user_record_stands_for_one_queued_prompt_only(log):
    for _ in range(2):
        queue(log, "enqueue", "go on")
    queue(queue(log, "dequeue").prompt("go on").reply("Going."), "remove")
    assert prompts(parse(log)) == ["go on", "go on"]


def test_same_text_queued_twice_counts_twice(log):
    log.prompt("fix it")
    for _ in range(2):
        queue(queue(log, "enqueue", "go on"), "remove").reply("Going.")
    assert prompts(parse(log)) == ["fix it", "go on", "go on"]


@pytest.mark.parametrize("prompt", ["and the docs", [words("and the docs")]])
def test_queued_command_attachment_is_a_prompt(log, prompt):
    log.prompt("fix it").add("attachment", uuid=..., attachment={"type": "queued_command", "prompt": prompt})
    assert prompts(parse(log)) == ["fix it", "and the docs"]


def test_queue_and_attachment_of_one_prompt_count_once(log):
    queue(queue(log.prompt("fix it"), "enqueue", "and the docs"), "remove")
    log.add("attachment", attachment={"type": "queued_command", "prompt": "and the docs"})
    assert prompts(parse(log)) == ["fix it", "and the docs"]


@pytest.mark.parametrize(
    "body",
    [
        {"type": "queued_command", "prompt": "<task-notification>done</task-notification>"},
        {"type": "queued_command", "prompt": "done", "origin": {"kind": "hook"}},
        {"type": "queued_command", "prompt": "done", "isMeta": True},
        {"type": "todo", "content": "done"},
        {"type": "hook_success", "prompt": "done"},
        {"type": "queued_command"},
        None,
    ],
)
def test_other_attachments_are_no_prompts(log, body):
    log.prompt("fix it").add("attachment", attachment=body)
    assert prompts(parse(log)) == ["fix it"]


def test_queued_notification_is_no_prompt(log):
    queue(queue(log.prompt("fix it"), "enqueue", "<task-notification>done</task-notification>"), "remove")
    assert prompts(parse(log)) == ["fix it"]
