"""What a nightly build would do now and what it would cost, and what the last ones did."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hades.build_state import ledger
from hades.ingest import manifest
from hades.ports.store import RowStore, Term
from hades.stages.night import NIGHT
from hades.stages.weights.feedback import judge_digest

REPORTS = "reports"
_PATTERN = "nightly-*.json"
_ALWAYS = ("contracts", "released")


@dataclass(frozen=True)
class Run:
    """One nightly build as its report tells it."""

    build: str
    as_of: str
    snapshot: str
    seconds: dict[str, float]


@dataclass(frozen=True)
class Forecast:
    """Stages that a nightly would really do, with seconds as the last build took them; None: never measured.

    `learned` is what the last weighing learned from judged answers (`LearningReport`).
    """

    stages: dict[str, float | None]
    chunks_to_embed: int
    sources: int
    learned: dict[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """What is known of the cost."""
        return round(sum(value for value in self.stages.values() if value), 1)

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "seconds": self.seconds}


def last_runs(home: Path, limit: int = 5) -> list[Run]:
    """The newest builds first; a report that cannot be read is passed over."""
    bodies = (_body(path) for path in sorted((home / REPORTS).glob(_PATTERN), reverse=True)[:limit])
    return [Run(body["build"], body["as_of"], body["snapshot"], body["seconds"]) for body in bodies if body]


def newest_report(home: Path) -> dict[str, Any]:
    """Everything the last build wrote about itself; empty when there was none."""
    paths = sorted((home / REPORTS).glob(_PATTERN))
    return _body(paths[-1]) if paths else {}


def forecast_build(store: RowStore, home: Path) -> Forecast:
    """Read the store's own marks and the last report; nothing is computed."""
    before = newest_report(home)
    missing = store.count("doc_chunks", where=[Term("embedding_model", "is_null")])
    sources = store.count("sources")
    weighed = ledger.complete(store, ledger.WEIGHTS)
    learned = weighed.report.get("learned", {}) if weighed is not None else {}
    digest = manifest.derive_digest(store)
    changed = {
        "sources": bool(sources),
        "embeddings": bool(missing),
        "edges": digest is None or digest != before.get("derived_from") or weighed is None,
        "weights": learned.get("judged") != judge_digest(store),
    }
    seconds = before.get("seconds", {})
    names = (*_stale_stages(changed), *_ALWAYS)
    return Forecast({name: seconds.get(name) for name in names}, missing, sources, learned)


def _stale_stages(changed: Mapping[str, bool]) -> list[str]:
    """Stages whose own input changed, and those that need one of them, in the order of the night."""
    stale: list[str] = []
    for stage in NIGHT:
        if changed.get(stage.name) or any(name in stale for name in stage.needs):
            stale.append(stage.name)
    return stale


def _body(path: Path) -> dict[str, Any]:
    try:
        body = json.loads(path.read_text("utf-8"))
    except (ValueError, OSError):
        return {}
    return body if isinstance(body, dict) else {}
