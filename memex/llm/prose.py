"""From Markdown and pasted logs to sentences that can stand alone."""

import re
from collections.abc import Sequence

from memex.text import is_cjk, one_line, sentences, units

_FENCE = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_TABLE_ROW = re.compile(r"^\s*\|(.*)\|\s*$")
_RULE = re.compile(r"^[\s\-=*_─━┌┐└┘│├┤┬┴┼★|:+]{3,}$|^\s*[★─━]+\s.*[─━]{3,}\s*$")
_MARK = re.compile(r"^\s*(?:(?:[-*+•●✅❌☑✓✔✗⚠🔴🟡🟢🎉]\ufe0f?|\d{1,2}[.)、]|[A-Z][.)]|>+|#{1,6})\s+)+")
_LINK = re.compile(r"!?\[([^\]\n]{0,300})\]\([^)\s]{0,600}\)")
_EMPHASIS = re.compile(r"\*\*|(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)")
_CODE_SPAN = re.compile(r"(`[^`]*`)")
_TAG = re.compile(r"</?[a-zA-Z][\w-]*(?:\s[^<>]*)?>")
_LOG_LINE = re.compile(
    r"^\s*(?:at \S+\(|File \"|[$❯>%#⎿│]\s|\d{4}-\d\d-\d\dT|\[\d|\{\"|[A-Z]{4,5}\s+\||\w+\.go:\d+|Traceback|"
    r"●|⏺|.*[▐▛▜▝▘█▌⎿]|\s*\"[\w-]+\"\s*:)"
)
_CODE_LINE = re.compile(r"^\s*(?://|/\*|\*/|[{}()\[\];,]+\s*$)|[;{}]\s*$|^\s*[{}()\[\]*/;,\s]+$")
_PREAMBLE = re.compile(
    r"^(?:now\b(?! (?:it|the|all|we|both|that)\b)|let me\b|let's\b|i'll\b(?! (?:use|go with|keep|pick))|i will\b|"
    r"i need to\b|first,? let|next,? let|looking at|checking|here(?:'s| is| are)\b.{0,60}$|"
    r"(?:good|great|perfect|excellent|nice|awesome|ok(?:ay)?|sure|got it|you're (?:absolutely )?right)\b.{0,30}$|"
    r"让我|我来|现在我|接下来我|好的|首先让我|まず|次に)",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"^(?:would you like|do you want|want me to|shall i|should i|let me know|if you(?:'d| would) like|feel free|"
    r"nothing needed from you|如果你|需要我|要不要|是否需要)",
    re.IGNORECASE,
)
_OPEN_END = (":", "：", "?", "？", "...", "…")
_UNFINISHED = re.compile(r"[\w)`\"'”’」』）]$")


LONGEST = 24_000
"""Characters of a text that are read; of a longer one, a third from its head and the rest from its end."""


def readable(text: str) -> str:
    """Drop code fences, rules and markup; keep the words. A table row reads as its cells."""
    if len(text) > LONGEST:
        text = text[: LONGEST // 3] + "\n" + text[-2 * LONGEST // 3 :]
    kept = []
    rows = 0
    for line in _FENCE.sub("\n", text).splitlines():
        row = _TABLE_ROW.match(line)
        rows = rows + 1 if row else 0
        if _RULE.match(line) or rows == 1:  # the first row of a table names its columns
            continue
        if row:
            line = "- " + ": ".join(cell.strip() for cell in row[1].split("|") if cell.strip())
        parts = _CODE_SPAN.split(line)
        parts[::2] = (_EMPHASIS.sub("", _LINK.sub(r"\1", _TAG.sub("", part))) for part in parts[::2])
        kept.append("".join(parts))
    return "\n".join(kept)


def statements(text: str) -> list[str]:
    """Split prose into sentences that say something: no headings, announcements, offers, questions or logs."""
    found: list[str] = []
    for line in readable(text).splitlines():
        bare = _MARK.sub("", line).strip()
        if not bare or line.lstrip().startswith("#") or _LOG_LINE.match(line) or _CODE_LINE.search(line):
            continue
        said = [s for s in map(one_line, sentences(bare)) if not s.endswith(_OPEN_END)]
        found += [s for s in said if not _PREAMBLE.match(s) and not _OFFER.match(s)]
    return [s for n, s in enumerate(found) if units(s) >= 3 or n == 0]


def paragraph(said: Sequence[str]) -> str:
    """Join sentences; one without a full stop, such as a list item, gets one."""
    if any(map(is_cjk, said)):
        return "".join(s + "。" if _UNFINISHED.search(s) else s for s in said)
    return " ".join(s + "." if _UNFINISHED.search(s) else s for s in said)


def question(text: str) -> str:
    """Return the last question of a reply, or ""."""
    asked = [s for s in map(one_line, sentences(readable(text))) if s.endswith(("?", "？"))]
    return _MARK.sub("", asked[-1]) if asked else ""


def request_lines(text: str) -> list[str]:
    """Split a prompt into sentences, without the logs and the code pasted into it."""
    lines = [line for line in readable(text).splitlines() if not _LOG_LINE.match(line) and not _CODE_LINE.search(line)]
    found = [s for line in lines for s in map(one_line, sentences(_MARK.sub("", line))) if units(s)]
    return found or [one_line(text)]
