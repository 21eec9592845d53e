"""Weights and rankers as registered versions: logged, made champion, restored by moving the
alias.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hades import ranker_files, stage_ledger
from hades.errors import HadesError
from hades.night.context import BuildContext
from hades.night.stage import Report
from hades.night.weights import stage as weights
from hades.night.weights.stage import WeightError
from hades.ports.services import DATA_HASH, Dataset, RunRecord, Tracker, version_with_hash
from hades.ports.store import GraphStore, RowStore
from models.ranker.infer import BadModel, RankerModel
from schemas.catalogue import columns_schema
from schemas.ids import iso
from schemas.record import canonical_json
from schemas.telemetry import WeightConfig

# What a version of each registered model is, as MLflow shows it to people.
ABOUT: Mapping[str, str] = {
    "hades-snapshot": "The manifest of a published snapshot.",
    "hades-hierarchy": "Topics and super-topics with their centroids.",
    "hades-weights": "Weights and costs of relations, weights of mentions.",
    "hades-bridges": "Paths between pairs of topics.",
    "hades-ranker": "What this home's own questions taught about the default ranking.",
    "hades-exam": "The questions that the corpus supplies.",
}


def log_version(
    tracker: Tracker,
    model: str,
    record: RunRecord,
    name: str,
    write_file: Callable[[Path], object],
) -> str:
    """Log a run with a file of this name, which is written now, and register it as a version."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write_file(path)
        run = tracker.log_run(model, replace(record, artifacts=[path, *record.artifacts]))
        return tracker.register(model, run, name, ABOUT[model])


def signature_of(
    schema: pa.Schema,
    takes: Collection[str],
) -> tuple[list[pa.Field], list[pa.Field]]:
    """The columns of a file that a model takes, and those that it gives."""
    taken_fields = []
    for field in schema:
        if field.name in takes:
            taken_fields.append(field)

    return taken_fields, [field for field in schema if field.name not in takes]


# Rankers: a challenger is made champion by the gate. The weights of the library are version 0 of
# every home.
RANKER_MODEL = "hades-ranker"
RANKER = "ranker"  # the stage of the ledger, and the part of a snapshot
CHAMPION, CHALLENGER = "champion", "challenger"
RANKER_FILE = "ranker.npz"
SERVED = "served"  # the tag of a version that was champion once
GENERATION = "generation"
GATE = "gate"  # the tag that says whether a version may serve by the figures it was trained with
PASSED, REFUSED = "passed", "refused"
RESTORED_FROM = "restored_from"  # of weights that a rollback made of an older version
_SINGLES = pa.list_(pa.float32())
_INPUTS = (
    pa.field("question", _SINGLES, nullable=False),
    pa.field("features", _SINGLES, nullable=False),
)
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
    gate: str,
) -> str:
    """Register a model as a version and let `challenger` name it; the same data gives the version
    it gave before.

    The file holds arrays and the signature, which says what it takes and what it was fitted to: the
    `artifacts`.
    """
    data_hash = str(model.signature["data_hash"])
    generation = ranker_files.generation_of(model)
    signature = {f"signature.{name}": model.signature[name] for name in ("model", "state")}
    record = RunRecord(
        f"ranker {generation[:8]}",
        params={**params, **signature},
        metrics=metrics,
        artifacts=artifacts,
        inputs=[
            Dataset(
                "questions",
                data_hash,
                ", ".join(map(str, artifacts)),
            )
        ],
        signature=(_INPUTS, _OUTPUTS),
        tags={
            DATA_HASH: generation,
            GENERATION: generation,
            "data": data_hash,
        },
    )
    version = log_version(
        tracker,
        RANKER_MODEL,
        record,
        RANKER_FILE,
        partial(ranker_files.write_model, model=model),
    )
    tracker.tag(
        RANKER_MODEL,
        version,
        {"verdict": verdict, GATE: gate},
    )
    tracker.set_alias(RANKER_MODEL, CHALLENGER, version)
    return version


