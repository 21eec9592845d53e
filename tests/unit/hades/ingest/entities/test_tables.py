"""Rows of edges: the same keys as everywhere else."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hades.ingest.entities.corpus import edge_keys, entity_keys, frame
from hades.ingest.entities.describe import log_table, merge_log_table
from hades.ingest.entities.tables import fill, lists_array
from schemas.catalogue import collection_named
from schemas.ids import edge_key, entity_key
from schemas.nodes import EntityType

IDS = st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=5)


@given(IDS, IDS, st.text(max_size=8))
def test_many_keys_at_once_are_the_keys_one_by_one(sources: list[str], targets: list[str], label: str) -> None:
    source = np.repeat(np.arange(len(sources)), len(targets))
    target = np.tile(np.arange(len(targets)), len(sources))
    for labels in (None, [label] * len(source)):
        found = edge_keys(frame(sources), source, "refers_to", frame(targets), target, labels).to_pylist()
        parts = [label] if labels and label else []
        assert found == [edge_key(one, "refers_to", other, *parts) for one in sources for other in targets]


NAMES = st.text(alphabet=st.one_of(st.characters(codec="ascii"), st.characters()), max_size=100)


@given(NAMES, st.sampled_from(EntityType), st.text(max_size=8))
def test_an_entity_has_the_key_it_has_everywhere(name: str, kind: EntityType, qualifier: str) -> None:
    expected = [entity_key(name, kind, qualifier), entity_key(name, kind)]
    assert entity_keys([(name, kind, qualifier), (name, kind, "")]) == expected


def test_columns_that_are_not_given_hold_their_default() -> None:
    table = fill("relations", 2, {})
    declared = collection_named("relations")
    assert declared is not None
    assert table.schema.equals(declared.schema)
    assert table.column("evidence_count").to_pylist() == [1, 1]
    assert table.column("weight").null_count == 2


def test_lists_are_gathered_by_row() -> None:
    assert lists_array(np.array([5, 7, 1]), np.array([0, 0, 2]), 4).to_pylist() == [[5, 7], [], [1], []]


def test_the_merge_log_is_sorted_and_keeps_the_better_score() -> None:
    rows = [
        (7, "b", "a", "plural", 0.5),
        (8, "b", "a", "plural", 0.9),
        (8, "a", "a", "spelling", 1.0),
        (9, "A", "a", "spelling", 1.0),
    ]
    table = merge_log_table(log_table(rows))
    assert table.select(["alias", "canonical", "rule", "score"]).to_pylist() == [
        {"alias": "A", "canonical": "a", "rule": "spelling", "score": 1.0},
        {"alias": "b", "canonical": "a", "rule": "plural", "score": 0.9},
    ]
