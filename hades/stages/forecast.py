"""What a nightly build would do now, how long it would take and what it would cost, and what the last ones did."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from hades.build_state import ledger
from hades.ingest import manifest
from hades.ports.store import RowStore, Term
from hades.stages.forecast_cost import CostForecast, PaidModels, forecast_cost
from hades.stages.night import NIGHT
from hades.stages.weights.feedback import judge_digest

REPORTS = "reports"
_PATTERN = "nightly-*.json"
_ALWAYS = ("contracts", "released")
_RUNS = 10  # builds whose durations the forecast takes the median of


@dataclass(frozen=True)
class Run:
    """One nightly build as its report tells it. `skipped` are stages that had nothing to do.

    `log` holds a sentence for each stage, `contracts` the number of rules and the broken ones, `model_calls` the calls
    of a language model.
    """

    build: str
    as_of: str
    snapshot: str
    seconds: dict[str, float]
    skipped: tuple[str, ...] = ()
    embedded: int | None = None
    log: dict[str, str] = field(default_factory=dict)
    contracts: tuple[dict[str, Any], ...] = ()
    model_calls: int = 0


@dataclass(frozen=True)
class Forecast:
    """Stages that a nightly build has work for, with the seconds each will take; None: never measured.

    `learned` is what the last weighing learned from judged answers (`LearningReport`). `runs` is the number of earlier
    builds that the seconds come from.
    """

    stages: dict[str, float | None]
    chunks_to_embed: int
    sources: int
    learned: dict[str, Any] = field(default_factory=dict)
    runs: int = 0
    cost: CostForecast = field(default_factory=CostForecast)

    @property
    def seconds(self) -> float:
        """The sum over the stages that were measured before."""
        return round(sum(value for value in self.stages.values() if value), 1)

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "seconds": self.seconds}


def last_runs(home: Path, limit: int = 5) -> list[Run]:
    """The newest builds first; a report that cannot be read is passed over."""
    bodies = (_body(path) for path in sorted((home / REPORTS).glob(_PATTERN), reverse=True)[:limit])
    return [
        Run(
            body["build"],
            body["as_of"],
            body["snapshot"],
            body["seconds"],
            tuple(body.get("skipped", ())),
            body.get("embedded"),
            body.get("log", {}),
            tuple(body.get("contracts", ())),
            body.get("model_calls", 0),
        )
        for body in bodies
        if body
    ]


def newest_report(home: Path) -> dict[str, Any]:
    """Everything the last build wrote about itself; empty when there was none."""
    paths = sorted((home / REPORTS).glob(_PATTERN))
    return _body(paths[-1]) if paths else {}


def forecast_build(store: RowStore, home: Path, paid: PaidModels = PaidModels()) -> Forecast:
    """Read the store's own marks and the last reports; nothing is computed."""
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
    stale = _stale_stages(changed)
    runs = last_runs(home, _RUNS)
    seconds = {name: forecast_seconds(name, runs, missing) for name in (*stale, *_ALWAYS)}
    cost = forecast_cost(store, paid, is_embedding=bool(missing), is_writing="topics" in stale)
    return Forecast(seconds, missing, sources, learned, len(runs), cost)


def forecast_seconds(stage: str, runs: Sequence[Run], chunks: int) -> float | None:
    """The median over earlier builds in which the stage had work; embedding by the chunk. None: never measured."""
    if stage == "embeddings":
        rates = [run.seconds[stage] / run.embedded for run in runs if run.embedded and stage in run.seconds]
        return round(median(rates) * chunks, 1) if rates else None
    known = [run.seconds[stage] for run in runs if stage in run.seconds and stage not in run.skipped]
    return round(median(known), 1) if known else None


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
