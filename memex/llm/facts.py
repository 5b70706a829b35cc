"""What providers and models hold, cost and can do, as data: `models.toml`, and the user's own file over it."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memex.errors import ConfigError

Mode = Literal["json_schema", "json", "tools", "markdown"]
MILLION = 1_000_000


class ModelFacts(BaseModel):
    """One model at one provider. Sizes in tokens, prices in US dollars a million tokens.

    `limit_key` names the field that limits an answer, `extra` is added to every request as it is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    endpoint: str = ""
    mode: Mode = "json_schema"
    context: int = Field(ge=512)
    output: int = Field(ge=64)
    limit_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: float | None = 0.2
    extra: dict[str, Any] = Field(default_factory=dict)
    price_input: float = Field(ge=0)
    price_cached: float = Field(ge=0)
    price_output: float = Field(ge=0)

    @property
    def paid(self) -> bool:
        """Whether a call costs money."""
        return self.price_input > 0 or self.price_output > 0

    def cost(self, tokens_input: int, tokens_output: int, tokens_cached: int = 0) -> float:
        """Price a call in US dollars; cached tokens are a part of the input."""
        fresh = tokens_input - tokens_cached
        price = fresh * self.price_input + tokens_cached * self.price_cached + tokens_output * self.price_output
        return price / MILLION


def model_facts(provider: str, model: str, endpoint: str, own: Path | None = None) -> ModelFacts:
    """Look a model up: its own facts over those of its provider. An unknown model on this machine is free.

    Raises:
        ConfigError: the user's file is not TOML, or says something that is no fact.
    """
    tables = [_shipped(), _read(own)]
    facts: dict[str, Any] = {}
    for table in tables:
        facts |= table.get("providers", {}).get(provider, {})
    if _is_local(endpoint):
        facts |= {"price_input": 0.0, "price_cached": 0.0, "price_output": 0.0}
    for table in tables:
        models = table.get("models", {})
        facts |= models.get(model, {}) | models.get(f"{provider}/{model}", {})
    facts["endpoint"] = endpoint or facts.get("endpoint", "")
    try:
        return ModelFacts.model_validate(facts)
    except ValidationError as error:
        told = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ConfigError(f"facts about {provider}/{model}: {told}", f"mend them in {own}") from error


def _shipped() -> Mapping[str, Any]:
    return tomllib.loads(files("memex.llm").joinpath("models.toml").read_text("utf-8"))


def _read(path: Path | None) -> Mapping[str, Any]:
    if path is None or not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"cannot read {path}: {error}", "mend that line, or move the file away") from error


def _is_local(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
