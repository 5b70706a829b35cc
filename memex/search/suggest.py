"""Two searches to try, taken from what is there."""

import re
import shlex
from collections import Counter
from collections.abc import Iterable

from memex.search.query import Query
from memex.search.text import TextIndex
from memex.store.lake import Lake
from memex.text import CJK

_LATIN = re.compile(r"(?=\b([A-Za-z][a-z]{4,} [A-Za-z][a-z]{3,})\b)")
_WIDE = re.compile(rf"[{CJK}]{{2,}}")
_PARTICLE = re.compile(
    "[的了是我你们请吗呢吧在把和就也都给帮这那个一下为不没有已会要可以上中到用后前部共其它他她与及或被从对时间里面什么怎样于]|[はがをにでともへのたしてるいま은는이가를을에의도로]"
)
_DULL = frozenset(
    [
        "which",
        "would",
        "could",
        "should",
        "there",
        "their",
        "these",
        "those",
        "about",
        "after",
        "before",
        "where",
        "while",
        "please",
        "thanks",
        "without",
        "inside",
        "other",
        "think",
        "maybe",
        "right",
        "still",
        "since",
        "every",
        "again",
        "also",
        "with",
        "that",
        "this",
        "from",
        "have",
        "been",
        "will",
    ]
)


_DULL_WIDE = frozenset(("分钟", "小时", "问题", "现在", "之后", "需要", "建议", "全部", "一共", "最后", "必要", "確認"))


def suggestions(lake: Lake, index: TextIndex) -> list[str]:
    """Return up to two queries, quoted for a shell, that find something: one in Latin script, one in CJK.

    Each is the pair of words, or of CJK characters, that talk summaries hold most often.
    """
    rows = lake.frame("talk_summaries", ["user_request", "summary"], "served")
    texts = [f"{request}\n{summary}" for request, summary in rows.iter_rows()]
    latin = (
        pair.lower() for text in texts for pair in set(_LATIN.findall(text)) if not _DULL & set(pair.lower().split())
    )
    wide = (word for text in texts for word in _wide_words(text))
    found = (_first_found(candidates, index) for candidates in (latin, wide))
    return [shlex.quote(query) for query in found if query]


def _wide_words(text: str) -> Iterable[str]:
    """Give pairs of CJK characters without particles; a pair that stands alone counts three times."""
    for run in _WIDE.findall(text):
        pairs = (run[i : i + 2] for i in range(len(run) - 1))
        yield from (pair for pair in pairs if not _PARTICLE.search(pair) and pair not in _DULL_WIDE)
        alone = (piece for piece in _PARTICLE.split(run) if len(piece) == 2 and piece not in _DULL_WIDE)
        yield from (piece for piece in alone for _time in range(2))


def _first_found(candidates: Iterable[str], index: TextIndex) -> str:
    ranked = sorted(Counter(candidates).items(), key=lambda item: (-item[1], item[0]))
    return next((query for query, _count in ranked[:10] if index.search(Query(query), 1)), "")
