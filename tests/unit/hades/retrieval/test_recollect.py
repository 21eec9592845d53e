"""The recipe `memory`: what was said is found by its words, by what was said beside it, and by its
time.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hades.ports.graph import Passage
from hades.retrieval.features.passages import tell_times
from hades.wiring import open_answers, open_hades
from tests.contract.examples import day
from tests.homes import settings_of

SAID = [
    ("t1", "Ada", "Where did you spend the holidays with your brother?", "8 May 2023"),
    ("t2", "Bo", "In a tent beside Lake Orin, it rained all week.", "8 May 2023"),
    ("t3", "Ada", "Did the kayak arrive?", "8 May 2023"),
    ("t4", "Bo", "Not yet, perhaps on Friday.", "8 May 2023"),
    ("t5", "Ada", "My cello teacher moved away.", "20 June 2023"),
    ("t6", "Bo", "The kayak arrived and it is blue.", "20 June 2023"),
]
OWNED = [
    ("h1", "The house was built for a judge."),
    ("h2", "The house was owned by Ann Moor from 1811 to 1827."),
    ("h3", "The house was owned by Jan Brod from 1828 to 1840."),
    ("h4", "The house was owned by Ivo Kern from 1916 to 1920."),
]


def built(home: Path, *, in_order: bool = True) -> Path:
    """A talk and an article, ingested and published for real."""
    rows, before = [], ""
    for key, speaker, text, date in SAID:
        after = before if in_order and key != "t5" else ""
        rows.append(
            {"id": key, "title": f"{speaker}, {date}", "text": text, "date": date, "after": after}
        )
        before = key
    rows += [{"id": key, "title": "Mill House", "text": text} for key, text in OWNED]
    corpus = home / "corpus.jsonl"
    home.mkdir(parents=True, exist_ok=True)
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with open_hades(settings_of(home)) as hades:
        hades.ingest.passages(corpus)
        hades.publish()
    return home


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return built(tmp_path_factory.mktemp("told"))


@pytest.fixture(scope="module")
def answers(home):
    with open_answers(settings_of(home)) as opened:
        yield opened


def found(answers, question: str, **options) -> list[str]:
    return [one.document for one in answers.retrieve(question, recipe="memory", **options).passages]


def test_an_answer_is_found_beside_its_question(answers, tmp_path):
    question = "Where did Bo spend the holidays with his brother?"
    assert set(found(answers, question)[:2]) == {"t1", "t2"}
    with open_answers(settings_of(built(tmp_path / "loose", in_order=False))) as unordered:
        assert found(unordered, question).index("t2") > found(answers, question).index("t2")


def test_a_year_inside_a_stated_time_finds_the_passage_that_states_it(answers):
    assert found(answers, "Who owned the house in 1820?")[0] == "h2"
    assert found(answers, "Who owned the house in 1835?")[0] == "h3"
    assert found(answers, "Who owned the house from 1917 to 1919?")[0] == "h4"


def test_a_time_ranks_and_hides_nothing(answers):
    assert {"h1", "h2", "h3", "h4"} <= set(found(answers, "Who owned the house in 1820?"))


def test_what_was_said_later_is_left_out_at_an_earlier_moment(answers):
    assert "t6" in found(answers, "Is the kayak blue?")
    early = found(answers, "Is the kayak blue?", as_of=day(1).replace(year=2023, month=6))
    assert "t3" in early
    assert "t6" not in early


def passage(text: str, **more) -> Passage:
    return Passage("doc_chunks/c", text, "d", "documents/d", (0, len(text)), **more)


def test_times_of_a_passage_are_those_it_states_and_its_own_date():
    dated = passage("We met yesterday.", timestamp=day(8))
    assert tell_times(dated.text, dated.timestamp) == ((day(7), day(8)), (day(8), day(9)))
    assert tell_times("We met yesterday.", None) == ()
