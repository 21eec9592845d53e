"""Weigh every edge: by which rules, from which columns, and what changed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades import stage_ledger
from hades.errors import HadesError
from hades.night.columns import at, column, ids, numbers, place_ends
from hades.night.context import BuildContext, derivation, read_columns, vectors_of
from hades.night.stage import EDGES, NightStage, Report
from hades.night.weights.feedback import judge_digest, learn_from_use, shift
from hades.night.weights.feedback import tell as describe_learning
from hades.ports.store import GraphStore, RowStore, scan_rows
from hades.settings.tree import PathSettings
from hades.snapshot.files import integers, places_of
from models import weights
from models.arrays import Flags, Floats, Longs, Singles
from models.weights import PART_DECIMALS, PARTS, Codes
from schemas.ids import iso
from schemas.nodes import RelationType
from schemas.record import JsonObject, from_rows, to_table
from schemas.telemetry import WeightConfig

# What weighing goes by: the priors and boosts of the settings, the rows of `weight_config` that a
# person wrote, and how much counts as much.


class WeightError(HadesError):
    """Weights that cannot be computed, logged or restored: what was expected and what to do."""


_YEAR = 365.0
# In how many days an edge fades, by type: names and code drift slowly.
DEFAULT_TAU_DAYS: Mapping[RelationType, float] = {
    RelationType.IMPLEMENTS: 5 * _YEAR,
    RelationType.EXTENDS: 5 * _YEAR,
    RelationType.DERIVES_FROM: 5 * _YEAR,
    RelationType.CITES: 5 * _YEAR,
    RelationType.REFERS_TO: 5 * _YEAR,
    RelationType.COREF: 20 * _YEAR,
    RelationType.RELATED_TO: 3 * _YEAR,
    RelationType.SIMILAR_TO: 20 * _YEAR,
}
EVIDENCE_FULL = 15  # places that state an edge, from which on more of them support it no better
COEFFICIENTS: Mapping[str, float] = {
    "sim": 4.0,
    "type_prior": 3.0,
    "evidence": 3.0,
    "freshness": 1.0,
}

# `weight_config`: one row a relation type. A value in it that differs from the default of the last
# weighing is a person's and is kept; any other follows the default, also one that changes.
BIAS = "bias"  # kept beside the coefficients, so that a row tells all that a weight was made with
# A type's code is its place here.
TYPES: tuple[str, ...] = tuple(str(kind) for kind in RelationType)
_MAX = 1e6


def read_config(store: RowStore, path: PathSettings) -> list[WeightConfig]:
    """The row of every relation type, in the order of `TYPES`: what a person wrote, else the
    default; nothing is written.

    The bias and the mark of the last weighing are left out: they are results. Boosts are those of
    the settings, because scoring a path at question time reads them there too.
    """
    stored = {}
    for row in scan_rows(store, "weight_config"):
        stored[str(row["relation_type"])] = row

    if strangers := sorted(set(stored) - set(TYPES)):
        raise WeightError(
            f"weight_config has a row for {', '.join(strangers)}, which is not a relation type "
            f"({', '.join(TYPES)}); correct or delete the row"
        )

    last_record = stage_ledger.last_completion(store, stage_ledger.WEIGHTS)
    defaults = default_rows(path)
    if last_record is None:
        written = defaults
    else:
        written = last_record.report.get("defaults", defaults)

    rows = []
    for kind in TYPES:
        values = _own_values(stored.get(kind), written.get(kind, {}))
        rows.append(_row(kind, values, defaults[kind], path))

    return rows


def complete_config(
    rows: Sequence[WeightConfig],
    path: PathSettings,
) -> list[WeightConfig]:
    """The row of every relation type, in the order of `TYPES`: these, and the default of a type
    that they lack.
    """
    stored = {row.relation_type: row for row in rows}
    defaults = default_rows(path)

    config = []
    for kind in TYPES:
        config.append(stored.get(kind) or _row(kind, {}, defaults[kind], path))

    return config


Values = Mapping[str, Any]  # of a row of `weight_config`: type_prior, tau_days and coefficients


def default_rows(path: PathSettings) -> dict[str, Values]:
    """What each relation type has where no person wrote anything; priors are those of the
    settings.
    """
    defaults: dict[str, Values] = {}
    for kind, prior in path.relation_prior.items():
        defaults[str(kind)] = {
            "type_prior": round(prior, PART_DECIMALS),
            "tau_days": DEFAULT_TAU_DAYS[kind],
            "coefficients": dict(COEFFICIENTS),
        }

    return defaults


def _own_values(stored: Values | None, written: Values) -> Values:
    """What a person wrote into a stored row: all that is not as the last weighing wrote it."""
    if stored is None:
        return {}

    coefficients = orjson.loads(stored["coefficients"])
    changed = _differing(
        coefficients,
        written.get("coefficients", {}),
        coefficients,
    )
    values = _differing(
        stored,
        written,
        ("type_prior", "tau_days"),
    )
    return {**values, "coefficients": changed}


def _differing(
    stored: Values,
    written: Values,
    names: Iterable[str],
) -> JsonObject:
    return {name: stored[name] for name in names if stored[name] != written.get(name)}


def store_config(store: RowStore) -> list[WeightConfig]:
    """The rows as they are, in key order."""
    return from_rows(WeightConfig, scan_rows(store, "weight_config"))


def _row(
    kind: str,
    stored: Values,
    default: Values,
    path: PathSettings,
) -> WeightConfig:
    values = {**default, **stored}
    merged = {
        **default["coefficients"],
        **stored.get("coefficients", {}),
    }
    if strangers := sorted(set(merged) - {*PARTS, BIAS}):
        raise WeightError(
            f"weight_config/{kind} gives a coefficient for {strangers[0]}; there are "
            f"{', '.join(PARTS)}"
        )

    coefficients = {}
    for part in PARTS:
        coefficients[part] = _json_number(_number(kind, part, merged[part], 0.0, _MAX))

    prior = _number(
        kind,
        "type_prior",
        values["type_prior"],
        0.0,
        1.0,
    )
    return WeightConfig(
        key=kind,
        relation_type=kind,
        type_prior=round(prior, PART_DECIMALS),
        tau_days=_number(
            kind,
            "tau_days",
            values["tau_days"],
            1.0,
            _MAX,
        ),
        relation_boost=path.relation_boost[RelationType(kind)],
        coefficients=coefficients,
    )


def _number(
    kind: str,
    name: str,
    value: Any,
    low: float,
    high: float,
) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and low <= value <= high:
        return float(value)
    raise WeightError(
        f"weight_config/{kind}: {name} is {value!r}; it must be a number from {low:g} to {high:g}: "
        "correct it, or delete the row to have the default"
    )


def _json_number(value: float) -> float:
    """The number as JSON spells it in every store: 4 and not 4.0."""
    return int(value) if value.is_integer() else value


_COLUMNS = {
    "relations": (
        "_key",
        "_from",
        "_to",
        "type",
        "created",
        "evidence_count",
        "strength",
        "weight",
        "weight_components",
        "cost",
        "learned",
        "sim",
    ),
    "mentions": ("_key", "_to", "count", "positions", "weight", "learned"),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_edges(store: RowStore, collection: str) -> pa.Table:
    """What weighing reads and writes of every relation or mention, in key order."""
    return read_columns(
        store,
        collection,
        _COLUMNS[collection],
    )


def type_codes(relations: pa.Table) -> Codes:
    """The place of each relation's type in `TYPES`; a type that has none is an error, never a
    default.
    """
    type_places = pc.index_in(relations.column("type"), value_set=pa.array(TYPES))
    if type_places.null_count:
        row = pc.index(pc.is_null(type_places), True).as_py()
        key, kind = (relations.column(name)[row].as_py() for name in ("_key", "type"))
        raise WeightError(
            f"relations/{key} is of type {kind!r}, which has no prior and no boost; the types are "
            f"{', '.join(TYPES)}"
        )

    codes: Codes = integers(type_places, 0).astype(np.uint8)
    return codes


def ages(relations: pa.Table, as_of: datetime) -> tuple[Longs, Flags]:
    """Whole days from each relation's event date to `as_of`, and which have a date; the others
    count 0 here.
    """
    created = relations.column("created")
    day = pc.cast(pc.floor_temporal(created, unit="day"), pa.int64())
    days = integers(day, 0) // 86_400_000_000
    return (as_of - _EPOCH).days - days, pc.is_valid(created).to_numpy()


QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
BINS = 20  # of [0, 1]
_DECIMALS = 6
_OF_THIS_RUN = ("changed", "seconds", "skipped", "why")


def lasting(report: Report) -> JsonObject:
    """What is a function of the weights alone, for the registered file: no time, nothing about this
    run.
    """
    return {name: value for name, value in report.items() if name not in _OF_THIS_RUN}


def by_type(weights: Floats, types: Codes) -> dict[str, dict[str, float]]:
    """How many relations of each type there are and what they weigh on average; types without any
    are left out.
    """
    figures = {}
    for code, kind in enumerate(TYPES):
        of_type = weights[types == code]
        if len(of_type):
            mean = round(float(of_type.mean()), _DECIMALS)
            figures[kind] = {"count": len(of_type), "mean": mean}

    return figures


# The stage `weights`: every relation and mention is weighed from its components, and what changed
# is written. One transaction holds the rows, `weight_config` and the ledger's record: a killed
# weighing has not happened.
VERSION = 3  # raise it with any change of what is computed: the next build weighs every edge again
COLLECTIONS = ("relations", "mentions", "weight_config", "build_stages")

# rows in key order are spread over the whole adjacency: few large batches touch it less
_BATCH_ROWS = 262_144
_MARK_DIGITS = 24
_SIMILAR = TYPES.index(RelationType.SIMILAR_TO)


def weigh(
    context: BuildContext,
    as_of: datetime,
    inputs: str = "",
) -> JsonObject:
    """Weigh every relation and mention as of a week, unless nothing they depend on has changed; the
    report.

    What judged answers taught is added to the logit of a weight, and kept beside its components.

    `inputs` is a digest of everything upstream, by default that of the derivation. `as_of` counts
    to the week, so that a build of the next night writes only what changed.

    In the report `data_hash` stands for everything the weights were made from, `neutral` is what an
    unknown similarity or date counted, `learned` what judged answers taught. `histograms` counts
    values in `BINS` equal bins of [0, 1]: weights of relations and mentions, and each component.
    """
    started = time.perf_counter()
    store = context.store
    path = context.path
    week = week_of(as_of)
    config = read_config(store, path)
    judged = judge_digest(store)
    digest = _digest_inputs(
        context,
        inputs or derivation(context),
        config,
        week,
        judged,
    )
    last_record = stage_ledger.last_completion(store, stage_ledger.WEIGHTS)

    if last_record is not None and last_record.digest == digest:
        return {
            **last_record.report,
            "changed": {"relations": 0, "mentions": 0},
            "seconds": 0.0,
            "skipped": True,
            "why": "nothing that weights depend on has changed",
        }

    graph = measure_graph(context, config, week)
    context.progress("weights", 1, 3)
    sums = graph.sums(config)
    bias = weights.bias_for(sums)
    prior_weights = weights.squash(sums, bias).astype(float)
    priors = {
        "relations": (graph.relations.column("_key"), prior_weights),
        "mentions": (graph.mentions.column("_key"), graph.mention_weights),
    }
    # The bias is that of the parts, so one edge's lesson moves no other.
    offsets, learned = learn_from_use(
        store,
        priors,
        context.learning,
        judged,
    )
    rows = graph.rows(config, bias, path.eps, offsets)
    context.progress("weights", 2, 3)
    changes = {
        "relations": changed_rows(graph.relations, rows["relations"]),
        "mentions": changed_rows(graph.mentions, rows["mentions"]),
    }
    generation = generation_of_rows(rows)
    report = {
        "as_of": iso(week),
        "data_hash": digest,
        "generation": generation,
        "bias": bias,
        "neutral": dict(graph.neutral),
        "defaults": default_rows(path),
        **graph.figures(rows),
        "learned": learned,
        "changed": {name: table.num_rows for name, table in changes.items()},
        "seconds": round(time.perf_counter() - started, 3),
        "skipped": False,
        "why": "",
    }
    mark = {
        "snapshot": generation[:_MARK_DIGITS],
        "updated": week,
    }

    weighed = []
    for row in config:
        coefficients = row.coefficients | {BIAS: _json_number(bias)}
        weighed.append(row.model_copy(update={"coefficients": coefficients, **mark}))

    write_weights(
        store,
        changes,
        weighed,
        digest,
        generation,
        week,
        report,
    )
    context.progress("weights", 3, 3)
    return report


def _digest_inputs(
    context: BuildContext,
    inputs: str,
    config: Sequence[WeightConfig],
    week: datetime,
    judged: str,
) -> str:
    """One hash over everything that weights depend on."""
    rules = {
        "boosts": {str(kind): boost for kind, boost in context.path.relation_boost.items()},
        "eps": context.path.eps,
        # Of answering, not of weighing.
        "learning": context.learning.model_dump(exclude={"explore", "explore_seed"}),
    }
    rows = [row.model_dump() for row in config]
    return stage_ledger.digest_of(
        inputs,
        rules,
        rows,
        iso(week),
        context.model,
        judged,
        VERSION,
    )


@dataclass(frozen=True)
class MeasuredGraph:
    """Every relation and mention with what its weight is made of; arrays stand in their order.

    A similarity `sim` of NaN was not measured; `neutral` is what such a one counts.
    """

    relations: pa.Table
    mentions: pa.Table
    types: Codes
    sim: Singles
    parts: Mapping[str, Singles]
    neutral: Mapping[str, float]
    mention_weights: Floats

    def sums(self, config: Sequence[WeightConfig]) -> Singles:
        """The logit of each relation without the bias."""
        counts = {}
        for part in PARTS:
            counts[part] = _singles([row.coefficients[part] for row in config])

        return weights.logits(self.parts, self.types, counts)

    def rows(
        self,
        config: Sequence[WeightConfig],
        bias: float,
        eps: float,
        offsets: Mapping[str, Floats],
    ) -> dict[str, pa.Table]:
        """What weighing writes: weights and all they were made with; `offsets` is what judged
        answers taught.
        """
        lessons = offsets["relations"].astype(np.float32)
        weighed = weights.squash(self.sums(config) + lessons, bias)
        boosts = _singles([row.relation_boost for row in config])

        components = []
        for values in self.parts.values():
            components.append(pa.array(_decimals(values)))

        costs = weights.costs(weighed, self.types, boosts, eps)
        relations = {
            "_key": self.relations.column("_key"),
            "weight": weighed.astype(np.float64),
            "weight_components": pa.StructArray.from_arrays(components, [*self.parts]),
            "cost": costs.astype(np.float64),
            "sim": pa.array(_decimals(self.sim), from_pandas=True),
            "learned": _lessons(offsets["relations"]),
        }
        mentions = {
            "_key": self.mentions.column("_key"),
            "weight": shift(self.mention_weights, offsets["mentions"]),
            "learned": _lessons(offsets["mentions"]),
        }
        return {
            "relations": pa.table(relations),
            "mentions": pa.table(mentions),
        }

    def no_lessons(self) -> dict[str, Floats]:
        """The offsets of weights that nobody's judgements moved."""
        return {
            "relations": np.zeros(self.relations.num_rows),
            "mentions": np.zeros(self.mentions.num_rows),
        }

    def figures(self, rows: Mapping[str, pa.Table]) -> JsonObject:
        """How many weights there are and how they are spread."""
        stored = {name: numbers(table.column("weight")) for name, table in rows.items()}
        quantiles = np.quantile(stored["relations"], QUANTILES) if len(self.types) else ()
        spread = zip(QUANTILES, quantiles, strict=False)
        values = stored | {name: _decimals(part) for name, part in self.parts.items()}

        histograms = {}
        for name, shares in values.items():
            histograms[name] = np.histogram(shares, BINS, (0.0, 1.0))[0].tolist()

        return {
            "rows": {name: len(weighed) for name, weighed in stored.items()},
            "quantiles": {f"{share:g}": round(float(at), _DECIMALS) for share, at in spread},
            "types": by_type(stored["relations"], self.types),
            "histograms": histograms,
        }


