"""Every rule has a corruption that breaks it: the gate turns red, names the rule and the row, and
publishing stops.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hades.errors import ContractBroken
from hades.night.contracts.check import RULES, check_contract, require_contracts
from hades.snapshot.pointer import read, root_of
from hades.stores.sqlite.store import SqliteStore
from schemas.ids import edge_key
from tests.contract.examples import put
from tests.unit.hades.night.contracts.built import AS_OF, first, force, patch, write_unchecked

Corruption = Callable[[SqliteStore, Path], str]

SHA = "0" * 64
CASES: dict[str, Corruption] = {}


def breaks(rule: str) -> Callable[[Corruption], Corruption]:
    """Registers the corruption of a rule."""

    def register(corruption: Corruption) -> Corruption:
        assert rule not in CASES
        CASES[rule] = corruption
        return corruption

    return register


def sets(rule: str, collection: str, where: dict[str, Any] | None = None, **changes: Any) -> None:
    """The plain corruption: one row gets other values."""
    CASES[rule] = lambda store, home: force(
        store, collection, first(store, collection, **(where or {}))["_key"], **changes
    )


def adds(
    rule: str,
    collection: str,
    key: str,
    where: dict[str, Any] | None = None,
    told: str = "",
    **changes: Any,
) -> None:
    """One row more, like another one but for these values; named by its key, or as told."""

    def add(store: SqliteStore, home: Path) -> str:
        put(
            store, collection, {**first(store, collection, **(where or {})), "_key": key, **changes}
        )
        return told or key

    CASES[rule] = add


ONE_OF_EACH_KIND = {rule.expectation.kind: rule.id for rule in RULES}
TOGETHER: dict[
    str, list[str]
] = {}  # one rule of each kind, by contract; each damage of a snapshot hides another
for _id in ONE_OF_EACH_KIND.values():
    TOGETHER.setdefault(_id if _id.startswith("snapshot.") else _id.partition(".")[0], []).append(
        _id
    )
ALONE = [pytest.param([one.id], marks=pytest.mark.soak, id=one.id) for one in RULES]
BOTH = [*(pytest.param(rules, id=name) for name, rules in TOGETHER.items()), *ALONE]


@pytest.mark.parametrize("rule", [rule.id for rule in RULES])
def test_a_corruption_turns_its_rule_red_and_stops_the_line(
    rule: str, store: SqliteStore, home: Path
) -> None:
    before = (root_of(home) / "current").read_bytes()
    key = CASES[rule](store, home)
    pointer = read(root_of(home))
    assert pointer is not None
    name, folder = rule.partition(".")[0], root_of(home) / pointer.snapshot
    checked = check_contract(store, name, snapshot=folder, engine="arrow")
    found = {finding.rule: finding for finding in checked.findings}
    assert rule in found, f"red were {sorted(found)}"
    assert key in found[rule].keys or not found[rule].keys
    with pytest.raises(ContractBroken, match=rule):
        require_contracts([checked])
    assert (root_of(home) / "current").read_bytes() == before


@pytest.mark.parametrize("rules", BOTH)
def test_great_expectations_finds_the_same(
    rules: list[str], store: SqliteStore, home: Path
) -> None:
    """One rule of each kind here, those of a contract at once; every rule by itself in `make
    soak`.
    """
    for rule in rules:
        CASES[rule](store, home)
    pointer = read(root_of(home))
    assert pointer is not None
    name, folder = rules[0].partition(".")[0], root_of(home) / pointer.snapshot
    checked = check_contract(store, name, snapshot=folder)
    assert checked.engine == "great_expectations"
    assert set(rules) <= {finding.rule for finding in checked.findings}
    assert checked.findings == check_contract(store, name, snapshot=folder, engine="arrow").findings


def test_no_corruption_is_seeded_for_a_rule_that_is_not_there() -> None:
    assert set(CASES) == {rule.id for rule in RULES}
    assert len(CASES) >= 30


# nodes
sets("nodes.document_has_origin", "documents", origin=" ")
sets("nodes.document_source_known", "documents", source="hearsay")
sets("nodes.document_sha256_of_text", "documents", sha256=SHA)
sets("nodes.entity_has_name", "entities", name="")
sets("nodes.entity_type_known", "entities", type="rumour")
sets("nodes.entity_name_lower", "entities", name_lower="SHOUTED")
sets("nodes.entity_layer_zero", "entities", layer=3)
sets("nodes.paper_document_exists", "papers_raw", document="documents/gone")
sets("nodes.file_document_exists", "files", document="documents/gone")
sets("nodes.file_sha256_of_document", "files", sha256=SHA)
sets("nodes.func_document_exists", "funcs", document="documents/gone")
sets("nodes.func_span_inside_document", "funcs", span=[0, 100_000])
sets("nodes.paper_id_unique", "papers_raw", {"id": "2001.2"}, id="2001.1")


# chunks
sets("chunks.document_exists", "doc_chunks", document="documents/gone")
sets("chunks.span_inside_document", "doc_chunks", span=[0, 100_000])
sets("chunks.text_is_the_span", "doc_chunks", text="something else")
sets("chunks.text_not_blank", "doc_chunks", text="  ")
sets("chunks.sha256_of_embedded_text", "doc_chunks", sha256=SHA)
sets("chunks.token_count_in_range", "doc_chunks", token_count=10_000)
sets("chunks.kind_known", "doc_chunks", kind="gossip")


@breaks("chunks.position_unique")
def _(store: SqliteStore, home: Path) -> str:
    chunk = first(store, "doc_chunks")
    write_unchecked(store, "doc_chunks", {**chunk, "_key": "twin"})
    return "twin"


@breaks("chunks.document_covered")
def _(store: SqliteStore, home: Path) -> str:
    chunk = first(store, "doc_chunks")
    store.delete("doc_chunks", keys=[chunk["_key"]])
    return _document_named(store, chunk["document"])


@breaks("nodes.written_rows_stored")
def _(store: SqliteStore, home: Path) -> str:
    document = first(store, "documents")["_key"]
    store.delete("documents", keys=[document])
    return _document_named(store, f"documents/{document}")


def _document_named(store: SqliteStore, document: str) -> str:
    entry = first(store, "ingest_manifest", document=document)
    return f"{entry['origin']} ({entry['_key']})"


# embeddings: the frame speaks of chunks and entities, so its keys are ids
def _vector(**changes: Any) -> Corruption:
    return lambda store, home: (
        f"entities/{force(store, 'entities', first(store, 'entities')['_key'], **changes)}"
    )


CASES["embeddings.vector_given"] = _vector(embedding=None)
CASES["embeddings.model_named"] = _vector(embedding_model=None)
CASES["embeddings.one_model"] = _vector(embedding_model="other@1/256")
CASES["embeddings.dimension_of_model"] = _vector(embedding=[1.0, 0.0])
CASES["embeddings.vector_finite"] = _vector(embedding=[float("nan")] + [0.0] * 255)
CASES["embeddings.unit_length"] = _vector(embedding=[2.0] + [0.0] * 255)
sets("embeddings.entity_vector_of_known", "entities", vector_of="thin air")


# edges
sets("edges.relation_type_known", "relations", type="envies")
sets("edges.provenance_given", "relations", {"type": "refers_to"}, provenance=None)
sets(
    "edges.provenance_document_exists",
    "relations",
    provenance={"doc": "documents/gone", "span": [0, 1]},
)
sets("edges.evidence_counted", "relations", evidence_count=0)
sets("edges.strength_in_unit_interval", "relations", strength=1.5)
sets(
    "edges.valid_interval_ordered",
    "relations",
    valid_from=AS_OF,
    valid_until=AS_OF.replace(year=2025),
)
sets(
    "edges.known_interval_ordered",
    "relations",
    recorded_at=AS_OF,
    retracted_at=AS_OF.replace(year=2025),
)
sets("edges.out_degree_counted", "entities", deg_out=999)
sets("edges.mention_inside_chunk", "mentions", positions=[99_999], count=1)
sets("edges.mention_count_covers_positions", "mentions", positions=[0, 1], count=1)
sets("edges.mention_ends_exist", "mentions", _to="entities/gone")
sets("edges.endpoint_types_allowed", "relations", {"type": "refers_to"}, type="implements")
CASES["edges.other_ends_exist"] = lambda store, home: (
    f"contains/{force(store, 'contains', first(store, 'contains')['_key'], _to='funcs/gone')}"
)


@breaks("edges.derived_rows_stored")
def _(store: SqliteStore, home: Path) -> str:
    store.delete("mentions", keys=[first(store, "mentions")["_key"]])
    return "mentions"


@breaks("edges.ends_exist")
def _(store: SqliteStore, home: Path) -> str:
    edge = first(store, "relations")
    store.delete(
        "entities", keys=[edge["_from"].partition("/")[2]]
    )  # which the store allows, and `dangling` finds
    return str(edge["_key"])


@breaks("edges.no_self_loop")
def _(store: SqliteStore, home: Path) -> str:
    edge = first(store, "relations")
    put(store, "relations", {**edge, "_to": edge["_from"]})  # the store takes it
    return str(edge["_key"])


@breaks("edges.span_inside_document")
def _(store: SqliteStore, home: Path) -> str:
    edge = first(store, "relations", type="cites")
    patch(
        store,
        "relations",
        {
            "_key": edge["_key"],
            "provenance": {"doc": edge["provenance"]["doc"], "span": [5, 99_999]},
        },
    )
    return str(edge["_key"])


# hierarchy
sets("hierarchy.level_known", "clusters", level=7)
sets("hierarchy.size_counts_members", "clusters", size=1_000)
sets("hierarchy.centroid_finite", "clusters", centroid=[float("inf"), 0.0])
sets("hierarchy.parent_agrees_with_edge", "clusters", {"level": 1}, parent=None)
sets("hierarchy.ends_exist", "cluster_edges", {"type": "PART_OF"}, _to="clusters/gone")
sets("hierarchy.edges_point_up", "cluster_edges", {"type": "PART_OF"}, _to="clusters/s0")
sets("hierarchy.cluster_id_is_topic", "entities", cluster_id="s0")
sets("hierarchy.cluster_id_agrees_with_edge", "entities", {"cluster_id": "t0"}, cluster_id="t1")
adds("hierarchy.topic_not_empty", "clusters", "t9", {"level": 1}, size=0)


@breaks("hierarchy.one_super_topic")
def _(store: SqliteStore, home: Path) -> str:
    store.delete("cluster_edges", keys=[edge_key("clusters/t0", "SUBTOPIC_OF", "clusters/s0")])
    return "t0"


@breaks("hierarchy.no_cycle")
def _(store: SqliteStore, home: Path) -> str:
    put(
        store,
        "cluster_edges",
        {"_key": "back", "_from": "clusters/s0", "_to": "clusters/t0", "type": "SUBTOPIC_OF"},
    )
    return "back"


@breaks("hierarchy.one_topic_per_entity")
def _(store: SqliteStore, home: Path) -> str:
    entity = first(store, "entities", cluster_id="t0")["_key"]
    end = {"_from": f"entities/{entity}", "_to": "clusters/t1", "type": "PART_OF"}
    put(store, "cluster_edges", {"_key": "second", **end})
    return str(entity)


# weights
PARTS = {"sim": 0.1, "type_prior": 0.5, "evidence": 0.25, "freshness": 0.5}
sets("weights.every_relation_weighed", "relations", weight=None)
sets("weights.weight_in_unit_interval", "relations", weight=1.5)
sets("weights.components_given", "relations", weight_components=None)
sets(
    "weights.freshness_in_unit_interval", "relations", weight_components={**PARTS, "freshness": 2.0}
)
sets("weights.similarity_in_range", "relations", weight_components={**PARTS, "sim": -3.0})
sets("weights.prior_of_type", "relations", weight_components={**PARTS, "type_prior": 0.75})
sets("weights.weight_recomputes", "relations", weight=0.123)
sets("weights.cost_given", "relations", cost=None)
sets("weights.cost_not_negative", "relations", cost=-1.0)
sets("weights.cost_recomputes", "relations", cost=7.0)
sets("weights.mention_weight_in_unit_interval", "mentions", weight=-0.5)
sets("weights.configured_type_known", "weight_config", relation_type="envies")
sets("weights.boost_positive", "weight_config", relation_boost=0.0)
sets("weights.tau_positive", "weight_config", tau_days=-1.0)
adds("weights.one_row_per_type", "weight_config", "again")


@breaks("weights.type_configured")
def _(store: SqliteStore, home: Path) -> str:
    store.delete("weight_config", keys=["cites"])
    return str(first(store, "relations", type="cites")["_key"])


# bridges
sets("bridges.topics_exist", "bridge_cache", from_cluster="gone")
sets("bridges.ends_in_their_topics", "bridge_cache", from_cluster="t1", to_cluster="t0")
sets("bridges.current_generation", "bridge_cache", generation="weights-of-yesterday")
sets("bridges.cost_adds_up", "bridge_cache", cost=7.0)
sets("bridges.nodes_exist", "bridge_cache", nodes=["entities/gone", "entities/lost"])
sets("bridges.edges_exist", "bridge_cache", edges=["relations/gone"])


def _on_a_bridge(store: SqliteStore) -> tuple[dict[str, Any], str]:
    bridge = first(store, "bridge_cache")
    return bridge, bridge["edges"][0].partition("/")[2]


@breaks("bridges.coref_never_labelled")
def _(store: SqliteStore, home: Path) -> str:
    _, edge = _on_a_bridge(store)
    patch(store, "relations", {"_key": edge, "type": "coref"})
    return edge


@breaks("bridges.coref_never_crosses")
def _(store: SqliteStore, home: Path) -> str:
    bridge, edge = _on_a_bridge(store)
    patch(store, "relations", {"_key": edge, "type": "coref", "layer_bridge": False})
    return str(bridge["_key"])


@breaks("bridges.edges_stand")
def _(store: SqliteStore, home: Path) -> str:
    bridge, edge = _on_a_bridge(store)
    patch(store, "relations", {"_key": edge, "valid_until": AS_OF})
    return str(bridge["_key"])


@breaks("bridges.label_joins_two_topics")
def _(store: SqliteStore, home: Path) -> str:
    bridge, edge = _on_a_bridge(store)
    moved = {"_key": bridge["nodes"][0].partition("/")[2], "cluster_id": bridge["to_cluster"]}
    patch(store, "entities", moved)
    return edge


@breaks("bridges.length_in_range")
def _(store: SqliteStore, home: Path) -> str:
    bridge, _ = _on_a_bridge(store)
    long = {"edges": bridge["edges"] * 6, "nodes": (bridge["nodes"] * 4)[:7]}
    return force(store, "bridge_cache", bridge["_key"], **long)


@breaks("bridges.one_node_more_than_edges")
def _(store: SqliteStore, home: Path) -> str:
    bridge, _ = _on_a_bridge(store)
    return force(store, "bridge_cache", bridge["_key"], nodes=bridge["nodes"][:1])


@breaks("bridges.edges_join_nodes")
def _(store: SqliteStore, home: Path) -> str:
    other = first(store, "bridge_cache", _key="b1")
    return force(store, "bridge_cache", "b0", edges=other["edges"])


@breaks("bridges.no_node_twice")
def _(store: SqliteStore, home: Path) -> str:
    bridge, _ = _on_a_bridge(store)
    there, back = bridge["nodes"]
    return force(
        store,
        "bridge_cache",
        bridge["_key"],
        nodes=[there, back, there, back],
        edges=bridge["edges"] * 3,
    )


# snapshot: counts are told by collection
adds("snapshot.node_counts_equal", "entities", "latecomer", told="entities")
adds("snapshot.document_count_equal", "documents", "latecomer", told="documents")


def _serving(home: Path) -> Path:
    pointer = read(root_of(home))
    assert pointer is not None
    return root_of(home) / pointer.snapshot


def _edit(home: Path, change: Callable[[dict[str, Any]], None]) -> None:
    manifest = _serving(home) / "manifest.json"
    body = json.loads(manifest.read_text())
    change(body)
    manifest.write_text(json.dumps(body))


def _largest(home: Path) -> Path:
    files = [path for path in _serving(home).iterdir() if path.suffix != ".json"]
    return max(files, key=lambda path: (path.stat().st_size, path.name))


@breaks("snapshot.manifest_readable")
def _(store: SqliteStore, home: Path) -> str:
    (_serving(home) / "manifest.json").write_text('{"nodes": [')
    return "manifest.json"


@breaks("snapshot.id_of_manifest")
def _(store: SqliteStore, home: Path) -> str:
    _edit(home, lambda body: body.update(longest_name=99))
    return "manifest.json"


@breaks("snapshot.edge_counts_equal")
def _(store: SqliteStore, home: Path) -> str:
    store.delete("relations", keys=[first(store, "relations")["_key"]])
    return "relations"


@breaks("snapshot.parts_are_the_stores")
def _(store: SqliteStore, home: Path) -> str:
    patch(store, "build_stages", {"_key": "weights", "generation": "weights-of-tomorrow"})
    return "weights"


@breaks("snapshot.files_listed")
def _(store: SqliteStore, home: Path) -> str:
    _edit(home, lambda body: body.update(files={}))
    return ""


@breaks("snapshot.file_present")
def _(store: SqliteStore, home: Path) -> str:
    (lost := _largest(home)).unlink()
    return lost.name


@breaks("snapshot.file_size_as_listed")
def _(store: SqliteStore, home: Path) -> str:
    with (cut := _largest(home)).open("r+b") as file:
        file.truncate(3)
    return cut.name


@breaks("snapshot.file_hash_as_listed")
def _(store: SqliteStore, home: Path) -> str:
    with (flipped := _largest(home)).open("r+b") as file:
        byte = file.read(1)
        file.seek(0)
        file.write(bytes([byte[0] ^ 1]))
    return flipped.name
