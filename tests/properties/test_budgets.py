"""Whatever graph, plan, recipe and clock: no cap is exceeded, the ledger equals the reads, every
cut has a reason.

`make soak` runs the same over ten thousand turns.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hades.ports.graph import BridgePath, Kind
from hades.ports.services import EmbeddingModel
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.core.types import NAMES_OF_RECIPES, clamp
from hades.retrieval.pipeline import Tools, retrieve
from hades.retrieval.ranking.select import USUAL_RESULTS
from hades.retrieval.search import walk_search
from hades.settings.tree import HiragPathrag
from schemas.answer import Retrieval
from schemas.edges import ClusterEdgeType
from schemas.nodes import RelationType
from schemas.plan import Plan, Profile, Reason, over_caps
from tests.patience import examples
from tests.unit.hades.retrieval.memory_view import CountingView, Graph, MemoryView

WORDS = ("rhine", "river", "sea", "bread", "salt", "north", "old", "city", "bridge", "stone")
CUTS = {Reason.CAP_EXCEEDED, Reason.BUDGET_DOCS, Reason.PROMPT_FULL, Reason.TIMEOUT}
TOKENS = MiniLmTokenizer()
STARTS: list[int] = []  # of the walks of a turn
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


class ToyEmbedder:
    """Three numbers from the words of a text."""

    model = EmbeddingModel("toy", "1", 3)

    def embed(self, texts, *, progress=None):
        return np.array([vector_of(text) for text in texts], np.float32)


class Clock:
    """Time that passes by a random step at every look, or stands still."""

    def __init__(self, dice: random.Random, step_ms: float) -> None:
        self._dice, self._step, self._now = dice, step_ms / 1000, 0.0

    def __call__(self) -> float:
        self._now += self._step * self._dice.random()
        return self._now


def vector_of(text: str) -> np.ndarray:
    vector = np.array([len(text) % 7 + 1, text.count("r"), text.count("s")], np.float32)
    return vector / np.linalg.norm(vector)


def random_graph(dice: random.Random) -> Graph:
    """Up to sixty nodes of every kind, some without vectors, now and then with a hub; or nothing at
    all.
    """
    graph = Graph()
    share = dice.choice((0.0, 0.5, 1.0))

    def name() -> str:
        return " ".join(dice.choices(WORDS, k=dice.randint(1, 4)))

    def add(kind: Kind, count: int, level: int = 1) -> list[int]:
        names = [name() for _ in range(count)]
        return [
            graph.node(kind, one, vector_of(one) if dice.random() < share else None, level)
            for one in names
        ]

    size = dice.choice((0, 1, 4, 20))
    entities, chunks = (
        add(Kind.ENTITY, dice.randint(0, size)),
        add(Kind.CHUNK, dice.randint(0, size)),
    )
    topics, above = add(Kind.CLUSTER, dice.randint(0, 4)), add(Kind.CLUSTER, dice.randint(0, 2), 2)
    funcs = add(Kind.FUNC, dice.randint(0, 3))
    relations = [str(one) for one in RelationType]
    for _ in range(dice.randint(0, 4 * size) if entities else 0):
        graph.edge(
            dice.choice(entities),
            dice.choice(entities),
            dice.choice(relations),
            dice.choice((0.0, 0.3, 1.0)),
        )
    for chunk in chunks:
        for entity in dice.sample(entities, min(len(entities), dice.randint(0, 3))):
            graph.edge(chunk, entity, "mentions", dice.random())
    for entity in entities if topics else ():
        graph.edge(entity, dice.choice(topics), ClusterEdgeType.PART_OF, 1.0)
    for topic in topics if above else ():
        graph.edge(topic, dice.choice(above), ClusterEdgeType.SUBTOPIC_OF, 1.0)
    for func in funcs[1:]:
        graph.edge(funcs[0], func, "calls", 1.0)
    if entities and dice.random() < 0.2:  # a hub
        for _ in range(300):
            graph.edge(entities[0], dice.choice(entities), "refers_to", 0.5)
    if entities and len(topics) > 1:
        for handle, (source, target, kind, _) in enumerate(graph.edges):
            if kind in relations and source != target and dice.random() < 0.2:
                graph.bridges.append(
                    BridgePath(topics[0], topics[1], (source, target), (handle,), (True,), 0.5, 0.7)
                )
    return graph


def random_plan(dice: random.Random) -> Plan:
    """A plan that may ask for far too much."""
    big = dice.choice((3, 30, 3000))

    def some(least: int = 1) -> int:
        return dice.randint(least, big)

    raw = {
        "q": some(),
        "retriever": {"k": some(), "mmr": dice.random(), "timeout_ms": some()},
        "graph": {"hops": some(0), "fanout": some(), "beam": some(), "timeout_ms": some()},
        "reranker": {"m": some(), "timeout_ms": some()},
        "final_context": some(),
        "budget": {
            "docs_max": some(),
            "work_max": some() ** 2,
            "tokens_max": some(),
            "latency_ms": 3 + some(),
        },
    }
    return clamp(
        raw, dice.choice((Profile.ONLINE, Profile.ONLINE, Profile.PATHS, Profile.EVALUATION))
    )


def turn(seed: int, recipe: str) -> tuple[Retrieval, CountingView]:
    """One random turn."""
    dice = random.Random(seed)
    view = CountingView(MemoryView(random_graph(dice)))
    tools = Tools(
        TOKENS,
        ToyEmbedder() if dice.random() < 0.8 else None,
        HiragPathrag(cand_cap=dice.choice((1, 10, 500))),
        clock=Clock(dice, dice.choice((0.0, 0.0, 0.5, 20.0))),
    )
    STARTS.clear()
    text = " and ".join(
        " ".join(dice.choices((*WORDS, "unknown"), k=4)) for _ in range(dice.randint(1, 3))
    )
    found = retrieve(
        view,
        text,
        tools,
        at=NOON,
        recipe=recipe,
        plan=random_plan(dice),
        max_paths=dice.choice((None, 0, 2)),
    )
    return found, view


def broken_promises(found: Retrieval, view: CountingView) -> Iterator[str]:
    """What a turn did that its plan forbids, or hid."""
    plan, spent = found.plan, found.telemetry
    reasons = set(found.reasons)
    if list(over_caps(plan)):
        yield "a plan above the caps ran"
    if spent.reads != view.reads:
        yield f"the ledger says {spent.reads} reads, the view was asked for {view.reads}"
    if spent.reads > plan.budget.docs_max:
        yield f"{spent.reads} reads of {plan.budget.docs_max}"
    if not view.work <= spent.work <= plan.budget.work_max:
        yield (
            f"{spent.work} work of {plan.budget.work_max}; the view alone was asked for {view.work}"
        )
    if sum(stage.reads for stage in spent.stages) > spent.reads:
        yield "stages read more than the turn"
    if len(found.paths) > min(plan.graph.beam, plan.final_context):
        yield f"{len(found.paths)} paths of {plan.graph.beam} kept and {plan.final_context} shown"
    if any(len(path.edges) > plan.graph.hops for path in found.paths):
        yield "a path longer than the plan's hops"
    if any(len(path.nodes) != len(path.edges) + 1 for path in found.paths):
        yield "a path with a hole"
    if len(found.passages) > plan.final_context:
        yield f"{len(found.passages)} passages of {plan.final_context}"
    if found.tokens.prompt > plan.budget.tokens_max:
        yield f"{found.tokens.prompt} prompt tokens of {plan.budget.tokens_max}"
    yield from broken_walks(found, view)
    stages = {stage.name: stage for stage in spent.stages}
    if stages["rerank"].given < min(stages["rerank"].taken, USUAL_RESULTS) and not reasons:
        yield "results that are usually shown were left out of the answer without a reason"
    if Reason.CONTEXT_FULL in reasons and plan.final_context >= USUAL_RESULTS:
        yield "an answer that shows as much as any says that it was cut"
    if stages["pack"].given < min(stages["pack"].taken, plan.final_context) and not reasons & CUTS:
        yield "the prompt leaves something out without a reason"
    for stage in spent.stages:
        if stage.name == "seeds" and stage.given > plan.retriever.k:
            yield f"{stage.given} seeds of {plan.retriever.k}"
        if stage.capped and not reasons & CUTS:
            yield f"{stage.name} was capped without a reason"
        if stage.early_stop and not reasons & {
            Reason.TIMEOUT,
            Reason.COVERAGE_REACHED,
            Reason.EMBEDDER_SLOW,
        }:
            yield f"{stage.name} stopped early without a reason"
    if not found.paths and not found.passages and not reasons:
        yield "an empty answer without a reason"


def broken_walks(found: Retrieval, view: CountingView) -> Iterator[str]:
    """What the paths and the reads themselves show, whatever the turn says of them."""
    plan = found.plan
    if len(view.passages_read) > plan.reranker.m:
        yield f"{len(view.passages_read)} passages were read to judge {plan.reranker.m}"
    if len({path.nodes[0].id for path in found.paths}) > plan.retriever.k:
        yield f"paths leave more than {plan.retriever.k} nodes"
    nexts: dict[tuple[str, ...], set[str]] = {}
    for path in found.paths:
        ids = tuple(node.id for node in path.nodes)
        for place in range(1, len(ids)):
            nexts.setdefault(ids[:place], set()).add(ids[place])
    if any(len(neighbours) > plan.graph.fanout for neighbours in nexts.values()):
        yield f"a path is continued to more than {plan.graph.fanout} neighbours"
    if any(
        starts > plan.retriever.k + place * plan.graph.beam for place, starts in enumerate(STARTS)
    ):
        yield (
            f"walks start from {STARTS} nodes at k {plan.retriever.k} with a beam of "
            f"{plan.graph.beam}"
        )


@pytest.fixture(autouse=True)
def counted_walks(monkeypatch):
    """Count the nodes that each walk of PageRank starts from."""
    real = walk_search.walk_from

    def counted(view, mass, *arguments, **options):
        STARTS.append(len(mass))
        return real(view, mass, *arguments, **options)

    monkeypatch.setattr(walk_search, "walk_from", counted)


@pytest.mark.parametrize("recipe", NAMES_OF_RECIPES)
@settings(max_examples=examples(13), deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_no_turn_breaks_its_plan(recipe, seed):
    assert list(broken_promises(*turn(seed, recipe))) == []


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_ten_thousand_turns_break_no_plan():
    dice = random.Random(5)
    for number in range(10_000):
        seed, recipe = dice.getrandbits(40), NAMES_OF_RECIPES[number % len(NAMES_OF_RECIPES)]
        assert list(broken_promises(*turn(seed, recipe))) == [], (seed, recipe)


@pytest.mark.slow
def test_a_hub_of_a_million_edges_breaks_no_plan():
    graph = Graph()
    hub = graph.node(Kind.ENTITY, "rhine", vector_of("rhine"))
    leaves = [graph.node(Kind.ENTITY, f"{WORDS[place % 10]} {place}") for place in range(1000)]
    chunk = graph.node(Kind.CHUNK, "the rhine is a river", vector_of("the rhine is a river"))
    graph.edge(chunk, hub, "mentions", 1.0)
    graph.edges += [(hub, leaves[place % 1000], "refers_to", 0.5) for place in range(1_000_000)]
    whole = MemoryView(graph)
    for recipe in NAMES_OF_RECIPES:
        view = CountingView(whole)
        found = retrieve(view, "the rhine", Tools(TOKENS, ToyEmbedder()), at=NOON, recipe=recipe)
        assert list(broken_promises(found, view)) == []
        assert found.telemetry.work <= found.plan.budget.work_max == 2_000_000


@pytest.mark.parametrize("recipe", NAMES_OF_RECIPES)
def test_the_same_turn_gives_the_same_answer(recipe):
    for seed in range(5):
        first, second = turn(seed, recipe)[0].model_dump(), turn(seed, recipe)[0].model_dump()
        assert first == second
