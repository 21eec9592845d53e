"""Weights as registered versions: logged with what made them, promoted when they serve, kept while needed."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from hades.build_state import ledger
from hades.ports.store import RowStore
from hades.ports.tracking import DATA_HASH, Tracker
from hades.stages.model_signature import write_signature
from hades.stages.weights import plots
from hades.stages.weights import weights_file as artifact
from hades.stages.weights.edge_columns import floats, read_mentions, read_relations
from hades.stages.weights.weigh_edges import generation_of
from hades.stages.weights.weight_config import store_config
from hades.stages.weights.weight_rules import WeightError
from hades.stages.weights.weights_file import WeightFile
from hades.stages.weights.weights_report import WeightReport
from schemas.intervals import iso

WEIGHTS_MODEL = "hades-weights"
CHAMPION = "champion"
_SERVED = "snapshot."  # a tag a snapshot: the same weights may serve in several
_GIVEN = ("weight", "weight_components", "cost")  # columns that weighing writes


def log_weights(
    store: RowStore,
    tracker: Tracker,
    report: WeightReport | None = None,
    *,
    snapshot: str | None = None,
    as_of: datetime,
) -> str:
    """Register the store's weights as a version of `hades-weights`, with parameters, metrics, a picture and the rows.

    The same data gives the version it gave before, so a build that was killed after weighing logs what is missing and
    nothing twice. Without a report that of the ledger is logged; `as_of` is where the build stands, which may be later
    than the weights. With a snapshot the version is promoted at once.
    """
    done = ledger.complete(store, ledger.WEIGHTS)
    if done is None:
        raise WeightError("nothing has been weighed; run `hades run weigh_edges` before logging weights")
    rows = _check_rows(store, done.generation)
    about = report or WeightReport(**done.report)
    if about.data_hash != done.report[DATA_HASH]:
        raise WeightError(f"the report is about other weights ({about.data_hash[:12]}) than the store's; weigh again")
    known = tracker.version_of(WEIGHTS_MODEL, about.data_hash)
    version = known or _log(store, tracker, about, rows, as_of)
    if snapshot is not None:
        promote(tracker, version, snapshot)
    return version


def promote(tracker: Tracker, version: str, snapshot: str) -> None:
    """Say that these weights serve, and in which snapshot; moving back to an older version is the same call."""
    tracker.tag(WEIGHTS_MODEL, version, {"snapshot": snapshot, f"{_SERVED}{snapshot}": CHAMPION})
    tracker.set_alias(WEIGHTS_MODEL, CHAMPION, version)


def version_of(tracker: Tracker, snapshot: str) -> str | None:
    """The version whose weights a snapshot was published with, or None when none was registered."""
    return next((one.version for one in tracker.versions(WEIGHTS_MODEL) if f"{_SERVED}{snapshot}" in one.tags), None)


def version_before(tracker: Tracker) -> str:
    """The version that served before the champion: the newest older one that was promoted."""
    champion = tracker.alias(WEIGHTS_MODEL, CHAMPION)
    if champion is None:
        raise WeightError(f"no version of {WEIGHTS_MODEL} serves yet; run the nightly build first")
    for one in tracker.versions(WEIGHTS_MODEL):
        if int(one.version) < int(champion) and any(tag.startswith(_SERVED) for tag in one.tags):
            return one.version
    raise WeightError(f"no version of {WEIGHTS_MODEL} served before version {champion}; name one to go to")


def retain(tracker: Tracker, keep: int, *, snapshots: Collection[str] = ()) -> list[str]:
    """Delete all but the newest `keep` versions, those an alias names and those of these snapshots; what went."""
    if keep < 1:
        raise WeightError(f"keep is {keep}; at least the newest version must stay")
    return tracker.keep_newest(WEIGHTS_MODEL, keep, [f"{_SERVED}{snapshot}" for snapshot in snapshots])


def _check_rows(store: RowStore, generation: str) -> dict[str, pa.Table]:
    """The edges of the store, which must be the ones the ledger speaks of."""
    rows = {"relations": read_relations(store), "mentions": read_mentions(store)}
    found = generation_of(*((table.column("_key"), floats(table.column("weight"))) for table in rows.values()))
    if found != generation:
        raise WeightError(
            f"the store holds weights of generation {found[:12]}, the last weighing wrote {generation[:12]}: "
            "edges changed since; weigh again before logging"
        )
    return rows


def _log(store: RowStore, tracker: Tracker, report: WeightReport, rows: Mapping[str, pa.Table], as_of: datetime) -> str:
    contents = WeightFile(rows, store_config(store), report.lasting())
    with tempfile.TemporaryDirectory() as folder:
        table, picture = Path(folder) / artifact.FILE, Path(folder) / plots.FILE
        artifact.write(table, contents)
        plots.draw_distributions(report, picture)
        run = tracker.log_run(
            WEIGHTS_MODEL,
            f"weights {report.as_of[:10]} {report.data_hash[:8]}",
            params=_params(report, contents),
            metrics=_metrics(report),
            artifacts=[table, picture, write_signature(Path(folder), artifact.FILE, *_signature(rows["relations"]))],
            tags={
                DATA_HASH: report.data_hash,
                "generation": report.generation,
                "as_of": report.as_of,
                "build_as_of": iso(as_of),
            },
        )
    return tracker.register(WEIGHTS_MODEL, run, artifact.FILE)


def _signature(relations: pa.Table) -> tuple[list[pa.Field], list[pa.Field]]:
    """What weighing reads of a relation, and what it gives."""
    fields = list(relations.schema)
    return [one for one in fields if one.name not in _GIVEN], [one for one in fields if one.name in _GIVEN]


def _params(report: WeightReport, contents: WeightFile) -> dict[str, object]:
    params: dict[str, object] = {"as_of": report.as_of, "bias": report.bias, DATA_HASH: report.data_hash}
    params |= {f"neutral.{name}": value for name, value in report.neutral.items()}
    for row in contents.config:
        params |= {
            f"{row.relation_type}.{name}": getattr(row, name) for name in ("type_prior", "tau_days", "relation_boost")
        }
        params |= {f"{row.relation_type}.{name}": value for name, value in row.coefficients.items() if name != "bias"}
    return params


def _metrics(report: WeightReport) -> dict[str, float]:
    metrics = {f"rows.{name}": float(count) for name, count in report.rows.items()}
    metrics |= {f"changed.{name}": float(count) for name, count in report.changed.items()}
    metrics |= {f"weight.p{100 * float(share):02.0f}": value for share, value in report.quantiles.items()}
    metrics |= {f"mean.{kind}": found["mean"] for kind, found in report.types.items()}
    metrics |= _lessons(report.learned)
    return metrics | {"seconds": report.seconds}


def _lessons(learned: Mapping[str, Any]) -> dict[str, float]:
    """What judged answers taught, in numbers; nothing where nobody judged any."""
    if not learned.get("turns"):
        return {}
    held = learned["held_out"]
    lessons = {f"learned.{name}": float(learned[name]) for name in ("turns", "pairs", "kept")}
    lessons |= {f"learned.moved.{name}": float(count) for name, count in learned["moved"].items()}
    lessons |= {f"learned.held_out.{name}": float(held[name]) for name in ("questions", "before", "after")}
    ends = zip(("low", "high"), held["interval"] or (), strict=False)
    return lessons | {f"learned.held_out.{name}": float(end) for name, end in ends}
