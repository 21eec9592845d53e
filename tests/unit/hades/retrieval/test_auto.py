"""The default recipe: every channel, one ranking, paths that explain it, and no answer where
nothing supports one.
"""

from __future__ import annotations

from itertools import count, pairwise
from pathlib import Path

import numpy as np
import pytest

from benchmarks.evaluation.rankers import path_documents
from hades.evaluation.rankers import MOMENT
from hades.ports.graph import Kind
from hades.providers.hashing import HashingEmbedder
from hades.retrieval.answer.path_text import ByteCeiling
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import DEFAULT, FoundPassage, Question, clamp
from hades.retrieval.pipeline import Tools, retrieve
from hades.retrieval.walks.flow import FlowRules
from hades.retrieval.walks.neighbourhood import NO_TIME, explain_passages
from hades.snapshot.view import GraphView
from schemas.answer import Retrieval
from schemas.plan import Plan, Profile, Reason
from tests.unit.hades.retrieval.films import metered, published

ACTOR = "Where was the Irish actor of Glass Harbour born?"
FOREIGN = "Which enzyme limits the Zorblax cycle of Quuxfield?"


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> GraphView:
    home: Path = tmp_path_factory.mktemp("films")
    return published(home)


def ask(view: GraphView, text: str = ACTOR, **options: object) -> Retrieval:
    plan = Plan(profile=Profile.EVALUATION)
    return retrieve(
        view, text, Tools(ByteCeiling(), HashingEmbedder()), at=MOMENT, plan=plan, **options
    )  # type: ignore[arg-type]


def test_the_default_is_auto_and_finds_every_step_of_a_question(view: GraphView):
    found = ask(view)
    assert (DEFAULT, found.recipe) == ("auto", "auto")
    assert {"Glass Harbour", "Peter Dunn"} <= {one.document for one in found.passages[:3]}


def test_entities_are_not_compared_by_vector_and_the_seeds_are_where_the_walk_starts(
    view: GraphView, monkeypatch: pytest.MonkeyPatch
):
    compared: list[Kind] = []
    real = MeteredView.nearest

    def nearest(self: MeteredView, *given: object, **more: object) -> object:
        compared.append(more["kind"])  # type: ignore[arg-type]
        return real(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(MeteredView, "nearest", nearest)
    found = ask(view)
    assert set(compared) == {Kind.CHUNK}
    assert found.conveyance.context.ground > 0.0
    seeds, graph = (
        next(one for one in found.telemetry.stages if one.name == name)
        for name in ("seeds", "graph")
    )
    assert seeds.given > 0  # the film
    assert graph.coverage > 0.0  # a path touches it


def test_paths_explain_the_first_passages_and_fall_with_rank(view: GraphView):
    found = ask(view)
    assert found.paths
    assert all(one.score >= two.score for one, two in pairwise(found.paths))
    assert {"Glass Harbour", "Peter Dunn"} <= path_documents(found)
    assert "leads to passage 1" in found.paths[0].why


def test_each_passage_names_the_path_that_leads_to_it_or_says_why_there_is_none(view: GraphView):
    found = ask(view)
    ranks = {path.rank for path in found.paths}
    assert found.passages[0].explained_by in ranks
    assert all((one.explained_by in ranks) != bool(one.no_path) for one in found.passages)
    bread = next(one for one in found.passages if one.document == "Cold Bread")
    assert bread.explained_by is None
    assert bread.no_path


def test_a_path_that_explains_a_passage_has_an_edge_that_the_passage_states(view: GraphView):
    found = ask(view)
    sources = {
        path.rank: {edge.provenance.doc for edge in path.edges if edge.provenance}
        for path in found.paths
    }
    told = {one.document: sources[one.explained_by] for one in found.passages if one.explained_by}
    assert {"Glass Harbour", "Peter Dunn", "Galway"} <= told.keys()
    assert [document for document, stated_in in told.items() if document not in stated_in] == []


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ({"graph": {"beam": 1}}, Reason.CAP_EXCEEDED),
        ({"final_context": 1}, Reason.CONTEXT_FULL),
        ({"budget": {"tokens_max": 120}}, Reason.PROMPT_FULL),
    ],
)
def test_every_cut_of_an_answer_has_its_reason(
    view: GraphView, raw: dict[str, object], reason: Reason
):
    tools = Tools(ByteCeiling(), HashingEmbedder())
    assert reason in retrieve(view, ACTOR, tools, at=MOMENT, plan=clamp(raw)).reasons


