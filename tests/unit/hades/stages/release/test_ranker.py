"""The ranker through its nights: trained, refused or promoted, published, rolled back and forward again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hades import build_state as ledger
from hades.api import Hades
from hades.build import registry
from hades.build.ranker.fit import RankerRules
from hades.build.ranker.stage import QuestionSet, train, train_ranker
from hades.build.registry import CHALLENGER, CHAMPION, RANKER_MODEL, RankerError
from hades.build.release.publish import release, roll_back
from models.ranker.infer import HeadRules, RankerModel, StateRules
from schemas.plan import Reason
from schemas.telemetry import JudgedRanks
from tests.unit.hades.stages.release.small_graphs import MONDAY, ingested
from tests.unit.models.ranker.rankers import random_model

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
PLAN = {"profile": "evaluation"}  # no clock cuts a stage short
QUICK = RankerRules(StateRules(hidden=8, state=4, epochs=2), HeadRules(steps=12), n_folds=2)
QUESTIONS = [
    f"{verb} {name}?"
    for verb in ("who worked with", "who wrote to")
    for name in ("Ada Lovelace", "Grace Hopper", "Alan Turing")
]


def answers(hades: Hades) -> str:
    """Every answer as bytes, without what is of this turn alone."""
    told = []
    for recipe in ("hirag_pathrag", "hipporag"):
        for question in QUESTIONS:
            answer = hades.answers.retrieve(question, recipe=recipe, plan=PLAN).model_dump(mode="json", by_alias=True)
            told.append([answer["passages"], answer["paths"], answer["reasons"], answer["snapshot"]])
    return json.dumps(told, sort_keys=True)


def registered(hades: Hades, model: RankerModel) -> str:
    """A model in the registry."""
    return registry.log_ranker(
        hades.build_context.open_tracker(),
        model,
        params={},
        metrics={},
        draw=lambda folder: [],
        verdict="made for a test",
        questions="questions.jsonl",
    )


def served(hades: Hades, version: str) -> str:
    """The answers of a night that ends with this ranker."""
    registry.promote_ranker(hades.build_context.store, hades.home, hades.build_context.open_tracker(), version, MONDAY)
    release(hades.build_context, MONDAY, 9)
    return answers(hades)


def models(hades: Hades) -> tuple[RankerModel, RankerModel]:
    tag = hades.build_context.model
    dimension = len(hades.embedder.embed(["x"])[0])
    return random_model(tag, dimension, 1), random_model(tag, dimension, 2)


def test_three_nights_back_and_forward_again_end_in_equal_answers(tmp_path: Path) -> None:
    with ingested(tmp_path) as hades:
        context = hades.build_context
        release(context, MONDAY, 9)
        first = answers(hades)
        one, two = (registered(hades, model) for model in models(hades))
        second, third = served(hades, one), served(hades, two)
        assert len({first, second, third}) == 3
        assert str(Reason.RANKER_UNAVAILABLE) not in third
        assert roll_back(context, "ranker", None).ranker_version == one
        assert answers(hades) == second
        assert roll_back(context, "ranker", "none").note == "questions are judged by hand"
        assert answers(hades) == first
        assert roll_back(context, "ranker", one).ranker_version == one
        assert answers(hades) == second
        assert roll_back(context, "ranker", two).ranker_version == two
        assert answers(hades) == third
        assert context.open_tracker().alias(RANKER_MODEL, CHAMPION) == two
        snapshot = json.loads(second)[0][3]
        went = roll_back(context, "graph", snapshot)
        assert (went.snapshot, went.ranker_version) == (snapshot, one)
        assert answers(hades) == second
        release(context, MONDAY, 9)  # the store agrees with what serves
        assert answers(hades) == second


def test_before_the_first_ranker_are_the_shipped_weights(tmp_path: Path) -> None:
    with ingested(tmp_path) as hades:
        release(hades.build_context, MONDAY, 3)
        with pytest.raises(RankerError, match="no ranker serves"):
            roll_back(hades.build_context, "ranker", None)
        served(hades, registered(hades, models(hades)[0]))
        assert roll_back(hades.build_context, "ranker", None).ranker_version == "none"


@contextmanager
def labelled(folder: Path) -> Iterator[tuple[Hades, Path]]:
    """A published context and a file of questions about its pages."""
    with ingested(folder) as hades:
        release(hades.build_context, MONDAY, 3)
        found = hades.answers.retrieve("letter", recipe="lexical", plan={"profile": "evaluation"}).passages
        rows = [{"question": f"{one.text.split('.')[0].strip('# ')}?", "gold": [one.document]} for one in found]
        path = folder / "questions.jsonl"
        path.write_text("\n".join(map(json.dumps, [*rows, *rows[:5]])))
        yield hades, path


def trained(hades: Hades, path: Path, rules: RankerRules = QUICK) -> dict[str, Any]:
    assert hades.build_context.open_tools is not None
    return train_ranker(hades.build_context, hades.build_context.open_tools(), [QuestionSet(path)], MONDAY, rules)


def test_training_exports_checks_fits_and_registers_a_challenger(tmp_path: Path) -> None:
    with labelled(tmp_path) as (hades, path):
        report = trained(hades, path)
        tracker = hades.build_context.open_tracker()
        assert not report["skipped"]
        assert report["questions"] == 25
        assert report["rows"]["preferences"] > 0
        assert tracker.alias(RANKER_MODEL, CHALLENGER) == report["version"]
        version = tracker.versions(RANKER_MODEL)[0]
        assert version.tags["data"] == report["data_hash"]
        assert version.tags["verdict"] == report["why"]
        assert (hades.home / "ranker" / "export" / "preferences.arrow").is_file()
        assert trained(hades, path)["why"] == "nothing that a ranker learns from has changed"
        ledger.forget(hades.build_context.store, "ranker_training")
        again = trained(hades, path)
        assert (again["version"], again["data_hash"]) == (
            report["version"],
            report["data_hash"],
        )  # same data, same weights


def test_a_degraded_challenger_is_refused_and_what_serves_stays(tmp_path: Path) -> None:
    with labelled(tmp_path) as (hades, path):
        before = answers(hades)
        spoiled = replace(QUICK, heads=HeadRules(steps=12, rate=0.0))  # learns nothing
        report = trained(hades, path, spoiled)
        assert not report["is_champion"]
        assert "not better than weights by hand" in report["why"]
        tracker = hades.build_context.open_tracker()
        assert tracker.alias(RANKER_MODEL, CHAMPION) is None
        assert "not better" in tracker.versions(RANKER_MODEL)[0].tags["verdict"]
        release(hades.build_context, MONDAY, 3)
        assert answers(hades) == before


def test_a_night_without_questions_or_time_trains_nothing(tmp_path: Path) -> None:
    with ingested(tmp_path) as hades:
        assert "nothing is published" in train(hades.build_context, MONDAY)["why"]
        release(hades.build_context, MONDAY, 3)
        assert "0 questions are known" in train(hades.build_context, MONDAY)["why"]
        assert "too few to train" in train(hades.build_context, MONDAY, seconds_left=10.0)["why"]
        answer = hades.retrieve("who worked with Ada Lovelace?")
        hades.feed_back(answer.query_id, good=JudgedRanks(passages=(1,)))
        assert "1 questions are known" in train(hades.build_context, MONDAY)["why"]
