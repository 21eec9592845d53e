"""Weights and rankers as registered versions: logged, made champion, restored by moving the alias."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hades import build_state
from hades.build.columns import numbers
from hades.build.stage import numbers_of
from hades.build.weights import stage as weights
from hades.build.weights.stage import WeightError
from hades.errors import HadesError
from hades.ports.services import DATA_HASH, Dataset, RunRecord, Tracker, version_with_hash
from hades.ports.store import GraphStore, RowStore
from models.ranker.infer import BadModel, RankerModel
from schemas.catalogue import columns_schema
from schemas.ids import iso
from schemas.record import canonical_json
from schemas.telemetry import WeightConfig


def log_version(
    tracker: Tracker, model: str, record: RunRecord, name: str, write_file: Callable[[Path], object]
) -> str:
    """Log a run with a file of this name, which is written now, and register it as a version."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write_file(path)
        run = tracker.log_run(model, replace(record, artifacts=[path, *record.artifacts]))
        return tracker.register(model, run, name)


# Rankers: a challenger is made champion by the gate. The weights of the library are version 0 of every home.
RANKER_MODEL = "hades-ranker"
RANKER = "ranker"  # the stage of the ledger, and the part of a snapshot
CHAMPION, CHALLENGER = "champion", "challenger"
RANKER_FILE = "ranker.npz"
SERVED = "served"  # the tag of a version that was champion once
GENERATION = "generation"
_SINGLES = pa.list_(pa.float32())
_INPUTS = (pa.field("question", _SINGLES, nullable=False), pa.field("features", _SINGLES, nullable=False))
_OUTPUTS = (pa.field("score", pa.float32(), nullable=False),)
NONE, FIRST = "none", "0"  # going back to either: the weights that come with the library


class RankerError(HadesError):
    """A ranker that cannot be registered, promoted or restored."""


def log_ranker(
    tracker: Tracker,
    model: RankerModel,
    params: Mapping[str, object],
    metrics: Mapping[str, float],
    artifacts: Sequence[Path],
    verdict: str,
) -> str:
    """Register a model as a version and let `challenger` name it; the same data gives the version it gave before.

    The file holds arrays and the signature, which says what it takes and what it was fitted to: the `artifacts`.
    """
    data_hash = str(model.signature["data_hash"])
    generation = build_state.generation_of(model)
    record = RunRecord(
        f"ranker {generation[:8]}",
        params={**params, "signature.model": model.signature["model"], "signature.state": model.signature["state"]},
        metrics=metrics,
        artifacts=artifacts,
        inputs=[Dataset("questions", data_hash, ", ".join(map(str, artifacts)))],
        signature=(_INPUTS, _OUTPUTS),
        tags={DATA_HASH: generation, GENERATION: generation, "data": data_hash},
    )
    version = log_version(tracker, RANKER_MODEL, record, RANKER_FILE, partial(build_state.write_model, model=model))
    tracker.tag(RANKER_MODEL, version, {"verdict": verdict})
    tracker.set_alias(RANKER_MODEL, CHALLENGER, version)
    return version


def promote_ranker(store: GraphStore, home: Path, tracker: Tracker, version: str, as_of: datetime | None) -> str:
    """Let a version serve from the next publishing on; its generation. Going back to an older one is the same call."""
    try:
        model = build_state.read_model(tracker.fetch(RANKER_MODEL, version))
    except BadModel as error:  # of an older version of this library, or damaged
        raise RankerError(str(error)) from error
    generation = build_state.keep(home, model)
    tracker.tag(RANKER_MODEL, version, {SERVED: CHAMPION})
    tracker.set_alias(RANKER_MODEL, CHAMPION, version)
    record_ranker(store, generation, as_of, {"version": version, "data_hash": str(model.signature["data_hash"])})
    return generation


def record_ranker(store: GraphStore, generation: str, as_of: datetime | None, report: Mapping[str, Any]) -> None:
    """Say in the ledger which ranker the next snapshot holds; an empty generation: none."""
    with store.bulk(["build_stages"]) as inside:
        build_state.record(inside, RANKER, generation, generation, as_of, dict(report))


