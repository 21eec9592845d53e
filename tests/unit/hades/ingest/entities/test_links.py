"""What the mentions join: short forms and referents, things named together, and since when."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hades.ingest.edges import DerivedRows, derive
from hades.ingest.entities.links import MAX_RELATED, LinkedCorpus, link_companions
from tests.patience import examples
from tests.unit.hades.ingest.entities.conftest import Row, build_view

FULL = "We met John Hackman in Rome. There Hackman liked Rome."
ALONE = "A film with Hackman ran in Rome. So Hackman was praised."


def corefs_of(derived: DerivedRows) -> dict[tuple[str, str], Row]:
    names = {f"entities/{row['_key']}": row["name"] for row in derived.entities.to_pylist()}
    rows = [row for row in derived.relations.to_pylist() if row["type"] == "coref"]
    return {(names[row["_from"]], names[row["_to"]]): row for row in rows}


def corefs(*texts: str) -> dict[tuple[str, str], Row]:
    return corefs_of(
        derive(*build_view([{"id": f"d{place}", "text": text} for place, text in enumerate(texts)]))
    )


def test_a_family_name_alone_points_to_the_person_that_another_document_names_in_full() -> None:
    found = corefs(FULL, ALONE)
    assert list(found) == [("Hackman", "John Hackman")]
    edge = found["Hackman", "John Hackman"]
    assert edge["evidence_count"] == 1
    assert FULL[slice(*edge["provenance"]["span"])] == "There Hackman liked Rome"


def test_a_short_form_that_never_stands_alone_has_no_edge() -> None:
    assert corefs(FULL) == {}


def test_a_short_form_of_two_people_has_no_edge() -> None:
    other = "We met Betty Hackman in Rome. There Hackman liked Rome."
    assert corefs(FULL, ALONE, other) == {}


def test_a_name_without_its_qualifier_points_to_the_one_title_that_has_it() -> None:
    king = {
        "id": "k",
        "title": "Lothair II (king)",
        "text": "We read that Lothair II ruled Lotharingia from Metz.",
    }
    film = {
        "id": "f",
        "title": "Lothair II (film)",
        "text": "We saw Lothair II in Paris. It was shot by Gaumont.",
    }
    near = {"id": "n", "text": "They say that Lothair II ruled Lotharingia well."}
    lost = {"id": "o", "text": "They say that Lothair II is forgotten."}
    found = corefs_of(derive(*build_view([king, film, near, lost])))
    assert all(full.startswith("Lothair II (") for _, full in found)
    assert not {"Metz", "Paris"} & {short for short, _ in found}


def test_a_title_written_whole_with_its_qualifier_is_that_thing() -> None:
    king = {
        "id": "k",
        "title": "Lothair II (king)",
        "text": "We read that Lothair II ruled Lotharingia from Metz.",
    }
    film = {
        "id": "f",
        "title": "Lothair II (film)",
        "text": "We saw Lothair II in Paris. It was shot by Gaumont.",
    }
    told = {"id": "t", "text": "They filmed Lothair II (film) in Rheims."}
    derived = derive(*build_view([king, film, told]))
    names = [
        row["name"] for row in derived.entities.to_pylist() if row["name"].startswith("Lothair")
    ]
    assert sorted(names) == ["Lothair II (film)", "Lothair II (king)"]


def test_a_word_inside_a_longer_name_has_no_edge() -> None:
    texts = ["They met in West Germany. Later in Germany too.", "We like Germany. All of Germany."]
    assert corefs(*texts) == {}


NAMES = ("Ada Holm", "Jan Brod", "Lea Moor", "Ivo Kern")
MOMENTS = st.one_of(
    st.none(), st.integers(2000, 2009).map(lambda year: datetime(year, 1, 1, tzinfo=UTC))
)
PAIRS = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(
    lambda pair: pair[0] != pair[1]
)
DOCUMENTS = st.lists(
    st.tuples(MOMENTS, st.lists(PAIRS, min_size=1, max_size=3)), min_size=1, max_size=5
)


def since(derived: DerivedRows, kind: str) -> dict[tuple[str, str], datetime | None]:
    names = {f"entities/{row['_key']}": row["name"] for row in derived.entities.to_pylist()}
    rows = [row for row in derived.relations.to_pylist() if row["type"] == kind]
    return {(names[row["_from"]], names[row["_to"]]): row["valid_from"] for row in rows}


def first(moments: list[datetime | None]) -> datetime | None:
    """When something was said first; None when an undated text says it, since that may be older
    than any other.
    """
    return None if None in moments else min(moments)  # type: ignore[type-var]


@settings(max_examples=examples(40), deadline=None)
@given(DOCUMENTS)
def test_an_edge_is_valid_from_the_first_document_that_states_it(
    documents: list[tuple[datetime | None, list[tuple[str, str]]]],
) -> None:
    rows = [
        {
            "id": f"d{number}",
            "title": f"Page {number}",
            "created": created,
            "text": " ".join(f"{one} met {other}." for one, other in pairs * 2),
        }
        for number, (created, pairs) in enumerate(documents)
    ]
    derived = derive(*build_view(rows))
    for pair, moment in since(derived, "related_to").items():
        assert moment == first(
            [created for created, pairs in documents for said in pairs if {*said} == {*pair}]
        )
    for (title, _), moment in since(derived, "refers_to").items():
        assert moment == documents[int(title.split()[1])][0]
    for row in derived.mentions.to_pylist():
        number = int(row["_from"].removeprefix("doc_chunks/cd").partition("-")[0])
        assert row["valid_from"] == documents[number][0]


def test_a_sentence_that_says_as_of_when_it_holds_is_dated_by_that() -> None:
    text = "As of May 2019, Ada Holm leads Nordia. Jan Brod paints."
    row = {"id": "d", "title": "Notes", "text": text, "created": datetime(2021, 1, 1, tzinfo=UTC)}
    found = since(derive(*build_view([row])), "refers_to")
    assert found["Notes", "Nordia"] == datetime(2019, 5, 1, tzinfo=UTC)
    assert found["Notes", "Jan Brod"] == datetime(2021, 1, 1, tzinfo=UTC)


def test_what_is_made_from_something_derives_from_it_and_what_extends_it_extends_it() -> None:
    rows = [
        {
            "id": "d",
            "text": "BERT is derived from Transformer. RoBERTa extends BERT. Mary Holm extends "
            "BERT.",
        },
        {"id": "e", "text": "", "facts": {"triples": [["Flask", "based on", "Werkzeug"]]}},
        {"id": "f", "text": "", "facts": {"triples": [["Quart", "extends", "Flask"]]}},
    ]
    derived = derive(*build_view(rows))
    derivations = {("BERT", "Transformer"), ("Flask", "Werkzeug")}
    assert since(derived, "derives_from").keys() == derivations
    extensions = {("RoBERTa", "BERT"), ("Quart", "Flask")}
    assert since(derived, "extends").keys() == extensions  # people extend nothing


class Pairs(NamedTuple):
    """What is asked of relations, as columns."""

    kind: str
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    mention: NDArray[np.int64]
    evidence: NDArray[np.int64]
    since: NDArray[np.int64]
    strength: NDArray[np.float64]
    co_occurrence_count: NDArray[np.int64]


def together(sentences: list[list[int]]) -> Pairs:
    thing = np.array([one for sentence in sentences for one in sentence], dtype=np.int64)
    number = np.array(
        [index for index, sentence in enumerate(sentences) for _ in sentence], dtype=np.int64
    )
    linked: Any = SimpleNamespace(
        entity=thing,
        reading=SimpleNamespace(sentence=number),
        since=np.zeros(len(thing), dtype=np.int64),
        size=int(thing.max(initial=0)) + 1,
        sentence_span=lambda mention: mention,
        relations=Pairs,
    )
    return cast(Pairs, link_companions(cast(LinkedCorpus, linked)))


def test_a_pair_counts_the_sentences_that_hold_both() -> None:
    found = together([[0, 1], [1, 0, 0], [2], [3]])
    assert (found.source.tolist(), found.target.tolist(), found.evidence.tolist()) == (
        [0],
        [1],
        [2],
    )
    assert found.mention.tolist() == [0]


def test_a_pair_never_seen_apart_is_as_strong_as_can_be() -> None:
    assert together([[0, 1], [0, 1], [2], [3]]).strength.tolist() == [1.0]


def test_a_pair_that_meets_no_more_than_by_chance_is_left_out() -> None:
    assert len(together([[0, 1], [0, 1], [0, 2], [1, 2], [0], [1]]).source) == 0


def test_one_meeting_is_not_enough() -> None:
    assert len(together([[0, 1], [2]]).source) == 0


@given(st.lists(st.lists(st.integers(0, 20), max_size=6), max_size=30))
def test_nobody_keeps_more_partners_than_allowed(sentences: list[list[int]]) -> None:
    hub = [[0, other] for other in range(1, 2 * MAX_RELATED)]
    found = together([*hub, *hub, *([1 + 2 * MAX_RELATED] for _ in range(99)), *sentences])
    ends = np.concatenate([found.source, found.target])
    assert np.bincount(ends, minlength=1).max() <= MAX_RELATED
    assert len(found.source) >= MAX_RELATED
    assert (found.source < found.target).all()
    assert ((found.strength > 0) & (found.strength <= 1)).all()


def strength_by_pair(found: Pairs) -> dict[tuple[int, int], float]:
    pairs = zip(found.source.tolist(), found.target.tolist(), strict=True)
    return dict(zip(pairs, found.strength.tolist(), strict=True))


def test_one_sentence_more_changes_only_the_pairs_it_names_in_a_large_corpus() -> None:
    corpus = [[index, index + 1] for index in range(0, 120, 2) for _ in range(5)]
    corpus += [[index] for index in range(120)]
    before, after = (
        strength_by_pair(together(sentences)) for sentences in (corpus, [*corpus, [0]])
    )
    assert before.keys() == after.keys()
    assert {pair for pair in before if before[pair] != after[pair]} == {(0, 1)}
