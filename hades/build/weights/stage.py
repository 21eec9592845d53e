"""Weigh every edge: by which rules, from which columns, and what changed."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades import build_state
from hades.build.columns import at, column, ids, numbers, place_ends
from hades.build.context import BuildContext, derivation, read_columns, vectors_of
from hades.build.stage import EDGES, Report, Stage
from hades.build.weights.feedback import judge_digest, learn_from_use, shift
from hades.build.weights.feedback import tell as describe_learning
from hades.errors import HadesError
from hades.ports.store import GraphStore, RowStore, scan_rows
from hades.snapshot.files import integers, places_of
from models import weights
from models.arrays import Flags, Floats, Longs, Singles
from models.weights import PART_DECIMALS, PARTS, Codes
from schemas.ids import iso
from schemas.nodes import RelationType
from schemas.record import from_rows, to_table
from schemas.telemetry import WeightConfig

# What weighing goes by: the seeds of `weight_config`, the boosts of the settings, and how much counts as much.


class WeightError(HadesError):
    """Weights that cannot be computed, logged or restored: what was expected and what to do."""


_YEAR = 365.0
# Stated by an author outranks read by a rule, which outranks counted or measured. Names and code drift slowly.
# By type: how much it tells alone, and in how many days it fades.
SEEDS: Mapping[RelationType, tuple[float, float]] = {
    RelationType.IMPLEMENTS: (0.9, 5 * _YEAR),
    RelationType.EXTENDS: (0.8, 5 * _YEAR),
    RelationType.DERIVES_FROM: (0.8, 5 * _YEAR),
    RelationType.CITES: (0.7, 5 * _YEAR),
    RelationType.REFERS_TO: (0.5, 5 * _YEAR),
    RelationType.COREF: (0.4, 20 * _YEAR),
    RelationType.RELATED_TO: (0.3, 3 * _YEAR),
    RelationType.SIMILAR_TO: (0.3, 20 * _YEAR),
}
EVIDENCE_FULL = 15  # places that state an edge, from which on more of them support it no better
COEFFICIENTS: Mapping[str, float] = {"sim": 4.0, "type_prior": 3.0, "evidence": 3.0, "freshness": 1.0}

# `weight_config`: one row a relation type. What is missing is seeded, what a person wrote is kept.
BIAS = "bias"  # kept beside the coefficients, so that a row tells all that a weight was made with
TYPES: tuple[str, ...] = tuple(str(kind) for kind in RelationType)  # a type's code is its place here
_MAX = 1e6


def read_config(store: RowStore, boosts: Mapping[RelationType, float]) -> list[WeightConfig]:
    """The row of every relation type, in the order of `TYPES`, with seeds where the store has none; nothing is written.

    The bias and the mark of the last weighing are left out: they are results. Boosts are those of the settings, because
    scoring a path at question time reads them there too.
    """
    held = {str(row["relation_type"]): row for row in scan_rows(store, "weight_config")}
    if strangers := sorted(set(held) - set(TYPES)):
        raise WeightError(
            f"weight_config has a row for {', '.join(strangers)}, which is not a relation type "
            f"({', '.join(TYPES)}); correct or delete the row"
        )
    return [_row(kind, held.get(str(kind)), boosts[kind]) for kind in RelationType]


def store_config(store: RowStore) -> list[WeightConfig]:
    """The rows as they are, in key order."""
    return from_rows(WeightConfig, scan_rows(store, "weight_config"))


def _row(kind: RelationType, held: dict[str, Any] | None, boost: float) -> WeightConfig:
    given = {} if held is None else orjson.loads(held["coefficients"])
    if strangers := sorted(set(given) - {*PARTS, BIAS}):
        raise WeightError(f"weight_config/{kind} gives a coefficient for {strangers[0]}; there are {', '.join(PARTS)}")
    coefficients = {
        part: _json_number(_number(kind, part, given.get(part, COEFFICIENTS[part]), 0.0, _MAX)) for part in PARTS
    }
    prior, tau = SEEDS[kind] if held is None else (held["type_prior"], held["tau_days"])
    return WeightConfig(
        key=str(kind),
        relation_type=str(kind),
        type_prior=round(_number(kind, "type_prior", prior, 0.0, 1.0), PART_DECIMALS),
        tau_days=_number(kind, "tau_days", tau, 1.0, _MAX),
        relation_boost=boost,
        coefficients=coefficients,
    )


def _number(kind: RelationType, name: str, value: object, low: float, high: float) -> float:
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not low <= number <= high:
        raise WeightError(
            f"weight_config/{kind}: {name} is {value!r}; it must be a number from {low:g} to {high:g}: "
            "correct it, or delete the row to have it seeded"
        )
    return number


def _json_number(value: float) -> float:
    """The number as JSON spells it in every store: 4 and not 4.0."""
    return int(value) if value.is_integer() else value


_COLUMNS = {
    "relations": (
        "_key", "_from", "_to", "type", "created", "evidence_count", "strength",
        "weight", "weight_components", "cost", "learned", "sim",
    ),
    "mentions": ("_key", "_to", "count", "positions", "weight", "learned"),
}  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_edges(store: RowStore, collection: str) -> pa.Table:
    """What weighing reads and writes of every relation or mention, in key order."""
    return read_columns(store, collection, _COLUMNS[collection])


def type_codes(relations: pa.Table) -> Codes:
    """The place of each relation's type in `TYPES`; a type that has none is an error, never a default."""
    found = pc.index_in(relations.column("type"), value_set=pa.array(TYPES))
    if found.null_count:
        row = pc.index(pc.is_null(found), True).as_py()
        key, kind = (relations.column(name)[row].as_py() for name in ("_key", "type"))
        raise WeightError(
            f"relations/{key} is of type {kind!r}, which has no prior and no boost; the types are {', '.join(TYPES)}"
        )
    codes: Codes = integers(found, 0).astype(np.uint8)
    return codes


