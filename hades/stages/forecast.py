"""What a nightly build would do now and what it would cost, and what the last ones did."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hades.build_state import ledger
from hades.ingest import manifest
from hades.ports.store import RowStore, Term
from hades.stages.weights.feedback import judged_digest

REPORTS = "reports"
_PATTERN = "nightly-*.json"
_AFTER_DERIVING = ("topics", "weights", "bridges")
_AFTER_WEIGHING = ("weights", "bridges")


@dataclass(frozen=True)
class Run:
    """One nightly build as its report tells it."""

    build: str
    as_of: str
    snapshot: str
    seconds: dict[str, float]


@dataclass(frozen=True)
class Outlook:
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


def outlook(store: RowStore, home: Path) -> Outlook:
    """Read the store's own marks and the last report; nothing is computed."""
    before = newest_report(home)
    seconds = before.get("seconds", {})
    missing = store.count("doc_chunks", where=[Term("embedding_model", "is_null")])
    sources = store.count("sources")
    stages: dict[str, float | None] = {}
    if sources:
        stages["sources"] = seconds.get("sources")
    if missing:
        stages["embeddings"] = seconds.get("embeddings")
    digest = manifest.derived_digest(store)
    weighed = ledger.completed(store, ledger.WEIGHTS)
    stale = digest is None or digest != before.get("derived_from") or weighed is None
    if stale or missing:
        for name in ("edges", *_AFTER_DERIVING):
            stages[name] = seconds.get(name)
    learned = weighed.report.get("learned", {}) if weighed is not None else {}
    if "weights" not in stages and learned.get("judged") != judged_digest(store):
        for name in _AFTER_WEIGHING:
            stages[name] = seconds.get(name)
    for name in ("contracts", "released"):
        stages[name] = seconds.get(name)
    return Outlook(stages, missing, sources, learned)


def _body(path: Path) -> dict[str, Any]:
    try:
        body = json.loads(path.read_text("utf-8"))
    except (ValueError, OSError):
        return {}
    return body if isinstance(body, dict) else {}
