"""The Helm chart is what the manifests are, and stays valid with other values."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deployments" / "helm" / "hades"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
TEMPLATES = sorted((CHART / "templates").glob("*.yaml"))
WHOLE_FILE = re.compile(r"\{\{- if (\S+) \}\}\n(.*)\{\{- end \}\}\n", re.DOTALL)
VALUE = re.compile(r"\{\{ (\S+) \}\}")
OTHER = {
    **VALUES,
    "image": "registry.example/hades:9.9.9",
    "readOnly": {"replicas": 5},
    "settings": {
        **VALUES["settings"],
        "embedder": "hashing",
        "arangoUrl": "http://db.example:8529",
    },
}


def test_the_chart_is_current() -> None:
    spec = importlib.util.spec_from_file_location("make_chart", CHART.parent / "make_chart.py")
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    written = {
        str(path.relative_to(CHART)): path.read_text(encoding="utf-8")
        for path in CHART.rglob("*.yaml")
    }
    assert written == maker.chart_files(), "run: python deployments/helm/make_chart.py"


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda one: one.name)
def test_default_values_give_the_manifests(path: Path) -> None:
    manifest = ROOT / "deployments" / "kubernetes" / path.name
    assert render(path, VALUES, "hades") == list(
        yaml.safe_load_all(manifest.read_text(encoding="utf-8"))
    )


@pytest.mark.parametrize(
    "path", [one for one in TEMPLATES if one.name != "arangodb.yaml"], ids=lambda one: one.name
)
def test_other_values_give_valid_manifests_of_their_namespace(path: Path) -> None:
    for one in render(path, OTHER, "team-a"):
        assert one["metadata"]["namespace"] == "team-a"
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
        assert "hades:0" not in yaml.safe_dump(one)


def test_parts_can_be_left_out() -> None:
    without = {
        **VALUES,
        **{
            name: {**VALUES[name], "enabled": False}
            for name in ("arangodb", "backup", "mlflow", "prefect")
        },
    }
    rendered = {path.name for path in TEMPLATES if render(path, without, "hades")}
    assert rendered == {
        "hades-ro.yaml",
        "hades-rw.yaml",
        "network-policies.yaml",
        "provision.yaml",
        "settings.yaml",
        "storage.yaml",
    }


def test_every_value_is_used() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in TEMPLATES)
    assert {name.removeprefix(".Values.") for name in re.findall(r"\.Values\.[\w.]+", text)} == set(
        _names(VALUES)
    )


def render(path: Path, values: dict[str, Any], namespace: str) -> list[dict[str, Any]]:
    """The manifests of a template: the two constructs that make_chart.py writes."""
    text = path.read_text(encoding="utf-8").split("\n", 1)[1]  # without the notice
    if (found := WHOLE_FILE.fullmatch(text)) is not None:
        text = found[2] if _value(found[1], values, namespace) else ""
    text = VALUE.sub(lambda one: str(_value(one[1], values, namespace)), text)
    assert "{{" not in text
    return [one for one in yaml.safe_load_all(text) if one]


def _value(name: str, values: dict[str, Any], namespace: str) -> Any:
    if name == ".Release.Namespace":
        return namespace
    found: Any = values
    for part in name.removeprefix(".Values.").split("."):
        found = found[part]
    return found


def _names(values: dict[str, Any], before: str = "") -> list[str]:
    return [
        name
        for key, value in values.items()
        for name in (
            _names(value, f"{before}{key}.") if isinstance(value, dict) else [f"{before}{key}"]
        )
    ]
