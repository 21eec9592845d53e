"""What later stages built on a document: gone or corrected the moment the document is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hades import stage_ledger
from hades.ingest.forget import Certificate, forget_documents
from hades.ingest.phases import IngestContext, ingest
from schemas.ids import sha256_text
from schemas.telemetry import FORGOTTEN, ShownResults
from schemas.topics import LOST
from tests.contract.examples import everything, put
from tests.unit.hades.ingest.corpora import PEOPLE, Listed, new_context, passage, people_context
from tests.unit.hades.ingest.later_rows import (
    TERMS,
    chunk_of,
    entity_named,
    put_bridge,
    put_log,
    put_topics,
    quote_of,
)


@pytest.fixture
def context(tmp_path: Path) -> IngestContext:
    return people_context(tmp_path)


def forget(context: IngestContext, origin: str = "p4") -> Certificate:
    certificate = forget_documents(context.store, context.embedder, [origin])
    assert certificate.left_behind == {}
    return certificate


def of(context: IngestContext, collection: str) -> dict[str, dict[str, Any]]:
    return {row["_key"]: row for row in everything(context.store, collection)}


def topics_of_people(context: IngestContext, **fields: Any) -> tuple[str, str]:
    """One topic, of Ada Lovelace and Grace Hopper, worded from p1 and p4."""
    store = context.store
    ada, grace = entity_named(store, "Ada Lovelace"), entity_named(store, "Grace Hopper")
    quotes = [quote_of(chunk_of(store, "London")), quote_of(chunk_of(store, "compiler"))]
    said = {"terms": TERMS, "evidence": quotes, "written_by": "", "written_from": ""}
    summary = " ".join(quote["text"] for quote in quotes)
    worded = {
        "name": "grace hopper, ada",
        "summary": summary,
        "metadata": json.dumps(said),
        **fields,
    }
    put_topics(store, {"one": [ada, grace]}, **worded)
    return ada, grace


def test_a_topic_says_only_what_its_other_members_and_quotes_say(context: IngestContext) -> None:
    topics_of_people(context)
    certificate = forget(context)
    assert certificate.corrected["clusters"] == 2
    for topic in of(context, "clusters").values():
        kept = json.loads(topic["metadata"])
        assert (topic["name"], topic["size"], kept["terms"]) == ("ada", 1, ["ada", "lovelace"])
        assert [quote["doc"] for quote in kept["evidence"]] == [
            chunk_of(context.store, "London")["document"]
        ]
        assert topic["summary"] == chunk_of(context.store, "London")["text"]
    marks = {key: json.loads(row["metadata"])[LOST] for key, row in of(context, "clusters").items()}
    assert marks == {"one": 1, "top": 0}


def test_what_a_language_model_wrote_about_it_gives_way_to_the_quotes_that_stand(
    context: IngestContext,
) -> None:
    quotes = [
        quote_of(chunk_of(context.store, "London")),
        quote_of(chunk_of(context.store, "compiler")),
    ]
    said = {"terms": TERMS, "evidence": quotes, "written_by": "a model", "written_from": "a hash"}
    topics_of_people(context, summary="Two women wrote programs.", metadata=json.dumps(said))
    forget(context)
    topic = of(context, "clusters")["one"]
    kept = json.loads(topic["metadata"])
    assert topic["summary"] == quotes[0]["text"]
    assert (kept["written_by"], kept["written_from"]) == ("", "")


def test_a_topic_named_after_a_forgotten_member_is_named_after_another(
    context: IngestContext,
) -> None:
    topics_of_people(context, name="Grace Hopper", metadata='{"evidence":[],"terms":[]}')
    forget(context)
    assert {row["name"] for row in of(context, "clusters").values()} == {"Ada Lovelace"}


def test_a_topic_goes_with_its_last_member_and_a_super_topic_with_its_last_topic(
    context: IngestContext,
) -> None:
    store = context.store
    put_topics(store, {"one": [entity_named(store, "Grace Hopper")]}, name="grace hopper")
    certificate = forget(context)
    assert of(context, "clusters") == of(context, "cluster_edges") == {}
    assert certificate.removed["clusters"] == 2
    done = stage_ledger.last_completion(store, stage_ledger.HIERARCHY)
    assert done is not None
    assert done.report == {"biggest": []}


def test_the_journal_drops_entities_that_are_gone(context: IngestContext) -> None:
    ada, _ = topics_of_people(context)
    forget(context)
    assert [row["entity"] for row in of(context, "cluster_membership_journal").values()] == [ada]


def test_bridges_over_what_is_gone_go_and_the_others_stay(context: IngestContext) -> None:
    relations = everything(context.store, "relations")
    grace = entity_named(context.store, "Grace Hopper")
    over = next(row for row in relations if f"entities/{grace}" in (row["_from"], row["_to"]))
    beside = next(
        row for row in relations if row["provenance"] and "Babbage" in chunk_text(context, row)
    )
    put_bridge(context.store, "over", over, pinned=True)
    put_bridge(context.store, "beside", beside)
    forget(context)
    assert list(of(context, "bridge_cache")) == ["beside"]


def chunk_text(context: IngestContext, relation: dict[str, Any]) -> str:
    document = of(context, "documents")[relation["provenance"]["doc"].partition("/")[2]]
    start, end = relation["provenance"]["span"]
    return str(document["text"][start:end])


def test_a_bridge_whose_edge_is_also_stated_elsewhere_names_that_place(tmp_path: Path) -> None:
    context = new_context(tmp_path)
    triple = ("Ada Lovelace", "knew", "Charles Babbage")
    twice = [
        passage(f"t{n}", f"Letter {n}", "Ada Lovelace knew Charles Babbage.", triples=(triple,))
        for n in (1, 2)
    ]
    ingest(context, Listed([*PEOPLE, *twice]))
    first = next(row for row in everything(context.store, "relations") if row["label"] == "knew")
    put_bridge(context.store, "pinned", first, pinned=True)
    origin = of(context, "documents")[first["provenance"]["doc"].partition("/")[2]]["origin"]
    certificate = forget(context, origin)
    step = json.loads(of(context, "bridge_cache")["pinned"]["provenance"])["edges"][0]
    now = of(context, "relations")[first["_key"]]["provenance"]
    assert certificate.corrected["bridge_cache"] == 1
    assert (
        (step["doc"], step["span"])
        == (now["doc"], now["span"])
        != (first["provenance"]["doc"], None)
    )


def test_a_log_keeps_its_counts_and_loses_what_is_gone(context: IngestContext) -> None:
    store = context.store
    relations = everything(store, "relations")
    grace = f"entities/{entity_named(store, 'Grace Hopper')}"
    gone = next(row for row in relations if grace in (row["_from"], row["_to"]))
    kept = next(
        row for row in relations if row["provenance"] and "Babbage" in chunk_text(context, row)
    )
    put_log(
        store,
        "who?",
        [gone, kept],
        [chunk_of(store, "compiler")["_key"], chunk_of(store, "London")["_key"]],
    )
    before = ShownResults.model_validate_json(of(context, "query_logs")["q_1"]["results"])
    forget(context)
    after = ShownResults.model_validate_json(of(context, "query_logs")["q_1"]["results"])
    assert after.paths[0] == before.paths[0].model_copy(
        update={"nodes": (), "edges": (), "why": FORGOTTEN}
    )
    assert after.passages[0] == before.passages[0].model_copy(update={"id": FORGOTTEN})
    assert (after.paths[1], after.passages[1]) == (before.paths[1], before.passages[1])
    assert after.hierarchy == before.hierarchy


def test_a_question_that_quotes_it_loses_its_words(context: IngestContext) -> None:
    put_log(
        context.store,
        'who said "Grace Hopper wrote the first compiler. She admired Ada Lovelace."?',
        [],
        [],
    )
    assert forget(context).corrected["query_logs"] == 1
    assert of(context, "query_logs")["q_1"]["query"] == FORGOTTEN


def test_an_answer_logged_from_an_older_snapshot_is_cleared_by_the_next_run(
    context: IngestContext,
) -> None:
    chunk = chunk_of(context.store, "compiler")["_key"]
    forget(context)
    put_log(context.store, "who?", [], [chunk])
    assert ingest(context, Listed(PEOPLE[:3])).derived == {}
    shown = ShownResults.model_validate_json(of(context, "query_logs")["q_1"]["results"])
    assert [one.id for one in shown.passages] == [FORGOTTEN]


@pytest.mark.parametrize("how", ["changed", "vanished"])
def test_a_changed_or_vanished_file_of_a_mirrored_source_leaves_as_little(
    tmp_path: Path, how: str
) -> None:
    context = new_context(tmp_path)
    ingest(context, Listed(PEOPLE, mirrors=True))
    topics_of_people(context)
    put_log(context.store, "who?", [], [chunk_of(context.store, "compiler")["_key"]])
    tame = replace(
        PEOPLE[3], title="Nobody", text="Nobody\n\nAda Lovelace was admired by nobody in London."
    )
    ingest(context, Listed([*PEOPLE[:3], *([tame] if how == "changed" else [])], mirrors=True))
    for collection in (
        "clusters",
        "cluster_membership_journal",
        "query_logs",
        "build_stages",
        "merge_log",
    ):
        said = str(of(context, collection)).lower()
        assert "hopper" not in said
        assert "compiler" not in said
    assert all(row["digest"] == "" for row in of(context, "build_stages").values())


def test_what_a_language_model_read_in_a_text_goes_when_the_text_changes(
    context: IngestContext,
) -> None:
    text = chunk_of(context.store, "compiler")["text"]
    read = {
        "_key": "x",
        "sha256": sha256_text(text),
        "model": "m",
        "names": '{"names":["Grace Hopper"]}',
    }
    put(context.store, "extractions", {**read, "triples": '{"triples":[]}'})
    ingest(context, Listed([replace(PEOPLE[3], text="Grace Hopper\n\nShe sailed.")]))
    assert of(context, "extractions") == {}
    assert ingest(context, Listed([])).derived == {}


def test_stages_are_open_again_even_when_the_document_comes_back_before_the_next_build(
    context: IngestContext,
) -> None:
    topics_of_people(context)
    before = stage_ledger.last_completion(context.store, stage_ledger.HIERARCHY)
    forget(context)
    ingest(context, Listed(PEOPLE))
    after = stage_ledger.last_completion(context.store, stage_ledger.HIERARCHY)
    assert before is not None
    assert after is not None
    assert (before.digest, after.digest, after.generation) == ("done", "", "g")


def test_nothing_is_reopened_or_rewritten_when_nothing_changed(context: IngestContext) -> None:
    topics_of_people(context)
    held = of(context, "clusters"), of(context, "build_stages")
    ingest(context, Listed(PEOPLE))
    assert (of(context, "clusters"), of(context, "build_stages")) == held
