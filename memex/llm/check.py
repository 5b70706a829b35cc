"""Whether a provider can be used: reachable, the model there, an answer, an answer of a given shape."""

from dataclasses import dataclass

from pydantic import Field

from memex.errors import InvalidAnswer, ProviderError
from memex.llm.client import Client
from memex.llm.faults import fault_of
from memex.llm.replies import Reply

QUESTION = "Name one colour, and how many letters its name has."


class ColourReply(Reply):
    """A colour."""

    colour: str = Field(min_length=1)
    letters: int


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found; `trouble` is "" when the provider can be used, and `hint` says what to do otherwise."""

    provider: str
    model: str
    endpoint: str
    reachable: bool
    has_model: bool | None
    answers: bool
    has_shape: bool
    cost_usd: float = 0.0
    trouble: str = ""
    hint: str = ""


def check(client: Client) -> Checked:
    """Ask a provider what it has, and for one small answer. `has_model` is None when it does not say."""
    has_model: bool | None = None
    answers = has_shape = False
    cost, error = 0.0, _reach(client)
    if error is None:
        has_model = _has_model(client)
        try:
            _reply, usage = client.ask("check", [{"role": "user", "content": QUESTION}], ColourReply)
            answers = has_shape = True
            cost = usage.cost_usd
        except ProviderError as found:
            error, answers = found, isinstance(found, InvalidAnswer)
    return Checked(
        provider=client.name,
        model=client.model,
        endpoint=client.facts.endpoint,
        reachable=error is None or answers or has_model is not None,
        has_model=has_model,
        answers=answers,
        has_shape=has_shape,
        cost_usd=cost,
        trouble=str(error) if error else "",
        hint=_hint(error, has_model),
    )


def _reach(client: Client) -> ProviderError | None:
    """Try to connect; a service that does not list its models is reachable."""
    from openai import APIConnectionError, OpenAIError

    try:
        client.api.with_options(timeout=min(10.0, client.timeout_seconds)).models.list()
    except APIConnectionError as error:
        return fault_of(error, client.name)
    except (OpenAIError, ValueError):
        pass
    return None


def _has_model(client: Client) -> bool | None:
    from openai import OpenAIError

    try:
        names = {model.id for model in client.api.models.list()}
    except (OpenAIError, ValueError, AttributeError, TypeError):
        return None
    return client.model in names or f"{client.model}:latest" in names if names else None


def _hint(error: ProviderError | None, has_model: bool | None) -> str:
    if error is None:
        return ""
    if isinstance(error, InvalidAnswer):
        return "try another mode (json, tools, markdown) for this model in models.toml, or another model"
    return (
        "the service does not have this model: load it, or name one that it has" if has_model is False else error.hint
    )
