"""Ten passages that a reader can check by hand, ingested and published for real with the hashing
embedder.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from hades.budget import Caps, Turn
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import Question
from hades.snapshot.view import GraphView
from hades.wiring import open_embedder, open_hades
from tests.homes import settings_of

PASSAGES = {
    "Glass Harbour": "Glass Harbour is a 1961 film directed by Ilse Moravec. It stars Peter Dunn "
    "and Ruth Okafor.",
    "Ilse Moravec": "Ilse Moravec was a film director. She was the daughter of Hana Kolar and "
    "studied in Prague.",
    "Hana Kolar": "Hana Kolar was a Czech novelist. She died in Olomouc in 1949.",
    "Peter Dunn": "Peter Dunn was an Irish actor. He was born in Galway and played in Glass "
    "Harbour.",
    "Ruth Okafor": "Ruth Okafor is an actress known for Glass Harbour and for the stage.",
    "Prague": "Prague is the capital of the Czech Republic. Ilse Moravec studied there.",
    "Galway": "Galway is a city in the west of Ireland where Peter Dunn was born.",
    "Olomouc": "Olomouc is a city in Moravia. The writer Hana Kolar died there.",
    "Stone River": "Stone River is a 1975 western film directed by Peter Dunn.",
    "Cold Bread": "Bread that is baked at night is sold cold in the morning.",
}


def published(home: Path) -> GraphView:
    """The snapshot of the corpus; a passage's document is its title."""
    corpus = home / "corpus.jsonl"
    rows = [{"id": title, "title": title, "text": text} for title, text in PASSAGES.items()]
    corpus.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    with open_hades(settings_of(home)) as hades:
        hades.ingest.passages(corpus)
        hades.publish()
        return hades.view()


def asked(text: str, home: Path) -> Question:
    """A question with its vector."""
    embedder = open_embedder(settings_of(home))
    return Question(text, embedder.embed([text])[0], embedder.model.tag)


def metered(
    view: GraphView, *, reads: int = 160, work: int = 1_000_000, ms: float = 60_000
) -> MeteredView:
    """The view with an account of its own."""
    return MeteredView(view, Turn(Caps(reads, work, ms)))


def titles(view: GraphView, numbers: list[int]) -> list[str]:
    """The documents of passages."""
    return [passage.document for passage in view.passages(np.array(numbers, np.int64))]