def promote_ranker(
    store: GraphStore,
    home: Path,
    tracker: Tracker,
    version: str,
    as_of: datetime | None,
) -> str:
    """Let a version serve from the next publishing on; its generation. Going back to an older one
    is the same call.
    """
    try:
        model = ranker_files.read_model(tracker.fetch(RANKER_MODEL, version))
    except BadModel as error:  # of an older version of this library, or damaged
        raise RankerError(str(error)) from error

    generation = ranker_files.save_ranker(home, model)
    tracker.tag(
        RANKER_MODEL,
        version,
        {SERVED: CHAMPION},
    )
    tracker.set_alias(RANKER_MODEL, CHAMPION, version)
    report = {
        "version": version,
        "data_hash": str(model.signature["data_hash"]),
    }
    record_ranker(store, generation, as_of, report)
    return generation


def record_ranker(
    store: GraphStore,
    generation: str,
    as_of: datetime | None,
    report: Report,
) -> None:
    """Say in the ledger which ranker the next snapshot holds; an empty generation: none."""
    with store.bulk(["build_stages"]) as inside:
        stage_ledger.record(
            inside,
            RANKER,
            generation,
            generation,
            as_of,
            dict(report),
        )


def demote_ranker(store: GraphStore, tracker: Tracker) -> None:
    """Let no version serve: the weights of the library rank from the next publishing on."""
    record_ranker(store, "", None, {})
    tracker.delete_alias(RANKER_MODEL, CHAMPION)


def describe_ranker(tracker: Tracker, version: str) -> str:
    """Which version serves, and what was said of it when it was trained."""
    tags = tracker.known(RANKER_MODEL, version).tags
    if tags.get(GATE) == REFUSED:
        refused = ", which was refused when it was trained,"
    else:
        refused = ""

    verdict = tags.get("verdict", "none is recorded")
    return f"the ranker of version {version}{refused} serves; verdict: {verdict}"


# Weights as one Parquet file: every row to be restored, and in its footer what they were made with.
# Equal weights give equal bytes: rows in key order, canonical JSON, no time of writing.
WEIGHTS_FILE = "weights.parquet"
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "relations": ("_key", "weight", "weight_components", "cost", "sim", "learned"),
    "mentions": ("_key", "weight", "learned"),
}
_COLLECTION = "collection"
_FOOTER = b"hades.weights"
_FORMAT = 1
# Rows, configuration, report.
WeightFile = tuple[Mapping[str, pa.Table], Sequence[WeightConfig], Report]


def write(path: Path, contents: WeightFile) -> None:
    """Put the weights into a file."""
    rows, config, report = contents
    config_rows = [row.model_dump(mode="json") for row in config]
    footer = {
        "format": _FORMAT,
        "config": config_rows,
        "report": report,
    }

    tables = []
    for name, columns in COLUMNS.items():
        marks = pa.repeat(name, rows[name].num_rows)
        tables.append(rows[name].select(list(columns)).append_column(_COLLECTION, marks))

    table = pa.concat_tables(tables, promote_options="default")
    marked = table.replace_schema_metadata({_FOOTER: canonical_json(footer).encode()})
    pq.write_table(
        marked,
        path,
        compression="zstd",
        use_dictionary=[_COLLECTION],
        store_schema=True,
    )


def read_weights_file(path: Path) -> WeightFile:
    """What a file holds, in the catalogue's types."""
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise WeightError(
            f"{path.name} cannot be read as Parquet ({error}); restore another version"
        ) from error

    footer = orjson.loads((table.schema.metadata or {}).get(_FOOTER, b"{}"))
    if footer.get("format") != _FORMAT:
        raise WeightError(
            f"{path.name} holds weights of format {footer.get('format')}, this version reads "
            f"{_FORMAT}; "
            "restore another version"
        )

    if "learned" not in table.column_names:  # written before use taught anything
        table = table.append_column("learned", pa.nulls(table.num_rows, pa.float64()))

    rows = {}
    for name, columns in COLUMNS.items():
        chosen = table.filter(pc.equal(table.column(_COLLECTION), name)).select(list(columns))
        rows[name] = chosen.cast(columns_schema(name, columns)).combine_chunks()

    return rows, [WeightConfig.model_validate(row) for row in footer["config"]], footer["report"]


# Weights as registered versions: logged with what made them, promoted when they serve, kept while
# needed.
WEIGHTS_MODEL = "hades-weights"
_SERVED = "snapshot."  # a tag a snapshot: the same weights may serve in several
_PROMOTED = (_SERVED, SERVED)
# Columns that weighing writes: what the signature gives.
_GIVEN = ("weight", "weight_components", "cost")