def ages(relations: pa.Table, as_of: datetime) -> tuple[Longs, Flags]:
    """Whole days from each relation's event date to `as_of`, and which have a date; the others count 0 here."""
    created = relations.column("created")
    day = pc.cast(pc.floor_temporal(created, unit="day"), pa.int64())
    days = integers(day, 0) // 86_400_000_000
    return (as_of - _EPOCH).days - days, pc.is_valid(created).to_numpy()


QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
BINS = 20  # of [0, 1]
_DECIMALS = 6
_OF_THIS_RUN = ("changed", "seconds", "skipped", "why")


def lasting(report: Report) -> dict[str, Any]:
    """What is a function of the weights alone, for the registered file: no time, nothing about this run."""
    return {name: value for name, value in report.items() if name not in _OF_THIS_RUN}


def by_type(weights: Floats, types: Codes) -> dict[str, dict[str, float]]:
    """How many relations of each type there are and what they weigh on average; types without any are left out."""
    count = np.bincount(types, minlength=len(TYPES))
    total = np.bincount(types, weights=weights, minlength=len(TYPES))
    return {
        kind: {"count": int(count[code]), "mean": round(float(total[code] / count[code]), _DECIMALS)}
        for code, kind in enumerate(TYPES)
        if count[code]
    }


# The stage `weights`: every relation and mention is weighed from its components, and what changed is written. One
# transaction holds the rows, `weight_config` and the ledger's record: a killed weighing has not happened.
VERSION = 3  # raise it with any change of what is computed: the next build weighs every edge again
COLLECTIONS = ("relations", "mentions", "weight_config", "build_stages")

_BATCH_ROWS = 262_144  # rows in key order are spread over the whole adjacency: few large batches touch it less
_MARK_DIGITS = 24
_SIMILAR = TYPES.index(RelationType.SIMILAR_TO)


