"""The learned ranker as it serves: no caller changes, and whatever is wrong with it, questions are
answered by hand.
"""

from __future__ import annotations

import json
from contextlib import closing
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hades import ranker_files
from hades.night import model_versions
from hades.ports.store import Mode
from hades.providers.hashing import HashingEmbedder
from hades.retrieval.answer.path_text import ByteCeiling
from hades.retrieval.pipeline import Tools, retrieve
from hades.retrieval.ranking.judge import BY_HAND, Judge
from hades.snapshot.open import open_snapshot
from hades.snapshot.pointer import root_of, served
from hades.snapshot.publish import publish
from hades.snapshot.view import GraphView
from hades.snapshot.write_graph import fit_ranker
from hades.stores.sqlite.store import SqliteStore
from models.ranker.infer import RankerModel
from schemas.answer import Retrieval
from schemas.plan import Reason
from tests.unit.hades.retrieval.films import published
from tests.unit.hades.retrieval.test_pipeline import NOON
from tests.unit.models.ranker.rankers import random_model

QUESTION = "Who is the mother of the director of Glass Harbour?"
EMBEDDER = HashingEmbedder()
TAG, DIMENSION = EMBEDDER.model.tag, len(EMBEDDER.embed(["x"])[0])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films")
    published(folder)
    return folder


def with_ranker(view: GraphView, model: RankerModel) -> GraphView:
    """The view as it would be with this ranker published in it."""
    changed = copy(view)
    changed._fitted = fit_ranker(view, model)
    changed._info = replace(view.info, parts={**view.info.parts, "ranker": "unpublished"})
    return changed


def ask(view: GraphView, recipe: str = "auto", **tools: object) -> Retrieval:
    return retrieve(view, QUESTION, Tools(ByteCeiling(), EMBEDDER, **tools), at=NOON, recipe=recipe)


def order(answer: Retrieval) -> list[str]:
    return [passage.document for passage in answer.passages]


def test_the_same_call_is_judged_by_hand_or_by_the_ranker(home: Path) -> None:
    view = open_snapshot(home)
    by_hand, learned = ask(view), ask(with_ranker(view, random_model(TAG, DIMENSION)))
    assert Reason.RANKER_UNAVAILABLE not in learned.reasons
    assert type(by_hand).model_fields == type(learned).model_fields
    assert learned.telemetry.reads <= learned.plan.budget.docs_max
    assert [one.score for one in learned.passages] == sorted(
        (one.score for one in learned.passages), reverse=True
    )


def test_another_ranker_gives_another_order(home: Path) -> None:
    view = open_snapshot(home)
    answers = [ask(with_ranker(view, random_model(TAG, DIMENSION, seed))) for seed in range(6)]
    assert len({tuple(order(answer)) for answer in answers}) > 1


def test_the_likeness_of_states_is_a_column_of_the_ranking(home: Path) -> None:
    view, model = open_snapshot(home), random_model(TAG, DIMENSION)
    only_states = np.array([0.0, 0.0, 0.0, 0.0, 30.0], np.float32)
    judged = with_ranker(view, RankerModel(model.signature, {**model.arrays, "line": only_states}))
    fitted, answer = judged.fitted(), ask(judged)
    assert fitted is not None
    nodes = view.number([one.id for one in answer.passages[:4]])
    likeness = fitted.states[nodes].astype(np.float32) @ model.question_state(
        EMBEDDER.embed([QUESTION])[0]
    )
    assert len(nodes) == 4
    assert (np.diff(likeness) <= 1e-6).all()


def test_a_learned_rule_of_abstention_says_when_not_to_answer(home: Path) -> None:
    view, model = open_snapshot(home), random_model(TAG, DIMENSION)
    for bias, abstains in ((-50.0, True), (50.0, False)):
        rule = np.array([0.0, 0.0, 0.0, 0.0, bias], np.float32)
        answer = ask(
            with_ranker(view, RankerModel(model.signature, {**model.arrays, "abstain": rule}))
        )
        assert (Reason.ABSTAINED in answer.reasons) is abstains
    assert answer.confidence > ask(view).confidence