def log_weights(
    store: RowStore,
    tracker: Tracker,
    *,
    as_of: datetime,
    inputs: Sequence[Dataset] = (),
    accepted: Sequence[str] = (),
) -> str:
    """Register the store's weights as a version of `hades-weights`, with parameters, metrics and
    the rows.

    The same data gives the version it gave before, so a build that was killed after weighing logs
    what is missing and nothing twice. `as_of` is where the build stands, which may be later than
    the weights; `inputs` are what they were made of. Weights that are not those of the last
    weighing are refused, unless a person `accepted` rules they break.
    """
    last_record = stage_ledger.last_completion(store, stage_ledger.WEIGHTS)
    if last_record is None:
        raise WeightError(
            "nothing has been weighed; run `hades run weigh_edges` before logging weights"
        )

    report = last_record.report
    rows = {name: weights.read_edges(store, name) for name in COLUMNS}
    generation = weights.generation_of_rows(rows)

    if generation != last_record.generation:
        if not accepted:
            raise WeightError(
                f"the store holds weights of generation {generation[:12]}, the last weighing wrote "
                f"{last_record.generation[:12]}: edges changed since; weigh again before logging"
            )

        report = {
            **report,
            "generation": generation,
            "data_hash": generation,
        }

    known_version = version_with_hash(tracker.versions(WEIGHTS_MODEL), report["data_hash"])
    if known_version is not None:
        return known_version

    names = (DATA_HASH, "generation", "as_of", RESTORED_FROM)
    tags = {}
    for name in names:
        if name in report:
            tags[name] = report[name]

    tags["build_as_of"] = iso(as_of)
    if accepted:
        tags["accepted"] = ", ".join(accepted)

    config = weights.store_config(store)
    schema = rows["relations"].schema
    record = RunRecord(
        f"weights {iso(as_of)[:10]} {report['data_hash'][:8]}",
        params=_params(report, config),
        metrics=weights.STAGE.metrics(report),
        inputs=inputs,
        signature=signature_of(schema, set(schema.names).difference(_GIVEN)),
        tags=tags,
    )
    contents = rows, config, weights.lasting(report)
    return log_version(
        tracker,
        WEIGHTS_MODEL,
        record,
        WEIGHTS_FILE,
        partial(write, contents=contents),
    )


def promote(
    tracker: Tracker,
    version: str,
    snapshot: str,
    model: str = WEIGHTS_MODEL,
) -> None:
    """Say that a version serves, and in which snapshot; moving back to an older version is the same
    call.
    """
    tracker.tag(
        model,
        version,
        {
            "snapshot": snapshot,
            f"{_SERVED}{snapshot}": CHAMPION,
        },
    )
    tracker.set_alias(model, CHAMPION, version)


def version_of(
    tracker: Tracker,
    snapshot: str,
    model: str = WEIGHTS_MODEL,
) -> str | None:
    """The version that a snapshot was published with, or None when none was registered."""
    for version in tracker.versions(model):
        if f"{_SERVED}{snapshot}" in version.tags:
            return version.version

    return None


def version_before(tracker: Tracker, model: str = WEIGHTS_MODEL) -> str | None:
    """The version that served before the champion: the newest older one that was promoted; None
    where none was.
    """
    champion = tracker.alias(model, CHAMPION)
    if champion is None:
        raise WeightError(f"no version of {model} serves yet; run the nightly build first")

    source = tracker.known(model, champion).tags.get(RESTORED_FROM, champion)
    for version in tracker.versions(model):
        was_promoted = any(tag.startswith(_PROMOTED) for tag in version.tags)
        if was_promoted and int(version.version) < int(source):
            return version.version

    return None


def retain(
    tracker: Tracker,
    keep: int,
    *,
    snapshots: Collection[str] = (),
    model: str = WEIGHTS_MODEL,
) -> list[str]:
    """Delete all but the newest `keep` versions, those an alias names and those of these snapshots;
    what went.
    """
    if keep < 1:
        raise WeightError(f"keep is {keep}; at least the newest version must stay")

    needed = {f"{_SERVED}{snapshot}" for snapshot in snapshots}
    deleted = []
    for version in tracker.versions(model)[keep:]:
        if not version.aliases and needed.isdisjoint(version.tags):
            tracker.delete_version(model, version.version)
            deleted.append(version.version)

    return deleted


