"""What the default puts first where no names lead: in articles of many paragraphs, manuals and
quotations.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hades.evaluation.rankers import MOMENT
from hades.ports.graph import Passage
from hades.ports.store import GraphStore
from hades.providers.hashing import HashingEmbedder
from hades.retrieval.answer.path_text import ByteCeiling
from hades.retrieval.features.passages import match_tokens
from hades.retrieval.pipeline import Tools, retrieve
from hades.retrieval.ranking.default_ranking import tells_release
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from hades.snapshot.view import GraphView
from tests.contract.examples import put
from tests.homes import empty_store
from tests.unit.hades.snapshot.homes import chunk, document

EMBEDDER = HashingEmbedder()
HOUSE = [
    "Ardmore House is a country house near the river, built of grey stone on older walls.",
    "From 1871 to 1902 it belonged to Lord Perrin, who planted the avenue of limes.",
    "From 1903 to 1919 the house stood empty, and much of its roof fell in during a storm.",
    "From 1920 to 1931 it belonged to the surgeon Maud Keller, who opened a hospital in the east "
    "wing.",
    "From 1932 to 1950 it belonged to the county, which used the house as a school.",
    "Ardmore House owned a herd of deer. The owners of Ardmore House are told of in songs about "
    "Ardmore House.",
    "The house has forty rooms, a library and a chapel with painted windows.",
]
OTHERS = [
    "The mill by the river ground corn.",
    "Limes flower in June.",
    "A surgeon must study long.",
    "Roofs need slate.",
]


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> GraphView:
    home: Path = tmp_path_factory.mktemp("articles")
    store = empty_store(home / "graph.db")
    rows = [(f"house{place}", "Ardmore House", text) for place, text in enumerate(HOUSE)]
    rows += [(f"other{place}", f"Note {place}", text) for place, text in enumerate(OTHERS)]
    for key, title, text in rows:
        put(store, "documents", {**document(key, text), "title": title})
        put_chunk(store, key, key, text, text, title=title)
    publish(store, home)
    return open_snapshot(home)


def put_chunk(
    store: GraphStore, key: str, of: str, whole: str, text: str, **fields: object
) -> None:
    vector = EMBEDDER.embed([f"{fields.get('title', '')}\n{text}"])[0]
    fields |= {"embedding": vector.tolist(), "embedding_model": EMBEDDER.model.tag}
    start = whole.index(text)
    put(store, "doc_chunks", chunk(key, of, whole, start, start + len(text), **fields))


def first(view: GraphView, question: str) -> str:
    return (
        retrieve(view, question, Tools(ByteCeiling(), EMBEDDER), at=MOMENT, anyway=True)
        .passages[0]
        .text
    )


def test_a_title_that_many_passages_share_does_not_decide_among_them(view: GraphView):
    assert first(view, "Who owned Ardmore House from 1920 to 1931?") == HOUSE[3]


@pytest.mark.parametrize("sentence", [*HOUSE[1:5], *OTHERS])
def test_a_passage_that_the_question_quotes_stands_first(view: GraphView, sentence: str):
    assert first(view, sentence) == sentence


@pytest.mark.parametrize(
    ("headings", "is_release"),
    [
        (("Release notes", "Scrapy 2.13.3 (2025-07-02)", "Documentation"), True),
        (("Changelog", "Security fixes"), True),
        (("History", "v1.0a20"), True),
        (("Unreleased",), True),
        (("Installing", "Python 3.11 and later"), False),
        (("Release process",), False),
    ],
)
def test_notes_on_releases_are_known_by_their_headings(
    headings: tuple[str, ...], is_release: bool
) -> None:
    assert tells_release(headings) is is_release


def test_each_token_of_a_question_counts_by_what_of_a_passage_is_nearest() -> None:
    axes = np.eye(8, dtype=np.float32)
    unread = Passage("", "", "", "", (0, 0))
    pieces = [axes[[0, 1]], axes[[0, 5]], axes[[6, 7]]]
    packed = [base64.b64encode(np.packbits(rows > 0, axis=1).tobytes()).decode() for rows in pieces]
    passages = [replace(unread, token_signs=signs) for signs in packed]
    found = match_tokens(axes[[0, 1]], [*passages, unread])
    assert found[0] > found[1] > found[2]
    assert found[3] == pytest.approx(
        found[:3].mean()
    )  # what nobody read speaks neither for it nor against
    assert match_tokens(None, passages).tolist() == [0.0, 0.0, 0.0]
    assert match_tokens(axes[[0]], [unread]).tolist() == [0.0]
