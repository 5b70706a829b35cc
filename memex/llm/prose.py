"""From Markdown and pasted logs to sentences that can stand alone."""

import re

from memex.text import one_line, sentences, units

_FENCE = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_TABLE_ROW = re.compile(r"^\s*\|.*\|\s*$")
_RULE = re.compile(r"^\s*[-=*_─━┌┐└┘│├┤┬┴┼★\s]{3,}[^\w]*$")
_MARK = re.compile(r"^\s*(?:[-*+•●]|\d{1,2}[.)、]|>+|#{1,6})\s+")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)")
_EMPHASIS = re.compile(r"\*\*|__|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)")
_TAG = re.compile(r"</?[a-zA-Z][\w-]*(?:\s[^<>]*)?>")
_LOG_LINE = re.compile(
    r"^\s*(?:at \S+\(|File \"|[$❯>%#⎿│]\s|\d{4}-\d\d-\d\dT|\[\d|\{\"|[A-Z]{4,5}\s+\||\w+\.go:\d+|Traceback|●|⏺)"
)
_PREAMBLE = re.compile(
    r"^(?:now\b.{0,80}\blet me\b|let me\b|let's\b|i'll\b(?! (?:use|go with|keep|pick))|i will\b|now i\b|now,? i'll|"
    r"i need to\b|first,? let|next,? let|good\b[,.!]|great\b[,.!]|perfect\b[,.!]|ok(?:ay)?\b[,.!]|looking at|checking|"
    r"让我|我来|现在|接下来|好的|首先让我|まず|次に)",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"^(?:would you like|do you want|want me to|shall i|should i|let me know|if you(?:'d| would) like|feel free|"
    r"如果你|需要我|要不要|是否需要)",
    re.IGNORECASE,
)


def readable(text: str) -> str:
    """Drop code fences, tables, rules and markup; keep the words."""
    text = _FENCE.sub("\n", text)
    kept = []
    for line in text.splitlines():
        if _TABLE_ROW.match(line) or _RULE.match(line):
            continue
        kept.append(_EMPHASIS.sub("", _LINK.sub(r"\1", _TAG.sub("", line))))
    return "\n".join(kept)


def statements(text: str) -> list[str]:
    """Split prose into sentences that say something: no headings, announcements, offers or pasted logs."""
    found = []
    for line in readable(text).splitlines():
        heading = line.lstrip().startswith("#") or line.rstrip().endswith((":", "："))
        bare = _MARK.sub("", line).strip()
        if not bare or heading or _LOG_LINE.match(line):
            continue
        found += [s for s in map(one_line, sentences(bare)) if units(s) >= 3]
    return [s for s in found if not _PREAMBLE.match(s) and not _OFFER.match(s)]


def question(text: str) -> str:
    """Return the last question of a reply, or ""."""
    asked = [s for s in map(one_line, sentences(readable(text))) if s.endswith(("?", "？"))]
    return _MARK.sub("", asked[-1]) if asked else ""


def request_lines(text: str) -> list[str]:
    """Split a prompt into sentences, without the logs and the code pasted into it."""
    lines = [_MARK.sub("", line) for line in readable(text).splitlines() if not _LOG_LINE.match(line)]
    found = [s for line in lines for s in map(one_line, sentences(line)) if s]
    return found or [one_line(text)]