def test_an_answer_of_the_usual_length_is_not_called_cut(view: GraphView):
    found = retrieve(
        view, ACTOR, Tools(ByteCeiling(), HashingEmbedder()), at=MOMENT, plan=clamp({})
    )
    assert len(found.passages) == found.plan.final_context  # there was more
    assert Reason.CONTEXT_FULL not in found.reasons


def test_seeds_and_fanout_of_the_plan_change_the_paths(view: GraphView):
    tools = Tools(ByteCeiling(), HashingEmbedder())
    raw = {"profile": "evaluation", "graph": {"fanout": 1}, "retriever": {"k": 1}}
    paths = retrieve(view, ACTOR, tools, at=MOMENT, plan=clamp(raw)).paths
    assert len({path.nodes[0].id for path in paths}) == 1
    assert len({path.nodes[1].id for path in paths}) == 1
    assert len({path.nodes[0].id for path in ask(view).paths}) > 1


def test_a_key_that_a_recipe_does_not_use_is_named(view: GraphView):
    tools = Tools(ByteCeiling(), HashingEmbedder())
    found = retrieve(
        view, ACTOR, tools, at=MOMENT, plan=clamp({"graph": {"fanout": 3}}), recipe="hipporag"
    )
    assert Reason.KEY_UNUSED in found.reasons
    assert "hipporag does not use graph.fanout" in found.why
    assert Reason.KEY_UNUSED not in ask(view, recipe="hipporag").reasons


@pytest.mark.parametrize("recipe", ["auto", "hipporag", "hipporag_multihop", "nexus"])
@pytest.mark.parametrize(("ms", "is_late"), [(1, True), (10_000, False)])
def test_the_reranker_keeps_its_time_in_every_recipe(
    view: GraphView, recipe: str, ms: int, is_late: bool
):
    looks = count()
    tools = Tools(ByteCeiling(), HashingEmbedder(), clock=lambda: 0.002 * next(looks))
    plan = clamp({"profile": "evaluation", "reranker": {"timeout_ms": ms}})
    found = retrieve(view, ACTOR, tools, at=MOMENT, plan=plan, recipe=recipe)
    assert (Reason.TIMEOUT in found.reasons) == is_late
    assert "Peter Dunn" in [one.document for one in found.passages]


def test_a_turn_without_time_says_so_and_not_that_a_passage_names_nothing(view: GraphView):
    found = [
        FoundPassage(int(number), 1.0)
        for number in view.number([one.id for one in ask(view).passages[:2]])
    ]
    read = view.passages(np.array([one.node for one in found], np.int64))
    late = metered(view, ms=0.0)
    _, marked = explain_passages(late, Question(ACTOR), [], found, read, FlowRules())
    assert late.turn.expired()
    assert [one.no_path for one in marked] == [NO_TIME, NO_TIME]


def test_the_confidence_falls_below_one_half_where_it_abstains(view: GraphView):
    sure, doubtful = ask(view).confidence, ask(view, FOREIGN).confidence
    assert sure is not None
    assert doubtful is not None
    assert doubtful < 0.5 < sure
    assert ask(view, recipe="hipporag").confidence is None


def test_nexus_says_when_the_plan_holds_fewer_passages_than_its_mode_returns(view: GraphView):
    small = Plan(profile=Profile.ONLINE)
    tools = Tools(ByteCeiling(), HashingEmbedder())
    cut = retrieve(view, ACTOR, tools, at=MOMENT, plan=small, recipe="nexus", mode="planning")
    assert len(cut.passages) == small.final_context
    assert Reason.CAP_EXCEEDED in cut.reasons
    whole = ask(view, recipe="nexus", mode="planning")
    assert len(whole.passages) == 10
    assert Reason.CAP_EXCEEDED not in whole.reasons


def test_passages_that_came_without_files_are_not_searched_as_code(view: GraphView):
    assert not len(view.file_chunks())
    assert "code" not in [stage.name for stage in ask(view).telemetry.stages]
