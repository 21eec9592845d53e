"""Seeds: what finds them, how they are fused and spread, and what happens without vectors."""

from __future__ import annotations

import numpy as np

from hades.budget import Caps, Turn
from hades.ports.graph import Kind
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import LEXICAL, VECTOR, Question
from hades.retrieval.core.words import clauses, subqueries
from hades.retrieval.search.seeds import entry_points, find_seeds
from schemas.plan import Plan, Reason
from tests.unit.hades.retrieval.memory_view import Graph, MemoryView

MODEL = "toy@1/3"
EAST = np.array([1, 0, 0], np.float32)


def opened(graph: Graph) -> MeteredView:
    return MeteredView(MemoryView(graph), Turn(Caps(160, 1000, 1000)))


def rivers() -> Graph:
    graph = Graph()
    graph.node(Kind.CHUNK, "the rhine flows north", [1, 0, 0])
    graph.node(Kind.CHUNK, "the rhine is long", [0.99, 0.1, 0])
    graph.node(Kind.CHUNK, "bread is baked", [0, 0, 1])
    graph.node(Kind.ENTITY, "rhine", [0.9, 0, 0.1])
    graph.node(Kind.ENTITY, "bread", [0, 0, 1])
    graph.edge(0, 3, "mentions", 1.0)
    graph.edge(2, 4, "mentions", 1.0)
    return graph


def plan(**retriever: object) -> Plan:
    return Plan.model_validate({"retriever": retriever})


def nodes(found: object) -> list[int]:
    return [seed.node for seed in found.seeds]  # type: ignore[attr-defined]


def test_vector_seeds_come_by_cosine_with_their_score():
    found = find_seeds(
        opened(rivers()), [Question("x", EAST, MODEL)], plan(k=2, mmr=0.0), (VECTOR,)
    )
    assert nodes(found) == [0, 3]  # the best chunk and the best entity
    assert [passage.node for passage in found.passages] == [0, 1, 2]
    assert found.seeds[0].score == 1.0
    assert found.seeds[0].origins == {VECTOR: 1.0}


def test_mmr_prefers_a_different_seed_over_a_similar_one():
    asked = [Question("x", EAST, MODEL)]
    assert nodes(find_seeds(opened(rivers()), asked, plan(k=2, mmr=0.9), (VECTOR,))) == [0, 4]


def test_a_name_that_is_spelled_out_comes_first():
    found = find_seeds(
        opened(rivers()), [Question("where does bread come from", EAST, MODEL)], plan(k=1)
    )
    assert nodes(found) == [4]


def test_a_seed_tells_every_search_that_found_it():
    found = find_seeds(opened(rivers()), [Question("the rhine", EAST, MODEL)], plan(k=8, mmr=0.0))
    origins = {seed.node: set(seed.origins) for seed in found.seeds}
    assert origins[3] == {"vector", "lexical", "names"}
    assert origins[0] == {"vector", "lexical"}


def test_sub_queries_share_the_seeds():
    view = opened(rivers())
    parts = [
        Question("rhine", EAST, MODEL),
        Question("bread", np.array([0, 0, 1], np.float32), MODEL),
    ]
    found = find_seeds(view, parts, plan(k=3, mmr=0.0))
    assert len(found.seeds) == 3
    assert {3, 4} <= set(nodes(found))


def test_a_question_of_another_model_is_answered_by_words_with_a_reason():
    view = opened(rivers())
    found = find_seeds(view, [Question("rhine", EAST, "other@2/3")], plan(k=2), (VECTOR,))
    assert view.turn.reasons == [Reason.EMBEDDINGS_MISSING]
    assert nodes(found) == [0, 3]
    assert set(found.seeds[0].origins) == {LEXICAL}


def test_paths_leave_from_the_entities_that_a_chunk_names():
    view = opened(rivers())
    found = find_seeds(view, [Question("x", EAST, MODEL)], plan(k=1, mmr=0.0), (VECTOR,))
    starts = entry_points(view, Question("x"), found.seeds, 1)
    assert [seed.node for seed in starts] == [3]
    assert starts[0].origins == {"mention": 1.0}


def test_a_question_with_two_parts_is_asked_whole_and_in_parts():
    text = "Who wrote the parser, and which paper describes its retries?"
    assert clauses(text) == ["Who wrote the parser", "which paper describes its retries"]
    assert subqueries(text, 1) == (text,)
    assert subqueries(text, 2) == (text, "Who wrote the parser")
