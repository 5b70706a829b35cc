"""The part of a text that shows why it was found."""

from memex.search.tokens import query_tokens
from memex.text import one_line

WIDTH = 220


def snippet(text: str, query: str, width: int = WIDTH) -> str:
    """Cut about `width` characters of `text`, on one line, around the densest place of the query's words."""
    flat = one_line(text)
    folded = flat.casefold()
    places = sorted(place for token in query_tokens(query) for place in _places(folded, token))
    if not places or len(flat) <= width:
        return flat[:width] + ("…" if len(flat) > width else "")
    best = max(places, key=lambda start: (sum(start <= place < start + width * 2 // 3 for place in places), -start))
    start = max(0, best - width // 4)
    end = min(len(flat), start + width)
    return ("…" if start else "") + flat[start:end] + ("…" if end < len(flat) else "")


def _places(folded: str, token: str) -> list[int]:
    found: list[int] = []
    place = folded.find(token)
    while place >= 0 and len(found) < 200:
        found.append(place)
        place = folded.find(token, place + 1)
    return found
