"""The default recipe: every channel, one ranking, paths that explain it, and no answer where nothing supports one."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from hades.evaluation.rankers import MOMENT, path_documents
from hades.ports.graph import Kind
from hades.ports.view import GraphView
from hades.providers.hashing import HashingEmbedder
from hades.providers.tokens import ByteTokenizer
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import DEFAULT, FoundPassage, Question
from hades.retrieval.pipeline import Tools, retrieve
from hades.retrieval.walks.flow import FlowRules
from hades.retrieval.walks.neighbourhood import NO_TIME, explain_passages
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
    return retrieve(view, text, Tools(ByteTokenizer(), HashingEmbedder()), at=MOMENT, plan=plan, **options)  # type: ignore[arg-type]


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
    seeds, graph = (next(one for one in found.telemetry.stages if one.name == name) for name in ("seeds", "graph"))
    assert seeds.given > 0  # the film
    assert graph.coverage > 0.0  # a path touches it


def test_a_plan_without_hops_is_answered_from_seeds(view: GraphView):
    plan = Plan.model_validate({"profile": "evaluation", "graph": {"hops": 0}})
    found = retrieve(view, ACTOR, Tools(ByteTokenizer(), HashingEmbedder()), at=MOMENT, plan=plan, anyway=True)
    assert found.passages
    assert found.paths == ()


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


def test_a_path_that_explains_a_passage_is_stated_by_it_or_ends_at_what_it_names(view: GraphView):
    found = ask(view)
    paths = {path.rank: path for path in found.paths}
    told = {one.document: (one, paths[one.explained_by]) for one in found.passages if one.explained_by}
    assert {"Glass Harbour", "Peter Dunn", "Galway"} <= told.keys()
    for passage, path in told.values():
        stated_in = {edge.provenance.doc for edge in path.edges if edge.provenance}
        text = view.passages(view.number([passage.id]))[0].text
        assert passage.document in stated_in or path.nodes[-1].name in f"{passage.title} {text}"


def test_a_turn_without_time_says_so_and_not_that_a_passage_names_nothing(view: GraphView):
    found = [FoundPassage(int(number), 1.0) for number in view.number([one.id for one in ask(view).passages[:2]])]
    read = view.passages(np.array([one.node for one in found], np.int64))
    late = metered(view, ms=0.0)
    marked = explain_passages(late, Question(ACTOR), [], found, read, FlowRules()).mark(found)
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
    tools = Tools(ByteTokenizer(), HashingEmbedder())
    cut = retrieve(view, ACTOR, tools, at=MOMENT, plan=small, recipe="nexus", mode="planning")
    assert len(cut.passages) == small.final_context
    assert Reason.CAP_EXCEEDED in cut.reasons
    whole = ask(view, recipe="nexus", mode="planning")
    assert len(whole.passages) == 10
    assert Reason.CAP_EXCEEDED not in whole.reasons


def test_no_path_is_longer_than_the_plan_allows(view: GraphView):
    assert max(len(path.edges) for path in ask(view).paths) <= Plan(profile=Profile.EVALUATION).graph.hops


def test_weak_evidence_is_shown_with_its_doubt(view: GraphView):
    found = ask(view, FOREIGN)
    assert Reason.ABSTAINED in found.reasons
    assert found.passages
    assert not found.paths
    assert found.confidence is not None
    assert found.confidence < 0.5


def test_the_reranker_reads_no_more_than_its_share_of_the_plan(view: GraphView):
    plan = Plan(profile=Profile.EVALUATION).model_copy(update={"final_context": 2})
    small = plan.model_copy(update={"reranker": plan.reranker.model_copy(update={"m": 3})})
    tools = Tools(ByteTokenizer(), HashingEmbedder())
    found = retrieve(view, ACTOR, tools, at=MOMENT, plan=small)
    assert len(found.passages) <= 2
    assert sum(stage.given for stage in found.telemetry.stages if stage.name == "rerank") <= 2 + len(found.paths)


def test_passages_that_came_without_files_are_not_searched_as_code(view: GraphView):
    assert not len(view.file_chunks())
    assert "code" not in [stage.name for stage in ask(view).telemetry.stages]


def test_taking_the_best_k_seeds_is_no_cut(view: GraphView):
    assert Reason.CAP_EXCEEDED not in ask(view).reasons