def weigh(context: BuildContext, as_of: datetime, inputs: str = "") -> dict[str, Any]:
    """Weigh every relation and mention as of a week, unless nothing they depend on has changed; the report.

    What judged answers taught is added to the logit of a weight, and kept beside its components.

    `inputs` is a digest of everything upstream, by default that of the derivation. `as_of` counts to the week, so that
    a build of the next night writes only what changed.

    In the report `data_hash` stands for everything the weights were made from, `neutral` is what an unknown similarity
    or date counted, `learned` what judged answers taught. `histograms` counts values in `BINS` equal bins of [0, 1]:
    weights of relations and mentions, and each component.
    """
    started = time.perf_counter()
    store, path, week = context.store, context.path, week_of(as_of)
    config, judged = read_config(store, path.relation_boost), judge_digest(store)
    digest = _digest_inputs(context, inputs or derivation(context), config, week, judged)
    done = build_state.complete(store, build_state.WEIGHTS)
    if done is not None and done.digest == digest:
        why = "nothing that weights depend on has changed"
        unchanged = {"changed": {"relations": 0, "mentions": 0}, "seconds": 0.0, "skipped": True, "why": why}
        return {**done.report, **unchanged}
    entities = read_columns(store, "entities", ["_key", "embedding", "embedding_model", "metadata"])
    relations, mentions = read_edges(store, "relations"), read_edges(store, "mentions")
    context.progress("weights", 1, 3)
    known, types = ids("entities", column(entities, "_key")), type_codes(relations)
    sim, parts, neutral = _weight_parts(relations, types, known, vectors_of(entities, context.model), config, week)
    sums = weights.logits(parts, types, {part: _singles([row.coefficients[part] for row in config]) for part in PARTS})
    bias, named = weights.bias_for(sums), _weigh_mentions(mentions, entities, known)
    keys = {"relations": relations.column("_key"), "mentions": mentions.column("_key")}
    before = {"relations": weights.squash(sums, bias).astype(np.float64), "mentions": named}
    offsets, learned = learn_from_use(
        store, {name: (keys[name], one) for name, one in before.items()}, context.learning, judged
    )
    # The bias is that of the parts, so one edge's lesson moves no other.
    weighed = weights.squash(sums + offsets["relations"].astype(np.float32), bias)
    stored = {"relations": weighed.astype(np.float64), "mentions": shift(named, offsets["mentions"])}
    context.progress("weights", 2, 3)
    shown = {name: _decimals(values) for name, values in parts.items()}
    boosts = _singles([row.relation_boost for row in config])
    length = weights.costs(weighed, types, boosts, path.eps).astype(np.float64)
    components = pa.StructArray.from_arrays([*map(pa.array, shown.values())], [*shown])
    measured = {"weight_components": components, "cost": length, "sim": pa.array(_decimals(sim), from_pandas=True)}
    changes = {}
    for name, held, more in (("relations", relations, measured), ("mentions", mentions, {})):
        own = pa.array(offsets[name], mask=offsets[name] == 0.0)  # nothing where nothing was learned
        now = pa.table({"_key": held["_key"], "weight": stored[name], "learned": own, **more})
        changes[name] = changed_rows(held, now)
    generation = generation_of(*((keys[name], values) for name, values in stored.items()))
    report = {
        "as_of": iso(week),
        "data_hash": digest,
        "generation": generation,
        "bias": bias,
        "neutral": neutral,
        **_figures(stored, shown, types),
        "learned": learned,
        "changed": {name: one.num_rows for name, one in changes.items()},
        "seconds": round(time.perf_counter() - started, 3),
        "skipped": False,
        "why": "",
    }
    result = {"snapshot": generation[:_MARK_DIGITS], "updated": week}  # with the bias: what a row tells of a weighing
    with_bias = {BIAS: _json_number(bias)}
    after = [row.model_copy(update={"coefficients": row.coefficients | with_bias, **result}) for row in config]
    write_weights(store, changes, after, digest, generation, week, report)
    context.progress("weights", 3, 3)
    return report


def _digest_inputs(
    context: BuildContext, inputs: str, config: Sequence[WeightConfig], week: datetime, judged: str
) -> str:
    """One hash over everything that weights depend on."""
    rules = {
        "boosts": {str(kind): boost for kind, boost in context.path.relation_boost.items()},
        "eps": context.path.eps,
        "learning": context.learning.model_dump(exclude={"explore", "explore_seed"}),  # of answering, not of weighing
    }
    rows = [row.model_dump() for row in config]
    return build_state.digest_of(inputs, rules, rows, iso(week), context.model, judged, VERSION)


def _weigh_mentions(mentions: pa.Table, entities: pa.Table, known: pa.Array) -> Floats:
    """The weight of each mention; `known` are the ids of the entities."""
    origins = [orjson.loads(text or "{}").get("origin") for text in entities.column("metadata").to_pylist()]
    is_term = at(
        np.array([one == ["term"] for one in origins], np.bool_), places_of(mentions.column("_to"), known), False
    )
    counts = integers(mentions.column("count"), 0)
    # What the title or the source itself mentions is counted, but stands nowhere in the text.
    in_title = counts > integers(pc.list_value_length(mentions.column("positions")), 0)
    return weights.weigh_mentions(counts, in_title, is_term).astype(np.float64)


def _figures(stored: Mapping[str, Floats], shown: Mapping[str, Floats], types: Codes) -> dict[str, Any]:
    """How many weights there are and how they are spread."""
    quantiles = np.quantile(stored["relations"], QUANTILES) if len(types) else ()
    spread = zip(QUANTILES, quantiles, strict=False)
    return {
        "rows": {name: len(one) for name, one in stored.items()},
        "quantiles": {f"{share:g}": round(float(one), _DECIMALS) for share, one in spread},
        "types": by_type(stored["relations"], types),
        "histograms": {
            name: np.histogram(one, BINS, (0.0, 1.0))[0].tolist() for name, one in {**stored, **shown}.items()
        },
    }


