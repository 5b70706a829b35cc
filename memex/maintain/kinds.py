"""The kinds of memory, and how each is kept small: a table, so that it can be changed in one place."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

EVENT_IMPORTANCE = {"bugfix": 7.0, "feature": 6.0, "refactor": 5.0, "change": 5.0, "discovery": 5.0, "decision": 8.0}
"""Of an event, by the type of the observation that it was made from."""


class Compression(BaseModel):
    """When a group is compressed: more than `threshold` of one level, of which the newest `keep_recent` stay.

    >>> Compression()
    Compression(threshold=2, fan_in=2, keep_recent=0, max_depth=1)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    threshold: int = 2
    fan_in: int = 2
    keep_recent: int = 0
    max_depth: int = 1

    @model_validator(mode="before")
    @classmethod
    def _threshold_is_fan_in(cls, given: Mapping[str, int]) -> Mapping[str, int]:
        fan_in = max(2, int(given.get("fan_in", 2)))
        return {"threshold": fan_in, **given, "fan_in": fan_in}

    @field_validator("threshold", "keep_recent")
    @classmethod
    def _not_negative(cls, value: int) -> int:
        return max(0, value)


class Kind(BaseModel):
    """One row of the table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    importance: float
    latest_only: bool = False
    user: bool = False
    supersedes: bool = False
    sleep: bool = True
    compression: Compression | None = None


@cache
def kinds() -> Mapping[str, Kind]:
    """Read the table that comes with Memex."""
    table = tomllib.loads(files("memex.maintain").joinpath("kinds.toml").read_text("utf-8"))
    return {name: Kind.model_validate(row) for name, row in table.items()}
