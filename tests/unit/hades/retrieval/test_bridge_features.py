"""Bridges between passages: names that one tells and another is about, and what the other adds to
the question.

Names also lead from a sentence that fits the question to passages whose titles nobody spells.
"""

from __future__ import annotations

import numpy as np
import pytest

from hades.ports.graph import Passage
from hades.retrieval.features.leading import compare_remaining
from hades.retrieval.features.passages import share_of_best
from hades.retrieval.features.sentences import (
    Reading,
    combine_bridges,
    find_bridges,
    find_sentence_bridges,
    hold_shares,
    read_closely,
    share_linked,
    weigh_question_words,
)

QUESTION = "When was the country that produced Fist Power taken by the British?"
TEXTS = {
    "Fist Power": "Fist Power is a 2000 action film that was produced in Hong Kong.",
    "British Hong Kong": "Hong Kong was taken as a colony in 1842 and left the empire in 1997.",
    "British Guiana": "The colony in South America was taken from the Dutch.",
    "Cold Bread": "Bread that is baked at night is sold cold.",
}


def read(title: str, text: str) -> Reading:
    return read_closely(Passage(title, text, title, title, (0, len(text)), title=title))


READINGS = [read(title, text) for title, text in TEXTS.items()]
WANT = weigh_question_words(QUESTION, ["Fist Power"], READINGS)
HOLDS = hold_shares(READINGS, WANT)


def test_a_title_that_shares_new_names_with_the_first_passage_is_bridged_to():
    found = find_bridges(READINGS, WANT, HOLDS)
    assert found.titles[0, 1] > 0.0  # Hong Kong is told by the film's passage, not by the question
    assert found.titles[0, 2] == 0.0  # "British" is the question's own word
    assert found.covers[0, 1] == 1.0
    assert np.all(np.diag(found.names) == 0.0)


@pytest.mark.parametrize(
    ("title", "text", "is_linked"),
    [
        ("Hong Kong", "Fist Power was made in Hong Kong.", True),
        ("Paris, Texas", "The film was shot in Paris and in Rome.", True),
        (
            "Laminar, transitional and turbulent flow",
            "The laminar boundary layer was measured.",
            False,
        ),
        ("Information Retrieval", "Programs for information retrieval are compared.", False),
        (
            "on the structure of the blast wave",
            "A note: on the structure of the blast wave at rest.",
            False,
        ),
        (
            "The Use of Tables in the Design of Wings",
            "See The Use of Tables in the Design of Wings.",
            False,
        ),
        ("Rome", "Romeo and Juliet is a play.", False),
        ("紅樓夢", "作者寫了紅樓夢。", True),
    ],
)
def test_a_title_links_where_it_is_a_name_and_written_as_one(
    title: str, text: str, is_linked: bool
):
    own, naming = read(title, "It is known to many."), read("Somewhere else", text)
    assert share_linked([own, naming, read("Cold Bread", "It is baked.")]) == (
        2 / 3 if is_linked else 0.0
    )


def test_a_people_leads_to_its_country():
    pair = [
        read("Kohuwala", "Kohuwala is a suburb in Sri Lanka."),
        read("Sri Lankan movement", "It ended in 1948."),
    ]
    asked = weigh_question_words(
        "When did the country of Kohuwala leave the empire?", ["Kohuwala"], pair
    )
    assert find_bridges(pair, asked, hold_shares(pair, asked)).titles[0, 1] > 0.0


def test_what_a_passage_adds_is_what_the_other_lacks():
    found, holds = find_bridges(READINGS, WANT, HOLDS), HOLDS
    assert found.adds[0, 1] == np.where(holds[0] == 0.0, holds[1], 0.0).sum()
    assert found.adds[1, 1] == 0.0
    assert found.adds[0, 1] > found.adds[0, 3]


def test_bridges_from_passages_that_are_worth_little_count_little():
    names, n = find_sentence_bridges(READINGS, WANT), len(READINGS)
    found = combine_bridges(find_bridges(READINGS, WANT, HOLDS), names, np.ones((n, n)))
    trusted = found.columns(share_of_best(np.array([5.0, 0.0, 0.0, 0.0])))
    doubted = found.columns(np.array([0.1, 1.0, 1.0, 1.0]))
    assert int(np.argmax(trusted["bridge_title_adds"])) == 1
    assert doubted["bridge_title"][1] < trusted["bridge_title"][1]
    assert all(column.shape == (4,) and np.isfinite(column).all() for column in trusted.values())


SONG = "What is the record label of the writer of Tin Lantern?"
SONGS = {
    "Tin Lantern": "Tin Lantern is a song. Its writer is Orla Venn. It was played in Port Amsel.",
    "Low Tide": "Low Tide is an album by Orla Venn. The record label Quay published it.",
    "Port Amsel": "Port Amsel is a harbour town.",
    "Amsel Bread": "Bread from Port Amsel is sold cold.",
}
SUNG = [read(title, text) for title, text in SONGS.items()]
ASKED = weigh_question_words(SONG, ["Tin Lantern"], SUNG)


def test_names_are_read_in_full_without_the_words_before_them():
    assert SUNG[0].phrases[1] == {" orla venn "}
    assert read("", "The River Ode of the North flows. Born in Équières.").phrases == (
        {" river ode of the north "},
        {" born ", " equieres "},
    )


def test_a_name_in_the_sentence_that_fits_leads_further_than_one_in_another():
    found = find_sentence_bridges(SUNG, ASKED)
    assert found.fitting[0, 1] > found.fitting[0, 2] > 0.0
    assert (
        found.titled[0, 1] == 0.0 < found.titled[0, 2]
    )  # no title says Orla Venn, one says Port Amsel
    assert found.rare[0, 1] > found.rare[0, 3] > 0.0  # two passages say Orla Venn, three Port Amsel


def test_the_names_of_the_question_and_of_the_own_title_lead_nowhere():
    again = [*SUNG, read("Old Songs", "Tin Lantern is among the old songs.")]
    found = find_sentence_bridges(again, weigh_question_words(SONG, ["Tin Lantern"], again))
    assert not found.rare[4].any()
    assert found.rare[2, 3] == 0.0
    assert found.rare[3, 2] > 0.0


def test_bridges_count_by_the_voice_of_where_they_start():
    names, n = find_sentence_bridges(SUNG, ASKED), len(SUNG)
    bridges = find_bridges(SUNG, ASKED, hold_shares(SUNG, ASKED))
    found = combine_bridges(bridges, names, np.ones((n, n)))
    loud = found.columns(np.array([1.0, 0.0, 0.0, 0.0]))
    low = found.columns(np.array([0.5, 0.0, 0.0, 0.0]))
    assert int(np.argmax(loud["name_fits"])) == 1
    assert np.allclose(low["name_fits"], loud["name_fits"] / 2)
    assert loud["leads_by_name"][1] > 0.0 == low["leads_by_name"][0]
    assert all(column.shape == (n,) for column in loud.values())


def test_what_a_passage_leaves_of_the_question_is_compared_without_its_own_part():
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], np.float32)
    asked = np.array([0.8, 0.6], np.float32)
    remaining = compare_remaining(vectors, asked)
    assert np.allclose(remaining[0], [0.0, 1.0, 0.8], atol=1e-6)
    assert remaining.min() >= 0.0
