"""OpenLineage events of builds: which stage read and wrote which collections, when, and whether it completed.

Events follow the OpenLineage specification 2-0-2 and need no library. They are appended to `logs/lineage.jsonl` under
the home, and sent to HADES_LINEAGE_URL where that is set. Lineage never stops a build: what cannot be delivered is
logged as a warning.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

FILE = "lineage.jsonl"
JOB = "nightly"
_SPEC = "https://openlineage.io/spec"
_SCHEMA = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_PARENT = f"{_SPEC}/facets/1-0-1/ParentRunFacet.json#/$defs/ParentRunFacet"
_ERROR = f"{_SPEC}/facets/1-0-1/ErrorMessageRunFacet.json#/$defs/ErrorMessageRunFacet"
_TIMEOUT_SECONDS = 5.0
Emit = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class StageRun:
    """One run of a stage inside a build: its name, the build's name, and the collections on both sides."""

    namespace: str
    build: str
    stage: str
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()

    def event(self, kind: str, at: datetime, error: str = "") -> dict[str, Any]:
        """The event of this moment: START, COMPLETE or FAIL."""
        parent = {"run": {"runId": _run_id(self.namespace, self.build)}, "job": self._job(JOB)}
        facets: dict[str, Any] = {"parent": _facet(_PARENT, parent)}
        if error:
            facets["errorMessage"] = _facet(_ERROR, {"message": error, "programmingLanguage": "PYTHON"})
        return {
            "eventType": kind,
            "eventTime": at.astimezone(UTC).isoformat(),
            "producer": _producer(),
            "schemaURL": _SCHEMA,
            "run": {"runId": _run_id(self.namespace, self.build, self.stage), "facets": facets},
            "job": {**self._job(f"{JOB}.{self.stage}"), "facets": {}},
            "inputs": [self._dataset(name) for name in self.inputs],
            "outputs": [self._dataset(name) for name in self.outputs],
        }

    def _job(self, name: str) -> dict[str, str]:
        return {"namespace": self.namespace, "name": name}

    def _dataset(self, name: str) -> dict[str, Any]:
        return {"namespace": self.namespace, "name": name, "facets": {}}


def emit_nothing(event: dict[str, Any]) -> None:
    """For a graph that was opened without settings."""


def emitter(folder: Path, url: str | None) -> Emit:
    """Appends events to a file of the folder, and sends them where an address is given."""

    def emit(event: dict[str, Any]) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / FILE).open("a", encoding="utf-8") as file:
                file.write(json.dumps(event, separators=(",", ":")) + "\n")
        except OSError as error:
            logger.warning("a lineage event was not written: %s", error)
        if url is not None:
            _send(url, event)

    return emit


def _send(url: str, event: Mapping[str, Any]) -> None:
    import httpx

    try:
        httpx.post(url, json=event, timeout=_TIMEOUT_SECONDS).raise_for_status()
    except httpx.HTTPError as error:
        logger.warning("a lineage event was not sent to %s: %s", url, error)


def _run_id(*names: str) -> str:
    """The same build and stage have the same id in every process that works on them."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(("hades", *names))))


def _facet(schema: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {"_producer": _producer(), "_schemaURL": schema, **values}


@cache
def _producer() -> str:
    return f"https://pypi.org/project/hades-graphrag/{version('hades-graphrag')}"