def write_weights(
    store: GraphStore,
    changes: Mapping[str, pa.Table],
    config: Sequence[WeightConfig],
    digest: str,
    generation: str,
    as_of: datetime,
    report: Mapping[str, Any],
) -> None:
    """Changed rows of relations and mentions, the configuration and the ledger's record, in one transaction."""
    with store.bulk(COLLECTIONS) as inside:
        for name, rows in changes.items():
            inside.patch(name, iter(rows.combine_chunks().to_batches(max_chunksize=_BATCH_ROWS)))
        inside.upsert("weight_config", to_table(WeightConfig, config))
        build_state.record(inside, build_state.WEIGHTS, digest, generation, as_of, report)


def week_of(as_of: datetime) -> datetime:
    """Monday of that week in UTC: a day ages nothing that matters, and every weight would be written every night."""
    if as_of.tzinfo is None:
        raise WeightError(f"as_of is {as_of.isoformat()}, which has no time zone; give an aware datetime")
    day = as_of.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return day - timedelta(days=day.weekday())


def generation_of(*edges: tuple[pa.ChunkedArray, Floats]) -> str:
    """One hash over the keys and weights of several collections, each in key order."""
    digest = hashlib.sha256()
    for keys, weighed in edges:
        digest.update("\n".join(keys.to_pylist()).encode())
        digest.update(weighed.astype("<f8").tobytes())
    return digest.hexdigest()


def _weight_parts(
    relations: pa.Table,
    types: Codes,
    entities: pa.Array,
    vectors: Singles,
    config: Sequence[WeightConfig],
    day: datetime,
) -> tuple[Singles, dict[str, Singles], dict[str, float]]:
    """The measured similarity of relations, what each part of a weight counts, and what an unknown one counts.

    `entities` are the ids of all entities, `vectors` a row each, zero for none. A similarity of NaN was not measured.
    """
    strength = numbers(relations.column("strength"))
    measured = (types == _SIMILAR) & ~np.isnan(strength)  # such a pair was found by its cosine, which is its strength
    sim = np.where(measured, weights.rounded(strength), weights.similarity(vectors, *place_ends(relations, entities)))
    count = integers(relations.column("evidence_count"), 0)
    rated = np.where(types == _SIMILAR, np.nan, strength).astype(np.float32)
    age, dated = ages(relations, day)
    tau_days = np.array([row.tau_days for row in config])
    fresh = np.where(dated, weights.freshness(age, types, tau_days), np.float32(np.nan))
    neutral = {"sim": weights.neutral_of(sim), "freshness": weights.neutral_of(fresh)}
    parts = {
        "sim": weights.fill(sim, neutral["sim"]),
        "type_prior": _singles([row.type_prior for row in config]).take(types),
        "evidence": weights.support(count, rated, EVIDENCE_FULL),
        "freshness": weights.fill(fresh, neutral["freshness"]),
    }
    return sim, parts, neutral


def _singles(values: Sequence[float]) -> Singles:
    """What each relation type has, by its code."""
    return np.array(values, dtype=np.float32)


def changed_rows(stored: pa.Table, new: pa.Table) -> pa.Table:
    """The new rows, given in the order of the stored ones, that differ from them in any number; null is NaN."""
    columns = [name for name in new.column_names if name != "_key"]
    differs = np.zeros(new.num_rows, np.bool_)
    for pair in zip(*(table.select(columns).flatten().columns for table in (stored, new)), strict=True):
        before, after = map(numbers, pair)
        differs |= (before != after) & ~(np.isnan(before) & np.isnan(after))
    return new.filter(pa.array(differs))


def _decimals(parts: Singles) -> Floats:
    """Parts as people read them: 0.8 and not the float32 nearest to it, which is what 0.8 becomes again."""
    exact: Floats = parts.astype(np.float64)
    return exact.round(PART_DECIMALS)


def _describe(report: Report) -> str:
    weighed = f"{sum(report['changed'].values()):,} weights changed, bias {report['bias']:.3f}"
    return "; ".join(filter(None, (str(report["why"]) or weighed, describe_learning(report["learned"]))))


STAGE = Stage(
    "weights",
    "weigh edges",
    lambda context, ingest, night: weigh(context, night.as_of),
    _describe,
    reads=(*EDGES, "query_logs"),
    writes=("mentions", "relations", "weight_config"),
    needs=("edges",),
    contracts=("weights",),
    made_of={
        "relations.sim": ("entities.embedding",),
        "relations.weight": ("relations.type", "relations.evidence_count", "relations.created", "query_logs.feedback"),
        "relations.cost": ("relations.type", "relations.evidence_count", "relations.created", "query_logs.feedback"),
        "mentions.weight": ("mentions.count", "query_logs.feedback"),
    },
    figures=("rows", "changed", "quantiles", "types", "seconds"),
    ledger=build_state.WEIGHTS,
    rows="types",
)
