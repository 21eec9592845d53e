"""A whole turn on graphs that can be checked by hand: what comes back, and what happens when
something is missing.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest

from hades.ports.graph import Kind
from hades.ports.services import EmbeddingModel, ProviderError
from hades.retrieval.answer.path_text import ByteCeiling
from hades.retrieval.answer.prompt import WindowSize, format_paths_for_prompt
from hades.retrieval.core.types import NAMES_OF_RECIPES, RECIPES, UnknownRecipe
from hades.retrieval.pipeline import BadQuestion, Tools, retrieve
from schemas.answer import Retrieval
from schemas.plan import Plan, Reason
from tests.unit.hades.retrieval.memory_view import Graph, MemoryView

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
KEYS = (
    "query_id",
    "query",
    "recipe",
    "snapshot",
    "as_of",
    "reasons",
    "plan",
    "paths",
    "passages",
    "hierarchy",
    "prompt",
    "tokens",
    "telemetry",
    "conveyance",
)


class East:
    """Every text points east."""

    model = EmbeddingModel("toy", "1", 3)

    def embed(self, texts, *, progress=None):
        return np.tile(np.array([1, 0, 0], np.float32), (len(texts), 1))


class Broken(East):
    """A model that does not answer."""

    def embed(self, texts, *, progress=None):
        raise ProviderError("no model")


class StopsIn:
    """Time stands still until so many looks were taken in, then a long while passes."""

    def __init__(self, looks: int) -> None:
        self._left = looks

    def __call__(self) -> float:
        self._left -= 1
        return 0.0 if self._left >= 0 else 10_000.0


def cities() -> Graph:
    """Basel lies on the Rhine, which flows into the sea; two chunks say so."""
    graph = Graph()
    basel = graph.node(Kind.ENTITY, "Basel", [1, 0, 0])
    rhine = graph.node(Kind.ENTITY, "Rhine", [0.8, 0.6, 0])
    sea = graph.node(Kind.ENTITY, "North Sea", [0, 1, 0])
    first = graph.node(Kind.CHUNK, "Basel lies on the Rhine", [1, 0.1, 0])
    second = graph.node(Kind.CHUNK, "the Rhine ends in the North Sea", [0.1, 1, 0])
    graph.edge(basel, rhine, "refers_to", 0.9)
    graph.edge(rhine, sea, "refers_to", 0.8)
    for chunk, entity in ((first, basel), (first, rhine), (second, rhine), (second, sea)):
        graph.edge(chunk, entity, "mentions", 1.0)
    return graph


def ask(
    text: str = "where is Basel",
    recipe: str = "hirag_pathrag",
    graph: Graph | None = None,
    **options,
) -> Retrieval:
    tools = Tools(
        ByteCeiling(), options.pop("embedder", East()), clock=options.pop("clock", lambda: 0.0)
    )
    view = MemoryView(cities() if graph is None else graph)
    plan = Plan.model_validate(options.pop("plan", {}))
    return retrieve(view, text, tools, at=NOON, recipe=recipe, plan=plan, **options)


def test_an_answer_has_the_promised_shape():
    found = ask().model_dump(mode="json")
    assert [key for key in KEYS if key not in found] == []
    (path, *_), (passage, *_) = found["paths"], found["passages"]
    assert {"rank", "score", "reliability", "confidence", "text", "why", "nodes", "edges"} <= set(
        path
    )
    assert {"id", "from", "to", "type", "weight", "provenance"} <= set(path["edges"][0])
    assert {"rank", "id", "document", "title", "text", "score", "from"} <= set(passage)
    stage = found["telemetry"]["stages"][0]
    assert {
        "name",
        "reads",
        "ms",
        "in",
        "out",
        "dedupe_rate",
        "coverage",
        "capped",
        "early_stop",
    } <= set(stage)
    by_specification = {"reads_stage": "reads", "latency_stage": "ms", "coverage_score": "coverage"}
    assert {name: stage[name] for name in by_specification} == {
        name: stage[field] for name, field in by_specification.items()
    }
    assert stage["flags"] == {name: stage[name] for name in ("capped", "early_stop")}
    assert set(found["conveyance"]["Ctx"]) == {"L", "I", "A", "G", "value"}


def test_the_path_is_written_with_its_relation_and_where_it_was_read():
    path = ask(plan={"graph": {"hops": 1}}).paths[0]
    assert path.text.startswith('Basel --[refers_to; snippet: "why"]--> Rhine')
    assert path.edges[0].provenance.model_dump() == {"doc": "doc", "span": (0, 3)}
    assert path.confidence == pytest.approx(0.9)


def test_the_reliability_of_a_path_is_its_flow_whichever_search_found_it():
    path = ask(plan={"graph": {"hops": 1}}).paths[0]
    assert path.origin == "beam"
    assert path.reliability == pytest.approx(0.85 * 0.9 / max(1, path.nodes[0].deg_out))
    assert path.reliability < path.confidence


def test_with_a_window_the_turn_writes_the_paths_that_fit_it():
    whole, small = ask(window=WindowSize(4096, 512)), ask(window=WindowSize(90, 20))
    texts = [path.text for path in ask().paths]
    assert [path.text for path in whole.paths] == [path.text for path in small.paths] == texts
    paths_alone = format_paths_for_prompt(whole.paths, "where is Basel", tokenizer=ByteCeiling())
    head, _, blocks = paths_alone.partition("Relevant information:\n\n")
    assert whole.prompt.startswith(head)
    assert whole.prompt.endswith(blocks)
    assert "Passage 3: " in whole.prompt
    assert all(result.in_prompt for result in (*whole.paths, *whole.passages))
    assert not all(result.in_prompt for result in (*small.paths, *small.passages))
    assert whole.tokens.prompt == ByteCeiling().count(whole.prompt)
    assert small.tokens.prompt <= 70
    with pytest.raises(BadQuestion, match="shorten it"):
        ask("where is Basel" + " really" * 50, window=WindowSize(30, 10))


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_finds_the_passage(recipe):
    assert "Basel lies on the Rhine" in [passage.text for passage in ask(recipe=recipe).passages]


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_plan_without_hops_answers_without_the_graph(recipe):
    found = ask(recipe=recipe, plan={"graph": {"hops": 0}})
    assert found.passages
    assert found.paths == ()
    assert "graph" not in [stage.name for stage in found.telemetry.stages]


@pytest.mark.parametrize("recipe", NAMES_OF_RECIPES)
def test_an_empty_graph_is_answered_with_nothing_and_a_reason(recipe):
    found = ask(recipe=recipe, graph=Graph())
    assert (found.paths, found.passages, found.conveyance.value) == ((), (), 0.0)
    assert Reason.NO_ENTITY_MATCH in found.reasons


@pytest.mark.parametrize("recipe", ["vector", "hirag_pathrag", "hipporag"])
@pytest.mark.parametrize("embedder", [None, Broken()])
def test_without_vectors_the_words_answer(recipe, embedder):
    found = ask(recipe=recipe, embedder=embedder)
    assert Reason.EMBEDDINGS_MISSING in found.reasons
    assert found.passages[0].text == "Basel lies on the Rhine"


def test_a_missing_hierarchy_is_said_and_the_beam_goes_on():
    found = ask()
    assert Reason.HIERARCHY_UNAVAILABLE in found.reasons
    assert found.paths


def test_seeds_without_edges_give_no_paths_and_the_reason():
    graph = Graph()
    graph.node(Kind.ENTITY, "Basel", [1, 0, 0])
    assert Reason.NO_PATHS in ask(graph=graph).reasons


def test_a_chain_is_followed_as_deep_as_the_plan_allows_and_no_deeper():
    graph = Graph()
    nodes = [
        graph.node(Kind.ENTITY, f"link{number}", [1, 0, 0] if number == 0 else None)
        for number in range(500)
    ]
    for tail, head in pairwise(nodes):
        graph.edge(tail, head, "refers_to", 1.0)
    found = ask("link0", graph=graph, plan={"graph": {"hops": 2}})
    assert max(len(path.edges) for path in found.paths) == 2


@pytest.mark.parametrize("recipe", RECIPES)
def test_time_that_runs_out_anywhere_ends_the_turn_gracefully(recipe):
    cut: set[str] = set()
    for looks in range(1, 40):
        found = ask(recipe=recipe, clock=StopsIn(looks))
        if Reason.TIMEOUT in found.reasons:
            cut |= {stage.name for stage in found.telemetry.stages if stage.early_stop}
    walks = set() if recipe in ("vector", "lexical") else {"graph"}
    reranks = {"rerank"} if recipe in ("graphrag", "hirag", "pathrag", "hirag_pathrag") else set()
    assert {"seeds", "pack"} | walks | reranks <= cut


def test_reads_that_run_out_shorten_the_answer_with_the_reason():
    found = ask(plan={"budget": {"docs_max": 3}})
    assert found.telemetry.reads <= 3
    assert Reason.BUDGET_DOCS in found.reasons
    assert found.passages


def test_auto_says_what_set_its_weights_and_abstains_when_nothing_fits():
    assert "names one entity" in ask("who lies on the Rhine", "auto").why
    found = ask("Zorblax Quuxification of Mars 1999", "auto", embedder=None)
    assert Reason.ABSTAINED in found.reasons
    assert not found.paths


def test_the_same_question_later_has_another_id_and_the_same_answer():
    view, tools = MemoryView(cities()), Tools(ByteCeiling(), East(), clock=lambda: 0.0)
    first, second = (retrieve(view, "Basel", tools, at=at) for at in (NOON, NOON.replace(hour=13)))
    assert first.query_id != second.query_id
    assert first.model_copy(update={"query_id": ""}) == second.model_copy(update={"query_id": ""})


def test_a_vector_that_is_given_is_not_computed_again():
    given = ask(recipe="vector", embedder=Broken(), vector=np.array([0, 1, 0], np.float32))
    assert given.passages[0].text == "the Rhine ends in the North Sea"


def test_an_unknown_recipe_names_those_there_are():
    with pytest.raises(UnknownRecipe, match=r"hirag_pathrag.*memory"):
        ask(recipe="pathfinder")
