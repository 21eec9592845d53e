"""Records become Arrow columns with the right types, bounds and defaults."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.edges import NEVER_BRIDGES, Provenance, Relation, allows
from schemas.nodes import Document, Entity, EntityType, RelationType
from schemas.record import TIME, columns_of, to_table

P, C, M, H, S = (
    EntityType.PAPER,
    EntityType.CONCEPT,
    EntityType.METHOD,
    EntityType.PERSON,
    EntityType.CODE_SYMBOL,
)


def column(record, name):
    return next(column for column in columns_of(record) if column.name == name)


def test_types_follow_the_annotations():
    assert column(Entity, "embedding").type == pa.list_(pa.float32())
    assert column(Entity, "embedding").is_vector
    assert column(Entity, "metadata").is_json
    assert column(Entity, "aliases").type == pa.list_(pa.string())
    assert column(Relation, "created").type == TIME
    assert pa.types.is_struct(column(Relation, "provenance").type)
    assert column(Relation, "type").choices == tuple(str(relation) for relation in RelationType)


def test_bounds_are_found_inside_optional_types_too():
    weight = column(Relation, "weight")
    assert (weight.minimum, weight.maximum, weight.nullable) == (0.0, 1.0, True)
    assert column(Relation, "evidence_count").minimum == 0


def test_defaults_and_required_columns_are_told_apart():
    assert column(Entity, "name").default is None
    assert not column(Entity, "name").nullable
    assert column(Entity, "layer").default == 0
    assert column(Document, "metadata").default == "{}"


@given(
    st.text(max_size=20),
    st.floats(0, 1),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)
def test_rows_survive_the_way_to_arrow_and_back(label, weight, metadata):
    relation = Relation(
        key="k",
        source="entities/a",
        target="entities/b",
        type=RelationType.CITES,
        weight=weight,
        label=label,
        created=datetime(2024, 1, 2, tzinfo=UTC),
        provenance=Provenance(doc="documents/d", span=(0, 5)),
        metadata=metadata,
    )
    row = to_table(Relation, [relation]).to_pylist()[0]
    assert (row["_key"], row["_from"], row["_to"], row["type"]) == (
        "k",
        "entities/a",
        "entities/b",
        "cites",
    )
    assert (row["weight"], row["label"], row["provenance"]) == (
        weight,
        label,
        {"doc": "documents/d", "span": [0, 5]},
    )
    assert row["created"] == datetime(2024, 1, 2, tzinfo=UTC)


def test_records_are_immutable_and_refuse_unknown_fields():
    entity = Entity(key="a", name="A", name_lower="a", type=C)
    with pytest.raises(ValueError, match="frozen"):
        entity.name = "B"
    with pytest.raises(ValueError, match="Extra inputs"):
        Entity(key="a", name="A", name_lower="a", type=C, colour="red")


@pytest.mark.parametrize(
    ("relation", "source", "target", "may"),
    [
        (RelationType.CITES, P, P, True),
        (RelationType.CITES, P, S, False),
        (RelationType.CITES, H, P, False),
        (RelationType.IMPLEMENTS, P, S, True),
        (RelationType.IMPLEMENTS, M, S, True),
        (RelationType.IMPLEMENTS, S, P, False),
        (RelationType.IMPLEMENTS, C, S, False),
        (RelationType.EXTENDS, M, M, True),
        (RelationType.EXTENDS, S, S, True),
        (RelationType.EXTENDS, C, C, True),
        (RelationType.EXTENDS, P, M, False),
        (RelationType.DERIVES_FROM, M, C, True),
        (RelationType.DERIVES_FROM, H, C, False),
        (RelationType.DERIVES_FROM, S, M, False),
        (RelationType.REFERS_TO, H, S, True),
        (RelationType.COREF, H, H, True),
    ],
)
def test_relation_accepts_only_its_endpoints(relation, source, target, may):
    assert allows(relation, source, target) is may


def test_every_relation_type_has_endpoints_and_coref_is_never_a_bridge():
    assert all(
        any(allows(relation, a, b) for a in EntityType for b in EntityType)
        for relation in RelationType
    )
    assert {RelationType.COREF} == NEVER_BRIDGES