def measure_graph(
    context: BuildContext,
    config: Sequence[WeightConfig],
    week: datetime,
    neutral: Mapping[str, float] | None = None,
) -> MeasuredGraph:
    """Read the graph and measure its edges; `neutral` is what an unknown part counts, by default
    the median of the known ones.
    """
    columns = ["_key", "embedding", "embedding_model", "metadata"]
    entities = read_columns(context.store, "entities", columns)
    relations = read_edges(context.store, "relations")
    mentions = read_edges(context.store, "mentions")
    entity_ids = ids("entities", column(entities, "_key"))
    types = type_codes(relations)
    vectors = vectors_of(entities, context.model)
    sim, parts, counted = _weight_parts(
        relations,
        types,
        entity_ids,
        vectors,
        config,
        week,
        neutral,
    )
    mention_weights = _weigh_mentions(mentions, entities, entity_ids)
    return MeasuredGraph(
        relations,
        mentions,
        types,
        sim,
        parts,
        counted,
        mention_weights,
    )


def _lessons(offsets: Floats) -> pa.Array:
    """The column `learned`: nothing where nothing was learned."""
    return pa.array(offsets, mask=offsets == 0.0)


def _weigh_mentions(
    mentions: pa.Table,
    entities: pa.Table,
    entity_ids: pa.Array,
) -> Floats:
    """The weight of each mention; `known` are the ids of the entities."""
    metadata = []
    for text in entities.column("metadata").to_pylist():
        metadata.append(orjson.loads(text or "{}"))

    is_term_entity = np.array([row.get("origin") == ["term"] for row in metadata], np.bool_)
    is_term = at(
        is_term_entity,
        places_of(mentions.column("_to"), entity_ids),
        False,
    )
    counts = integers(mentions.column("count"), 0)
    # What the title or the source itself mentions is counted, but stands nowhere in the text.
    in_title = counts > integers(pc.list_value_length(mentions.column("positions")), 0)
    return weights.weigh_mentions(counts, in_title, is_term).astype(np.float64)


