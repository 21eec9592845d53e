"""What says when and where: it loads, it is linted by the tools that know it, and it names things
that exist.
"""

import json
import os
import re
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from docs.generate import command_tree
from hades.settings.tree import Settings, variable_of
from hades.surfaces.rest.services import Exposition

ROOT = Path(__file__).resolve().parents[2]
DEPLOYMENTS_FOLDER = ROOT / "deployments"
PREFECT = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))
DEPLOYMENTS = {deployment["name"]: deployment for deployment in PREFECT["deployments"]}
COMPOSE = yaml.safe_load((DEPLOYMENTS_FOLDER / "compose.yaml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]
UNITS = sorted((DEPLOYMENTS_FOLDER / "systemd").glob("*.service"))
MANIFESTS = [
    manifest
    for path in sorted((DEPLOYMENTS_FOLDER / "kubernetes").glob("*.yaml"))
    for manifest in yaml.safe_load_all(path.read_text(encoding="utf-8"))
]
KINDS = {(one["kind"], one["metadata"]["name"]): one for one in MANIFESTS if "metadata" in one}
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
VARIABLES = {variable_of(name) for name in Settings.model_fields}
PINNED = re.compile(r"[\w./-]+:\d+\.\d+[\w.-]*")


# Prefect


def test_prefect_reads_the_deployments():
    from prefect.cli.deploy._models import PrefectYamlModel

    model = PrefectYamlModel.model_validate(PREFECT)
    assert [deployment.work_pool.name for deployment in model.deployments] == ["hades"] * len(
        DEPLOYMENTS
    )
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


def test_the_work_pool_makes_jobs_that_kubernetes_takes():
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.utilities.templating import apply_values

    template = json.loads(
        (DEPLOYMENTS_FOLDER / "kubernetes/work-pool.json").read_text(encoding="utf-8")
    )
    WorkPoolCreate(name="hades", type="kubernetes", base_job_template=template)
    properties = template["variables"]["properties"]
    used = set(re.findall(r"\{\{ (\w+) \}\}", json.dumps(template["job_configuration"])))
    assert used == set(properties)
    values = {name: one["default"] for name, one in properties.items() if "default" in one}
    run = {
        "name": "nightly",
        "command": "prefect flow-run execute",
        "labels": {"a": "b"},
        "env": [],
    }
    job = apply_values(template["job_configuration"]["job_manifest"], values | run)
    job["spec"]["template"]["spec"]["containers"][0]["args"] = run[
        "command"
    ].split()  # as the worker cuts it
    kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)
    assert values["image"] == f"hades:{VERSION}"
    assert_unprivileged(job["spec"]["template"]["spec"])


# Compose


def test_compose_listens_on_loopback_only_and_holds_no_password():
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(ports) == 3
    assert all(port.startswith("127.0.0.1:") for port in ports)
    text = (DEPLOYMENTS_FOLDER / "compose.yaml").read_text(encoding="utf-8")
    secrets = re.findall(
        r"^\s*(\w*(?:PASSWORD|KEY|TOKEN|SECRET)\w*):\s*(.*)$", text, flags=re.MULTILINE
    )
    assert secrets
    assert all(value.startswith("${") for _, value in secrets)
    assert SERVICES["arangodb"]["environment"]["ARANGO_ROOT_PASSWORD"].startswith(
        "${HADES_ARANGO_PASSWORD:?"
    )


def test_the_compose_file_of_lineage_pins_images_listens_on_loopback_and_holds_no_password():
    text = (DEPLOYMENTS_FOLDER / "compose.lineage.yaml").read_text(encoding="utf-8")
    services = yaml.safe_load(text)["services"].values()
    assert all(PINNED.fullmatch(service["image"]) for service in services)
    assert all(
        port.startswith("127.0.0.1:") for service in services for port in service.get("ports", [])
    )
    assert all(value.startswith("${") for value in re.findall(r"PASSWORD: (.*)", text))


def test_compose_pins_images_and_runs_ours_without_rights():
    assert all(PINNED.fullmatch(service["image"]) for service in SERVICES.values())
    ours = [service for service in SERVICES.values() if service["image"].startswith("hades:")]
    assert {service["image"] for service in ours} == {f"hades:{VERSION}"}
    for service in ours:
        assert (service["user"], service["read_only"], service["cap_drop"]) == (
            "10001:10001",
            True,
            ["ALL"],
        )
    assert all("no-new-privileges:true" in service["security_opt"] for service in SERVICES.values())


def test_compose_checks_the_health_of_all_that_stays_and_mounts_volumes_that_it_declares():
    staying = {name for name, service in SERVICES.items() if service["restart"] != "no"}
    assert {name for name, service in SERVICES.items() if "healthcheck" in service} == staying
    mounted = {
        volume.split(":")[0]
        for service in SERVICES.values()
        for volume in service.get("volumes", [])
    }
    assert mounted == set(COMPOSE["volumes"])
    assert not [
        name for name in SERVICES if name.startswith("hades-") and "ports" in SERVICES[name]
    ]
    assert "home:/var/lib/hades:ro" in SERVICES["hades-ro"]["volumes"]


def test_compose_sets_variables_that_mean_something():
    known = VARIABLES | {"HADES_LOG_FORMAT"}
    given = {name for service in SERVICES.values() for name in service.get("environment", {})}
    assert {name for name in given if name.startswith("HADES_")} <= known


def test_the_servers_of_the_contract_suite_are_the_pinned_one_and_the_nightly_workflow_runs_both():
    services = yaml.safe_load(
        (DEPLOYMENTS_FOLDER / "compose.test-arango.yaml").read_text(encoding="utf-8")
    )["services"]
    assert {service["image"] for service in services.values()} == {SERVICES["arangodb"]["image"]}
    assert ["--vector-index=true" in service["command"] for service in services.values()] == [
        False,
        True,
    ]
    workflow = yaml.safe_load(
        (ROOT / ".github/workflows/arangodb.yaml").read_text(encoding="utf-8")
    )
    matrix = workflow["jobs"]["contract"]["strategy"]["matrix"]["server"]
    ports = {one["name"]: [f"127.0.0.1:{one['port']}:8529"] for one in matrix}
    assert ports == {name: service["ports"] for name, service in services.items()}
    commands = [step.get("run", "") for step in workflow["jobs"]["contract"]["steps"]]
    assert "make test-arango" in commands


# Image


def test_the_image_is_built_from_the_pins_and_does_not_run_as_root():
    text = (DEPLOYMENTS_FOLDER / "Dockerfile").read_text(encoding="utf-8")
    stages = re.findall(r"^FROM (\S+)", text, flags=re.MULTILINE)
    assert len(stages) == 2
    assert all(PINNED.fullmatch(stage) for stage in stages)
    assert re.findall(r"^USER (\S+)", text, flags=re.MULTILINE) == ["10001:10001"]
    assert text.count("--constraint constraints.txt") == 2
    torch = re.search(r"torch==\S+", text)
    assert torch
    assert torch[0] in (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert f"hades:{VERSION}" in text
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", text, flags=re.MULTILINE)
    assert all((ROOT / name).exists() for names in copied for name in names.split())
    assert "://" not in text


def test_the_image_gets_nothing_but_what_it_copies():
    lines = (
        (DEPLOYMENTS_FOLDER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    )
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert all((ROOT / rule[1:]).exists() for rule in rules if rule.startswith("!"))


# systemd


def test_sockets_have_the_modes_and_places_of_the_requirements():
    expected = {
        "ro": ("/run/hades/readonly/hades.sock", "0660"),
        "rw": ("/run/hades/readwrite/hades.sock", "0600"),
        "admin": ("/run/hades/admin/hades.sock", "0600"),
    }
    for mode, (path, rights) in expected.items():
        socket = unit_of(DEPLOYMENTS_FOLDER / f"systemd/hades-{mode}.socket")
        service = unit_of(DEPLOYMENTS_FOLDER / f"systemd/hades-{mode}.service")
        assert (socket["ListenStream"], socket["SocketMode"], socket["SocketGroup"]) == (
            [path],
            [rights],
            ["hades"],
        )
        assert service["ExecStart"] == [f"/opt/hades/bin/hades serve --mode {mode} --uds {path}"]
        assert service["Requires"] == [f"hades-{mode}.socket"]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_is_hardened_runs_as_hades_and_calls_what_exists(path):
    unit = unit_of(path)
    assert unit["User"] == ["hades"]
    for key, value in {
        "ProtectSystem": "strict",
        "NoNewPrivileges": "yes",
        "CapabilityBoundingSet": "",
    }.items():
        assert unit[key] == [value]
    assert "/etc/hades/hades.env" in unit["EnvironmentFile"]
    program, command, *rest = unit["ExecStart"][0].split()
    if program.endswith("/hades"):
        options = {
            one for parameter in command_tree()[f"hades {command}"].params for one in parameter.opts
        }
        assert {word for word in rest if word.startswith("-")} <= options
    else:
        assert program == "/opt/hades/bin/prefect"


def test_the_units_environment_is_known():
    lines = (DEPLOYMENTS_FOLDER / "systemd/hades.env").read_text(encoding="utf-8").splitlines()
    given = {line.split("=")[0] for line in lines if line and not line.startswith("#")}
    assert {name for name in given if name.startswith("HADES_")} <= VARIABLES
    assert not [name for name in given if re.search("PASSWORD|KEY|TOKEN(?!IZERS)", name)]


@pytest.mark.parametrize("mistake", ["ProtectSytem=strict", "User=hades\nExecStart=relative/path"])
def test_the_checker_of_units_finds_a_mistake(tmp_path, mistake):
    """The linter that `make check` runs is not a formality; where systemd is missing it says so and
    passes.
    """
    for path in (DEPLOYMENTS_FOLDER / "systemd").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    verify = ["bash", str(tmp_path / "verify")]
    clean = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert clean.returncode == 0, clean.stderr
    if "not checked" in clean.stdout:
        pytest.skip("systemd-analyze is not installed")
    broken = tmp_path / "hades-ro.service"
    broken.write_text(
        broken.read_text(encoding="utf-8").replace("[Service]\n", f"[Service]\n{mistake}\n")
    )
    found = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "hades-ro.service" in found.stderr


# Kubernetes


def test_kustomization_names_every_manifest():
    (kustomization,) = (one for one in MANIFESTS if one["kind"] == "Kustomization")
    there = {path.name for path in (DEPLOYMENTS_FOLDER / "kubernetes").glob("*.yaml")}
    assert set(kustomization["resources"]) == there - {"kustomization.yaml"}
    spaces = {
        one["metadata"].get("namespace")
        for one in MANIFESTS
        if one["kind"] not in ("Namespace", "Kustomization")
    }
    assert spaces == {"hades"}


def test_the_arangodb_cluster_has_the_shape_that_the_operator_reads():
    cluster = KINDS["ArangoDeployment", "graph"]
    assert cluster["apiVersion"] == "database.arangodb.com/v1"
    spec = cluster["spec"]
    assert (spec["mode"], spec["environment"], spec["externalAccess"]) == (
        "Cluster",
        "Production",
        {"type": "None"},
    )
    assert PINNED.fullmatch(spec["image"])
    assert spec["bootstrap"]["passwordSecretNames"] == {"root": "graph-root"}
    assert spec["agents"]["count"] % 2 == 1
    for group in ("agents", "dbservers"):
        claim = spec[group]["volumeClaimTemplate"]["spec"]
        assert claim["accessModes"] == ["ReadWriteOnce"]
        assert claim["resources"]["requests"]["storage"].endswith("Gi")
    factor = next(one for one in spec["coordinators"]["args"] if "replication-factor" in one)
    assert int(factor.split("=")[1]) <= spec["dbservers"]["count"]
    known = {"count", "securityContext", "resources", "volumeClaimTemplate", "args"}
    assert all(set(spec[group]) <= known for group in ("agents", "dbservers", "coordinators"))


@pytest.mark.parametrize(
    "key", [key for key in KINDS if key[0] in ("Deployment", "Job", "CronJob")], ids="/".join
)
def test_a_pod_is_unprivileged_pinned_limited_and_names_what_is_there(key):
    spec = KINDS[key]["spec"]
    pod = (spec["jobTemplate"]["spec"] if key[0] == "CronJob" else spec)["template"]["spec"]
    assert_unprivileged(pod)
    for container in pod["containers"]:
        assert PINNED.fullmatch(container["image"])
        assert {"requests", "limits"} <= set(container["resources"])
        if key[0] == "Deployment":
            assert {"startupProbe", "livenessProbe"} <= set(container)
        if container["command"][0] == "hades":
            assert f"hades {container['command'][1]}" in command_tree()
        for source in container.get("envFrom", []):
            assert "secretRef" in source or ("ConfigMap", source["configMapRef"]["name"]) in KINDS
    for volume in pod["volumes"]:
        if "persistentVolumeClaim" in volume:
            assert ("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]) in KINDS


def test_services_and_policies_select_pods_that_exist():
    labels = {"arangodb", "flow-run", "kube-arangodb"}
    for (kind, _), one in KINDS.items():
        if kind in ("Deployment", "Job"):
            labels.add(one["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"])
        if kind == "CronJob":
            metadata = one["spec"]["jobTemplate"]["spec"]["template"]["metadata"]
            labels.add(metadata["labels"]["app.kubernetes.io/name"])
    text = json.dumps(
        [
            one
            for one in MANIFESTS
            if one["kind"] in ("NetworkPolicy", "Service", "PodDisruptionBudget")
        ]
    )
    named = set(re.findall(r'"matchLabels": \{"app.kubernetes.io/name": "([\w-]+)"', text))
    for values in re.findall(r'"values": \[([^\]]+)\]', text):
        named |= set(json.loads(f"[{values}]"))
    assert named <= labels
    assert KINDS["NetworkPolicy", "nothing"]["spec"] == {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
    }
    assert KINDS["PodDisruptionBudget", "hades-ro"]["spec"]["minAvailable"] >= 1


def test_no_manifest_holds_a_secret():
    assert not [one for one in MANIFESTS if one["kind"] == "Secret"]
    assert set(KINDS["ConfigMap", "hades"]["data"]) <= VARIABLES


# Watching


METRICS = list(Exposition().registry._collector_to_names)


def series_of(metric) -> tuple[str, ...]:
    """The names of the samples a scrape shows."""
    ends = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("_total",)}.get(
        metric._type, ("",)
    )
    return tuple(metric._name + end for end in ends)


def test_every_metric_that_is_asked_for_exists():
    series = {name for metric in METRICS for name in series_of(metric)}
    for name, query in queries():
        asked_for = set(re.findall(r"\bhades_\w+", query))
        assert asked_for, name
        assert asked_for <= series, name


def test_queries_use_labels_that_their_metric_has():
    labels = {
        series: set(metric._labelnames) | {"le"}
        for metric in METRICS
        for series in series_of(metric)
    }
    for name, query in queries():
        for series, matchers in re.findall(r"\b(hades_\w+)\{([^}]*)\}", query):
            assert set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers)) <= labels[series], name


def test_the_dashboard_shows_every_metric_and_its_panels_do_not_overlap():
    board = json.loads((DEPLOYMENTS_FOLDER / "grafana/hades.json").read_text(encoding="utf-8"))
    asked_for = set(re.findall(r"\bhades_\w+", json.dumps(board["panels"])))
    assert [metric._name for metric in METRICS if not asked_for & set(series_of(metric))] == []
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    taken = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["type"] == "row" or panel["description"]
    assert {
        target["datasource"]["uid"]
        for panel in board["panels"]
        for target in panel.get("targets", [])
    } == {"${datasource}"}


# The checks themselves


def test_make_check_lints_every_deployment():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = makefile.split("\nlint-deployments:")[1].split("\n\n")[0]
    for tool in (
        "hadolint",
        "check-jsonschema",
        "kubernetes-validate",
        "yamllint",
        "systemd/verify",
    ):
        assert tool in recipe
    assert re.search(r"^check:.*\blint-deployments\b", makefile, flags=re.MULTILINE)


def test_ci_runs_the_checks_and_the_tests():
    script = ROOT / ".ci/run"
    assert os.stat(script).st_mode & stat.S_IXUSR
    lines = script.read_text(encoding="utf-8").splitlines()
    assert "set -euo pipefail" in lines
    assert [line for line in lines if line.startswith("make ")] == [
        "make check",
        "make test",
        "make test-e2e",
        "make test-wheel",
    ]


def test_the_probe_loads_nothing_but_the_standard_library(tmp_path):
    program = (
        "import sys; sys.argv = ['probe', '/nowhere.sock']\n"
        "from hades.surfaces.cli.probe import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert stop.code == 1\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(json.loads(done.stdout.replace("'", '"'))) <= {"hades", "__main__"}
    assert "does not answer" in done.stderr


def assert_unprivileged(pod):
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        context = container["securityContext"]
        assert (context["allowPrivilegeEscalation"], context["readOnlyRootFilesystem"]) == (
            False,
            True,
        )
        assert context["capabilities"] == {"drop": ["ALL"]}


def unit_of(path):
    """The settings of a unit by name, each as often as it stands there."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            name, value = line.split("=", maxsplit=1)
            found.setdefault(name, []).append(value)
    return found


def queries():
    """Every PromQL text of the dashboard and of the alerts that speaks of HADES, with where it
    stands.
    """
    board = json.loads((DEPLOYMENTS_FOLDER / "grafana/hades.json").read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for annotation in board["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield (
                variable["name"],
                variable["definition"].replace(", mode", "").replace(", recipe", ""),
            )
    rules = yaml.safe_load(
        (DEPLOYMENTS_FOLDER / "prometheus/alerts.yml").read_text(encoding="utf-8")
    )
    for rule in rules["groups"][0]["rules"]:
        if "hades_" in rule["expr"]:
            yield rule["alert"], rule["expr"]
