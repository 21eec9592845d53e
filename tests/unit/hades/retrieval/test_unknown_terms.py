"""A question about a thing that no passage names is refused, and the refusal names the thing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hades.ports.graph import Passage
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.answer.write_answer import write_answer
from hades.retrieval.answers import Answers
from hades.retrieval.features.unknown_terms import UnknownTerms, find_unknown_terms
from hades.wiring import open_answers
from tests.homes import publish_pages

PAGES = {
    "sensors.md": "# Sensors\n\nA sensor waits for a file. Use the `poke_interval` setting of "
    "sensors to say how often it looks.",
    "pools.md": "# Pools\n\nA pool limits how many tasks of the Airflow scheduler run at once. "
    "Create a pool from the command line.",
    "backfill.md": "# Backfill\n\nRun past days with the backfill command. Kubernetes pods are "
    "started one a task.",
}
TEXT = "Airflow starts Kubernetes pods with httpx. A sensor waits; set poke_interval. Backfill."


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    with open_answers(publish_pages(tmp_path_factory.mktemp("pages"), PAGES)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("question", "stranger"),
    [
        ("How do I use Dagster sensors?", "Dagster"),
        ("how do i use dagster sensors", "dagster"),
        ("How do I create a pool in Prefect?", "Prefect"),
        ("What is the poke interval of a Terraform sensor?", "Terraform"),
    ],
)
def test_a_product_that_no_page_names_is_refused_by_name(
    answers: Answers, question: str, stranger: str
) -> None:
    found, tools = answers.retrieve(question), answers.tools
    answer = write_answer(found, tokenizer=tools.tokenizer, embedder=tools.embedder, model=None)
    assert not found.is_answered
    assert found.absence is not None
    assert stranger in found.absence.unknown_words
    assert stranger in answer.text
    assert answer.confidence == found.confidence < 0.5


@pytest.mark.parametrize(
    "question",
    [
        "How do I use sensors?",
        "How often does a sensor look for a file?",
        "how do i create a pool in airflwo",
        "How do I run past days?",
        "Which command starts a back fill?",
    ],
)
def test_what_the_pages_name_is_answered_also_with_typing_errors(
    answers: Answers, question: str
) -> None:
    assert answers.retrieve(question).is_answered


def _unknown_terms(question: str) -> UnknownTerms:
    words = set(TEXT.lower().replace(".", "").replace(";", "").split())
    passage = Passage("p", TEXT, "p", "p", (0, len(TEXT)), "p")
    tokenizer = MiniLmTokenizer()
    return find_unknown_terms(
        question, [passage], words.__contains__, lambda word: tokenizer.count(word) == 1
    )


def test_ordinary_words_that_a_small_corpus_lacks_are_no_unknown_terms():
    assert _unknown_terms("why does my happy kitchen window keep breaking?") == UnknownTerms()


def test_other_spellings_of_a_word_are_no_unknown_terms():
    for question in (
        "is kuberntes slow?",
        "how to back fill",
        "how does the kuberneetes pod start",
        "where do Kubernetes Pods run?",
    ):
        assert _unknown_terms(question).words == ()


def test_ordinary_verbs_are_no_unknown_terms_in_either_spelling():
    for verb in ("customise", "optimize", "anonymised", "prioritising", "visualization"):
        assert _unknown_terms(f"how do i {verb} a sensor?") == UnknownTerms()


def test_plurals_and_words_written_apart_are_known_where_the_corpus_holds_them():
    assert _unknown_of_held("How do I write a cron job?", "cronjob") == UnknownTerms()
    assert _unknown_of_held("How do I write Dagfiles?", "dagfile") == UnknownTerms()


def _unknown_of_held(question: str, held: str) -> UnknownTerms:
    return find_unknown_terms(question, [], held.__eq__, lambda word: word in ("write", "job"))


def test_values_errors_and_options_are_no_unknown_terms():
    question = 'TypeError: "Zorblax" in xq_zz.yaml with --frobnicate, KubeletWarning at zz/yy?'
    assert _unknown_terms(question).words == ()


def test_a_stranger_beside_a_known_name_counts_less_and_less_again_by_the_way():
    alone = _unknown_terms("How do I use Dagster?")
    beside = _unknown_terms("How does Airflow compare to Dagster?")
    by_the_way = _unknown_terms("How do I start Airflow with Dagster?")
    assert alone.words == beside.words == by_the_way.words == ("Dagster",)
    assert alone.share > beside.share > by_the_way.share > 0


def test_nothing_is_a_stranger_to_a_question_in_another_language():
    assert (
        _unknown_terms("Wie verwende ich die Sensoren von Dagster in der Warteschlange?").words
        == ()
    )
