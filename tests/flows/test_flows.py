"""The flows against a real Prefect server."""

import inspect
from pathlib import Path

import pytest
import yaml

from memex.errors import StoreBusy, StoreError
from tests.logs import talk

pytestmark = [pytest.mark.flow, pytest.mark.usefixtures("prefect")]


def artifacts():
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        return {artifact.key: artifact for artifact in client.read_artifacts()}


def task_runs(flow_run_id):
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

    with get_client(sync_client=True) as client:
        return client.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[flow_run_id])))


def test_nightly_does_everything_and_a_second_run_nothing(sample):
    from flows.nightly import nightly

    report = nightly()
    assert (report.ingest.sessions, report.ingest.talks) == (5, 12)
    assert report.compact.made == {"observations": 26, "talks": 11, "sessions": 5}
    assert report.index.summaries == 42
    assert set(report.seconds) == {"ingest", "compact", "index", "maintain"}
    assert report.maintain.steps["derive"].derived.talks == 11
    assert {"memex-ingest", "memex-compact", "memex-index", "memex-maintain"} <= set(artifacts())
    versions = {
        t: sample.lake.dataset(t).version for t in ("messages", "talk_summaries", "memories", "digests", "journal")
    }
    again = nightly(optimize=False)
    assert (again.ingest.sessions, again.compact.made, again.index.raw) == (0, {}, 0)
    assert {t: sample.lake.dataset(t).version for t in versions} == versions


def test_session_remakes_exactly_that_session(filled):
    from flows.session import session

    before = {r["id"]: r["created_at"] for r in filled.lake.scan("talk_summaries").to_pylist()}
    report = session("claude:5d0c1f52-6c1e-4b8e-9a55-0f4d2f1a7c01", levels=["talks", "sessions"])
    assert report.made == {"talks": 3, "sessions": 1}
    after = filled.lake.scan("talk_summaries", None, "served").to_pylist()
    remade = {r["session_id"] for r in after if r["created_at"] != before[r["id"]]}
    assert remade == {"claude:5d0c1f52-6c1e-4b8e-9a55-0f4d2f1a7c01"}
    assert len(after) == len(before)


def test_an_unknown_session_is_a_failure_and_not_a_silent_success(filled):
    from flows.session import session
    from memex.errors import NotFound

    with pytest.raises(NotFound):
        session("claude:nothing")


def test_ingest_makes_new_text_findable(memex, log):
    from flows.ingest import ingest
    from memex.search.query import Query

    talk(log, "Teach the parrot to sing").write()
    assert ingest().sessions == 1
    assert memex.search.run(Query("parrot"), "raw", 3).hits


@pytest.mark.parametrize(
    ("error", "attempts"), [(StoreBusy("try again"), 3), (StoreError("never"), 1), (ValueError("bug"), 1)]
)
def test_only_transient_errors_are_tried_again(error, attempts):
    from prefect import flow, task

    from tasks.policy import POLICY

    calls = []

    @task(**(POLICY | {"retries": 2, "retry_delay_seconds": 0.01}))
    def failing() -> None:
        calls.append(1)
        raise error

    @flow
    def fails() -> None:
        failing()

    with pytest.raises(type(error)):
        fails()
    assert len(calls) == attempts


def test_every_task_follows_the_policy():
    from prefect import Task
    from prefect.cache_policies import NO_CACHE

    import tasks.compact
    import tasks.index
    import tasks.ingest
    import tasks.maintain
    from tasks.policy import RETRIES, is_transient

    modules = (tasks.ingest, tasks.compact, tasks.index, tasks.maintain)
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Task)]
    assert len(found) >= 9
    for one in found:
        assert (one.retries, one.retry_condition_fn, one.cache_policy) == (RETRIES, is_transient, NO_CACHE), one.name


def test_every_deployment_names_a_real_flow_and_its_parameters():
    from prefect.flows import load_flow_from_entrypoint

    root = Path(__file__).parents[2]
    deployments = yaml.safe_load((root / "prefect.yaml").read_text())["deployments"]
    assert {d["name"] for d in deployments} == {"nightly", "ingest", "compact", "index", "maintain", "session"}
    for deployment in deployments:
        found = load_flow_from_entrypoint(str(root / deployment["entrypoint"]))
        assert found.name == deployment["name"]
        known = set(inspect.signature(found.fn).parameters)
        assert set(deployment.get("parameters", {})) <= known
        assert all("cron" in schedule for schedule in deployment.get("schedules", []))
