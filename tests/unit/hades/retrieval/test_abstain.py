"""No answer where nothing supports one."""

from __future__ import annotations

import numpy as np
import pytest

from hades.ports.graph import Passage
from hades.retrieval.core.types import Question
from hades.retrieval.ranking.select import key_words, weigh_support
from hades.snapshot.view import GraphView
from tests.unit.hades.retrieval.small_corpus import DOCUMENTS, chunks_of, published

MINILM = "all-MiniLM-L6-v2@53aa5117-int8r1/384"


@pytest.fixture(scope="module")
def passages(tmp_path_factory: pytest.TempPathFactory) -> list[Passage]:
    view: GraphView = published(tmp_path_factory.mktemp("corpus"))
    return view.passages(np.array(chunks_of(view, *DOCUMENTS)))


def test_nothing_found_is_no_answer():
    found = weigh_support(Question("Who taught Ada Holm?"), [], None)
    assert not found.suffices
    assert found.why == "nothing was found"


def test_a_question_whose_names_are_there_is_answered(passages: list[Passage]):
    found = weigh_support(Question("Who taught Ada Holm in Karst?"), passages, None)
    assert found.suffices
    assert (found.key_word_share, found.best_passage_share) == (1.0, 1.0)
    assert found.why == "100% of the key words found, 100% in one passage"


def test_another_form_of_a_word_is_the_same_word():
    assert key_words("what did we decide?") == key_words("what was decided?")


def test_a_question_about_other_names_is_not(passages: list[Passage]):
    found = weigh_support(Question("Who taught Marie Curie in Warsaw?"), passages, None)
    assert not found.suffices
    assert found.key_word_share == 0.0


def test_a_high_cosine_of_the_calibrated_model_outweighs_missing_words(passages: list[Passage]):
    text = "Who gave lessons to Mrs Holm in Carinthia?"
    assert not weigh_support(Question(text, model=MINILM), passages, 0.20).suffices
    assert weigh_support(Question(text, model=MINILM), passages, 0.75).suffices


def test_words_that_the_whole_corpus_lacks_speak_against_an_answer(passages: list[Passage]):
    question = Question("Who taught the juggler?", model=MINILM)
    known, strange = (
        weigh_support(question, passages, 0.35),
        weigh_support(question, passages, 0.35, unknown=0.5),
    )
    assert strange.confidence < known.confidence
    assert "50% of all words in no passage" in strange.why


def _said(*speakers: str) -> list[Passage]:
    return [
        _passage(f"{one}, 25 May", f"{one}: I painted the lake at sunrise.") for one in speakers
    ]


def _passage(title: str, text: str) -> Passage:
    return Passage(title, text, title, title, (0, len(text)), title)


def test_what_one_speaker_did_is_no_sure_answer_about_the_other():
    question = Question("When did Caroline paint the lake?", model=MINILM)
    own = weigh_support(question, _said("Caroline", "Caroline", "Melanie"), 0.7)
    other = weigh_support(question, _said("Melanie", "Melanie", "Caroline"), 0.7)
    assert other.suffices
    assert other.confidence < own.confidence


def test_titles_that_are_no_names_say_nothing_about_whom_a_passage_is():
    question, titles = (
        Question("How do I run Prefect?", model=MINILM),
        ("Prefect", "Setup", "Use", "Store", "Serve"),
    )
    pages = [_passage(title, "Prefect runs it.") for title in titles]
    assert (
        weigh_support(question, pages, 0.7).confidence
        == weigh_support(question, pages[1:], 0.7).confidence
    )


def test_an_answer_is_surer_the_further_its_first_passage_is_ahead(passages: list[Passage]):
    question = Question("Who taught Ada Holm in Karst?")
    ahead, level = (weigh_support(question, passages, None, lead=lead) for lead in (0.9, 0.1))
    assert level.confidence < ahead.confidence
    assert level.suffices


def test_cosines_of_other_models_are_not_asked(passages: list[Passage]):
    strange = Question("Who taught Marie Curie in Warsaw?", model="other@1/3")
    assert (
        weigh_support(strange, passages, 0.99).margin
        == weigh_support(strange, passages, None).margin
    )


def test_key_words_are_names_and_numbers_or_else_what_the_question_is_about():
    assert key_words("Which painter met Ada Holm in 1920?") == ["ada", "holm", "1920"]
    assert key_words("how do pikes hunt in the water?") == ["pik", "hunt", "water"]
