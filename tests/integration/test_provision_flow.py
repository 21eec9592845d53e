"""The flow as Prefect runs it, on an ephemeral server."""

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="module")
def prefect_server():
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=120):
        yield


@pytest.mark.usefixtures("prefect_server")
def test_provision_flow_creates_the_store_and_can_be_repeated(tmp_path, monkeypatch):
    from flows.provision import provision

    monkeypatch.setenv("HADES_HOME", str(tmp_path))
    monkeypatch.delenv("HADES_STORE", raising=False)
    assert "relations" in provision().created
    assert provision(check=True).created == ()
    assert (tmp_path / "graph.db").is_file()