# Weights as one Parquet file: every row to be restored, and in its footer what they were made with. Equal weights
# give equal bytes: rows in key order, canonical JSON, no time of writing.
WEIGHTS_FILE = "weights.parquet"
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "relations": ("_key", "weight", "weight_components", "cost", "sim", "learned"),
    "mentions": ("_key", "weight", "learned"),
}
_COLLECTION = "collection"
_FOOTER = b"hades.weights"
_FORMAT = 1
WeightFile = tuple[Mapping[str, pa.Table], Sequence[WeightConfig], Mapping[str, Any]]  # rows, configuration, report


def write(path: Path, contents: WeightFile) -> None:
    """Put the weights into a file."""
    rows, config, report = contents
    footer = {"format": _FORMAT, "config": [row.model_dump(mode="json") for row in config], "report": report}
    tables = [
        rows[name].select(list(wanted)).append_column(_COLLECTION, pa.repeat(name, rows[name].num_rows))
        for name, wanted in COLUMNS.items()
    ]
    table = pa.concat_tables(tables, promote_options="default")
    marked = table.replace_schema_metadata({_FOOTER: canonical_json(footer).encode()})
    pq.write_table(marked, path, compression="zstd", use_dictionary=[_COLLECTION], store_schema=True)


def read_weights_file(path: Path) -> WeightFile:
    """What a file holds, in the catalogue's types."""
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise WeightError(f"{path.name} cannot be read as Parquet ({error}); restore another version") from error
    footer = orjson.loads((table.schema.metadata or {}).get(_FOOTER, b"{}"))
    if footer.get("format") != _FORMAT:
        raise WeightError(
            f"{path.name} holds weights of format {footer.get('format')}, this version reads {_FORMAT}; "
            "restore another version"
        )
    if "learned" not in table.column_names:  # written before use taught anything
        table = table.append_column("learned", pa.nulls(table.num_rows, pa.float64()))
    rows = {}
    for name, wanted in COLUMNS.items():
        chosen = table.filter(pc.equal(table.column(_COLLECTION), name)).select(list(wanted))
        rows[name] = chosen.cast(columns_schema(name, wanted)).combine_chunks()
    return rows, [WeightConfig.model_validate(row) for row in footer["config"]], footer["report"]


# Weights as registered versions: logged with what made them, promoted when they serve, kept while needed.
WEIGHTS_MODEL = "hades-weights"
_SERVED = "snapshot."  # a tag a snapshot: the same weights may serve in several
_PROMOTED = (_SERVED, SERVED)
_GIVEN = ("weight", "weight_components", "cost")  # columns that weighing writes: what the signature gives


def log_weights(
    store: RowStore, tracker: Tracker, *, as_of: datetime, inputs: Sequence[Dataset] = (), accepted: Sequence[str] = ()
) -> str:
    """Register the store's weights as a version of `hades-weights`, with parameters, metrics and the rows.

    The same data gives the version it gave before, so a build that was killed after weighing logs what is missing and
    nothing twice. `as_of` is where the build stands, which may be later than the weights; `inputs` are what they were
    made of. Weights that are not those of the last weighing are refused, unless a person `accepted` rules they break.
    """
    done = build_state.complete(store, build_state.WEIGHTS)
    if done is None:
        raise WeightError("nothing has been weighed; run `hades run weigh_edges` before logging weights")
    report, rows = done.report, {name: weights.read_edges(store, name) for name in COLUMNS}
    found = weights.generation_of(*((table.column("_key"), numbers(table.column("weight"))) for table in rows.values()))
    if found != done.generation:
        if not accepted:
            raise WeightError(
                f"the store holds weights of generation {found[:12]}, the last weighing wrote {done.generation[:12]}: "
                "edges changed since; weigh again before logging"
            )
        report = {**report, "generation": found, "data_hash": found}
    known = version_with_hash(tracker.versions(WEIGHTS_MODEL), report["data_hash"])
    if known is not None:
        return known
    # What judged answers taught is among the figures, where anybody judged some.
    taught = {"learned": report["learned"]} if report.get("learned", {}).get("turns") else {}
    config, fields = weights.store_config(store), list(rows["relations"].schema)
    record = RunRecord(
        f"weights {report['as_of'][:10]} {report['data_hash'][:8]}",
        params=_params(report, config),
        metrics=weights.STAGE.metrics(report) | numbers_of(taught),
        inputs=inputs,
        signature=([one for one in fields if one.name not in _GIVEN], [one for one in fields if one.name in _GIVEN]),
        tags={name: report[name] for name in (DATA_HASH, "generation", "as_of")}
        | {"build_as_of": iso(as_of)}
        | ({"accepted": ", ".join(accepted)} if accepted else {}),
    )
    contents = rows, config, weights.lasting(report)
    return log_version(tracker, WEIGHTS_MODEL, record, WEIGHTS_FILE, partial(write, contents=contents))


