"""Triples given with a passage come back with it, in words, and are read like sentences of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from hades.ports.graph import KINDS, Kind, Passage
from hades.retrieval.features.sentences import read_closely
from hades.snapshot.open import open_snapshot
from hades.snapshot.view import GraphView
from hades.wiring import open_hades
from tests.homes import settings_of

ROWS = [
    {"id": "a", "title": "Glass Harbour", "text": "It was made by Ilse Moravec in Prague."},
    {"id": "b", "title": "Ilse Moravec", "text": "She was born in Brno."},
]
TRIPLES = [
    {
        "id": "a",
        "entities": ["Ilse Moravec"],
        "triples": [["Glass Harbour", "directed by", "Ilse Moravec"]],
    }
]


def _published(home: Path, *, with_triples: bool) -> GraphView:
    home.mkdir()
    corpus, triples = home / "corpus.jsonl", home / "triples.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    triples.write_text("".join(json.dumps(row) + "\n" for row in TRIPLES), encoding="utf-8")
    with open_hades(settings_of(home)) as hades:
        hades.ingest.passages(corpus, triples if with_triples else None)
        hades.publish()
    return open_snapshot(home)


def _passages(view: GraphView) -> dict[str, Passage]:
    numbers = np.arange(sum(view.info.nodes.values()))
    chunks = numbers[view.kinds(numbers) == KINDS.index(Kind.CHUNK)]
    return {passage.document: passage for passage in view.passages(chunks)}


def test_a_passage_brings_the_triples_given_with_it_and_no_other(tmp_path):
    found = _passages(_published(tmp_path / "home", with_triples=True))
    assert found["a"].facts == ("Glass Harbour directed by Ilse Moravec",)
    assert found["b"].facts == ()


def test_a_fact_is_one_more_sentence_after_those_of_the_text():
    text = "It was made by Ilse Moravec."
    plain = Passage("doc_chunks/a", text, "a", "documents/a", (0, len(text)), "Glass Harbour")
    told = Passage(
        "doc_chunks/a",
        text,
        "a",
        "documents/a",
        (0, len(text)),
        "Glass Harbour",
        facts=("Glass Harbour directed by X",),
    )
    assert read_closely(told).written == (
        *read_closely(plain).written,
        "Glass Harbour directed by X",
    )
    assert "direct" in read_closely(told).all_roots - read_closely(plain).all_roots
    assert read_closely(told).has_facts
    assert not read_closely(plain).has_facts
