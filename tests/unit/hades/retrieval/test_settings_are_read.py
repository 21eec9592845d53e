"""Each setting of `hirag_pathrag` and `hipporag` changes what a question or a build does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.evaluation.commands import workbench
from hades.compat.functions import multi_hop_search
from hades.retrieval.core.types import HIRAG_PATHRAG, Seed, SeedHits
from hades.retrieval.recipes import STEPS, Start
from hades.retrieval.search.seeds import narrow
from hades.retrieval.search.walk_search import HippoRules, hippo_search
from hades.retrieval.walks.pagerank import personalized_pagerank
from hades.settings.tree import HippoSettings, HiragPathrag
from hades.snapshot.view import GraphView
from hades.wiring import open_answers
from schemas.plan import Plan
from tests.homes import live_in, settings_of
from tests.unit.hades.retrieval import films
from tests.unit.hades.retrieval.graphs import keys_of, metered, number, published, question

X, Y, NEAR_X = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.8, 0.6, 0.0]
MOTHER = "When did the mother of the director of Glass Harbour die?"


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> GraphView:
    return published(
        tmp_path_factory.mktemp("topics"),
        [("a", "b", 0.9), ("b", "c", 0.5), ("a", "d", 0.3), ("d", "c", 0.8)],
        vectors={"a": X, "b": NEAR_X, "c": Y, "d": NEAR_X},
        topics={
            "east": (1, X, ["a", "b"]),
            "north": (1, Y, ["c", "d"]),
            "top": (2, NEAR_X, ["east", "north"]),
        },
    )


def beam_paths(view: GraphView, rules: HiragPathrag) -> list[tuple[tuple[int, ...], float]]:
    asked = question("q", X)
    seeds = (Seed(number(view, "a"), 1.0, {}), Seed(number(view, "c"), 0.8, {}))
    plan = Plan.model_validate({"graph": {"hops": 2, "fanout": 3, "beam": 8}})
    metering = metered(view)
    start = Start(
        SeedHits(tuple(seeds), ()), seeds, narrow(metering, asked, rules), plan, rules, "execution"
    )
    return [
        (path.nodes, round(path.score, 9))
        for path in STEPS[HIRAG_PATHRAG](metering, asked, start).paths
    ]


@pytest.mark.parametrize(
    "changed",
    [
        {"beam_terms": {"seed_sim": 0.9}},
        {"beam_terms": {"edge_weight": 0.9}},
        {"beam_terms": {"lex_match": 0.1}},
        {"beam_terms": {"depth_penalty": 0.9}},
        {"beam_terms": {"redundancy": 1.0}},
        {"path": {"lambda": 0.9}},
        {"path": {"eps": 0.7}},
    ],
)
def test_settings_of_the_beam_change_the_scores_of_paths(topics, changed):
    assert beam_paths(topics, HiragPathrag.model_validate(changed)) != beam_paths(
        topics, HiragPathrag()
    )


@pytest.mark.parametrize(("level", "left"), [("super_topic", ""), ("topic", "top")])
def test_a_topic_below_its_threshold_is_not_entered(topics, level, left):
    rules = HiragPathrag.model_validate({"topic_thresholds": {level: 0.9999}})
    found = narrow(metered(topics), question("q", [0.0, 0.0, 1.0]), rules)
    assert found is not None
    assert {keys_of(topics, [topic.node]) for topic in found.topics} == set(left.split())


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("films")
    films.published(place)
    return place


def ranking(home: Path, settings: HippoSettings) -> list[tuple[int, float]]:
    with open_answers(settings_of(home)) as answers:
        view = films.metered(answers.view)
        found, _ = hippo_search(view, films.asked(MOTHER, home), HippoRules(settings))
        return [(one.node, one.tiers.get("ppr", 0.0)) for one in found]


@pytest.mark.parametrize(
    "changed",
    [
        {"damping": 0.85},
        {"passage_mass": 0.5},
        {"tolerance": 0.02},
        {"max_work": 60},
        {"specificity": 2.0},
        {"tolerance": 1e-12, "max_work": 400, "relaxed_tolerance": 0.05},
    ],
)
def test_settings_of_the_walk_change_its_scores(home, changed):
    usual = {**changed, "relaxed_tolerance": 1e-4} if "relaxed_tolerance" in changed else {}
    assert ranking(home, HippoSettings(**changed)) != ranking(home, HippoSettings(**usual))


def test_a_walk_that_does_not_converge_goes_on_with_the_relaxed_tolerance(topics):
    restart, weights = np.array([number(topics, "a")]), np.ones(1)
    strict = personalized_pagerank(
        topics, restart, weights, damping=0.85, epsilon=1e-9, max_work=120
    )
    relaxed = personalized_pagerank(
        topics, restart, weights, damping=0.85, epsilon=1e-9, relaxed_epsilon=0.05, max_work=120
    )
    assert (strict.capped, relaxed.capped) == (True, False)
    assert relaxed.bound <= 0.05
    assert relaxed.scores.sum() + relaxed.residue == pytest.approx(1.0)


def passages_of(
    home: Path, recipe: str, walk: HippoSettings, question: str = MOTHER
) -> list[tuple[str, float]]:
    with open_answers(settings_of(home)) as answers:
        answers.tools = replace(answers.tools, walk=walk)
        return [
            (one.document, one.score)
            for one in answers.retrieve(question, recipe=recipe, mode="planning").passages
        ]


ONLY_PASSAGES = HippoSettings(passage_mass=1.0, damping=0.0)


def test_the_graph_tier_of_nexus_takes_the_settings_of_the_walk(home):
    asked = (MOTHER, "Glass Harbour", "Who was born in Galway?", "Ruth Okafor and Prague")
    found = [
        [passages_of(home, "nexus", walk, one) for one in asked]
        for walk in (ONLY_PASSAGES, HippoSettings())
    ]
    assert found[0] != found[1]


def test_the_function_of_several_hops_takes_the_settings_of_the_walk(home):
    found = []
    for walk in (HippoSettings(), ONLY_PASSAGES):
        with open_answers(settings_of(home)) as answers:
            answers.tools = replace(answers.tools, walk=walk)
            found.append(multi_hop_search(answers, MOTHER)["passages"])
    assert found[0] != found[1]


def test_evaluations_open_their_graph_with_the_settings_file(tmp_path, monkeypatch):
    (tmp_path / "hades.yaml").write_text(
        "hipporag:\n  damping: 0.7\nhirag_pathrag:\n  path:\n    M: 2\n"
    )
    monkeypatch.chdir(tmp_path)
    live_in(tmp_path / "home", monkeypatch)
    with workbench(None) as bench:
        assert (bench.tools.walk.damping, bench.tools.rules.path.max_paths) == (0.7, 2)


def test_a_question_returns_as_many_paths_as_the_settings_say(home):
    settings = settings_of(home)
    counts = []
    for most in (1, 6):
        with open_answers(settings) as answers:
            answers.tools = replace(
                answers.tools, rules=HiragPathrag.model_validate({"path": {"M": most}})
            )
            counts.append(len(answers.retrieve(MOTHER, recipe="pathrag").paths))
    assert counts[0] == 1 < counts[1]
