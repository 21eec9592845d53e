"""Whether the sources answer is decided once: the turn and the answer written of it agree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hades.retrieval.answer.write_answer import write_answer
from hades.retrieval.answers import Answers
from hades.wiring import open_answers
from tests.homes import publish_pages

PAGES = {
    "urlaub.md": "# Urlaub\n\nAnträge gehen an die Personalabteilung. Sie braucht drei Tage.",
    "reise.md": "# Reisekosten\n\nBelege werden im Portal hochgeladen, spätestens nach 30 Tagen.",
    "huifu.md": "# 恢复操作\n\n运维组负责。\n\n每天两次。",
    "beifen.md": "# 备份\n\n备份每天凌晨进行，由系统自动完成。",
    "lake.md": "# Lake Orin\n\nThe ferry leaves at noon. Bring a coat.",
}
QUESTIONS = (
    "谁负责恢复操作？",
    "备份什么时候进行？",
    "Wo gebe ich meinen Urlaubsantrag ab?",
    "Wie lade ich Belege hoch?",
    "Wer zahlt die Reisekosten?",
    "When does the ferry leave?",
    "What is Lake Orin?",
    "Which turbine did Ines Wald repair in Xanadu?",
)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    with open_answers(publish_pages(tmp_path_factory.mktemp("languages"), PAGES)) as opened:
        yield opened


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_is_written_just_where_the_turn_found_support(
    answers: Answers, question: str
) -> None:
    found, tools = answers.retrieve(question), answers.tools
    answer = write_answer(found, tokenizer=tools.tokenizer, embedder=tools.embedder, model=None)
    assert (answer.mode == "extracted") == found.is_answered
    assert (answer.absence is None) == found.is_answered == (found.absence is None)
    assert bool(answer.sentences) == found.is_answered


def test_questions_in_other_languages_are_answered_from_their_page(answers: Answers) -> None:
    for question, page in (
        ("谁负责恢复操作？", "huifu.md"),
        ("Wer zahlt die Reisekosten?", "reise.md"),
    ):
        found, tools = answers.retrieve(question), answers.tools
        answer = write_answer(found, tokenizer=tools.tokenizer, embedder=tools.embedder, model=None)
        assert answer.mode == "extracted"
        cited = answer.sentences[0].citations[0]
        assert answer.sources[cited - 1].document == page
