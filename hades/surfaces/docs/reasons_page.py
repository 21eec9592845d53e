"""docs/reference/reasons.md: every reason, rejection, error and alert, with what to do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from hades.ingest.source_document import RejectReason
from hades.surfaces.docs.markdown import NOTICE, code, page, table
from hades.surfaces.reason_actions import ACTIONS
from schemas.plan import Reason

ROOT = Path(__file__).parents[3]
_REJECTIONS = {
    RejectReason.UNREADABLE: ("it may not be read, is encrypted, a link out of the folder, or no regular file",
                              "Change its rights, or save it without a password."),
    RejectReason.EMPTY: ("it has no text", "A scan needs text recognition (OCR) first."),
    RejectReason.DUPLICATE: ("another file of this corpus has the same text", "Nothing; the first one is read."),
    RejectReason.OVERSIZED: ("it is larger than the limit, unpacks to too much, or takes too long to parse",
                             "Divide the file."),
    RejectReason.NOT_TEXT: ("it is no text and no format that is read",
                            "Save it in a format of [ingestion](../ingestion.md); unpack archives."),
    RejectReason.MALFORMED: ("it is damaged, or not what its name says", "Save it again with its program."),
}  # fmt: skip


class ErrorClass(NamedTuple):
    """An error as its source declares it."""

    name: str
    bases: tuple[str, ...]
    about: str
    module: str


def reasons_page() -> str:
    """The whole page."""
    return page([
        NOTICE, "# Reasons, errors and alerts", "",
        "What HADES says when something was cut, set aside or went wrong, and what to do about it.", "",
        "## Reasons of an answer", "", "In `reasons` of every answer. A closed list.", "",
        *table(("code", "meaning", "what to do"), ((code(one), one.about, ACTIONS[one]) for one in Reason)), "",
        "## Input that was set aside", "",
        "`hades ingest` prints the file and the reason; `hades status` counts them. The run goes on.", "",
        *table(("code", "meaning", "what to do"), ((code(one), *_REJECTIONS[one]) for one in RejectReason)), "",
        "## Errors", "",
        "A command prints `hades: message` and exits 1; with `--json` the name stands in `error.type`.",
        "The message says what was expected and the next step. `--debug` shows the traceback.", "",
        *table(("error", "meaning", "in"), ((code(one.name), one.about, code(one.module)) for one in _errors())), "",
        "## Alerts", "", "From `deployments/prometheus/alerts.yml`, for Prometheus.", "",
        *table(("alert", "when", "what to do"), _alerts()),
    ])  # fmt: skip


def _errors() -> list[ErrorClass]:
    """Every class that descends from HadesError, read from the sources without importing them."""
    known = {one.name: one for one in _classes()}
    wanted = {"HadesError"}
    while True:
        more = {name for name, one in known.items() if wanted & set(one.bases)} - wanted
        if not more:
            break
        wanted |= more
    return sorted((known[name] for name in wanted if name in known), key=lambda one: one.name)


def _classes() -> Iterator[ErrorClass]:
    for path in sorted((ROOT / "hades").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.bases:
                bases = tuple(base.id for base in node.bases if isinstance(base, ast.Name))
                about = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
                yield ErrorClass(node.name, bases, about, module)


def _alerts() -> Iterator[tuple[str, str, str]]:
    rules = yaml.safe_load((ROOT / "deployments" / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))
    for group in rules["groups"]:
        for rule in group["rules"]:
            notes = rule.get("annotations", {})
            when = notes.get("summary") or " ".join(str(rule["expr"]).split())
            yield code(rule["alert"]), when, notes.get("next", "")