def test_a_ranker_ranks_the_default_recipe_alone(home: Path) -> None:
    view = open_snapshot(home)
    for recipe in ("hirag_pathrag", "hipporag"):
        assert order(ask(with_ranker(view, random_model(TAG, DIMENSION)), recipe)) == order(
            ask(view, recipe)
        )


@pytest.mark.parametrize("change", [{"format": 0}, {"model": "another@1/256"}, {"state": 5}])
def test_a_ranker_of_another_kind_is_not_asked_and_the_answer_says_so(
    home: Path, change: dict[str, object]
) -> None:
    view = open_snapshot(home)
    model = random_model(TAG, DIMENSION)
    odd = with_ranker(view, model)
    fitted = odd.fitted()
    assert fitted is not None
    body = {**json.loads(fitted.signature.tobytes()), **change}
    odd._fitted = replace(fitted, signature=np.frombuffer(json.dumps(body).encode(), np.uint8))  # type: ignore[attr-defined]
    answer = ask(odd)
    assert Reason.RANKER_UNAVAILABLE in answer.reasons
    assert order(answer) == order(ask(view))


def test_a_question_without_a_vector_is_judged_by_hand(home: Path) -> None:
    view = with_ranker(open_snapshot(home), random_model(TAG, DIMENSION))
    answer = retrieve(view, QUESTION, Tools(ByteCeiling()), at=NOON)
    assert Reason.RANKER_UNAVAILABLE in answer.reasons
    assert answer.passages


def test_a_published_ranker_serves_and_a_damaged_one_leaves_the_graph_up(tmp_path: Path) -> None:
    published(tmp_path)
    by_hand = order(ask(open_snapshot(tmp_path)))
    with closing(SqliteStore.open(tmp_path / "graph.db", Mode.READ_WRITE)) as store:
        model = random_model(TAG, DIMENSION)
        model_versions.record_ranker(store, ranker_files.save_ranker(tmp_path, model), None, {})
        done = publish(store, tmp_path)
    assert done.ranker_left_out == ""
    assert done.contents.parts["ranker"] == ranker_files.generation_of(model)
    view = open_snapshot(tmp_path)
    assert order(ask(view)) == order(ask(with_ranker(view, model)))
    states = root_of(tmp_path) / served(tmp_path) / "ranker.arrow"
    states.write_bytes(bytes(states.stat().st_size))
    hurt = ask(open_snapshot(tmp_path))
    assert Reason.RANKER_UNAVAILABLE in hurt.reasons
    assert hurt.snapshot == done.snapshot
    assert order(hurt) == by_hand


def test_a_lost_model_file_is_left_out_of_the_snapshot_with_the_reason(tmp_path: Path) -> None:
    published(tmp_path)
    with closing(SqliteStore.open(tmp_path / "graph.db", Mode.READ_WRITE)) as store:
        generation = ranker_files.save_ranker(tmp_path, random_model(TAG, DIMENSION))
        model_versions.record_ranker(store, generation, None, {})
        ranker_files.path_of(tmp_path, generation).write_bytes(b"not a model")
        assert "cannot be used" in publish(store, tmp_path).ranker_left_out
        ranker_files.path_of(tmp_path, generation).unlink()
        assert "is not there" in publish(store, tmp_path).ranker_left_out
        foreign = ranker_files.save_ranker(tmp_path, random_model("another@1/7", 7))
        model_versions.record_ranker(store, foreign, None, {})
        assert "another@1/7" in publish(store, tmp_path).ranker_left_out
    assert Reason.RANKER_UNAVAILABLE in ask(open_snapshot(tmp_path)).reasons


def test_whoever_asks_may_bring_a_judge(home: Path) -> None:
    view = with_ranker(open_snapshot(home), random_model(TAG, DIMENSION))
    assert order(ask(view, judge=lambda view, question: BY_HAND)) == order(ask(open_snapshot(home)))
    assert isinstance(BY_HAND, Judge)
