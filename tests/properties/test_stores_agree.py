"""The same random sequence of operations leaves both stores with equal contents and equal
answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hades.errors import BadRows, StoreError
from hades.ports.store import GraphStore, Mode, RowStore, Term
from hades.stores.arango.client import ArangoEndpoints
from hades.stores.arango.store import ArangoStore
from tests.arango_double.server import ArangoDouble
from tests.contract.examples import MODEL, day, entity, everything, relation, table
from tests.homes import empty_store
from tests.patience import examples

NAMES = [f"k{number}" for number in range(9)]
Operation = Callable[[GraphStore], object]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
entities = st.builds(
    lambda key, name, topic, degree, vector: entity(
        key,
        name=name or "n",
        cluster_id=topic,
        deg_out=degree,
        embedding=vector,
        embedding_model=MODEL if vector else None,
    ),
    st.sampled_from(NAMES),
    texts,
    st.sampled_from(["x", "y", None]),
    st.integers(0, 5),
    st.none() | st.lists(st.floats(-4, 4, width=32), min_size=3, max_size=3),
)
relations = st.builds(
    lambda tail, head, kind, weight, cost, start: relation(
        tail, head, kind, weight=weight, cost=cost, valid_from=day(start) if start else None
    ),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
    st.sampled_from(["cites", "extends", "coref"]),
    st.none() | st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    st.none() | st.sampled_from([0.0, 0.5, 2.0]),
    st.integers(0, 3),
)


def distinct(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({row["_key"]: row for row in rows}.values())


def upsert(collection: str, rows: list[dict[str, Any]]) -> Operation:
    return lambda store: store.upsert(collection, table(collection, rows))


def in_transaction(operations: list[Operation], fail: bool) -> Operation:
    def run(store: GraphStore) -> None:
        with store.transaction(["entities", "relations"]) as inside:
            for operation in operations:
                operation(inside)  # type: ignore[arg-type]
            if fail:
                raise BadRows("entities", None, "on purpose")

    return run


writes = st.one_of(
    st.lists(entities, min_size=1, max_size=6).map(lambda rows: upsert("entities", distinct(rows))),
    st.lists(relations, min_size=1, max_size=6).map(
        lambda rows: upsert("relations", distinct(rows))
    ),
    st.sampled_from(NAMES).map(
        lambda key: (
            lambda store: store.patch(
                "entities", table("entities", [{"_key": key, "cluster_id": "z"}])
            )
        )
    ),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(
        lambda keys: lambda store: store.delete("entities", keys=keys)
    ),
    st.sampled_from(["cites", "coref"]).map(
        lambda kind: lambda store: store.delete("relations", where=[Term("type", "==", kind)])
    ),
)
operations = st.lists(
    writes | st.builds(in_transaction, st.lists(writes, min_size=1, max_size=3), st.booleans()),
    min_size=1,
    max_size=8,
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[GraphStore, GraphStore]]:
    """A store of each kind; an example begins by emptying them."""
    with ArangoDouble(root_password="p") as double:
        endpoints = ArangoEndpoints(url=double.url, database="agree", user="root", password="p")
        arango = ArangoStore(endpoints, mode=Mode.ADMIN, fail_on_warning=True, wait_for_view=True)
        arango.provision()
        with (
            closing(arango),
            closing(empty_store(tmp_path_factory.mktemp("agree") / "graph.db")) as sqlite,
        ):
            yield sqlite, arango


def outcome(store: GraphStore, operation: Operation) -> str:
    try:
        operation(store)
    except StoreError as error:
        return f"{type(error).__name__}: {error}"
    return "done"


def answers(store: RowStore) -> list[object]:
    nodes = [f"entities/{name}" for name in NAMES]
    return [
        everything(store, "entities"),
        everything(store, "relations"),
        store.count("entities", where=[Term("cluster_id", "in", ["x", "z"])]),
        [
            row
            for batch in store.scan("relations", where=[Term("_to", "in", nodes)])
            for row in batch.to_pylist()
        ],
    ]


@settings(max_examples=examples(10))
@given(sequence=operations)
def test_both_stores_do_and_answer_the_same(
    both: tuple[GraphStore, GraphStore], sequence: list[Operation]
) -> None:
    sqlite, arango = both
    for store, name in product(both, ("relations", "entities")):
        store.delete(name, where=[Term("_key", "not_null")])
    for operation in sequence:
        assert outcome(sqlite, operation) == outcome(arango, operation)
    assert answers(sqlite) == answers(arango)
    assert sqlite.counts() == arango.counts()