def retain_rankers(
    tracker: Tracker,
    keep: int,
    generations: Collection[str],
) -> None:
    """Delete all but the newest `keep` rankers, those an alias names, those of these generations
    and the one that `hades rollback ranker` would go back to.
    """
    rankers = tracker.versions(RANKER_MODEL)[keep:]
    if not rankers:
        return

    champion = tracker.alias(RANKER_MODEL, CHAMPION)
    if champion is None:
        former = None
    else:
        former = version_before(tracker, RANKER_MODEL)

    for ranker in rankers:
        is_needed = ranker.tags.get(GENERATION) in generations or ranker.version == former
        if not ranker.aliases and not is_needed:
            tracker.delete_version(RANKER_MODEL, ranker.version)


def _params(
    report: Mapping[str, Any],
    config: Sequence[WeightConfig],
) -> dict[str, object]:
    params: dict[str, object] = {name: report[name] for name in ("as_of", "bias", DATA_HASH)}
    params |= {f"neutral.{name}": value for name, value in report["neutral"].items()}
    for row in config:
        values = row.model_dump(include={"type_prior", "tau_days", "relation_boost"})
        for name, value in {**values, **row.coefficients}.items():
            if name != weights.BIAS:
                params[f"{row.relation_type}.{name}"] = value

    return params


def restore_weights(
    context: BuildContext,
    tracker: Tracker,
    version: str,
) -> dict[str, int]:
    """Give the store the weights of a version and its `weight_config`, in one transaction.

    What the version knows is written back byte for byte. Every other relation and mention is
    weighed by the version's own parameters: priors, coefficients, bias, week and what an unknown
    part counts; judged answers teach it nothing. Given back are how many edges are `restored`, how
    many are `weighed` so, and how many of the version are `missing` in the store. The ledger names
    the version, and no digest equals what it says: the next build weighs again.
    """
    files, stored_config, report = read_weights_file(tracker.fetch(WEIGHTS_MODEL, version))
    week = datetime.fromisoformat(report["as_of"])
    config = weights.complete_config(stored_config, context.path)
    graph = weights.measure_graph(
        context,
        config,
        week,
        report["neutral"],
    )
    rows = graph.rows(
        config,
        report["bias"],
        context.path.eps,
        graph.no_lessons(),
    )
    counts = {
        "restored": 0,
        "weighed": 0,
        "missing": 0,
    }

    changes: dict[str, pa.Table] = {}
    for name, old in files.items():
        stored = weights.read_edges(context.store, name).select(list(COLUMNS[name]))
        places = pc.index_in(
            stored.column("_key"),
            value_set=old.column("_key").combine_chunks(),
        )
        rows[name] = _laid_over(rows[name], old, places)
        changes[name] = weights.changed_rows(stored.combine_chunks(), rows[name])
        known_count = len(places) - places.null_count
        counts["restored"] += known_count
        counts["weighed"] += places.null_count
        counts["missing"] += old.num_rows - known_count

    generation = weights.generation_of_rows(rows)
    if generation != report["generation"]:
        restored = {
            "generation": generation,
            "data_hash": generation,
            RESTORED_FROM: version,
        }
        report = {
            **report,
            **graph.figures(rows),
            **restored,
        }

    digest = f"restored from {WEIGHTS_MODEL} version {version}"
    weights.write_weights(
        context.store,
        changes,
        config,
        digest,
        generation,
        week,
        report,
    )
    return counts


def _laid_over(
    rows: pa.Table,
    old: pa.Table,
    places: pa.ChunkedArray,
) -> pa.Table:
    """The rows, with those of a version in their stead where it has them: at `places`, else
    null.
    """
    computed = rows.select(old.column_names).cast(old.schema)
    both = pa.concat_tables([old, computed]).combine_chunks()
    computed_places = pa.array(np.arange(old.num_rows, both.num_rows))
    return both.take(pc.coalesce(pc.cast(places, pa.int64()), pa.chunked_array([computed_places])))