def write_weights(
    store: GraphStore,
    changes: Mapping[str, pa.Table],
    config: Sequence[WeightConfig],
    digest: str,
    generation: str,
    as_of: datetime,
    report: Report,
) -> None:
    """Changed rows of relations and mentions, the configuration and the ledger's record, in one
    transaction.
    """
    with store.bulk(COLLECTIONS) as inside:
        for name, rows in changes.items():
            inside.patch(
                name,
                iter(rows.combine_chunks().to_batches(max_chunksize=_BATCH_ROWS)),
            )

        inside.upsert("weight_config", to_table(WeightConfig, config))
        stage_ledger.record(
            inside,
            stage_ledger.WEIGHTS,
            digest,
            generation,
            as_of,
            report,
        )


def week_of(as_of: datetime) -> datetime:
    """Monday of that week in UTC: a day ages nothing that matters, and every weight would be
    written every night.
    """
    if as_of.tzinfo is None:
        raise WeightError(
            f"as_of is {as_of.isoformat()}, which has no time zone; give an aware datetime"
        )

    day = as_of.astimezone(UTC).replace(
        hour=0,
        minute=0,
        second=0,
        microsecond=0,
    )
    return day - timedelta(days=day.weekday())


def generation_of_rows(rows: Mapping[str, pa.Table]) -> str:
    """One hash over the keys and weights of several collections, each in key order."""
    digest = hashlib.sha256()
    for table in rows.values():
        digest.update("\n".join(table.column("_key").to_pylist()).encode())
        digest.update(numbers(table.column("weight")).astype("<f8").tobytes())

    return digest.hexdigest()


