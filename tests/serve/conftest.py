"""The app over the sample logs, without a socket."""

import pytest
from starlette.testclient import TestClient

from memex.serve.app import make_app
from memex.serve.prefect import PrefectApi
from memex.serve.token import read_token


@pytest.fixture
def client(filled):
    """A client that has the token; there is no Prefect server."""
    return client_of(filled, PrefectApi("", {}))


def client_of(memex, prefect, *routers):
    app = make_app(memex, prefect, *routers)
    head = {"Authorization": f"Bearer {read_token(memex.home)}"}
    return TestClient(app, "http://localhost", headers=head, raise_server_exceptions=False)
