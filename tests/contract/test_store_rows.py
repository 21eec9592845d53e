"""Rows: written whole, patched in part, read in order, counted, streamed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hades.errors import BadQuery, NotProvisioned, ReadOnly, StoreError, UnknownCollection
from hades.ports.store import GraphStore, Mode, Term
from schemas.catalogue import COLLECTIONS, collection_named
from tests.contract.conftest import OpenStore
from tests.contract.examples import MODEL, day, entity, everything, keys, put, relation, table


def test_rows_come_back_as_written_with_defaults_filled(store: GraphStore) -> None:
    put(
        store,
        "entities",
        entity("b", aliases=["x", "y"], metadata='{"z": 1, "a": [1, {"b": null}]}'),
        entity("a"),
    )
    rows = everything(store, "entities")
    assert [row["_key"] for row in rows] == ["a", "b"]
    assert rows[1]["aliases"] == ["x", "y"]
    assert rows[1]["metadata"] == '{"a":[1,{"b":null}],"z":1}'
    assert (rows[0]["layer"], rows[0]["summary"], rows[0]["cluster_id"], rows[0]["metadata"]) == (
        0,
        "",
        None,
        "{}",
    )


def test_every_kind_of_value_survives_the_store(store: GraphStore) -> None:
    put(
        store,
        "entities",
        entity("a", embedding=[0.1, -2.5, 1e-30], embedding_model=MODEL),
        entity("b"),
    )
    put(
        store,
        "relations",
        relation(
            "a",
            "b",
            weight=0.0,
            weight_components={"sim": 0.25, "type_prior": 1.0, "evidence": 0.0, "freshness": 1 / 3},
            provenance={"doc": "documents/d", "span": [3, 17]},
            layer_bridge=True,
            created=day(3).replace(microsecond=123456),
            label="naïve “quotes” \n\t\x00 \U0001f600",
        ),
    )
    row = everything(store, "relations")[0]
    assert row["weight"] == 0.0
    assert row["weight_components"] == {
        "sim": 0.25,
        "type_prior": 1.0,
        "evidence": 0.0,
        "freshness": 1 / 3,
    }
    assert row["provenance"] == {"doc": "documents/d", "span": [3, 17]}
    assert row["layer_bridge"] is True
    assert row["created"] == day(3).replace(microsecond=123456)
    assert row["label"] == "naïve “quotes” \n\t\x00 \U0001f600"
    assert row["valid_from"] is None
    vector = pa.array([0.1, -2.5, 1e-30], pa.float32()).to_pylist()
    assert everything(store, "entities")[0]["embedding"] == vector


def test_upsert_replaces_the_whole_row(store: GraphStore) -> None:
    put(store, "entities", entity("a", summary="first", cluster_id="c"))
    put(store, "entities", entity("a", name="A"))
    assert everything(store, "entities")[0]["summary"] == ""
    assert everything(store, "entities")[0]["cluster_id"] is None
    assert store.count("entities") == 1


def test_patch_changes_only_the_columns_given(store: GraphStore) -> None:
    put(store, "entities", entity("a", summary="stays", cluster_id="old"), entity("b"))
    store.patch("entities", table("entities", [{"_key": "a", "cluster_id": None, "deg_out": 3}]))
    row = everything(store, "entities")[0]
    assert (row["summary"], row["cluster_id"], row["deg_out"]) == ("stays", None, 3)


def test_delete_by_key_ignores_unknown_keys(store: GraphStore) -> None:
    put(store, "entities", entity("a"), entity("b"))
    assert store.delete("entities", keys=["b", "nobody"]) == 1
    assert [row["_key"] for row in everything(store, "entities")] == ["a"]


def test_delete_by_predicate_removes_what_matches(store: GraphStore) -> None:
    put(store, "entities", entity("a", cluster_id="x"), entity("b", cluster_id="y"), entity("c"))
    assert store.delete("entities", where=[Term("cluster_id", "==", "x")]) == 1
    assert store.count("entities") == 2


def test_delete_takes_keys_or_a_predicate_not_both(store: GraphStore) -> None:
    with pytest.raises(BadQuery):
        store.delete("entities", keys=["a"], where=[Term("name", "==", "a")])


def test_scans_come_in_the_order_of_the_bytes_of_keys(store: GraphStore) -> None:
    """Stages number rows in the order of a scan, so another order is another graph."""
    mixed = ["a_b", "a-b", "Ab", "B", "10", "9", "a", "a.b", "a_b-c", "aB"]
    put(store, "entities", *(entity(key) for key in mixed))
    every = [key for batch in store.scan("entities") for key in batch.column("_key").to_pylist()]
    narrowed = [
        key
        for where in ([Term("type", "==", "concept")], [Term("_key", "in", mixed)])
        for batch in store.scan("entities", where=where)
        for key in batch.column("_key").to_pylist()
    ]
    assert every == sorted(mixed)
    assert narrowed == sorted(mixed) * 2


def test_get_answers_in_key_order_each_once_and_only_what_exists(store: GraphStore) -> None:
    put(store, "entities", entity("c"), entity("a"))
    found = store.get("entities", ["c", "a", "c", "b"], columns=["name"])
    assert found.to_pylist() == [{"_key": "a", "name": "a"}, {"_key": "c", "name": "c"}]


def test_answers_come_in_the_declared_schema(store: GraphStore) -> None:
    put(store, "entities", entity("a"))
    declared = collection_named("entities")
    assert declared is not None
    assert next(store.scan("entities")).schema == declared.schema
    assert (
        store.get("entities", ["a"]).schema
        == store.get("entities", ["nobody"]).schema
        == declared.schema
    )


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([Term("cluster_id", "==", "x")], ["a", "d"]),
        ([Term("cluster_id", "!=", "x")], ["b"]),
        ([Term("cluster_id", "is_null")], ["c"]),
        ([Term("cluster_id", "not_null")], ["a", "b", "d"]),
        ([Term("cluster_id", "in", ["y", "z"])], ["b"]),
        ([Term("cluster_id", "in", [])], []),
        ([Term("deg_out", "<", 2)], ["a", "c"]),
        ([Term("deg_out", ">=", 2)], ["b", "d"]),
        ([Term("name_lower", "starts_with", "al")], ["a", "b"]),
        ([Term("name_lower", "starts_with", "AL")], []),
        ([Term("cluster_id", "==", "x"), Term("deg_out", ">", 3)], ["d"]),
        ([Term("_key", "in", ["d", "a", "nobody"]), Term("deg_out", ">", 0)], ["a", "d"]),
        ([Term("_key", "starts_with", "c")], ["c"]),
    ],
)
def test_predicates_run_in_the_store(
    store: GraphStore, terms: list[Term], expected: list[str]
) -> None:
    put(
        store,
        "entities",
        entity("a", name="Alpha", cluster_id="x", deg_out=1),
        entity("b", name="Albert", cluster_id="y", deg_out=2),
        entity("c", name="beta", deg_out=0),
        entity("d", name="delta", cluster_id="x", deg_out=4),
    )
    assert [key for batch in store.scan("entities", where=terms) for key in keys(batch)] == expected
    assert store.count("entities", where=terms) == len(expected)


def test_fractions_compare_as_numbers(store: GraphStore) -> None:
    put(store, "entities", entity("a"), entity("b"))
    put(store, "relations", relation("a", "b", weight=0.5), relation("b", "a", weight=0.75))
    assert store.count("relations", where=[Term("weight", "<=", 0.5)]) == 1


def test_times_compare_as_times(store: GraphStore) -> None:
    put(store, "entities", entity("a"), entity("b"))
    put(store, "relations", relation("a", "b", created=day(1)), relation("b", "a", created=day(9)))
    found = [
        batch.to_pylist() for batch in store.scan("relations", where=[Term("created", ">", day(5))])
    ]
    assert [row["_from"] for batch in found for row in batch] == ["entities/b"]


def test_scan_streams_in_batches_of_the_size_asked(store: GraphStore) -> None:
    put(store, "entities", *(entity(f"k{number:03}") for number in range(250)))
    sizes = [batch.num_rows for batch in store.scan("entities", batch_rows=100, columns=["_key"])]
    assert sizes == [100, 100, 50]


def test_scan_sees_the_store_as_it_was_when_it_began(store: GraphStore) -> None:
    put(store, "entities", *(entity(f"k{number:03}") for number in range(100)))
    scan = store.scan("entities", batch_rows=10)
    first = next(scan)
    store.delete("entities", keys=[f"k{number:03}" for number in range(50, 100)])
    assert first.num_rows + sum(batch.num_rows for batch in scan) == 100


def test_columns_asked_for_are_the_columns_answered(store: GraphStore) -> None:
    put(store, "entities", entity("a"))
    assert next(store.scan("entities", columns=["summary"])).schema.names == ["_key", "summary"]
    with pytest.raises(BadQuery, match="nonsense"):
        store.scan("entities", columns=["nonsense"])


def test_a_transaction_is_all_or_nothing_across_collections(store: GraphStore) -> None:
    with pytest.raises(RuntimeError, match="on purpose"):
        write_and_fail(store)
    assert store.count("entities") == store.count("relations") == 0
    with store.transaction(["entities", "relations"]) as inside:
        put(inside, "entities", entity("a"), entity("b"))
        put(inside, "relations", relation("a", "b"))
    assert (store.count("entities"), store.count("relations")) == (2, 1)


def write_and_fail(store: GraphStore) -> None:
    with store.transaction(["entities", "relations"]) as inside:
        put(inside, "entities", entity("a"), entity("b"))
        put(inside, "relations", relation("a", "b"))
        assert inside.count("relations") == 1
        raise RuntimeError("on purpose")


def test_readers_see_nothing_of_an_open_transaction(
    store: GraphStore, open_store: OpenStore
) -> None:
    reader = open_store(Mode.READ_ONLY)
    with store.transaction(["entities"]) as inside:
        put(inside, "entities", entity("a"))
        assert reader.count("entities") == 0
    assert reader.count("entities") == 1


def test_a_stream_of_batches_is_written_batch_by_batch(store: GraphStore) -> None:
    rows = table("entities", [entity(f"k{number}") for number in range(10)])
    written = store.upsert("entities", iter(rows.to_batches(max_chunksize=4)))
    assert written == 10
    assert store.count("entities") == 10


def test_counts_name_every_collection(store: GraphStore) -> None:
    put(store, "entities", entity("a"))
    counts = store.counts()
    assert counts["entities"] == 1
    assert counts["relations"] == 0
    assert list(counts) == [collection.name for collection in COLLECTIONS]


def test_unknown_collections_are_named(store: GraphStore) -> None:
    with pytest.raises(UnknownCollection, match="nonsense"):
        store.count("nonsense")
    with pytest.raises(UnknownCollection, match="nonsense"):
        store.upsert("nonsense", pa.table({"_key": ["a"]}))


def test_a_read_only_handle_reads_and_never_writes(
    store: GraphStore, open_store: OpenStore
) -> None:
    put(store, "entities", entity("a"))
    reader = open_store(Mode.READ_ONLY)
    assert reader.count("entities") == 1
    for write in (
        lambda: put(reader, "entities", entity("b")),
        lambda: reader.patch("entities", table("entities", [{"_key": "a", "summary": "x"}])),
        lambda: reader.delete("entities", keys=["a"]),
        lambda: reader.transaction(["entities"]).__enter__(),
        reader.provision,
    ):
        with pytest.raises(ReadOnly):
            write()
    assert everything(store, "entities")[0]["summary"] == ""


def test_only_an_admin_provisions(store: GraphStore, open_store: OpenStore) -> None:
    with pytest.raises(ReadOnly, match="admin"):
        store.provision()
    assert open_store(Mode.ADMIN).provision().created == ()


def test_a_sound_store_has_nothing_to_report(store: GraphStore) -> None:
    put(store, "entities", entity("a"), entity("b"))
    put(store, "relations", relation("a", "b"))
    assert store.check() == []
    assert store.dangling() == {}
    store.delete("entities", keys=["b"])
    assert store.dangling() == {"relations": [relation("a", "b")["_key"]]}
    assert any("relations" in problem for problem in store.check())


def test_describe_says_what_and_where_without_a_credential(store: GraphStore) -> None:
    facts = store.describe()
    assert facts["kind"] in ("sqlite", "arango")
    assert "of the double" not in str(facts)


def test_a_closed_store_says_so(open_store: OpenStore) -> None:
    handle = open_store(Mode.READ_WRITE)
    handle.close()
    with pytest.raises((StoreError, NotProvisioned)):
        handle.count("entities")
