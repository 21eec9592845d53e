"""Time is a hard budget: neither a slow embedder nor a slow view makes a turn longer than its
plan.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest

from hades.ports.graph import Kind
from hades.retrieval.answer.path_text import ByteCeiling
from hades.retrieval.core.types import NAMES_OF_RECIPES, clamp
from hades.retrieval.pipeline import Tools, retrieve
from hades.settings.load import load_settings
from hades.wiring import open_hades
from schemas.plan import Reason
from tests.patience import wait_until
from tests.properties.test_budgets import NOON, ToyEmbedder, vector_of
from tests.unit.hades.retrieval.memory_view import Graph, MemoryView

FREE = {"ids", "kinds", "adjacency", "file_chunks", "commit_chunks"}  # in memory, in every view
ALLOWED_OVER_MS = 50
FRESH = """
import json, sys
from hades import open_hades
from hades.retrieval import pipeline
class Turn(pipeline.Turn):
    def __init__(self, *given, **named):
        self.loaded = set(sys.modules)
        turns.append(self)
        super().__init__(*given, **named)
turns, pipeline.Turn = [], Turn
with open_hades() as hades:
    found = hades.retrieve("Where is Basel?", recipe=sys.argv[1])
late = {name.partition(".")[0] for name in set(sys.modules) - turns[0].loaded}
print(json.dumps([len(found.passages), found.telemetry.loading_ms, sorted(late)]))
"""


def town() -> Graph:
    graph = Graph()
    names = ("rhine", "old city", "stone bridge", "north sea")
    entities = [graph.node(Kind.ENTITY, name, vector_of(name)) for name in names]
    for one, other in pairwise(entities):
        graph.edge(one, other, "refers_to", 0.5)
        text = f"the {graph.names[one]} and the {graph.names[other]}"
        chunk = graph.node(Kind.CHUNK, text, vector_of(text))
        graph.edge(chunk, one, "mentions", 1.0)
        graph.edge(chunk, other, "mentions", 1.0)
    return graph


class BlockedEmbedder(ToyEmbedder):
    """One that answers when it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def embed(self, texts, *, progress=None):
        self.let_go.wait()
        return super().embed(texts)


class SlowView:
    """A view whose every answer takes so many milliseconds of a clock that nothing else moves."""

    def __init__(self, view: MemoryView, ms: float) -> None:
        self._view, self._ms, self.now = view, ms, 0.0

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._view, name)
        if name in FREE or not callable(value):
            return value

        def slowly(*asked: Any, **options: Any) -> Any:
            if not asked or len(asked[0]):
                self.now += self._ms / 1000
            return value(*asked, **options)

        return slowly


@pytest.mark.parametrize("recipe", NAMES_OF_RECIPES)
def test_an_embedder_that_never_answers_leaves_the_question_to_the_words(recipe):
    embedder = BlockedEmbedder()
    try:
        found = retrieve(
            MemoryView(town()),
            "the stone bridge",
            Tools(ByteCeiling(), embedder, clock=lambda: 0.0),
            at=NOON,
            recipe=recipe,
            plan=clamp({"budget": {"latency_ms": 200}}),
        )
    finally:
        embedder.let_go.set()
    assert found.passages
    if recipe != "lexical":
        assert Reason.EMBEDDER_SLOW in found.reasons


def test_an_embedder_that_never_answers_keeps_few_threads_however_often_it_is_asked():
    embedder = BlockedEmbedder()
    tools = Tools(ByteCeiling(), embedder, clock=lambda: 0.0)
    plan = clamp({"budget": {"latency_ms": 100}})
    before = threading.active_count()
    try:
        for _ in range(15):
            found = retrieve(MemoryView(town()), "the stone bridge", tools, at=NOON, plan=plan)
            assert Reason.EMBEDDER_SLOW in found.reasons
        assert threading.active_count() - before <= 8
    finally:
        embedder.let_go.set()
    wait_until(lambda: threading.active_count() <= before)
    answered = retrieve(MemoryView(town()), "the stone bridge", tools, at=NOON)
    assert Reason.EMBEDDER_SLOW not in answered.reasons


@pytest.mark.parametrize("ms", [7.0, 45.0])
@pytest.mark.parametrize("recipe", NAMES_OF_RECIPES)
def test_a_slow_view_is_not_asked_once_its_answer_would_come_too_late(recipe, ms):
    for latency in (30, 120, 400):
        view = SlowView(MemoryView(town()), ms)
        tools = Tools(ByteCeiling(), ToyEmbedder(), clock=lambda view=view: view.now)
        found = retrieve(
            view,
            "the stone bridge",
            tools,
            at=NOON,
            recipe=recipe,
            plan=clamp({"budget": {"latency_ms": latency}}),
        )
        assert view.now * 1000 <= latency + ALLOWED_OVER_MS
        assert found.telemetry.ms <= latency + ALLOWED_OVER_MS
        assert found.passages or Reason.TIMEOUT in found.reasons


def test_a_larger_budget_lets_no_slower_turn_convey_more():
    conveyed = []
    for step, latency in ((0.001, 2_000), (0.001, 20_000), (0.01, 20_000)):
        looks = count()
        tools = Tools(ByteCeiling(), clock=lambda step=step, looks=looks: step * next(looks))
        plan = clamp({"profile": "evaluation", "budget": {"latency_ms": latency}})
        found = retrieve(MemoryView(town()), "the stone bridge", tools, at=NOON, plan=plan)
        assert Reason.TIMEOUT not in found.reasons
        conveyed.append(found.conveyance.value)
    assert conveyed[0] == pytest.approx(conveyed[1])
    assert conveyed[2] < conveyed[1]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published page, with the vectors of the default model."""
    folder = tmp_path_factory.mktemp("fresh")
    (folder / "page.md").write_text("# Rivers\n\nBasel lies on the Rhine.\n", encoding="utf-8")
    with open_hades(load_settings({"HADES_HOME": str(folder / ".hades")}, folder)) as hades:
        hades.ingest.documents(folder / "page.md")
        hades.publish()
    return folder / ".hades"


@pytest.mark.parametrize("recipe", ["auto", "hipporag"])
def test_a_fresh_process_loads_nothing_on_the_clock_of_its_turn(
    recipe: str, home: Path, tmp_path: Path
):
    environment = {"PYTHONPATH": str(Path(__file__).parents[4]), "HADES_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", FRESH, recipe],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    passages, loading_ms, late = json.loads(done.stdout)
    assert passages == 1
    assert loading_ms > 0.0
    assert set(late) <= {
        "hades",
        "models",
        "schemas",
        "pyarrow",
        "importlib",
    }  # milliseconds, and they count
