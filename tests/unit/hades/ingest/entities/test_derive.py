"""The whole derivation: a pure function of the set of documents, in rows a store takes."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hades.ingest.edges import DerivedRows, derive
from hades.stores.row_checks import prepare, require
from schemas.ids import is_legal_key
from tests.patience import examples
from tests.unit.hades.ingest.entities.conftest import Row, build_view

CORPUS: list[Row] = [
    {
        "id": "d1",
        "title": "Lothair II (king)",
        "text": "Lothair II was a king of Lotharingia. He married Teutberga.",
    },
    {
        "id": "d2",
        "title": "Lothair II (film)",
        "text": "Lothair II is a film by John Smith. J. Smith met Gaumont.",
    },
    {
        "id": "d3",
        "title": "Teutberga",
        "text": "Teutberga was a queen of Lotharingia by marriage to King Lothair II.",
    },
    {
        "id": "d4",
        "title": "Gaumont",
        "text": "Gaumont is a company. Its director John Smith shot Lothair II.",
    },
    {
        "id": "d5",
        "text": "A support vector machine (SVM) is used.",
        "facts": {"names": [["Vapnik", "PERSON"]]},
    },
    {
        "id": "d6",
        "title": "Kernels",
        "source": "arxiv",
        "text": "We train support vector machines (SVMs) well.",
    },
    {
        "id": "d7",
        "title": "Kernels",
        "source": "arxiv",
        "text": "A support vector machine with a kernel function.",
    },
    {
        "id": "d8",
        "title": "Metz",
        "text": "Metz lies on the Moselle. The Moselle joins the Rhine at Koblenz.",
        "facts": {
            "triples": [["Moselle", "joins", "Rhine"], ["Metz", "lies on", "Moselle"]],
            "names": [["Rhine", None]],
        },
    },
]
TABLES = ("entities", "mentions", "relations", "merge_log")


def by_name(derived: DerivedRows, name: str) -> list[Row]:
    return [row for row in derived.entities.to_pylist() if row["name"] == name]


def mentioned(derived: DerivedRows, document: str) -> dict[str, list[int]]:
    names = {f"entities/{row['_key']}": row["name"] for row in derived.entities.to_pylist()}
    return {
        names[row["_to"]]: row["positions"]
        for row in derived.mentions.to_pylist()
        if row["_from"].startswith(f"doc_chunks/c{document}-")
    }


def same(one: DerivedRows, other: DerivedRows) -> bool:
    """Whether all tables of both are equal."""
    return all(
        getattr(one, field.name).equals(getattr(other, field.name)) for field in fields(DerivedRows)
    )


@pytest.fixture(scope="module")
def derived() -> DerivedRows:
    return derive(*build_view(CORPUS))


def test_every_table_is_taken_by_the_store(derived: DerivedRows) -> None:
    for name in TABLES:
        table = getattr(derived, name)
        assert prepare(require(name), table).num_rows == table.num_rows
        keys = table.column("_key").to_pylist()
        assert len(set(keys)) == len(keys)
        assert all(map(is_legal_key, keys))


def test_an_empty_corpus_gives_empty_tables() -> None:
    derived = derive(*build_view([]))
    assert [getattr(derived, name).num_rows for name in TABLES] == [0, 0, 0, 0]


def test_qualified_titles_are_two_things_and_each_text_means_its_own(derived: DerivedRows) -> None:
    assert (
        len(by_name(derived, "Lothair II (king)"))
        == len(by_name(derived, "Lothair II (film)"))
        == 1
    )
    assert mentioned(derived, "d1")["Lothair II (king)"] == [0]
    assert mentioned(derived, "d2")["Lothair II (film)"] == [0]


def test_an_ambiguous_mention_goes_where_the_neighbourhood_is(derived: DerivedRows) -> None:
    assert "Lothair II (king)" in mentioned(derived, "d3")
    assert "Lothair II (film)" in mentioned(derived, "d4")


def test_without_a_neighbourhood_it_goes_to_a_neutral_thing() -> None:
    stray = {"id": "d9", "text": "Somebody spoke of Lothair II yesterday."}
    derived = derive(*build_view([*CORPUS, stray]))
    assert list(mentioned(derived, "d9")) == ["Lothair II"]


def test_initials_mean_the_only_full_name_of_the_document(derived: DerivedRows) -> None:
    text = CORPUS[1]["text"]
    assert mentioned(derived, "d2")["John Smith"] == [text.index("John"), text.index("J. Smith")]
    assert ("J. Smith", "John Smith", "initials") in log_of(derived)


def test_an_explained_acronym_is_its_long_form_and_plurals_are_one(derived: DerivedRows) -> None:
    (entity,) = by_name(derived, "support vector machine")
    assert set(entity["aliases"]) == {"SVM", "SVMs", "support vector machines"}


def test_papers_of_one_title_stay_apart(derived: DerivedRows) -> None:
    papers = by_name(derived, "Kernels")
    assert {paper["type"] for paper in papers} == {"paper"}
    assert len(papers) == 2


def test_given_kind_makes_a_person_and_an_untitled_document_mentions_it(
    derived: DerivedRows,
) -> None:
    (person,) = by_name(derived, "Vapnik")
    assert (person["type"], person["entity_type"], person["frequency"]) == ("person", "PERSON", 1)
    assert mentioned(derived, "d5")["Vapnik"] == []


def test_names_given_with_two_kinds_are_two_things() -> None:
    rows = [
        {
            "id": "a",
            "text": "Washington led the army.",
            "facts": {"names": [["Washington", "PERSON"]]},
        },
        {
            "id": "b",
            "text": "They flew to Washington.",
            "facts": {"names": [["Washington", "GPE"]]},
        },
    ]
    derived = derive(*build_view(rows))
    assert {row["entity_type"] for row in by_name(derived, "Washington")} == {"PERSON", "GPE"}
    assert len({row["_to"] for row in derived.mentions.to_pylist()}) == 2


def test_a_triple_becomes_a_labelled_relation_with_its_sentence(derived: DerivedRows) -> None:
    (joins,) = [row for row in derived.relations.to_pylist() if row["label"] == "joins"]
    assert (joins["_from"], joins["_to"]) == ("entities/moselle", "entities/rhine")
    begin, end = joins["provenance"]["span"]
    assert CORPUS[7]["text"][begin:end] == "The Moselle joins the Rhine at Koblenz"


def test_a_title_refers_to_what_its_text_names(derived: DerivedRows) -> None:
    rows = [
        row
        for row in derived.relations.to_pylist()
        if row["type"] == "refers_to" and not row["label"]
    ]
    pairs = {(row["_from"], row["_to"]): row["evidence_count"] for row in rows}
    assert pairs["entities/metz", "entities/moselle"] == 2
    assert "documents/d8" in derived.titles.column("document").to_pylist()


def test_a_title_counts_in_every_chunk_of_its_document() -> None:
    row = {"id": "a", "title": "Quarterly", "text": "One part. Another part.", "cuts": [0, 10, 23]}
    derived = derive(*build_view([row]))
    assert derived.mentions.column("count").to_pylist() == [1, 1]
    assert by_name(derived, "Quarterly")[0]["frequency"] == 2


def test_code_symbols_keep_their_exact_names_apart() -> None:
    symbols = [
        {"name": "Run", "qualified_name": "pkg.Run"},
        {"name": "run", "qualified_name": "pkg.run"},
    ]
    row = {
        "id": "a",
        "source": "workspace",
        "text": "see pkg.Run there",
        "facts": {"code": {"symbols": symbols}},
    }
    derived = derive(*build_view([row]))
    assert len(by_name(derived, "pkg.Run")) == 1
    assert len(by_name(derived, "pkg.run")) == 1


def test_every_alias_in_the_log_is_a_spelling_of_an_entity(derived: DerivedRows) -> None:
    names = set(derived.entities.column("name").to_pylist())
    assert {canonical for _, canonical, _ in log_of(derived)} <= names


SUBSETS = st.lists(st.sampled_from(CORPUS), unique_by=lambda row: row["id"], min_size=1)


@settings(max_examples=examples(8), deadline=None)
@given(SUBSETS, st.randoms(use_true_random=False))
def test_order_of_documents_and_chunks_does_not_matter(rows: list[Row], random: Any) -> None:
    view = build_view(rows)
    chunks = list(range(view[0].num_rows))
    random.shuffle(chunks)
    shuffled = rows[:]
    random.shuffle(shuffled)
    other = (view[0].take(pa.array(chunks)), build_view(shuffled)[1])
    assert same(derive(*view), derive(*other))


@settings(max_examples=examples(8), deadline=None)
@given(SUBSETS)
def test_every_offset_shows_a_spelling_of_its_entity(rows: list[Row]) -> None:
    derived = derive(*build_view(rows))
    texts = {f"doc_chunks/c{row['id']}-0": row["text"] for row in rows}
    spellings = {
        f"entities/{row['_key']}": {row["name"], *row["aliases"]}
        for row in derived.entities.to_pylist()
    }
    for mention in derived.mentions.to_pylist():
        text = texts[mention["_from"]]
        for place in mention["positions"]:
            assert any(text.startswith(spelling, place) for spelling in spellings[mention["_to"]])
        assert mention["count"] >= max(1, len(mention["positions"]))


@settings(max_examples=examples(8), deadline=None)
@given(SUBSETS)
def test_every_relation_is_read_from_inside_a_document(rows: list[Row]) -> None:
    texts = {f"documents/{row['id']}": row["text"] for row in rows}
    for relation in derive(*build_view(rows)).relations.to_pylist():
        begin, end = relation["provenance"]["span"]
        assert 0 <= begin < end <= len(texts[relation["provenance"]["doc"]])
        assert relation["_from"] != relation["_to"]
        if relation["type"] == "related_to":
            assert relation["_from"] < relation["_to"]


def test_metadata_says_why_a_name_is_known(derived: DerivedRows) -> None:
    (entity,) = by_name(derived, "Rhine")
    assert json.loads(entity["metadata"])["origin"] == ["given", "name"]


def test_names_that_fold_alike_are_one_thing() -> None:
    rows = [
        {"id": "a", "title": "Abdul-Aziz Al Saud", "text": "x"},
        {"id": "b", "text": "He met Abdul Aziz Al Saud."},
    ]
    assert mentioned(derive(*build_view(rows)), "b") == {"Abdul-Aziz Al Saud": [7]}


def test_the_end_of_a_triple_that_no_text_mentions_is_a_thing_of_its_own() -> None:
    triple = {"triples": [["India and Pakistan", "border", "Rhine"]]}
    rows = [
        {
            "id": "x",
            "title": "Asia",
            "text": "India and Pakistan met. India won. Pakistan won.",
            "facts": triple,
        },
        {"id": "y", "title": "Cup", "text": "India and Pakistan played. India won. Pakistan lost."},
    ]
    derived = derive(*build_view(rows))
    ends = {row["_from"] for row in derived.relations.to_pylist() if row["label"] == "border"}
    assert ends == {"entities/india_and_pakistan"}


def test_the_merge_log_is_sorted_and_says_nothing_twice(derived: DerivedRows) -> None:
    rows = derived.merge_log.select(["alias", "canonical", "rule"]).to_pylist()
    said = [tuple(row.values()) for row in rows]
    assert said == sorted(set(said))
    assert all(alias != canonical for alias, canonical, _ in said)


def test_domains_come_from_the_documents_of_an_entity() -> None:
    domains = [["law", "news"], ["law", "news"], ["art"], []]
    rows = [
        {
            "id": f"d{place}",
            "title": f"Page {place}",
            "text": "They saw Lotharingia.",
            "domains": one,
        }
        for place, one in enumerate(domains)
    ]
    (entity,) = by_name(derive(*build_view(rows)), "Lotharingia")
    assert (entity["domain"], entity["domains"]) == ("law", ["art", "law", "news"])
    (plain,) = by_name(derive(*build_view(rows)), "Page 3")
    assert (plain["domain"], plain["domains"]) == (None, [])


def test_code_and_addresses_give_no_names() -> None:
    code = "```python\nfrom datasette import hookimpl\nawait datasette.Invoke_Startup()\n```\n"
    rows = [
        {
            "id": f"d{n}",
            "text": f"We met Ada Lovelace on day {n}.\n\n{code}\nSee "
            "https://github.com/Simonw/Datasette now.",
        }
        for n in range(3)
    ]
    assert derive(*build_view(rows)).entities.column("name").to_pylist() == ["Ada Lovelace"]


def test_an_acronym_is_nobodys_family_name() -> None:
    rows = [{"id": f"d{n}", "text": "They read Plain Words SQL. They like SQL."} for n in range(2)]
    assert "SQL" in mentioned(derive(*build_view(rows)), "d0")


def log_of(derived: DerivedRows) -> set[tuple[str, str, str]]:
    return {(row["alias"], row["canonical"], row["rule"]) for row in derived.merge_log.to_pylist()}


def test_the_name_of_a_file_is_no_code_and_does_not_end_a_term() -> None:
    rows = [
        {"id": "ml_intro.txt", "title": "ml_intro", "text": "Learning is machine learning."},
        {"id": "neural.txt", "title": "neural", "text": "All neural networks are neural networks."},
        {"id": "url_for.md", "title": "url_for", "text": "# url_for\n\nGives an address."},
    ]
    entities = derive(*build_view(rows)).entities.to_pylist()
    kinds = {row["name"]: row["entity_type"] for row in entities}
    assert kinds["ml_intro"] == "CONCEPT"
    assert kinds["url_for"] == "CODE"
    assert "neural networks" in kinds
