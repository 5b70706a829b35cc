"""The parts of a text that show why it was found."""

from collections.abc import Iterator

from memex.search.tokens import PART, RUN, is_cjk_run, normal, query_tokens, tokens_in
from memex.text import one_line

WIDTH = 220
MOST = 200
"""Places that are looked for in a text, at most."""

Span = tuple[int, int]


def snippet(text: str, query: str, width: int = WIDTH) -> str:
    """Cut about `width` characters of `text`, on one line, around the densest place of the query's words."""
    flat = one_line(text)
    places = [start for start, _end in highlights(flat, query)]
    if not places or len(flat) <= width:
        return flat[:width] + ("…" if len(flat) > width else "")
    best = max(places, key=lambda start: (sum(start <= place < start + width * 2 // 3 for place in places), -start))
    start = max(0, best - width // 4)
    end = min(len(flat), start + width)
    return ("…" if start else "") + flat[start:end] + ("…" if end < len(flat) else "")


def highlights(text: str, query: str) -> list[Span]:
    """Find the words of a query in a text: (start, end) of each place, in order; whichever form they have."""
    wanted = frozenset(query_tokens(query))
    plain = normal(text)
    spans: list[Span] = []
    for start, end in _places(plain if len(plain) == len(text) else text, wanted):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        elif len(spans) == MOST:
            break
        else:
            spans.append((start, end))
    return spans


def _places(text: str, wanted: frozenset[str]) -> Iterator[Span]:
    for found in RUN.finditer(text) if wanted else ():
        start, run = found.start(), found[0]
        if is_cjk_run(run):
            tokens = tokens_in(run)
            size = len(run)
            yield from (
                (start + at, start + at + wide)
                for at in range(size)
                for wide in (1, 2)
                if at + wide <= size and tokens[at + (wide - 1) * size] in wanted
            )
        elif not wanted.isdisjoint(tokens_in(run)):
            parts = [part.span() for part in PART.finditer(run) if not wanted.isdisjoint(tokens_in(part[0]))]
            yield from ((start + a, start + b) for a, b in parts or [(0, len(run))])
