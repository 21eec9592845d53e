"""The catalogue agrees with itself, and holds what the specifications name."""

import pytest

from schemas.catalogue import COLLECTIONS, GRAPHS, collection_named, edge_collections, graph_of
from schemas.memory import MemoryRelation
from schemas.nodes import EntityType, NameType, RelationType

NAMES = {collection.name for collection in COLLECTIONS}
SPECIFIED = {
    "papers_raw",
    "entities",
    "clusters",
    "relations",
    "cluster_edges",
    "bridge_cache",
    "weight_config",
    "query_logs",
    "files",
    "funcs",
    "doc_chunks",
    "contains",
    "imports",
    "chunk_code_edges",
    "mentions",
    "references",
    "memory_states",
    "memory_traces",
    "memory_edges",
}
COLUMNS = {
    "entities": "name type layer cluster_id prev_cluster_id embedding summary deg_out "
    "canonical_name aliases frequency",
    "relations": "_from _to type weight weight_components layer_bridge sim created provenance "
    "strength"
    " co_occurrence_count",
    "clusters": "level centroid centroid_version summary cluster_params",
    "doc_chunks": "text headings token_count embedding file_path chunk_index timestamp",
    "mentions": "count positions",
    "memory_states": "topic content version timestamp embedding parent_state_id metadata tags "
    "confidence access_count"
    " last_accessed importance_score consolidated_from is_consolidated consolidation_level "
    "diff_from_parent is_delta",
    "memory_traces": "topic states created_at updated_at metadata",
    "memory_edges": "_from _to relationship_type strength timestamp bidirectional description "
    "metadata valid_from"
    " valid_until superseded_by",
}
INDEXES = {
    "entities": "type layer cluster_id name_lower deg_out",
    "relations": "type layer_bridge",
    "clusters": "level centroid_version",
}
TYPES = [
    (EntityType, "paper concept method person code_symbol"),
    (NameType, "PERSON ORG GPE PRODUCT EVENT CONCEPT"),
    (RelationType, "cites implements extends refers_to coref derives_from similar_to related_to"),
    (
        MemoryRelation,
        "evolves_to relates_to causes references contradicts supports rejected_because "
        "viable_after_fix blocked_by"
        " enabled_by has_trait caused_by interacted_with",
    ),
]

each_collection = pytest.mark.parametrize(
    "collection", COLLECTIONS, ids=lambda collection: collection.name
)
each_edge = pytest.mark.parametrize(
    "collection", edge_collections(), ids=lambda collection: collection.name
)


def test_names_are_unique_and_those_of_the_specifications():
    assert len(NAMES) == len(COLLECTIONS)
    assert SPECIFIED <= NAMES


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_and_indexes_are_those_of_the_specifications(name):
    collection = collection_named(name)
    assert set(COLUMNS[name].split()) <= set(collection.schema.names)
    assert {(field,) for field in INDEXES.get(name, "").split()} <= {
        index.fields for index in collection.indexes
    }


@pytest.mark.parametrize(("types", "names"), TYPES)
def test_types_are_those_of_the_specifications(types, names):
    assert set(names.split()) <= {str(one) for one in types}


@each_collection
def test_indexes_lean_on_columns_that_exist(collection):
    names = {column.name for column in collection.columns}
    assert {field for index in collection.indexes for field in index.fields} <= names
    assert set(collection.text_fields) <= names
    fields = [index.fields for index in collection.indexes]
    assert len(fields) == len(set(fields))


@each_collection
def test_columns_are_unique_and_begin_with_the_key(collection):
    names = collection.schema.names
    assert names[0] == "_key"
    assert len(names) == len(set(names))


@each_collection
def test_a_vector_has_its_model_beside_it(collection):
    vectors = [column.name for column in collection.columns if column.is_vector]
    assert vectors == ([collection.vector_field] if collection.vector_field else [])
    if vectors:
        assert "embedding_model" in collection.schema.names


@each_edge
def test_edges_join_collections_that_exist_and_hold_no_edges(collection):
    ends = {*collection.edge.sources, *collection.edge.targets}
    assert ends <= NAMES
    assert all(collection_named(end).edge is None for end in ends)


@each_edge
def test_edge_columns_exist(collection):
    shape = collection.edge
    wanted = {
        "_from",
        "_to",
        shape.type_field,
        shape.weight_field,
        "valid_from",
        "valid_until",
        "recorded_at",
    }
    wanted |= {shape.cost_field} if shape.cost_field else set()
    assert wanted <= set(collection.schema.names)
    is_open = (
        collection.name == "memory_edges"
    )  # its relations are a known set and any name of the same form
    assert (
        is_open
        or next(column for column in collection.columns if column.name == shape.type_field).choices
    )


@each_edge
def test_edge_collection_is_in_exactly_one_graph(collection):
    assert [graph.name for graph in GRAPHS if collection.name in graph.edges] == [
        graph_of(collection.name).name
    ]
