"""One Prefect server for all flow tests."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def prefect() -> Iterator[None]:
    """A real server with a database of its own."""
    os.environ["DO_NOT_TRACK"] = "1"
    os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=180):
        yield
