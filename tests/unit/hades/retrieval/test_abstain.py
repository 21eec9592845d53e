"""No answer where nothing supports one."""

from __future__ import annotations

import numpy as np
import pytest

from hades.ports.graph import Passage
from hades.retrieval.core.types import Question
from hades.retrieval.ranking.abstain import key_words, should_abstain
from hades.snapshot.view import GraphView
from tests.unit.hades.retrieval.small_corpus import DOCUMENTS, chunks_of, published

MINILM = "all-MiniLM-L6-v2@53aa5117-int8r1/384"


@pytest.fixture(scope="module")
def passages(tmp_path_factory: pytest.TempPathFactory) -> list[Passage]:
    view: GraphView = published(tmp_path_factory.mktemp("corpus"))
    return view.passages(np.array(chunks_of(view, *DOCUMENTS)))


def test_nothing_found_is_no_answer():
    found = should_abstain(Question("Who taught Ada Holm?"), [], None)
    assert found.should_abstain
    assert found.why == "nothing was found"


def test_a_question_whose_names_are_there_is_answered(passages: list[Passage]):
    found = should_abstain(Question("Who taught Ada Holm in Karst?"), passages, None)
    assert not found.should_abstain
    assert (found.held, found.together) == (1.0, 1.0)
    assert found.why == "100% of the key words found, 100% in one passage"


def test_a_question_about_other_names_is_not(passages: list[Passage]):
    found = should_abstain(Question("Who taught Marie Curie in Warsaw?"), passages, None)
    assert found.should_abstain
    assert found.held == 0.0


def test_a_high_cosine_of_the_calibrated_model_outweighs_missing_words(passages: list[Passage]):
    text = "Who gave lessons to Mrs Holm in Carinthia?"
    assert should_abstain(Question(text, model=MINILM), passages, 0.20).should_abstain
    assert not should_abstain(Question(text, model=MINILM), passages, 0.75).should_abstain


def test_words_that_the_whole_corpus_lacks_speak_against_an_answer(passages: list[Passage]):
    question = Question("Who taught the juggler?", model=MINILM)
    known, strange = should_abstain(question, passages, 0.35), should_abstain(question, passages, 0.35, unknown=0.5)
    assert strange.confidence < known.confidence
    assert "50% of all words in no passage" in strange.why


def test_cosines_of_other_models_are_not_asked(passages: list[Passage]):
    strange = Question("Who taught Marie Curie in Warsaw?", model="other@1/3")
    assert should_abstain(strange, passages, 0.99).margin == should_abstain(strange, passages, None).margin


def test_key_words_are_names_and_numbers_or_else_what_the_question_is_about():
    assert key_words("Which painter met Ada Holm in 1920?") == ["ada", "holm", "1920"]
    assert key_words("how do pikes hunt in the water?") == ["pik", "hunt", "water"]
