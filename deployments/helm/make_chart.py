"""Writes the Helm chart from the manifests of deployments/kubernetes, so that the two never differ.

    python deployments/helm/make_chart.py

Templates use two constructs only: a value (`{{ .Values.image }}`, `{{ .Release.Namespace }}`) and a
file that a value switches on. tests/architecture/test_helm_chart.py renders them, compares them
with the manifests and validates them.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "deployments" / "kubernetes"
CHART = ROOT / "deployments" / "helm" / "hades"
NOTICE = "# Written by deployments/helm/make_chart.py from deployments/kubernetes; do not edit.\n"
LEFT_OUT = ("kustomization.yaml", "namespace.yaml")  # Helm makes the namespace: --create-namespace
OPTIONAL = {
    "arangodb.yaml": "arangodb",
    "backup.yaml": "backup",
    "prefect.yaml": "prefect",
    "mlflow.yaml": "mlflow",
}
SETTINGS = {"ARANGO_URL": "arangoUrl", "ARANGO_DATABASE": "arangoDatabase", "EMBEDDER": "embedder"}
VALUES = """\
# Values of the chart; each stands for what the manifests of deployments/kubernetes say.
image: {image}
readOnly:
  replicas: 2
storage:
  home: 100Gi
  backups: 200Gi
  prefect: 10Gi
  mlflow: 20Gi
settings:
  arangoUrl: http://graph.hades.svc:8529  # in the namespace hades; name yours, or another server
  arangoDatabase: arxiv_repository
  embedder: minilm
arangodb:
  enabled: true  # needs the operator kube-arangodb
backup:
  enabled: true
  schedule: "0 5 * * *"
prefect:
  enabled: true
mlflow:
  enabled: true
"""


def chart_files() -> dict[str, str]:
    """Every file of the chart by its path inside the chart."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "version"
    ]
    files = {
        "Chart.yaml": (
            f"{NOTICE}apiVersion: v2\nname: hades\ndescription: HADES with its store, flows and "
            "registry\n"
            f"type: application\nversion: {version}\nappVersion: {version}\n"
        ),
        "values.yaml": NOTICE + VALUES.format(image=f"hades:{version}"),
    }
    for path in sorted(MANIFESTS.glob("*.yaml")):
        if path.name not in LEFT_OUT:
            files[f"templates/{path.name}"] = NOTICE + make_template(
                path.name, path.read_text(encoding="utf-8")
            )
    return files


def make_template(name: str, text: str) -> str:
    """A manifest with its values named."""
    text = re.sub(r"(\bnamespace: )hades\b", r"\1{{ .Release.Namespace }}", text)
    text = re.sub(r"image: hades:\S+", "image: {{ .Values.image }}", text)
    text = re.sub(r"(//(?:prefect|mlflow)\.)hades(\.svc)", r"\1{{ .Release.Namespace }}\2", text)
    if name == "hades-ro.yaml":
        text = text.replace("  replicas: 2\n", "  replicas: {{ .Values.readOnly.replicas }}\n", 1)
    elif name == "backup.yaml":
        text = re.sub(r"schedule: (\".*\")", 'schedule: "{{ .Values.backup.schedule }}"', text)
    elif name == "storage.yaml":
        text = re.sub(
            r"(  name: (\w+)\n(?:.*\n)*?.*storage: )\w+",
            lambda m: f"{m[1]}{{{{ .Values.storage.{m[2]} }}}}",
            text,
        )
    elif name == "settings.yaml":
        for key, value in (
            ("ARANGO_URL", "arangoUrl"),
            ("ARANGO_DATABASE", "arangoDatabase"),
            ("EMBEDDER", "embedder"),
        ):
            text = re.sub(rf"(HADES_{key}: ).*", rf"\1{{{{ .Values.settings.{value} }}}}", text)
    if name in OPTIONAL:
        return f"{{{{- if .Values.{OPTIONAL[name]}.enabled }}}}\n{text.rstrip()}\n{{{{- end }}}}\n"
    return text


def main() -> None:
    """Write the chart."""
    for name, text in chart_files().items():
        path = CHART / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
