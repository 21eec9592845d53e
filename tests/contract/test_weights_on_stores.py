"""Weighing, registering and going back leave the same weights in every store."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from hades.night.model_versions import log_weights, restore_weights
from hades.night.weights.stage import lasting
from hades.ports.store import GraphStore
from hades.stage_ledger import WEIGHTS, last_completion
from tests.contract.examples import MODEL, everything
from tests.unit.hades.night.contexts import context_of
from tests.unit.hades.night.weights.graphs import (
    TODAY,
    put_small_graph,
    registry,
    small_store,
    weigh,
)

WEIGHED = ("relations", "mentions", "weight_config")


def test_weights_and_their_restoration_are_the_same_everywhere(
    store: GraphStore, tmp_path: Path
) -> None:
    put_small_graph(store)
    embedded = small_store(tmp_path / "embedded.db")
    here, there = weigh(store), weigh(embedded)
    assert lasting(vars(here)) == lasting(vars(there))
    was = {name: everything(store, name) for name in WEIGHED}
    assert was == {name: everything(embedded, name) for name in WEIGHED}
    tracker = registry(tmp_path / "registry")
    version = log_weights(store, tracker, as_of=TODAY)
    assert weigh(store, as_of=datetime(2027, 1, 1, tzinfo=UTC)).generation != here.generation
    restore_weights(context_of(store, MODEL), tracker, version)
    done = last_completion(store, WEIGHTS)
    assert done is not None
    assert done.generation == here.generation
    assert {name: everything(store, name) for name in WEIGHED} == was
