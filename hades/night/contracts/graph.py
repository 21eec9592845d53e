"""The contracts `edges`, `hierarchy` and `weights`: what joins what, in which topics, at which
weight.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from hades import stage_ledger
from hades.ingest import manifest
from hades.night.columns import (
    Frames,
    at,
    close,
    column,
    count,
    flags,
    ids,
    lengths_of,
    numbers,
    per_row,
    place_ends,
    read,
    spans_inside,
    texts_at,
    with_columns,
)
from hades.night.contracts.rule import (
    between,
    contract,
    equal,
    give,
    later,
    one_of,
    unique,
)
from hades.night.contracts.texts import written_rows
from hades.ports.store import RowStore
from hades.snapshot.files import integers, places_of
from models.arrays import Flags, Floats, Longs
from schemas.catalogue import declared
from schemas.edges import ClusterEdgeType, allows
from schemas.nodes import EntityType, RelationType

EDGES_CONTRACT = contract(
    "edges",
    "relations, mentions and the edges between texts and code",
    "run `hades repair edges`",
    {
        "relations": [
            (
                "relation_type_known",
                "a relation is of a known type",
                one_of("type", RelationType),
            ),
            ("ends_exist", "both ends of a relation are stored", "_from", "_to"),
            (
                "endpoint_types_allowed",
                "a relation joins entity types that its type allows",
                "type",
                "from_type",
                "to_type",
            ),
            ("no_self_loop", "a relation joins two different entities", "_from", "_to"),
            (
                "provenance_given",
                "a relation names where it was read; only similar_to is measured instead",
                "type",
            ),
            (
                "provenance_document_exists",
                "the document a relation was read in is stored",
                "document",
            ),
            (
                "span_inside_document",
                "a relation's span lies inside the document it was read in",
                "document",
                "span",
                "document_length",
            ),
            (
                "evidence_counted",
                "a relation is stated in at least one place",
                between("evidence_count", 1),
            ),
            (
                "strength_in_unit_interval",
                "a strength lies between 0 and 1",
                between("strength", 0, 1),
            ),
            (
                "valid_interval_ordered",
                "a relation begins to be true before it stops",
                later("valid_until", "valid_from"),
            ),
            (
                "known_interval_ordered",
                "a relation is recorded before it is withdrawn",
                later("retracted_at", "recorded_at"),
            ),
        ],
        "entities": [
            (
                "out_degree_counted",
                "deg_out is how many relations leave the entity",
                "deg_out",
                "relations_out",
            ),
        ],
        "mentions": [
            ("mention_ends_exist", "both ends of a mention are stored", "_from", "_to"),
            (
                "mention_inside_chunk",
                "a mention stands inside its chunk",
                "_from",
                "last_position",
                "chunk_length",
            ),
            (
                "mention_count_covers_positions",
                "a mention counts at least the places it lists",
                "count",
                "positions",
            ),
        ],
        "other_edges": [
            (
                "other_ends_exist",
                "both ends of an edge between texts, files and functions are stored",
                "_from",
                "_to",
            ),
        ],
        "derived_rows": [
            (
                "derived_rows_stored",
                "every row that was derived from the documents is stored",
                equal("stored", "written"),
                "stored",
                "written",
            ),
        ],
    },
)
_OTHER = ("references", "contains", "imports", "chunk_code_edges")
_TIMES = ("valid_from", "valid_until", "recorded_at", "retracted_at")
_RELATION = ("_from", "_to", "type", "provenance", "evidence_count", "strength", *_TIMES)
_TYPES, _ENTITY_TYPES = tuple(RelationType), tuple(EntityType)
# By relation type, tail type, head type; the last place of each axis is an unknown type, which is
# another rule's.
_ALLOWED = np.ones(
    (len(_TYPES) + 1, len(_ENTITY_TYPES) + 1, len(_ENTITY_TYPES) + 1),
    dtype=np.bool_,
)
for places in np.ndindex(
    len(_TYPES),
    len(_ENTITY_TYPES),
    len(_ENTITY_TYPES),
):
    _ALLOWED[places] = allows(
        _TYPES[places[0]],
        _ENTITY_TYPES[places[1]],
        _ENTITY_TYPES[places[2]],
    )


def edge_frames(store: RowStore) -> Frames:
    """Relations, mentions and the other edges with what is known of their ends."""
    entities = read(store, "entities", "type", "deg_out")
    relations = read(store, "relations", *_RELATION)
    entity_ids = ids("entities", column(entities, "_key"))
    tails, heads = place_ends(relations, entity_ids)
    leaving = np.bincount(tails[tails >= 0], minlength=entities.num_rows).astype(np.int64)
    matches = integers(column(entities, "deg_out"), -1) == leaving
    return Frames(
        {
            "relations": _relations(
                store,
                relations,
                column(entities, "type"),
                tails,
                heads,
            ),
            "entities": with_columns(
                entities,
                relations_out=leaving,
                out_degree_counted=matches,
            ),
            "mentions": _mentions(store, entity_ids),
            "other_edges": _other_edges(store),
            "derived_rows": written_rows(manifest.count_derived_rows(store)),
        }
    )


def _relations(
    store: RowStore,
    table: pa.Table,
    types: pa.Array,
    tails: Longs,
    heads: Longs,
) -> pa.Table:
    provenance = column(table, "provenance")
    kinds = column(table, "type")
    document = pc.struct_field(provenance, "doc")
    span = pc.struct_field(provenance, "span")
    lengths = lengths_of(store, "documents", document)
    exists = lengths >= 0
    is_read = flags(pc.is_valid(document))
    is_measured = flags(pc.equal(kinds, str(RelationType.SIMILAR_TO)))
    codes = places_of(types, pa.array(map(str, _ENTITY_TYPES)))
    relation = places_of(kinds, pa.array(map(str, _TYPES)))
    is_loop = pc.equal(column(table, "_from"), column(table, "_to"))
    return with_columns(
        table.drop_columns(["provenance"]),
        from_type=texts_at(types, tails),
        to_type=texts_at(types, heads),
        ends_exist=(tails >= 0) & (heads >= 0),
        endpoint_types_allowed=_ALLOWED[relation, at(codes, tails, -1), at(codes, heads, -1)],
        no_self_loop=flags(pc.invert(is_loop)),
        document=document,
        span=span,
        document_length=lengths,
        provenance_given=is_read | is_measured,
        provenance_document_exists=exists | ~is_read,
        span_inside_document=spans_inside(span, lengths) | ~exists,
    )


def _mentions(store: RowStore, entity_ids: pa.Array) -> pa.Table:
    table = read(
        store,
        "mentions",
        "_from",
        "_to",
        "count",
        "positions",
    )
    lengths = lengths_of(
        store,
        "doc_chunks",
        column(table, "_from"),
    )
    positions = column(table, "positions")
    flat = integers(pc.list_flatten(positions), 0)
    first = per_row(positions, flat, np.minimum, 0)
    last = per_row(positions, flat, np.maximum, 0)
    listed = integers(pc.list_value_length(positions), 0)
    return with_columns(
        table,
        mention_ends_exist=(lengths >= 0) & (places_of(column(table, "_to"), entity_ids) >= 0),
        last_position=last,
        chunk_length=np.maximum(lengths, 0),
        mention_inside_chunk=((first >= 0) & (last < lengths)) | (lengths < 0) | (listed == 0),
        mention_count_covers_positions=integers(column(table, "count"), 0) >= np.maximum(listed, 1),
    )


def _other_edges(store: RowStore) -> pa.Table:
    """All smaller edge collections in one frame; keys are ids, for two collections may share a
    key.
    """
    known = cache(lambda collection: ids(collection, column(read(store, collection), "_key")))

    parts = []
    for name in _OTHER:
        table = read(store, name, "_from", "_to")
        has_ends = _have_ends(known, name, table)
        renamed = table.set_column(
            0,
            "_key",
            ids(name, column(table, "_key")),
        )
        parts.append(with_columns(renamed, other_ends_exist=has_ends))

    return pa.concat_tables(parts).combine_chunks()


def _have_ends(
    known: Callable[[str], pa.Array],
    collection: str,
    edges: pa.Table,
) -> Flags:
    """Which edges join nodes of collections that such an edge may join; `known` gives the ids of a
    collection.
    """
    ends = declared(collection).edge
    assert ends is not None
    has_ends = np.zeros((2, edges.num_rows), dtype=np.bool_)

    for name in dict.fromkeys((*ends.sources, *ends.targets)) if edges.num_rows else ():
        has_ends |= np.array(place_ends(edges, known(name))) >= 0

    both: Flags = has_ends[0] & has_ends[1]
    return both


HIERARCHY_CONTRACT = contract(
    "hierarchy",
    "topics, super-topics and who belongs to them",
    "run `hades repair hierarchy`",
    {
        "clusters": [
            ("level_known", "a topic is of level 1 or 2", one_of("level", [1, 2])),
            (
                "size_counts_members",
                "a topic's size is how many entities belong to it",
                "level",
                "size",
                "members",
            ),
            ("topic_not_empty", "something belongs to every topic", "level", "members"),
            (
                "one_super_topic",
                "a level 1 topic has exactly one super-topic, where there are any",
                "level",
                "super_topics",
            ),
            (
                "parent_agrees_with_edge",
                "parent names the super-topic that the topic's edge leads to",
                "level",
                "parent",
                "edge_parent",
            ),
            ("centroid_finite", "a topic's centroid holds finite numbers only", "level"),
        ],
        "cluster_edges": [
            ("ends_exist", "both ends of a cluster edge are stored", "_from", "_to"),
            (
                "edges_point_up",
                "a cluster edge leads one level up; siblings stay on theirs",
                "type",
                "from_level",
                "to_level",
            ),
            ("no_cycle", "nothing belongs to itself, however many steps away", "_from", "_to"),
        ],
        "entities": [
            ("one_topic_per_entity", "an entity belongs to exactly one level 1 topic", "topics"),
            (
                "cluster_id_is_topic",
                "cluster_id names a level 1 topic that is stored",
                "cluster_id",
            ),
            (
                "cluster_id_agrees_with_edge",
                "cluster_id names the topic that the entity's edge leads to",
                "cluster_id",
                "edge_topic",
            ),
        ],
    },
)
_NOWHERE = -1


def hierarchy_frames(store: RowStore) -> Frames:
    """Topics, the edges up to them, and entities with the topic they say and the topic their edge
    leads to.
    """
    clusters = read(
        store,
        "clusters",
        "level",
        "size",
        "parent",
        "centroid",
    )
    if (
        not clusters.num_rows
        and stage_ledger.last_completion(store, stage_ledger.HIERARCHY) is None
    ):
        return Frames({}, ("no topics have been built yet",))

    entities = read(store, "entities", "cluster_id")
    entity_ids = ids("entities", column(entities, "_key"))
    cluster_ids = ids("clusters", column(clusters, "_key"))
    levels = integers(column(clusters, "level"), _NOWHERE)
    stored_edges = read(store, "cluster_edges", "_from", "_to", "type")
    edges = _cluster_edges(
        stored_edges,
        entity_ids,
        cluster_ids,
        levels,
    )
    part_of = _of_type(edges, ClusterEdgeType.PART_OF)
    frames = {
        "clusters": _clusters(clusters, levels, edges, cluster_ids),
        "cluster_edges": edges,
        "entities": _placed_entities(
            entities,
            entity_ids,
            clusters,
            levels,
            part_of,
        ),
    }
    return Frames(frames)


def _of_type(edges: pa.Table, kind: ClusterEdgeType) -> pa.Table:
    return edges.filter(pc.equal(edges.column("type"), str(kind))).combine_chunks()


def _cluster_edges(
    edges: pa.Table,
    entity_ids: pa.Array,
    cluster_ids: pa.Array,
    levels: Longs,
) -> pa.Table:
    tails = column(edges, "_from")
    heads = column(edges, "_to")
    from_entity = places_of(tails, entity_ids) >= 0
    from_level = np.where(
        from_entity,
        0,
        at(levels, places_of(tails, cluster_ids), _NOWHERE),
    )
    to_level = at(levels, places_of(heads, cluster_ids), _NOWHERE)
    sibling = flags(pc.equal(column(edges, "type"), str(ClusterEdgeType.SIBLING_OF)))
    member = flags(pc.equal(column(edges, "type"), str(ClusterEdgeType.PART_OF)))
    exists = (from_level >= 0) & (to_level >= 0)
    up = (to_level == from_level + 1) & (member == (from_level == 0))
    return with_columns(
        edges,
        from_level=from_level,
        to_level=to_level,
        ends_exist=exists,
        edges_point_up=np.where(sibling, from_level == to_level, up) | ~exists,
        no_cycle=_acyclic(tails, heads, sibling),
    )


def _acyclic(
    tails: pa.Array,
    heads: pa.Array,
    sibling: Flags,
) -> Flags:
    """Which edges are on no cycle: the ends of one that is lie in one strongly connected
    component.
    """
    nodes = pc.unique(pa.concat_arrays([tails, heads]))
    source = places_of(tails, nodes)
    target = places_of(heads, nodes)
    ends = (source[~sibling], target[~sibling])
    size = len(nodes) + 1
    joined = sparse.coo_array(
        (np.ones(len(ends[0])), ends),
        shape=(size, size),
    )
    component = connected_components(joined.tocsr(), connection="strong")[1]
    apart: Flags = component[source] != component[target]
    return sibling | apart


def _clusters(
    clusters: pa.Table,
    levels: Longs,
    edges: pa.Table,
    cluster_ids: pa.Array,
) -> pa.Table:
    """A topic's members are the entities below it, a super-topic's those of its topics."""
    subtopic = _of_type(edges, ClusterEdgeType.SUBTOPIC_OF)
    members = count(column(_of_type(edges, ClusterEdgeType.PART_OF), "_to"), cluster_ids)
    below, above = place_ends(subtopic, cluster_ids)
    joined = (below >= 0) & (above >= 0)
    from_topics = np.bincount(
        above[joined],
        members[below[joined]],
        len(members),
    )
    members = members + from_topics.astype(np.int64)
    super_topics = count(column(subtopic, "_from"), cluster_ids)
    led = np.full(clusters.num_rows, _NOWHERE, dtype=np.int64)
    led[below[joined]] = above[joined]
    parent_places = places_of(column(clusters, "parent"), column(clusters, "_key"))
    centroids = column(clusters, "centroid")
    is_finite = np.isfinite(pc.list_flatten(centroids).to_numpy())
    topic = levels == 1
    has_none_above = not (levels == 2).any()
    return with_columns(
        clusters.drop_columns(["centroid"]),
        members=members,
        super_topics=super_topics,
        edge_parent=texts_at(column(clusters, "_key"), led),
        size_counts_members=integers(column(clusters, "size"), _NOWHERE) == members,
        topic_not_empty=members > 0,
        one_super_topic=(super_topics == 1) | ~topic | has_none_above,
        parent_agrees_with_edge=(parent_places == led) | ~topic | (super_topics > 1),
        centroid_finite=per_row(centroids, is_finite, np.logical_and, True),
    )


def _placed_entities(
    entities: pa.Table,
    entity_ids: pa.Array,
    clusters: pa.Table,
    levels: Longs,
    part_of: pa.Table,
) -> pa.Table:
    keys = column(clusters, "_key")
    topic_places = places_of(column(entities, "cluster_id"), keys)
    topics = count(column(part_of, "_from"), entity_ids)
    led = np.full(entities.num_rows, _NOWHERE, dtype=np.int64)
    rows = places_of(column(part_of, "_from"), entity_ids)
    led[rows[rows >= 0]] = places_of(column(part_of, "_to"), ids("clusters", keys))[rows >= 0]
    is_topic = at(levels, topic_places, _NOWHERE) == 1
    return with_columns(
        entities,
        topics=topics,
        edge_topic=texts_at(keys, led),
        one_topic_per_entity=topics == 1,
        cluster_id_is_topic=is_topic,
        cluster_id_agrees_with_edge=(topic_places == led) | ~is_topic | (topics != 1),
    )


_WEIGH = "run `hades repair weights`"
WEIGHTS_CONTRACT = contract(
    "weights",
    "weights and costs of relations, and the configuration they follow from",
    _WEIGH,
    {
        "relations": [
            ("every_relation_weighed", "every relation has a weight", give("weight")),
            ("weight_in_unit_interval", "a weight lies between 0 and 1", between("weight", 0, 1)),
            ("components_given", "a weight keeps the components it was made of", "weight"),
            (
                "freshness_in_unit_interval",
                "freshness lies between 0 and 1",
                between("freshness", 0, 1),
            ),
            ("similarity_in_range", "similarity lies between -1 and 1", between("sim", -1, 1)),
            (
                "prior_of_type",
                "the prior in a weight is that of the relation's type",
                "type",
                "type_prior",
                "configured_prior",
            ),
            (
                "weight_recomputes",
                "a weight is the sigmoid of its components by the configured coefficients",
                "weight",
                "recomputed_weight",
            ),
            ("cost_given", "a weighed relation has a cost", give("cost")),
            ("cost_not_negative", "a cost is never below 0", between("cost", 0)),
            (
                "cost_recomputes",
                "a cost is -ln(weight * boost)",
                "weight",
                "cost",
                "recomputed_cost",
            ),
            ("type_configured", "weight_config has a row for the relation's type", "type"),
        ],
        "mentions": [
            (
                "mention_weight_in_unit_interval",
                "a mention's weight lies between 0 and 1",
                between("weight", 0, 1),
            ),
        ],
        "weight_config": [
            (
                "configured_type_known",
                "weight_config speaks of known relation types",
                one_of("relation_type", RelationType),
            ),
            (
                "one_row_per_type",
                "weight_config has one row a relation type",
                unique("relation_type"),
            ),
            (
                "boost_positive",
                "a boost is above 0, so that no edge is infinitely long",
                "relation_type",
                "relation_boost",
            ),
            ("tau_positive", "a time constant is above 0 days", "relation_type", "tau_days"),
        ],
    },
    {"boost_positive": f"{_WEIGH}; if it stays, set hirag_pathrag.path.relation_boost above 0"},
)
CONFIG = ("relation_type", "type_prior", "tau_days", "relation_boost", "coefficients")
PARTS = ("sim", "type_prior", "evidence", "freshness")
BIAS = "bias"
TOLERANCE = 1e-6
_FLOORED = 1e-2  # below this a cost may be shorter than the logarithm: the setting `eps` is a floor


def weight_frames(store: RowStore) -> Frames:
    """Relations with weight and cost beside those computed again, in float64; mentions, and the
    configuration.
    """
    relations = read(
        store,
        "relations",
        "type",
        "weight",
        "weight_components",
        "learned",
        "cost",
    )
    never_ran = stage_ledger.last_completion(store, stage_ledger.WEIGHTS) is None

    if never_ran and column(relations, "weight").null_count == relations.num_rows:
        return Frames({}, ("no relation has been weighed yet",))

    config = read(store, "weight_config", *CONFIG)
    coefficients, note = _coefficients(config)
    frames = {
        "relations": _weighed_relations(relations, config, coefficients),
        "mentions": read(store, "mentions", "weight"),
        "weight_config": with_columns(
            config.drop_columns(["coefficients"]),
            boost_positive=numbers(column(config, "relation_boost")) > 0,
            tau_positive=numbers(column(config, "tau_days")) > 0,
        ),
    }
    return Frames(frames, notes=(note,) if note else ())


def _weighed_relations(
    table: pa.Table,
    config: pa.Table,
    coefficients: Floats,
) -> pa.Table:
    components = column(table, "weight_components")
    parts = {name: numbers(pc.struct_field(components, name)) for name in PARTS}
    kinds: Longs = places_of(column(table, "type"), column(config, "relation_type"))
    prior = at(
        numbers(column(config, "type_prior")),
        kinds,
        np.nan,
    )
    boost = at(
        numbers(column(config, "relation_boost")),
        kinds,
        np.nan,
    )
    weight = numbers(column(table, "weight"))
    cost = numbers(column(table, "cost"))
    sums = np.append(
        coefficients,
        np.full((1, len(PARTS) + 1), np.nan),
        axis=0,
    )[kinds]
    logit = sums[:, -1] + sum(sums[:, number] * parts[name] for number, name in enumerate(PARTS))
    logit += np.nan_to_num(numbers(column(table, "learned")))
    again = 0.5 * (1.0 + np.tanh(0.5 * logit))

    with np.errstate(divide="ignore", invalid="ignore"):
        length = np.maximum(0.0, -np.log(weight * boost))

    floored = (weight * boost < _FLOORED) & (cost < length) & (cost >= -np.log(_FLOORED))
    has_parts = flags(pc.is_valid(components)) & ~np.isnan(sum(parts.values()))
    recomputed = {
        "configured_prior": prior,
        "recomputed_weight": again,
        "recomputed_cost": length,
    }

    shown = {}
    for name, values in {**parts, **recomputed}.items():
        shown[name] = pa.array(values, from_pandas=True)

    return with_columns(
        table.drop_columns(["weight_components"]),
        **shown,
        components_given=has_parts | np.isnan(weight),
        type_configured=kinds >= 0,
        prior_of_type=close(parts["type_prior"], prior, TOLERANCE),
        weight_recomputes=close(weight, again, TOLERANCE),
        cost_recomputes=close(cost, length, TOLERANCE) | floored,
    )


def _coefficients(config: pa.Table) -> tuple[Floats, str]:
    """(n_types, 5): what each component counts, then the bias; NaN, which is not compared, where a
    row is silent.
    """
    names = (*PARTS, BIAS)
    values = np.full((config.num_rows, len(names)), np.nan)

    for row, text in enumerate(config.column("coefficients").to_pylist()):
        coefficients = orjson.loads(text)
        values[row] = [coefficients.get(name, np.nan) for name in names]

    is_silent = pa.array(np.isnan(values).any(axis=1))
    silent = config.column("relation_type").filter(is_silent).to_pylist()
    note = ""

    if silent:
        note = (
            f"weights of {', '.join(silent)} were not recomputed: weight_config gives no "
            "coefficients"
        )

    return values, note
