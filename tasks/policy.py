"""The one place that says which errors are tried again, how often, and how long apart."""

from typing import Any, TypedDict

from prefect import State, Task
from prefect.cache_policies import NO_CACHE, CachePolicy
from prefect.client.schemas.objects import TaskRun
from prefect.tasks import exponential_backoff

from memex.errors import Transient

RETRIES = 3


async def is_transient(_task: Task[Any, Any], _run: TaskRun, state: State[Any]) -> bool:
    """Tell whether a failed state came from an error that may pass by itself."""
    outcome = await state.aresult(raise_on_failure=False)
    return isinstance(outcome, Transient)


class Policy(TypedDict):
    """Options that every task shares."""

    retries: int
    retry_delay_seconds: Any
    retry_jitter_factor: float
    retry_condition_fn: Any
    cache_policy: CachePolicy
    persist_result: bool


POLICY: Policy = {
    "retries": RETRIES,
    "retry_delay_seconds": exponential_backoff(2),
    "retry_jitter_factor": 0.5,
    "retry_condition_fn": is_transient,
    "cache_policy": NO_CACHE,  # what is done is known from fingerprints in the lake
    "persist_result": False,
}