def promote(tracker: Tracker, version: str, snapshot: str, model: str = WEIGHTS_MODEL) -> None:
    """Say that a version serves, and in which snapshot; moving back to an older version is the same call."""
    tracker.tag(model, version, {"snapshot": snapshot, f"{_SERVED}{snapshot}": CHAMPION})
    tracker.set_alias(model, CHAMPION, version)


def version_of(tracker: Tracker, snapshot: str, model: str = WEIGHTS_MODEL) -> str | None:
    """The version that a snapshot was published with, or None when none was registered."""
    return next((one.version for one in tracker.versions(model) if f"{_SERVED}{snapshot}" in one.tags), None)


def version_before(tracker: Tracker, model: str = WEIGHTS_MODEL) -> str | None:
    """The version that served before the champion: the newest older one that was promoted; None where none was."""
    if (champion := tracker.alias(model, CHAMPION)) is None:
        raise WeightError(f"no version of {model} serves yet; run the nightly build first")
    older = (one for one in tracker.versions(model) if int(one.version) < int(champion))
    return next((one.version for one in older if any(tag.startswith(_PROMOTED) for tag in one.tags)), None)


def retain(tracker: Tracker, keep: int, *, snapshots: Collection[str] = (), model: str = WEIGHTS_MODEL) -> list[str]:
    """Delete all but the newest `keep` versions, those an alias names and those of these snapshots; what went."""
    if keep < 1:
        raise WeightError(f"keep is {keep}; at least the newest version must stay")
    needed = {f"{_SERVED}{snapshot}" for snapshot in snapshots}
    gone = [one for one in tracker.versions(model)[keep:] if not one.aliases and needed.isdisjoint(one.tags)]
    for one in gone:
        tracker.delete_version(model, one.version)
    return [one.version for one in gone]


def _params(report: Mapping[str, Any], config: Sequence[WeightConfig]) -> dict[str, object]:
    params: dict[str, object] = {name: report[name] for name in ("as_of", "bias", DATA_HASH)}
    params |= {f"neutral.{name}": value for name, value in report["neutral"].items()}
    for row in config:
        params |= {
            f"{row.relation_type}.{name}": getattr(row, name) for name in ("type_prior", "tau_days", "relation_boost")
        }
        params |= {f"{row.relation_type}.{name}": value for name, value in row.coefficients.items() if name != "bias"}
    return params


def restore_weights(store: GraphStore, tracker: Tracker, version: str) -> dict[str, int]:
    """Put the weights, components, costs and `weight_config` of a version back, byte for byte, in one transaction.

    Given back is how many edges hold its weight now, and how many of it are no longer stored. The ledger says so, and
    no digest equals what it says: the next build weighs again.
    """
    files, config, report = read_weights_file(tracker.fetch(WEIGHTS_MODEL, version))
    counts = {"restored": 0, "missing": 0}
    changes, after = {}, []
    for name, old in files.items():
        stored = weights.read_edges(store, name)
        place = pc.index_in(stored.column("_key"), value_set=old.column("_key").combine_chunks())
        known = pc.is_valid(place)
        ours = stored.select(list(COLUMNS[name])).filter(known).combine_chunks()
        wanted = old.take(place.drop_null())
        changes[name] = weights.changed_rows(ours, wanted)
        weighed = numbers(stored.column("weight")).copy()
        weighed[known.to_numpy()] = numbers(wanted.column("weight"))
        after.append((stored.column("_key"), weighed))
        counts["restored"] += wanted.num_rows
        counts["missing"] += old.num_rows - wanted.num_rows
    generation = weights.generation_of(*after)
    digest = f"restored from {WEIGHTS_MODEL} version {version}"
    weights.write_weights(store, changes, config, digest, generation, datetime.fromisoformat(report["as_of"]), report)
    return counts
