"""Sentences, ranked: which few of them stand for the whole text."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from memex.text import CJK

MAX_SENTENCES = 60
_WORD = re.compile(rf"[{CJK}]{{2}}|[^\W{CJK}]{{2,}}")


class _Words:
    """Words for sumy: pairs of CJK characters, words of other scripts; it brings no data files."""

    def to_words(self, sentence: str) -> tuple[str, ...]:
        return tuple(_WORD.findall(sentence.lower()))


@cache
def _ranker() -> Any:
    from sumy.summarizers.lex_rank import LexRankSummarizer

    return LexRankSummarizer()


def central(sentences: Sequence[str], count: int) -> list[str]:
    """Pick the `count` most central sentences by LexRank (Erkan & Radev 2004), in their own order.

    Equal input gives equal output. Sentences without words are never picked. Ranking is quadratic, so only the
    last MAX_SENTENCES take part.
    """
    words = _Words()
    usable = [s for s in dict.fromkeys(sentences) if words.to_words(s)][-MAX_SENTENCES:]
    if len(usable) <= count:
        return usable
    from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence

    document = ObjectDocumentModel([Paragraph([Sentence(s, words) for s in usable])])
    return [str(sentence) for sentence in _ranker()(document, count)]
