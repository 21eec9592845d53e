"""The harness end to end: a corpus on disk, a graph of its own, baselines that cannot be left
out.
"""

import json

import pytest

from benchmarks.evaluation.cases import read_cases
from benchmarks.evaluation.ladder import LADDER, rungs
from benchmarks.evaluation.multihop import evaluate_multihop
from benchmarks.evaluation.rankers import BASELINES
from hades.evaluation.cases import BadCases
from hades.retrieval.core.types import UnknownRecipe
from tests.unit.benchmarks.corpora import PASSAGES, QUESTIONS, hashing_bench, write_rows


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("multihop")
    corpus, questions = (
        write_rows(folder / "corpus.jsonl", PASSAGES),
        write_rows(folder / "questions.jsonl", QUESTIONS),
    )
    runs = [
        {
            "question": QUESTIONS[0]["question"],
            "ground_truth": ["Lake Orin", "Ada Holm"],
            "theirs": ["Lake Orin", "Pike"],
            "others": ["Ada Holm", "Lake Orin"],
        }
    ]
    published = write_rows(folder / "runs.jsonl", runs)
    with hashing_bench(folder / "home") as bench:
        first = evaluate_multihop(
            bench, corpus, questions, published=published, rungs=rungs("ladder", ""), ks=(1, 2, 5)
        )
        second = evaluate_multihop(bench, corpus, questions, rungs=[], ks=(1, 2, 5))
    return first, second


def test_every_rung_and_every_baseline_is_in_the_table(found):
    recipes = found[0].document["recipes"]
    assert list(recipes) == [*BASELINES, *(rung.name for rung in LADDER)]
    for name, row in recipes.items():
        assert set(row["recall"]) == {"1", "2", "5"}
        assert row["recall"]["1"] <= row["recall"]["2"] <= row["recall"]["5"]
        assert row["all_gold"]["5"] <= row["recall"]["5"]
        assert row["ci95"]["recall@5"][0] <= row["recall"]["5"] <= row["ci95"]["recall@5"][1]
        assert ("against" in row) == (name not in BASELINES)
        assert row["reads"]["max"] > 0


def test_baselines_run_when_no_recipe_is_asked_for(found):
    assert list(found[1].document["recipes"]) == list(BASELINES)
    assert found[1].document["recipes"]["dense"]["recall"]["5"] == 1.0  # five passages in all


def test_document_is_json_in_the_promised_shape(found):
    document = json.loads(json.dumps(found[0].document))
    assert document["dataset"]["passages"] == 5
    assert document["dataset"]["questions"] == 3
    assert len(document["dataset"]["sha256"]) == 64
    assert document["build"]["seconds"] > 0
    assert document["build"]["peak_mb"] > 0
    row = document["recipes"]["hipporag"]
    assert {"recall", "all_gold", "ci95", "ms", "reads", "tokens", "mrr", "ndcg", "groups"} <= set(
        row
    )
    assert row["groups"]["single"]["questions"] == 2
    assert set(row["ms"]) == {"p50", "p95"}
    assert any("no learned ranker" in note for note in document["notes"])


def test_prompt_is_looked_through_for_the_answer(found):
    row = found[0].document["recipes"]["hipporag"]
    assert row["prompt"] == {"has_answer": 1.0, "questions": 1}  # Karst; a yes cannot be looked for


def test_published_systems_stand_beside_ours(found):
    section = found[0].document["published"]
    assert (section["questions"], section["k"]) == (1, 8)
    assert section["all_evidence"]["published: theirs"]["share"] == 0.0
    assert section["all_evidence"]["published: others"]["share"] == 1.0
    assert section["all_evidence"]["dense"]["share"] == 1.0


def test_an_unknown_recipe_is_named_with_those_there_are():
    with pytest.raises(UnknownRecipe, match=r"'hopp'.*ladder.*hipporag/no-synonyms"):
        rungs("hipporag,hopp", "")
    assert [rung.name for rung in rungs(None, "hipporag,auto")] == ["hipporag", "auto"]


@pytest.mark.parametrize("row", [{"question": "Who?"}, {"question": "", "gold": ["p1"]}, ["a"]])
def test_a_question_without_gold_is_refused_by_line(tmp_path, row):
    path = write_rows(tmp_path / "questions.jsonl", [QUESTIONS[0], row])
    with pytest.raises(BadCases, match="line 2"):
        read_cases(path)


def test_questions_of_an_empty_gold_are_asked_for_their_confidence_alone(tmp_path):
    lost = {"question": "Who sails the Karst to Mars?", "gold": []}
    corpus = write_rows(tmp_path / "corpus.jsonl", PASSAGES)
    questions = write_rows(tmp_path / "questions.jsonl", [lost, *QUESTIONS])
    with hashing_bench(tmp_path / "home") as bench:
        document = evaluate_multihop(bench, corpus, questions, rungs=rungs("auto", "")).document
    assert document["dataset"]["questions"] == len(QUESTIONS)
    assert (
        document["abstention"]["auto"]["answerable"],
        document["abstention"]["auto"]["unanswerable"],
    ) == (3, 1)
