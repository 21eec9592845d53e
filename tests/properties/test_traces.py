"""Whatever row of whatever collection tells of a forgotten document, the search of the whole store finds it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hades.ingest.forget import RUN_WORDS, Traces, find_traces, left_of, runs_of, traces_of
from hades.ingest.phases import ingest
from hades.ports.store import GraphStore, Mode
from hades.stores.sqlite.store import SqliteStore
from schemas.catalogue import COLLECTIONS, Collection
from schemas.record import TIME, Column
from tests.contract.examples import day, entity, everything, put
from tests.unit.hades.ingest.corpora import PEOPLE, Listed, new_context

DOCUMENT = "d_0123456789abcdef012345678"
CHUNK = "c_fedcba9876543210fedcba987"
RUN = "hid the ledger below the vermilion gate"
TRACES = Traces((CHUNK, DOCUMENT), ("compiler", "grace_hopper-0123456789"), ("0" * 25,), (RUN,))
TELLING = (
    f"documents/{DOCUMENT}",
    CHUNK,
    "entities/compiler",
    "grace_hopper-0123456789",
    "relations/" + "0" * 25,
    f"She said: {RUN}. And then?",
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphStore]:
    opened = SqliteStore.open(tmp_path_factory.mktemp("traces") / "graph.db", Mode.ADMIN)
    opened.provision()
    yield opened
    opened.close()


def plain_value(column: Column) -> Any:
    """A value that tells nothing."""
    if column.choices:
        return column.choices[0]
    if column.is_json:
        return "{}"
    if pa.types.is_list(column.type):
        return []
    if pa.types.is_struct(column.type):
        return {field.name: nothing(field.type) for field in column.type}
    return nothing(column.type)


def nothing(kind: pa.DataType) -> Any:
    if kind == TIME:
        return day(1)
    if pa.types.is_list(kind):
        return []
    return "x" if pa.types.is_string(kind) else kind.to_pandas_dtype()(1)


def telling_value(column: Column, told: str) -> Any:
    """A value that tells, as deep as the column goes; None where it can hold no text of ours."""
    if column.choices or column.is_vector or column.name in ("_key", "_from", "_to"):
        return None
    if column.is_json:
        return json.dumps({"a": [{"b": told}]})
    if pa.types.is_struct(column.type):
        texts = [field.name for field in column.type if pa.types.is_string(field.type)]
        return {**plain_value(column), texts[0]: told} if texts else None
    if pa.types.is_list(column.type):
        return ["x", told] if pa.types.is_string(column.type.value_type) else None
    return told if pa.types.is_string(column.type) else None


def plain_row(store: GraphStore, collection: Collection, key: str) -> dict[str, Any]:
    """A row of required columns; the ends of an edge are made first."""
    needed = [one for one in collection.columns if one.default is None and not one.nullable]
    row = {one.name: plain_value(one) for one in needed} | {"_key": key}
    if collection.edge:
        for end, joined in (("_from", collection.edge.sources[0]), ("_to", collection.edge.targets[-1])):
            other = next(one for one in COLLECTIONS if one.name == joined)
            put(store, joined, plain_row(store, other, "end"))
            row[end] = f"{joined}/end"
    return row


@pytest.mark.parametrize("collection", COLLECTIONS, ids=lambda one: one.name)
def test_a_row_that_tells_is_found_in_every_collection_and_column(store: GraphStore, collection: Collection) -> None:
    telling = {CHUNK: plain_row(store, collection, CHUNK)}
    for column in collection.columns:
        for number, said in enumerate(TELLING):
            value = telling_value(column, said)
            if value is not None:
                key = f"{column.name}.{number}"
                telling[key] = {**plain_row(store, collection, key), column.name: value}
    for row in (*telling.values(), plain_row(store, collection, "silent")):
        put(store, collection.name, row)
    assert find_traces(store, TRACES) == {collection.name: sorted(telling)}
    for one in COLLECTIONS:
        store.delete(one.name, keys=[*telling, "silent", "end"])


def test_a_bare_key_of_an_entity_counts_where_keys_are_kept_and_not_where_people_write(store: GraphStore) -> None:
    put(store, "entities", entity("compiler-1234567890", name="compiler"))
    put(store, "quarantine", {"_key": "q", "source": "x", "uri": "entities/compiler_design", "reason": "compiler"})
    assert find_traces(store, TRACES) == {}
    put(store, "cluster_membership_journal", {"_key": "j", "entity": "compiler", "build": "b", "at": day(1)})
    assert find_traces(store, TRACES) == {"cluster_membership_journal": ["j"]}


def test_words_that_another_document_writes_are_nobodys_trace(tmp_path: Path) -> None:
    context = new_context(tmp_path)
    common = "This page may be copied under the same terms."
    first = replace(PEOPLE[0], text=f"{PEOPLE[0].text} {common}", origin="a")
    second = replace(PEOPLE[1], text=f"{PEOPLE[1].text}\n{common}", origin="b")
    ingest(context, Listed([first, second]))
    forgotten = next(row["_key"] for row in everything(context.store, "documents") if row["origin"] == "b")
    before = traces_of(context.store, [forgotten])
    assert "This page may be copied under" in before.runs
    context.store.delete("documents", keys=[forgotten])
    assert "This page may be copied under" not in left_of(context.store, before).runs


@given(text=st.text(alphabet='ab "\\\n\té.', max_size=400), limit=st.integers(1, 8))
def test_runs_stand_in_the_text_and_in_its_json_and_are_few(text: str, limit: int) -> None:
    runs = runs_of(text, limit)
    assert len(runs) <= limit
    for run in runs:
        assert len(run.split()) == RUN_WORDS
        assert run in text
        assert run in json.dumps({"text": text}, ensure_ascii=False)
