"""The retrieval sets of `shared/bench`, read into one form. Its README says where each is from and how it is scored."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

DEVELOPMENT = 10
"""Of so many queries one is for choosing parameters; figures are of the others."""


@dataclass(frozen=True, slots=True)
class Document:
    """A text that may be found. `session` is what it belongs to, `scope` what a query may be confined to."""

    id: str
    text: str
    session: str = ""
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """A question, and what answers it: ids of documents, or of sessions where a set ranks these."""

    id: str
    text: str
    gold: frozenset[str]
    scope: str = ""

    @property
    def is_development(self) -> bool:
        """Whether parameters may be chosen by it; the same queries in every run."""
        return int.from_bytes(sha256(self.id.encode()).digest()[:4]) % DEVELOPMENT == 0


@dataclass(frozen=True, slots=True)
class Retrieval:
    """One set. `by_session` says that sessions are ranked, each by its documents."""

    name: str
    documents: tuple[Document, ...]
    queries: tuple[Query, ...]
    by_session: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)


def entire_cli(bench: Path) -> Retrieval:
    """Coding sessions; subjects of commits are asked for the sessions in which they were made."""
    documents = [
        Document(f"{session['session_id']}/{number}", turn["text"], session["session_id"])
        for session in _lines(bench / "entire_cli" / "sessions_text.jsonl")
        for number, turn in enumerate(session["turns"])
    ]
    queries = [
        Query(row["qid"], row["query"], frozenset(row["gold_session_ids"]))
        for row in _lines(bench / "entire_cli" / "queries.jsonl")
    ]
    return Retrieval("entire_cli", tuple(documents), tuple(queries), by_session=True)


def locomo(bench: Path) -> Retrieval:
    """Turns of long conversations; each question is asked of its own conversation."""
    return _locomo(bench, "locomo", by_session=False)


def locomo_sessions(bench: Path) -> Retrieval:
    """The same questions, asked for the session that answers them."""
    return _locomo(bench, "locomo_sessions", by_session=True)


def _locomo(bench: Path, name: str, by_session: bool) -> Retrieval:
    mended = {
        row["question_id"]: row["correct_evidence"]
        for row in _json(bench / "locomo" / "locomo_audit_errors.json")
        if row["correct_evidence"]
    }
    documents, queries = [], []
    for number, sample in enumerate(_json(bench / "locomo" / "locomo10.json")):
        scope = f"conversation-{number}"
        turns = list(_locomo_turns(sample["conversation"], scope))
        documents += turns
        known = {turn.id: turn.session for turn in turns}
        for place, asked in enumerate(sample["qa"]):
            key = f"locomo_{number}_qa{place}"
            evidence = {f"{scope}/{one}" for one in mended.get(key, asked.get("evidence", ()))} & known.keys()
            gold = {known[one] for one in evidence} if by_session else evidence
            if gold and asked["category"] != ADVERSARIAL:
                queries.append(Query(key, asked["question"], frozenset(gold), scope))
    return Retrieval(name, tuple(documents), tuple(queries), by_session)


ADVERSARIAL = 5
"""The category of questions that nothing answers."""


def _locomo_turns(conversation: Mapping[str, Any], scope: str) -> Iterator[Document]:
    for name, turns in conversation.items():
        if re.fullmatch(r"session_\d+", name):
            for turn in turns:
                seen = f"\n{turn['blip_caption']}" if turn.get("blip_caption") else ""
                text = f"{turn['speaker']}: {turn['text']}{seen}"
                yield Document(f"{scope}/{turn['dia_id']}", text, f"{scope}/{name}", scope)


def madial_zh(bench: Path) -> Retrieval:
    """Memories of a person, and dialogues in which some of them should come to mind; Chinese."""
    return _madial(bench, "zh")


def madial_en(bench: Path) -> Retrieval:
    """The same in English."""
    return _madial(bench, "en")


def _madial(bench: Path, tongue: str) -> Retrieval:
    folder = bench / "madial"
    documents = [
        Document(key, f"{memory['time']} {memory['event']}")
        for row in _lines(folder / f"MADial-Bench-{tongue}-memory.jsonl")
        for key, memory in row.items()
    ]
    queries = [
        Query(
            f"madial_{tongue}_{number}/{turn}",
            "".join(row["dialogue"][1:turn]),
            frozenset(map(str, row["relevant-id"])),
        )
        for number, row in enumerate(_lines(folder / f"MADial-Bench-{tongue}-dialogue.jsonl"))
        for turn in row["test-turn"]
    ]
    return Retrieval(f"madial_{tongue}", tuple(documents), tuple(queries))


def cmrc2018(bench: Path) -> Retrieval:
    """Chinese passages, and questions about them."""
    passages = [
        paragraph
        for article in _json(bench / "cmrc2018" / "cmrc2018_dev_squad.json")["data"]
        for paragraph in article["paragraphs"]
    ]
    documents = [Document(passage["id"], passage["context"]) for passage in passages]
    queries = [
        Query(asked["id"], asked["question"], frozenset([passage["id"]]))
        for passage in passages
        for asked in passage["qas"]
    ]
    return Retrieval("cmrc2018", tuple(documents), tuple(queries))


def cosqa(bench: Path) -> Retrieval:
    """Python functions, and what people typed into a search box when they wanted one."""
    rows = _json(bench / "cosqa" / "cosqa-dev.json")
    more = _json(bench / "cosqa" / "test_webquery.json")
    ids = {
        code: f"function-{number}" for number, code in enumerate(dict.fromkeys(row["code"] for row in [*rows, *more]))
    }
    documents = [Document(key, code) for code, key in ids.items()]
    queries = [Query(row["idx"], row["doc"], frozenset([ids[row["code"]]])) for row in rows if row["label"] == 1]
    return Retrieval("cosqa", tuple(documents), tuple(queries))


def sde(bench: Path) -> Retrieval:
    """Chats in which decisions were taken and amended, among others; asked with how a bug report begins."""
    documents, queries = [], []
    for task in _json(bench / "sde_bench" / "tasks.json"):
        if not task.get("conversations"):
            continue
        chats = task["conversations"] if isinstance(task["conversations"][0], list) else [task["conversations"]]
        sessions = [f"{task['task_id']}/{number}" for number in range(len(chats))]
        for session, chat in zip(sessions, chats, strict=True):
            documents += [Document(f"{session}/{n}", turn["text"], session) for n, turn in enumerate(chat)]
        first = re.split(r"(?<=[.!?])\s", task["bug_report"], maxsplit=1)[0]
        queries.append(Query(task["task_id"], first, frozenset(sessions)))
    for number, chat in enumerate(_json(bench / "sde_bench" / "decoy_conversations.json")):
        documents += [
            Document(f"decoy-{number}/{n}", t["text"], f"decoy-{number}") for n, t in enumerate(chat["turns"])
        ]
    return Retrieval("sde", tuple(documents), tuple(queries), by_session=True)


def longmemeval(bench: Path) -> Retrieval:
    """Three heaps of chats, each with a few questions: a smoke test."""
    documents, queries = [], []
    for heap in _json(bench / "longmemeval_mini" / "longmemeval_s_3haystacks.json"):
        scope = heap["question_id"]
        for session, turns in zip(heap["haystack_session_ids"], heap["haystack_sessions"], strict=True):
            documents += [
                Document(f"{scope}/{session}/{n}", turn["content"], f"{scope}/{session}", scope)
                for n, turn in enumerate(turns)
            ]
        for number, (text, gold) in enumerate(zip(heap["questions"], heap["answer_session_ids"], strict=True)):
            queries.append(Query(f"{scope}/{number}", text, frozenset(f"{scope}/{one}" for one in gold), scope))
    return Retrieval("longmemeval", tuple(documents), tuple(queries), by_session=True)


SETS: Mapping[str, Callable[[Path], Retrieval]] = {
    read.__name__: read
    for read in (
        sde,
        madial_zh,
        madial_en,
        cosqa,
        longmemeval,
        locomo,
        locomo_sessions,
        cmrc2018,
        entire_cli,
    )
}
"""Smallest first."""


def _json(path: Path) -> Any:
    return json.loads(path.read_bytes())


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, filter(str.strip, file))
