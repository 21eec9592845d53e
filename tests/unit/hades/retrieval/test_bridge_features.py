"""Bridges between passages: names that one tells and another is about, and what the other adds to the question."""

from __future__ import annotations

import numpy as np
import pytest

from hades.ports.graph import Passage
from hades.retrieval.features.passages import voice_of
from hades.retrieval.features.sentences import (
    Reading,
    bridge_columns,
    find_bridges,
    hold_shares,
    read_closely,
    share_linked,
    wanted,
)

QUESTION = "When was the country that produced Fist Power taken by the British?"
TEXTS = {
    "Fist Power": "Fist Power is a 2000 action film that was produced in Hong Kong.",
    "British Hong Kong": "Hong Kong was taken as a colony in 1842 and left the empire in 1997.",
    "British Guiana": "The colony in South America was taken from the Dutch.",
    "Cold Bread": "Bread that is baked at night is sold cold.",
}


def read(title: str, text: str) -> Reading:
    passage = Passage(title, text, title, title, (0, len(text)), title=title)
    return read_closely(passage)


READINGS = [read(title, text) for title, text in TEXTS.items()]
WANT = wanted(QUESTION, ["Fist Power"], READINGS)


def test_a_title_that_shares_new_names_with_the_first_passage_is_bridged_to():
    found = find_bridges(READINGS, WANT)
    assert found.titles[0, 1] > 0.0  # Hong Kong is told by the film's passage, not by the question
    assert found.titles[0, 2] == 0.0  # "British" is the question's own word
    assert found.covers[0, 1] == 1.0
    assert np.all(np.diag(found.names) == 0.0)


@pytest.mark.parametrize(
    ("title", "text", "is_linked"),
    [
        ("Hong Kong", "Fist Power was made in Hong Kong.", True),
        ("Paris, Texas", "The film was shot in Paris and in Rome.", True),
        ("Laminar, transitional and turbulent flow", "The laminar boundary layer was measured.", False),
        ("Information Retrieval", "Programs for information retrieval are compared.", False),
        ("on the structure of the blast wave", "A note: on the structure of the blast wave at rest.", False),
        ("The Use of Tables in the Design of Wings", "See The Use of Tables in the Design of Wings.", False),
        ("Rome", "Romeo and Juliet is a play.", False),
        ("紅樓夢", "作者寫了紅樓夢。", True),
    ],
)
def test_a_title_links_where_it_is_a_name_and_written_as_one(title: str, text: str, is_linked: bool):
    own, naming = read(title, "It is known to many."), read("Somewhere else", text)
    assert share_linked([own, naming, read("Cold Bread", "It is baked.")]) == (2 / 3 if is_linked else 0.0)


def test_a_title_that_its_own_text_writes_small_is_a_term():
    own, naming = read("Diabetes", "There is a cure for diabetes."), read("A Ward", "Diabetes is treated here.")
    assert share_linked([own, naming]) == 0.0


def test_a_people_leads_to_its_country():
    pair = [read("Kohuwala", "Kohuwala is a suburb in Sri Lanka."), read("Sri Lankan movement", "It ended in 1948.")]
    asked = wanted("When did the country of Kohuwala leave the empire?", ["Kohuwala"], pair)
    assert find_bridges(pair, asked).titles[0, 1] > 0.0


def test_what_a_passage_adds_is_what_the_other_lacks():
    found, holds = find_bridges(READINGS, WANT), hold_shares(READINGS, WANT)
    assert found.adds[0, 1] == np.where(holds[0] == 0.0, holds[1], 0.0).sum()
    assert found.adds[1, 1] == 0.0
    assert found.adds[0, 1] > found.adds[0, 3]


def test_bridges_from_passages_that_are_worth_little_count_little():
    found = find_bridges(READINGS, WANT)
    trusted = bridge_columns(found, voice_of(np.array([5.0, 0.0, 0.0, 0.0])))
    doubted = bridge_columns(found, np.array([0.1, 1.0, 1.0, 1.0]))
    assert int(np.argmax(trusted["bridge_title_adds"])) == 1
    assert doubted["bridge_title"][1] < trusted["bridge_title"][1]
    assert all(column.shape == (4,) and np.isfinite(column).all() for column in trusted.values())