def _weight_parts(
    relations: pa.Table,
    types: Codes,
    entities: pa.Array,
    vectors: Singles,
    config: Sequence[WeightConfig],
    day: datetime,
    neutral: Mapping[str, float] | None,
) -> tuple[Singles, dict[str, Singles], Mapping[str, float]]:
    """The measured similarity of relations, what each part of a weight counts, and what an unknown
    one counts.

    `entities` are the ids of all entities, `vectors` a row each, zero for none. A similarity of NaN
    was not measured.
    """
    strength = numbers(relations.column("strength"))
    # A similar pair was found by its cosine, which is its strength.
    measured = (types == _SIMILAR) & ~np.isnan(strength)
    cosines = weights.similarity(vectors, *place_ends(relations, entities))
    sim = np.where(
        measured,
        weights.rounded(strength),
        cosines,
    )
    count = integers(relations.column("evidence_count"), 0)
    rated_strength = np.where(types == _SIMILAR, np.nan, strength).astype(np.float32)
    age, dated = ages(relations, day)
    tau_days = np.array([row.tau_days for row in config])
    fresh = np.where(
        dated,
        weights.freshness(age, types, tau_days),
        np.float32(np.nan),
    )

    if neutral is None:
        neutral = {
            "sim": weights.neutral_of(sim),
            "freshness": weights.neutral_of(fresh),
        }

    parts = {
        "sim": weights.fill(sim, neutral["sim"]),
        "type_prior": _singles([row.type_prior for row in config]).take(types),
        "evidence": weights.support(
            count,
            rated_strength,
            EVIDENCE_FULL,
        ),
        "freshness": weights.fill(fresh, neutral["freshness"]),
    }
    return sim, parts, neutral


