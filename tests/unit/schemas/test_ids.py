"""Ids come from content, are legal keys, and differ when their parts do."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.ids import content_key, edge_key, entity_key, is_legal_key, node_id, split_id
from schemas.nodes import EntityType

TEXT = st.text(max_size=40)
PARTS = st.lists(TEXT, min_size=1, max_size=4)
# Separators and look-alikes, so that sloppy joining would collide.
TRICKY = st.text(alphabet="a\x1f\x00/|_- Aä", max_size=4)


@given(TEXT, TEXT, TEXT)
def test_edge_key_is_legal(source, relation, target):
    assert is_legal_key(edge_key(source, relation, target))


@given(st.text(max_size=400), st.sampled_from(EntityType), TEXT)
def test_entity_key_is_legal_and_short(name, entity_type, qualifier):
    key = entity_key(name, entity_type, qualifier)
    assert is_legal_key(key)
    assert len(key.encode()) <= 254


@example("A", "A", EntityType.CONCEPT, EntityType.PERSON)
@given(TRICKY, TRICKY, st.sampled_from(EntityType), st.sampled_from(EntityType))
def test_entities_share_a_key_only_when_name_and_type_are_the_same(
    first, second, one_type, other_type
):
    same = entity_key(first, one_type) == entity_key(second, other_type)
    plain = {EntityType.CONCEPT, EntityType.PERSON}  # a plain name that a text makes a person
    is_one_type = one_type == other_type or {one_type, other_type} == plain
    assert not same or (is_one_type and first.casefold() == second.casefold())


def test_keys_are_stable_across_versions():
    """A change here re-keys every graph there is."""
    assert content_key("doc", "a", "b") == "doc_2eda68b9016a7acfebe9ab3b1"
    assert edge_key("entities/a", "cites", "entities/b") == "0eeab99da0dd951bfd8712039"
    assert entity_key("Knowledge Graph", "concept") == "knowledge_graph"
    assert entity_key("Knowledge Graph", "method") == "knowledge_graph-91a0288a4a"


@pytest.mark.parametrize("separator", ["\x1f", "\x00", "/", "|", ":", "_", "1:"])
def test_parts_cannot_run_into_each_other(separator):
    keys = [
        content_key("x", f"a{separator}b"),
        content_key("x", "a", "b"),
        content_key("x", "a", "", "b"),
        content_key("x", f"a{separator}", "b"),
        content_key("x", "a", f"{separator}b"),
        content_key("x", "ab"),
    ]
    assert len(set(keys)) == len(keys)


def test_homonyms_are_kept_apart():
    assert entity_key("Mercury", "concept") != entity_key("Mercury", "concept", "planet")
    assert entity_key("C", "method") != entity_key("C++", "method")
    assert entity_key("café", "concept") != entity_key("cafe", "concept")
    assert entity_key("a b", "concept") != entity_key("a_b", "concept")


@pytest.mark.parametrize(
    "bad", ["", "a b", "a/b", "ä", "a:b", "x" * 255, "a\n", "FOR d IN entities REMOVE d"]
)
def test_illegal_keys_are_known(bad):
    assert not is_legal_key(bad)


def test_id_splits_into_what_it_was_made_of():
    assert split_id(node_id("entities", "x")) == ("entities", "x")
    for bad in ("entities", "/x", "entities/"):
        with pytest.raises(ValueError, match="collection/key"):
            split_id(bad)
