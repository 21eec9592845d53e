"""The gate of the default recipe's ranking: a fitted ranking that loses against weights by hand does not serve."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from importlib.resources import files

import pytest

from hades.evaluation.cases import read_cases
from hades.evaluation.rankers import build, rungs
from hades.evaluation.serving import BY_HAND, FITTED, choose_ranking
from hades.evaluation.text_sets import measure
from hades.retrieval.core.words import fusion_model
from hades.retrieval.ranking.default_ranking import RankingChoice, ServedFusion, choice_file, read_choice, write_choice
from hades.snapshot.open import open_snapshot
from hades.wiring import open_answers
from models.rankings import FusionModel, read_fusion
from tests.unit.hades.evaluation.corpora import hashing_bench, write_rows

NAMES = [
    first + last for first in ("Al", "Bro", "Cor", "Dun", "Esk") for last in ("vane", "mere", "tor", "wick", "holt")
]
TRADES = ("glass", "rope", "salt", "cider", "paper")


def damaged() -> FusionModel:
    """The ranking that ships with every coefficient of its last line turned round."""
    body = json.loads(files("models").joinpath("fitted", "fusion.json").read_text("utf-8"))
    for kind in ("plain", "told"):
        body["heads"]["last"][kind] = [-value for value in body["heads"]["last"][kind]]
    return read_fusion(body)


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    """A damaged ranking and the one that ships, each measured beside weights by hand on a corpus of 25 towns."""
    folder = tmp_path_factory.mktemp("gate")
    towns = [
        {"id": name, "title": name, "text": f"{name} is a town. The workshops of {name} make {TRADES[place % 5]}."}
        for place, name in enumerate(NAMES)
    ]
    questions = [{"id": name, "question": f"What do the workshops of {name} make?", "gold": [name]} for name in NAMES]
    corpus, file = write_rows(folder / "corpus.jsonl", towns), write_rows(folder / "questions.jsonl", questions)

    found = {}
    with pytest.MonkeyPatch.context() as patch, hashing_bench(folder / "home") as bench:
        build(bench, lambda ingest: ingest.passages(corpus))
        for name, model in (("damaged", damaged()), ("shipped", fusion_model())):
            patch.setattr("hades.evaluation.rankers.fusion_model", lambda model=model: model)
            with closing(open_snapshot(folder / "home")) as view:
                compared = rungs(f"{FITTED},{BY_HAND}", "")
                found[name] = measure(bench, view, read_cases(file), compared, (2, 5), 5).scores
    return found


def test_a_damaged_ranking_loses_and_does_not_serve(scores, tmp_path):
    model = damaged()
    choice = choose_ranking(scores["damaged"], model, "q")
    assert choice is not None
    assert not choice.is_fitted
    assert choice.n_questions == 25
    assert choice.reason == "weights by hand serve; weights by hand are better than the fitted ranking"
    write_choice(tmp_path, choice)
    assert ServedFusion(tmp_path, lambda: model)() is None


def test_the_ranking_that_ships_serves_where_it_does_not_lose(scores, tmp_path):
    model = fusion_model()
    assert model is not None
    choice = choose_ranking(scores["shipped"], model, "q")
    assert choice is not None
    assert choice.is_fitted
    assert choice.reason.startswith("the fitted ranking serves; weights by hand are not better than the fitted ranking")
    write_choice(tmp_path, choice)
    assert ServedFusion(tmp_path)() is model


def test_a_choice_is_about_the_ranking_that_was_measured(scores, tmp_path):
    lost = choose_ranking(scores["damaged"], damaged(), "q")
    assert lost is not None
    write_choice(tmp_path, lost)
    assert ServedFusion(tmp_path, damaged)() is None
    assert ServedFusion(tmp_path)() is fusion_model(), "the ranking that ships is another one"


def test_a_running_server_follows_a_new_choice_and_a_broken_file_changes_nothing(tmp_path, caplog):
    model = fusion_model()
    assert model is not None
    served = ServedFusion(tmp_path)
    assert served() is model
    assert choose_ranking({}, model, "q") is None, "nothing was measured"
    choice = replace(_choice(model.digest), is_fitted=False)
    write_choice(tmp_path, choice)
    assert read_choice(tmp_path) == choice
    assert served() is None
    choice_file(tmp_path).write_text("{", "utf-8")
    assert ServedFusion(tmp_path)() is model
    assert "hades run evaluate" in caplog.text


def test_questions_are_answered_by_what_the_home_chose(tmp_path, monkeypatch):
    monkeypatch.setenv("HADES_HOME", str(tmp_path))
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")
    model = fusion_model()
    assert model is not None
    write_choice(tmp_path, replace(_choice(model.digest), is_fitted=False))
    assert open_answers().tools.fusion() is None


def _choice(digest: str) -> RankingChoice:
    return RankingChoice(True, "it was measured", digest, "q", 25)
