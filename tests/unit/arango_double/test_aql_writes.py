"""Writing with AQL: modes, OLD and NEW, merging, UPSERT, and no access after a write."""

import pytest

from tests.arango_double.errors import ServerError
from tests.unit.arango_double.engine import Engine


@pytest.fixture
def store(engine: Engine) -> Engine:
    engine.collection("c", {"_key": "a", "n": 1, "o": {"x": 1}})
    engine.edges("e", ("c/a", "c/b"))
    return engine


def docs(engine: Engine) -> dict[str, dict[str, object]]:
    system = ("_key", "_id", "_rev")
    return {
        key: {name: value for name, value in document.items() if name not in system}
        for key, document in engine.database.collection("c").documents.items()
    }


def test_insert_returns_the_new_document_and_counts_writes(store: Engine) -> None:
    assert store.run("FOR i IN 1..2 INSERT {_key: CONCAT('k', i), n: i} INTO c RETURN NEW._id") == ["c/k1", "c/k2"]
    assert store.last.stats.writes_executed == 2  # type: ignore[union-attr]


def test_inserting_an_existing_key_is_1210_and_rolls_the_whole_query_back(store: Engine) -> None:
    with pytest.raises(ServerError) as caught:
        store.run("FOR k IN ['new', 'a'] INSERT {_key: k} INTO c")
    assert caught.value.number == 1210
    assert "conflicting key: a" in caught.value.message
    assert list(docs(store)) == ["a"]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("ignore", {"n": 1, "o": {"x": 1}}), ("replace", {"p": 2}), ("update", {"n": 1, "o": {"x": 1}, "p": 2})],
)
def test_overwrite_modes(store: Engine, mode: str, expected: dict[str, object]) -> None:
    store.run("INSERT {_key: 'a', p: 2} INTO c OPTIONS {overwriteMode: @mode}", {"mode": mode})
    assert docs(store)["a"] == expected


def test_ignored_inserts_give_null_and_have_no_old(store: Engine) -> None:
    query = "FOR k IN ['a', 'z'] INSERT {_key: k} INTO c OPTIONS {overwriteMode: 'ignore'} RETURN "
    assert store.run(query + "NEW._key") == [None, "z"]
    assert store.last.stats.writes_ignored == 1  # type: ignore[union-attr]
    assert store.error(query + "OLD") == 1203
    query = "INSERT {_key: 'a', n: 5} INTO c OPTIONS {overwriteMode: 'update'} RETURN [OLD.n, NEW.n]"
    assert store.run(query) == [[1, 5]]


def test_update_merges_and_may_drop_nulls(store: Engine) -> None:
    store.run("UPDATE 'a' WITH {o: {y: 2}, m: null} IN c")
    assert docs(store)["a"] == {"n": 1, "o": {"x": 1, "y": 2}, "m": None}
    store.run("UPDATE {_key: 'a', o: {z: 1}, n: null} IN c OPTIONS {mergeObjects: false, keepNull: false}")
    assert docs(store)["a"] == {"o": {"z": 1}, "m": None}


def test_replace_and_remove_by_document_key_or_id(store: Engine) -> None:
    store.run("FOR d IN c REPLACE d WITH {r: 1} IN c")
    assert docs(store)["a"] == {"r": 1}
    assert store.run("REMOVE {_id: 'c/a'} IN c RETURN OLD.r") == [1]
    assert docs(store) == {}


def test_writes_to_missing_documents_fail_unless_errors_are_ignored(store: Engine) -> None:
    assert store.error("UPDATE 'zz' WITH {} IN c") == 1202
    assert store.error("REMOVE 'zz' IN c") == 1202
    assert store.run("FOR k IN ['zz', 'a'] UPDATE k WITH {m: 1} IN c OPTIONS {ignoreErrors: true} RETURN NEW._key") == [
        "a"
    ]
    assert store.last.stats.writes_ignored == 1  # type: ignore[union-attr]


def test_a_stale_revision_is_a_conflict_when_revisions_count(store: Engine) -> None:
    stale = dict(store.database.collection("c").documents["a"])
    store.run("UPDATE 'a' WITH {n: 2} IN c")
    assert store.error("UPDATE @d WITH {n: 3} IN c OPTIONS {ignoreRevs: false}", {"d": stale}) == 1200
    store.run("UPDATE @d WITH {n: 3} IN c", {"d": stale})
    assert docs(store)["a"]["n"] == 3


def test_upsert_inserts_then_updates_and_tells_which(store: Engine) -> None:
    query = """
        FOR n IN [7, 7]
          UPSERT {name: 'x'} INSERT {name: 'x', n} UPDATE {n: OLD.n + 1} IN c
          RETURN {inserted: OLD == null, n: NEW.n}
    """
    assert store.run(query) == [{"inserted": True, "n": 7}, {"inserted": False, "n": 8}]
    assert len(docs(store)) == 2


