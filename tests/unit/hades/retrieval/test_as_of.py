"""A moment in the past goes through seeds, beam, flow and PageRank alike (requirement: time is two
intervals).
"""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pytest

from hades.budget import Caps, Turn
from hades.retrieval.answers import BadQuestion
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import Question, Seed
from hades.retrieval.search.seeds import entry_points
from hades.snapshot.publish import publish
from schemas.ids import Mask
from tests.contract.examples import day, entity, put
from tests.homes import empty_store
from tests.unit.hades.retrieval.dated_corpus import answering, mention, published
from tests.unit.hades.snapshot.homes import chunk, document

PLAN = {"graph": {"hops": 2, "fanout": 3, "beam": 16}, "retriever": {"k": 8}}
QUESTION = "Ada Holm, Jan Brod, Lea Moor and Ivo Kern"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    place = tmp_path_factory.mktemp("dated")
    published(place)
    return place


@pytest.fixture
def answers(home):
    with answering(home) as opened:
        yield opened


def joined(found) -> set[frozenset[str]]:
    """The pairs that some edge of the answer joins."""
    return {
        frozenset((edge.source.removeprefix("entities/"), edge.target.removeprefix("entities/")))
        for path in found.paths
        for edge in path.edges
    }


@pytest.mark.parametrize("recipe", ["hirag_pathrag", "pathrag"])
def test_paths_use_the_edges_that_were_true_then(answers, recipe):
    early = joined(answers.retrieve(QUESTION, recipe=recipe, plan=PLAN, as_of=day(5)))
    late = joined(answers.retrieve(QUESTION, recipe=recipe, plan=PLAN, as_of=day(20)))
    assert frozenset(("holm", "brod")) in early - late
    assert frozenset(("holm", "moor")) in late - early


@pytest.mark.parametrize("recipe", ["hirag_pathrag", "pathrag"])
def test_paths_use_the_edges_that_were_known_then(answers, recipe):
    taught = frozenset(("brod", "kern"))
    assert taught not in joined(
        answers.retrieve(QUESTION, recipe=recipe, plan=PLAN, known_at=day(14))
    )
    assert taught in joined(answers.retrieve(QUESTION, recipe=recipe, plan=PLAN, known_at=day(15)))


@pytest.mark.parametrize("recipe", ["graphrag", "hipporag", "hipporag_multihop", "nexus"])
def test_passages_are_reached_over_the_edges_that_were_true_then(answers, recipe):
    def told(moment):
        found = answers.retrieve("Ada Holm painted ships", recipe=recipe, plan=PLAN, as_of=moment)
        return [passage.document for passage in found.passages]

    assert ("origin of brod" in told(day(5)), "origin of moor" in told(day(5))) == (True, False)
    assert ("origin of brod" in told(day(20)), "origin of moor" in told(day(20))) == (False, True)


def test_a_chunk_stands_for_what_it_was_known_to_name(tmp_path):
    store = empty_store(tmp_path / "graph.db")
    text = "A boat on a lake."
    put(store, "documents", document("d", text))
    put(store, "doc_chunks", chunk("c", "d", text, 0, len(text)))
    put(store, "entities", entity("boat"), entity("lake"))
    put(
        store,
        "mentions",
        {**mention("c", "boat"), "recorded_at": day(1)},
        {**mention("c", "lake"), "recorded_at": day(9)},
    )
    publish(store, tmp_path)
    with answering(tmp_path) as opened:
        view = MeteredView(opened.view, Turn(Caps(160, 1_000_000, 60_000)))
        seed = Seed(int(view.number(["doc_chunks/c"])[0]), 1.0, {"lexical": 1.0})
        for moment, names in (
            (day(5), ["entities/boat"]),
            (day(9), ["entities/boat", "entities/lake"]),
        ):
            starts = entry_points(view, Question(text, mask=Mask(known_at=moment)), [seed], 8)
            assert sorted(view.ids(np.array([one.node for one in starts]))) == names


def test_a_moment_is_a_text_a_date_or_a_time(answers):
    ways = ("2026-01-05", "2026-01-05T00:00:00Z", date(2026, 1, 5), day(5), datetime(2026, 1, 5))
    found = [answers.retrieve(QUESTION, recipe="pathrag", plan=PLAN, as_of=way) for way in ways]
    assert {one.as_of for one in found} == {day(5)}
    assert all(joined(one) == joined(found[0]) for one in found)
    with pytest.raises(BadQuestion, match="known_at is 'soon'; give a time such as 2026-01-31"):
        answers.retrieve(QUESTION, known_at="soon")
