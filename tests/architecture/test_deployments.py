"""The YAML that says when and where: it loads, and it names flows and variables that exist."""

import os
import stat
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PREFECT = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))
DEPLOYMENTS = {deployment["name"]: deployment for deployment in PREFECT["deployments"]}


def test_prefect_reads_the_deployments():
    from prefect.cli.deploy._models import PrefectYamlModel

    model = PrefectYamlModel.model_validate(PREFECT)
    assert [deployment.work_pool.name for deployment in model.deployments] == ["hades"] * len(DEPLOYMENTS)
    assert model.pull is None


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_deployment_is_by_module_path_and_its_parameters_exist(name):
    from prefect.flows import load_flow_from_entrypoint

    entrypoint = DEPLOYMENTS[name]["entrypoint"]
    assert "/" not in entrypoint
    flow = load_flow_from_entrypoint(entrypoint)
    described = flow.parameters.properties
    assert set(DEPLOYMENTS[name].get("parameters", {})) <= set(described)
    assert all(parameter.get("description") for parameter in described.values())


def test_compose_listens_on_loopback_only_and_holds_no_password():
    services = yaml.safe_load((ROOT / "deployments/compose.yaml").read_text(encoding="utf-8"))["services"]
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert services["arangodb"]["environment"]["ARANGO_ROOT_PASSWORD"].startswith("${HADES_ARANGO_PASSWORD")
    assert "healthcheck" in services["arangodb"]


def test_ci_runs_the_checks_and_the_tests():
    script = ROOT / ".ci/run"
    assert os.stat(script).st_mode & stat.S_IXUSR
    lines = script.read_text(encoding="utf-8").splitlines()
    assert "set -euo pipefail" in lines
    assert [line for line in lines if line.startswith("make ")] == ["make check", "make test"]
