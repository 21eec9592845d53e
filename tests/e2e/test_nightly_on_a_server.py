"""The nightly build as a team runs it: a real Prefect server, a process worker, deployments from prefect.yaml."""

import time

import pytest

from tests.e2e.prefect_site import running_site
from tests.patience import HANG_SECONDS

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PAGES = {
    "ada.md": "# Ada Lovelace\n\nAda Lovelace worked with Charles Babbage in London on the Analytical Engine.\n",
    "charles.md": "# Charles Babbage\n\nCharles Babbage designed the Analytical Engine and the Difference Engine.\n",
    "engine.md": "# Analytical Engine\n\nThe Analytical Engine was never built. Ada Lovelace wrote programs for it.\n",
    "grace.md": "# Grace Hopper\n\nGrace Hopper admired Ada Lovelace and built the first compiler in New York.\n",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    pages = folder / "pages"
    pages.mkdir()
    for name, text in PAGES.items():
        (pages / name).write_text(text)
    with running_site(folder) as running:
        running.pages = pages
        yield running


def test_the_nightly_deployment_builds_publishes_and_leaves_its_artifacts(site):
    first = site.wait_for(site.trigger("nightly", {"sources": [{"source": "documents", "path": str(site.pages)}]}))
    assert first["state_type"] == "COMPLETED", site.logs(first["id"])
    assert (site.home / "snapshots" / "current").is_file()
    keys = {artifact["key"] for artifact in site.artifacts()}
    assert {"topics", "weights", "bridges", "contracts", "released", "nightly"} <= keys
    assert list((site.home / "reports").glob("*.html"))


def test_schedules_limits_and_automations_come_with_the_deployments(site):
    deployment = site.api.get("/deployments/name/nightly/nightly").json()
    assert [schedule["schedule"]["cron"] for schedule in deployment["schedules"]] == ["0 2 * * *"]
    assert deployment["concurrency_limit"] == 1 or deployment["global_concurrency_limit"]["limit"] == 1
    assert deployment["parameter_openapi_schema"]["properties"]["time_box_minutes"]["description"]
    automations = site.api.post("/automations/filter", json={}).raise_for_status().json()
    names = {automation["name"] for automation in automations}
    assert names == {
        "hades contract broken",
        "hades nightly failed",
        "hades nightly late",
        "hades retrieval got worse",
    }


def test_a_red_contract_stops_the_flow_alerts_and_leaves_what_serves_alone(site):
    import pyarrow as pa

    from hades.ports.store import Mode
    from hades.stores.sqlite.store import SqliteStore

    before = (site.home / "snapshots" / "current").read_bytes()
    store = SqliteStore.open(site.home / "graph.db", Mode.READ_WRITE)
    key = next(iter(store.scan("relations", columns=["_key"]))).column("_key")[0].as_py()
    store.patch("relations", pa.table({"_key": [key], "weight": [0.123456], "cost": [2.0]}))
    store.close()
    run = site.wait_for(site.trigger("publish"))
    assert run["state_type"] == "FAILED"
    assert "weights." in run["state"]["message"]
    assert (site.home / "snapshots" / "current").read_bytes() == before
    assert "contract broken" in _alerts(site)


def _alerts(site) -> str:
    """The log of alerts, once the automation's run has written to it."""
    log = site.home / "logs" / "alerts.jsonl"
    give_up = time.monotonic() + HANG_SECONDS
    while time.monotonic() < give_up:
        if log.is_file() and log.read_text():
            return log.read_text()
        time.sleep(0.5)
    runs = site.api.post("/flow_runs/filter", json={"limit": 20}).raise_for_status().json()
    raise AssertionError(f"no alert after {HANG_SECONDS} s; runs: {[(run['name'], run['state']) for run in runs]}")
