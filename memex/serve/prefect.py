"""The Prefect server's API, as far as the service needs it: start a run of a deployment, and look at runs.

Over HTTP alone: importing Prefect takes seconds, and the service would hold it for good.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memex.errors import NotFound, ServerError

HINT = "start one with `prefect server start`, deploy with `prefect deploy --all`, and set PREFECT_API_URL"
SECONDS = 10.0
_SHOWN = ("id", "name", "state_type", "state_name", "start_time", "end_time", "total_run_time", "parameters")


@dataclass(frozen=True, slots=True)
class PrefectApi:
    """A server by the address of its API, "" where there is none.

    Raises, in every method:
        ServerError: there is no server, or it does not answer.
    """

    url: str
    headers: Mapping[str, str]

    def start(self, deployment: str, parameters: Mapping[str, Any]) -> str:
        """Ask for a run of a deployment `flow/name`; return the run's id at once.

        Raises:
            NotFound: no deployment is called so.
        """
        found = self._ask("GET", f"/deployments/name/{deployment}")
        if found is None:
            raise NotFound(f"the Prefect server has no deployment {deployment}", "run `prefect deploy --all`")
        run = self._ask("POST", f"/deployments/{found['id']}/create_flow_run", {"parameters": dict(parameters)})
        return str(run["id"])

    def run(self, run_id: str) -> dict[str, Any]:
        """Read one run, with the progress of its tasks in percent.

        Raises:
            NotFound: no run has this id.
        """
        found = self._ask("GET", f"/flow_runs/{run_id}")
        if found is None:
            raise NotFound(f"no run has the id {run_id!r}", "GET /api/compact/status lists recent ones")
        wanted = {"flow_run_id": {"any_": [run_id]}, "type": {"any_": ["progress"]}}
        bars = self._ask("POST", "/artifacts/filter", {"artifacts": wanted}) or []
        return _shown(found) | {"progress": [{"what": bar["description"], "percent": bar["data"]} for bar in bars]}

    def recent(self, flows: tuple[str, ...], limit: int) -> list[dict[str, Any]]:
        """List the latest runs of flows, the newest first."""
        wanted = {"flows": {"name": {"any_": list(flows)}}, "sort": "EXPECTED_START_TIME_DESC", "limit": limit}
        return [_shown(run) for run in self._ask("POST", "/flow_runs/filter", wanted) or []]

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer; None where there is no such thing."""
        import httpx

        if not self.url:
            raise ServerError("summaries are made by flow runs, and there is no Prefect server", HINT)
        try:
            answer = httpx.request(method, self.url + path, json=body, headers=dict(self.headers), timeout=SECONDS)
            if answer.status_code == 404:
                return None
            answer.raise_for_status()
            return answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise ServerError(f"the Prefect server does not answer as it should: {error}", HINT) from error


def _shown(run: Mapping[str, Any]) -> dict[str, Any]:
    return {key: run.get(key) for key in _SHOWN}
