"""What went wrong at a provider, as one of our errors: the edge where a client's exceptions end."""

import re
from typing import TYPE_CHECKING, Any

from memex.errors import InvalidAnswer, ProviderBusy, ProviderClosed, ProviderError, Refused, TooLong
from memex.privacy import redact

if TYPE_CHECKING:
    from openai import APIStatusError

_TOO_LONG = re.compile(
    r"context.{0,20}(?:length|window|size|limit)|maximum context|too many (?:input )?tokens|prompt is too long|"
    r"exceeds? the (?:available )?context|input.{0,20}too long|reduce the length",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content.?(?:filter|policy|management)|safety|moderation|flagged", re.IGNORECASE)
_NO_MONEY = re.compile(
    r"insufficient.{0,10}(?:quota|funds|credit|balance)|exceeded your current quota|billing|payment|"
    r"credit balance|out of credits",
    re.IGNORECASE,
)
_HINTS = {
    401: "check its api_key",
    402: "it wants money: add credit, or choose another provider",
    403: "its key may not do this: check its rights",
    404: "no such model or address: check `model` and `endpoint`, or load the model",
}
MOST_TEXT = 300


def fault_of(error: Exception, name: str) -> ProviderError | None:
    """Translate an exception of the OpenAI client; None when it is none of its own."""
    from openai import APIConnectionError, APIError, APIResponseValidationError, APIStatusError, APITimeoutError

    match error:
        case ProviderError():
            return error
        case APITimeoutError():
            hint = "raise its timeout_seconds, or try again later"
            return ProviderBusy(f"{name} gave no answer in time", hint, broken_off=True)
        case APIConnectionError():
            return ProviderBusy(f"cannot reach {name}: {error.__cause__ or error}", "is it running? check its endpoint")
        case APIStatusError():
            return _by_status(error, name)
        case APIResponseValidationError() | APIError():
            return InvalidAnswer(f"{name} answered something that is no answer: {_said(error)}")
        case ValueError():  # a body that is no JSON
            return InvalidAnswer(f"{name} answered something that is no JSON: {str(error)[:MOST_TEXT]}")
    return None


def fault_in_body(body: Any, name: str) -> ProviderError | None:
    """Find the error that some services put into an answer with status 200, or the page of a proxy before them."""
    if isinstance(body, str):
        page = f"{name} answered a page, no JSON: {body[:MOST_TEXT]}"
        return ProviderBusy(page, "does its endpoint end in /v1?", broken_off=True)
    error = getattr(body, "error", None) or (getattr(body, "model_extra", None) or {}).get("error")
    if not error:
        return None
    told = error if isinstance(error, dict) else {"message": str(error)}
    text = str(told.get("message") or told)
    try:
        status = int(told.get("code") or 0)
    except (TypeError, ValueError):
        status = 0
    return (
        _classified(status, text, name, None)
        if status >= 400
        else _by_text(text, name) or ProviderBusy(f"{name}: {text[:MOST_TEXT]}")
    )


def _by_status(error: "APIStatusError", name: str) -> ProviderError:
    return _classified(error.status_code, _said(error), name, _retry_after(error))


def _classified(status: int, text: str, name: str, retry_after: float | None) -> ProviderError:
    told = f"{name} answered {status}: {text[:MOST_TEXT]}"
    if status == 429 and _NO_MONEY.search(text):
        return ProviderClosed(told, _HINTS[402])
    if status in (408, 409, 425, 429) or status >= 500:
        return ProviderBusy(told, "it is busy: try again later, or allow it fewer workers", retry_after)
    found = _by_text(text, name)
    if status not in (401, 402) and found:
        return found
    if status == 413:
        return TooLong(told)
    if status in _HINTS:
        return ProviderClosed(told, _HINTS[status])
    return Refused(told, "does it know the model and the mode of answering? see memex providers")


def _by_text(text: str, name: str) -> ProviderError | None:
    told = f"{name}: {text[:MOST_TEXT]}"
    if _TOO_LONG.search(text):
        return TooLong(told, "say how much the model holds: context, in models.toml")
    if _NO_MONEY.search(text):
        return ProviderClosed(told, _HINTS[402])
    if _FILTERED.search(text):
        return Refused(told)
    return None


def _said(error: Any) -> str:
    """Give what the service said, without secrets, for some services repeat what they were sent."""
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("error", body)
        body = inner.get("message", inner) if isinstance(inner, dict) else inner
        code = error.code or ""
        body = f"{body} {code}".strip()
    return redact(str(body or getattr(error, "message", error))[:2000]).text


def _retry_after(error: "APIStatusError") -> float | None:
    from email.utils import parsedate_to_datetime
    from time import time

    given = error.response.headers.get("retry-after", "")
    try:
        return max(0.0, float(given))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - time())
    except (TypeError, ValueError):
        return None
