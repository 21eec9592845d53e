"""The hierarchy between ingestion and publication: real documents, real vectors, one of them
forgotten.
"""

from __future__ import annotations

import json
from pathlib import Path

from hades.ingest.forget import forget_documents
from hades.night.topics.stage import build_topics
from hades.snapshot.publish import publish
from tests.contract.examples import day, everything
from tests.unit.hades.ingest.corpora import PEOPLE, people_context
from tests.unit.hades.night.contexts import context_of


def test_a_forgotten_document_leaves_the_hierarchy_sound(tmp_path: Path) -> None:
    context = people_context(tmp_path)
    store = context.store
    nights = context_of(store, context.embedder.model.tag)
    first = build_topics(nights, day(1), inputs="one")
    assert first["entities"] == store.count("entities") > 0
    forget_documents(store, context.embedder, [PEOPLE[3].origin])
    assert store.dangling() == {}
    publish(store, tmp_path / "snapshots")  # also before the next night
    second = build_topics(nights, day(2), inputs="two")
    gone = first["entities"] - second["entities"]
    assert (second["gone"], gone > 0) == (gone, True)
    assert {row["entity"] for row in everything(store, "cluster_membership_journal")} == {
        row["_key"] for row in everything(store, "entities")
    }
    documents = {f"documents/{row['_key']}" for row in everything(store, "documents")}
    quoted = {
        one["doc"]
        for row in everything(store, "clusters")
        for one in json.loads(row["metadata"])["evidence"]
    }
    assert quoted <= documents
    assert quoted