def test_upsert_that_does_not_read_its_own_writes_inserts_twice(store: Engine) -> None:
    store.run("FOR i IN 1..2 UPSERT {name: 'x'} INSERT {name: 'x'} UPDATE {} IN c OPTIONS {readOwnWrites: false}")
    assert len(docs(store)) == 3


def test_upsert_by_condition_replaces(store: Engine) -> None:
    store.run("UPSERT FILTER CURRENT.n == 1 INSERT {n: 0} REPLACE {n: 9} IN c")
    assert docs(store) == {"a": {"n": 9}}


def test_unique_indexes_hold_inside_and_across_queries(store: Engine) -> None:
    store.database.add_index("c", {"type": "persistent", "fields": ["n"], "unique": True})
    assert store.error("INSERT {n: 1} INTO c") == 1210
    assert store.error("FOR i IN 1..2 INSERT {n: 5} INTO c") == 1210
    assert store.error("INSERT {m: 1} INTO c") == 0
    assert store.error("INSERT {m: 2} INTO c") == 1210
    assert store.error("UPDATE 'a' WITH {n: 1} IN c") == 0


@pytest.mark.parametrize("key", ["with space", "", "ü", "a/b", "x" * 255])
def test_illegal_keys_are_refused(store: Engine, key: str) -> None:
    assert store.error("INSERT {_key: @k} INTO c", {"k": key}) == 1221


def test_legal_keys_include_punctuation(store: Engine) -> None:
    key = "a_-.@()+,=;$!*'%:Z9"
    assert store.run("INSERT {_key: @k} INTO c RETURN NEW._key", {"k": key}) == [key]


@pytest.mark.parametrize(
    "edge", [{}, {"_from": "c/a"}, {"_from": "c/a", "_to": "nocollection"}, {"_from": 1, "_to": 2}]
)
def test_edges_need_both_ends(store: Engine, edge: dict[str, object]) -> None:
    assert store.error("INSERT @e INTO e", {"e": edge}) == 1233


def test_definitions_of_graphs_do_not_bind_plain_writes(store: Engine) -> None:
    assert store.error("INSERT {_from: 'anything/x', _to: 'else/y'} INTO e") == 0


def test_only_objects_can_be_inserted(store: Engine) -> None:
    assert store.error("INSERT 'text' INTO c") == 1227


@pytest.mark.parametrize(
    "query",
    [
        "INSERT {} INTO c FOR d IN c RETURN d",
        "FOR i IN 1..2 INSERT {} INTO c INSERT {} INTO c",
        "INSERT {} INTO c RETURN LENGTH(c)",
        "INSERT {} INTO c RETURN DOCUMENT('e/x')",
        "INSERT {} INTO c FOR v IN 1..1 OUTBOUND 'c/a' e RETURN v",
        "INSERT {} INTO c LET s = (FOR d IN c RETURN d) RETURN s",
        "LET s = (INSERT {} INTO c RETURN NEW) FOR d IN c RETURN d",
    ],
)
def test_a_collection_cannot_be_touched_after_it_was_written(store: Engine, query: str) -> None:
    assert store.error(query) == 1579


def test_another_collection_can(store: Engine) -> None:
    assert store.run("INSERT {_key: 'q'} INTO c FOR x IN e RETURN x._key") == ["a-b"]
    assert store.error("FOR d IN c INSERT {of: d._key} INTO c") == 0


def test_old_and_new_exist_only_after_the_write(store: Engine) -> None:
    assert store.error("FOR d IN c UPDATE d WITH {n: NEW.n} IN c") == 1203
    assert store.error("INSERT {} INTO c RETURN OLD") == 1203
    assert store.error("REMOVE 'a' IN c RETURN NEW") == 1203


def test_a_limit_after_a_write_does_not_undo_it(store: Engine) -> None:
    assert len(store.run("FOR i IN 1..3 INSERT {} INTO c LIMIT 1 RETURN NEW")) == 1
    assert len(docs(store)) == 4


def test_a_changed_document_moves_to_the_end_of_a_scan(store: Engine) -> None:
    store.run("FOR k IN ['b', 'd'] INSERT {_key: k} INTO c")
    store.run("UPDATE 'a' WITH {} IN c")
    assert store.run("FOR d IN c RETURN d._key") == ["b", "d", "a"]


def test_in_may_be_membership_or_the_target(store: Engine) -> None:
    assert store.run("LET l = [1] INSERT {ok: 1 IN l} IN c RETURN NEW.ok") == [True]
    assert store.run("LET l = [{_key: 'm'}] FOR d IN l INSERT d IN c RETURN NEW._key") == ["m"]
    assert store.run("LET l = ['a'] UPDATE ('a' IN l ? 'a' : 'b') WITH {n: 4} IN 'c' RETURN NEW.n") == [4]