def _singles(values: Sequence[float]) -> Singles:
    """What each relation type has, by its code."""
    return np.array(values, dtype=np.float32)


def changed_rows(stored: pa.Table, new: pa.Table) -> pa.Table:
    """The new rows, given in the order of the stored ones, that differ from them in any number;
    null is NaN.
    """
    new_numbers = new.drop_columns(["_key"]).flatten()
    stored_numbers = stored.select(new.drop_columns(["_key"]).column_names).flatten()
    differs = np.zeros(new.num_rows, np.bool_)

    for name in new_numbers.column_names:
        old_values = numbers(stored_numbers[name])
        new_values = numbers(new_numbers[name])
        differs |= (old_values != new_values) & ~(np.isnan(old_values) & np.isnan(new_values))

    return new.filter(pa.array(differs))


def _decimals(parts: Singles) -> Floats:
    """Parts as people read them: 0.8 and not the float32 nearest to it, which is what 0.8 becomes
    again.
    """
    exact: Floats = parts.astype(np.float64)
    return exact.round(PART_DECIMALS)


def _describe(report: Report) -> str:
    weighed = f"{sum(report['changed'].values()):,} weights changed, bias {report['bias']:.3f}"
    parts = (str(report["why"]) or weighed, describe_learning(report["learned"]))
    return "; ".join(filter(None, parts))


STAGE = NightStage(
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
        "relations.weight": (
            "relations.type",
            "relations.evidence_count",
            "relations.created",
            "query_logs.feedback",
        ),
        "relations.cost": (
            "relations.type",
            "relations.evidence_count",
            "relations.created",
            "query_logs.feedback",
        ),
        "mentions.weight": ("mentions.count", "query_logs.feedback"),
    },
    figures=(
        "rows",
        "changed",
        "quantiles",
        "types",
        "seconds",
        "learned.turns",
        "learned.pairs",
        "learned.moved",
        "learned.held_out",
    ),
    ledger=stage_ledger.WEIGHTS,
    rows="types",
)
