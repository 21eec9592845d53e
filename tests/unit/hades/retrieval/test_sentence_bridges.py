"""Names that lead from a sentence that fits the question to passages whose titles nobody spells."""

from __future__ import annotations

import numpy as np

from hades.ports.graph import Passage
from hades.retrieval.features.sentences import (
    Reading,
    find_sentence_bridges,
    read_closely,
    sentence_bridge_columns,
    wanted,
)
from hades.retrieval.ranking.default_ranking import compare_remaining

QUESTION = "What is the record label of the writer of Tin Lantern?"
TEXTS = {
    "Tin Lantern": "Tin Lantern is a song. Its writer is Orla Venn. It was played in Port Amsel.",
    "Low Tide": "Low Tide is an album by Orla Venn. The record label Quay published it.",
    "Port Amsel": "Port Amsel is a harbour town.",
    "Amsel Bread": "Bread from Port Amsel is sold cold.",
}


def read(title: str, text: str) -> Reading:
    return read_closely(Passage(title, text, title, title, (0, len(text)), title=title))


READINGS = [read(title, text) for title, text in TEXTS.items()]
WANT = wanted(QUESTION, ["Tin Lantern"], READINGS)


def test_names_are_read_in_full_without_the_words_before_them():
    assert READINGS[0].phrases[1] == {" orla venn "}
    assert read("", "The River Ode of the North flows. Born in Équières.").phrases == (
        {" river ode of the north "},
        {" born ", " equieres "},
    )


def test_a_name_in_the_sentence_that_fits_leads_further_than_one_in_another():
    found = find_sentence_bridges(READINGS, WANT)
    assert found.fitting[0, 1] > found.fitting[0, 2] > 0.0
    assert found.titled[0, 1] == 0.0 < found.titled[0, 2]  # no title says Orla Venn, one says Port Amsel
    assert found.rare[0, 1] > found.rare[0, 3] > 0.0  # two passages say Orla Venn, three Port Amsel


def test_the_names_of_the_question_and_of_the_own_title_lead_nowhere():
    again = [*READINGS, read("Old Songs", "Tin Lantern is among the old songs.")]
    found = find_sentence_bridges(again, wanted(QUESTION, ["Tin Lantern"], again))
    assert not found.rare[4].any()
    assert found.rare[2, 3] == 0.0
    assert found.rare[3, 2] > 0.0


def test_passages_of_one_title_are_not_bridged():
    pair = [read("Amsel", "Orla Venn was born here."), read("Amsel", "Orla Venn left early.")]
    found = find_sentence_bridges(pair, wanted("Who left early?", [], pair))
    assert not found.rare.any()


def test_bridges_count_by_the_voice_of_where_they_start():
    found, n = find_sentence_bridges(READINGS, WANT), len(READINGS)
    ones = np.ones((n, n))
    loud = sentence_bridge_columns(found, ones, ones, np.array([1.0, 0.0, 0.0, 0.0]))
    low = sentence_bridge_columns(found, ones, ones, np.array([0.5, 0.0, 0.0, 0.0]))
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
