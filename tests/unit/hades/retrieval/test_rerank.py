"""A closer look at candidates puts those first that complete each other, within the reads
allowed.
"""

from __future__ import annotations

import numpy as np
import pytest

from hades.budget import Caps, Turn
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import FoundPassage, FoundPath, Question
from hades.retrieval.core.words import Body, match_titles, wording, words
from hades.retrieval.ranking.judge import rerank, rerank_paths
from hades.snapshot.view import GraphView
from tests.contract.examples import MODEL
from tests.unit.hades.retrieval.small_corpus import chunks_of, published

QUESTION = Question(
    "Who taught the painter born at Lake Orin?", np.array([1, 0, 0], np.float32), MODEL
)


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> GraphView:
    return published(tmp_path_factory.mktemp("corpus"))


def found(view: GraphView, *keys: str) -> list[FoundPassage]:
    return [
        FoundPassage(node, 1 / (place + 1)) for place, node in enumerate(chunks_of(view, *keys))
    ]


def order(view: GraphView, passages: list[FoundPassage]) -> list[str]:
    return [
        identifier.split("/")[1]
        for identifier in view.ids(np.array([one.node for one in passages]))
    ]


def test_each_step_of_the_chain_is_taken_once_the_one_before_names_it(view: GraphView):
    even = [FoundPassage(node, 1.0) for node in chunks_of(view, "fish", "brod", "holm", "lake")]
    assert order(view, rerank(view, QUESTION, even, 4)) == ["lake", "holm", "brod", "fish"]


def test_scores_fall_with_the_rank_and_say_what_reranking_gave(view: GraphView):
    ranked = rerank(view, QUESTION, found(view, "fish", "brod", "holm", "lake"), 3)
    scores = [one.score for one in ranked]
    assert scores == sorted(scores, reverse=True)
    assert ["rerank" in one.tiers for one in ranked] == [True, True, True, False]


def test_what_the_budget_denies_stays_behind_what_was_read(view: GraphView):
    turn = Turn(Caps(docs_max=2, work_max=10, latency_ms=10_000))
    ranked = rerank(
        MeteredView(view, turn), QUESTION, found(view, "fish", "brod", "holm", "lake"), 4
    )
    assert turn.reads_spent == 2
    assert sorted(order(view, ranked)[:2]) == ["brod", "fish"]
    assert order(view, ranked)[2:] == ["holm", "lake"]


def test_a_question_without_a_vector_is_ranked_by_words(view: GraphView):
    ranked = rerank(
        view, Question("cold water fish"), found(view, "lake", "brod", "holm", "fish"), 4
    )
    assert order(view, ranked)[0] == "fish"


def test_paths_that_cover_new_question_words_come_before_repeats():
    paths = [FoundPath((place,), (), (), score=1 - place / 100) for place in range(3)]
    texts = [
        "Ada Holm --[cites]--> ships",
        "Ada Holm --[cites]--> boats",
        "Jan Brod --[taught]--> drawing",
    ]
    ranked = rerank_paths(Question("Did Ada Holm learn drawing from Jan Brod?"), paths, texts)
    assert [path.nodes[0] for path in ranked] == [2, 0, 1]
    assert rerank_paths(Question("anything"), paths, []) == paths


def test_words_are_counted_among_the_candidates_by_stem():
    spoken = wording(
        "Which painters painted ships?", [Body(words("She paints ships")), Body(words("no match"))]
    )
    assert spoken.holds[:, 1].sum() == 0
    assert spoken.holds[:, 0].tolist() == [0.0, 1.0, 1.0]  # painter, paint, ship
    assert spoken.bm25[0] > spoken.bm25[1] == 0


def test_titles_match_as_whole_words_and_without_their_brackets():
    titles = ["Ada Holm", "Pike (fish)", "Pi", "Lake Orin City"]
    assert match_titles("Did Ada Hólm paint a pike at Lake Orin?", titles).tolist() == [
        1.0,
        0.8,
        0.0,
        0.0,
    ]
