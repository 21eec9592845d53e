"""Tables of derived rows in the catalogue's columns."""

from __future__ import annotations

import numpy as np

from hades.ingest.entities.tables import fill, lists_array
from schemas.catalogue import collection_named


def test_columns_that_are_not_given_hold_their_default() -> None:
    table = fill("relations", 2, {})
    declared = collection_named("relations")
    assert declared is not None
    assert table.schema.equals(declared.schema)
    assert table.column("evidence_count").to_pylist() == [1, 1]
    assert table.column("weight").null_count == 2


def test_lists_are_gathered_by_row() -> None:
    assert lists_array(np.array([5, 7, 1]), np.array([0, 0, 2]), 4).to_pylist() == [[5, 7], [], [1], []]
