"""Whatever row of whatever collection tells of a forgotten document, the search of the whole store
finds it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hades.ingest.forget import RUN_WORDS, find_traces, forget_documents, runs_of
from hades.ingest.phases import ingest
from hades.ports.store import GraphStore
from tests.contract.examples import day, entity, everything, put, relation
from tests.homes import empty_store
from tests.unit.hades.ingest.corpora import PEOPLE, Listed, new_context

DOCUMENT = "d_0123456789abcdef012345678"
CHUNK = "c_fedcba9876543210fedcba987"
RUN = "hid the ledger below the vermilion gate"
TRACES = ((CHUNK, DOCUMENT), ("compiler", "grace_hopper-0123456789"), ("0" * 25,), (RUN,))
TELLING = (
    f"documents/{DOCUMENT}",
    CHUNK,
    "entities/compiler",
    "grace_hopper-0123456789",
    "relations/" + "0" * 25,
    f"She said: {RUN}. And then?",
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[GraphStore]:
    opened = empty_store(tmp_path / "graph.db")
    yield opened
    opened.close()


@pytest.mark.parametrize("said", TELLING)
def test_a_row_that_tells_is_found_in_its_key_its_texts_lists_structures_and_json(
    store: GraphStore, said: str
) -> None:
    log = {"query": "who?", "recipe": "auto", "snapshot": "s", "at": day(1)}
    aside = {"source": "x", "uri": "u", "reason": "r"}
    put(store, "entities", entity("a"), entity("b"), entity("list", aliases=["x", said]))
    place = {"doc": said, "span": [0, 1]}
    put(
        store,
        "relations",
        relation("a", "b", _key="struct", provenance=place),
        relation("b", "a", _key="silent"),
    )
    put(store, "query_logs", {"_key": "json", **log, "results": json.dumps({"a": [{"b": said}]})})
    put(store, "quarantine", {"_key": CHUNK, **aside}, {"_key": "text", **aside, "detail": said})
    assert find_traces(store, *TRACES) == {
        "entities": ["list"],
        "quarantine": [CHUNK, "text"],
        "query_logs": ["json"],
        "relations": ["struct"],
    }


def test_a_bare_key_of_an_entity_counts_where_keys_are_kept_and_not_where_people_write(
    store: GraphStore,
) -> None:
    put(store, "entities", entity("compiler-1234567890", name="compiler"))
    put(
        store,
        "quarantine",
        {"_key": "q", "source": "x", "uri": "entities/compiler_design", "reason": "compiler"},
    )
    assert find_traces(store, *TRACES) == {}
    put(
        store,
        "cluster_membership_journal",
        {"_key": "j", "entity": "compiler", "build": "b", "at": day(1)},
    )
    assert find_traces(store, *TRACES) == {"cluster_membership_journal": ["j"]}


def test_words_that_another_document_writes_are_nobodys_trace(tmp_path: Path) -> None:
    context = new_context(tmp_path)
    common = "This page may be copied under the same terms."
    first = replace(PEOPLE[0], text=f"{PEOPLE[0].text} {common}", origin="a")
    second = replace(PEOPLE[1], text=f"{PEOPLE[1].text}\n{common}", origin="b")
    ingest(context, Listed([first, second]))
    run = "This page may be copied under"
    assert run in runs_of(second.text, 64)
    assert forget_documents(context.store, context.embedder, ["b"]).is_complete
    assert [run in row["text"] for row in everything(context.store, "documents")] == [True]


@given(text=st.text(alphabet='ab "\\\n\té.', max_size=400), limit=st.integers(1, 8))
def test_runs_stand_in_the_text_and_in_its_json_and_are_few(text: str, limit: int) -> None:
    runs = runs_of(text, limit)
    assert len(runs) <= limit
    for run in runs:
        assert len(run.split()) == RUN_WORDS
        assert run in text
        assert run in json.dumps({"text": text}, ensure_ascii=False)
