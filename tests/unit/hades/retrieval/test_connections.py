"""Questions about how two things are connected, asked of a few pages: paths, prompt, topics and
numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hades.api import Hades
from hades.compat.pathrag import MemoryEnhancedPathRAG
from hades.settings.tree import Settings
from hades.wiring import open_hades
from schemas.answer import Path as AnswerPath
from schemas.answer import Retrieval
from schemas.plan import Reason
from tests.command_line import run, run_json
from tests.homes import live_in, publish_pages

PAGES = {
    "curie.md": "# Marie Curie\n\nMarie Curie was a Polish physicist. She married Pierre Curie in "
    "Paris in 1895. Marie Curie met Ernest Rutherford at the Solvay Conference. Marie Curie "
    "discovered polonium and radium with Pierre Curie.\n",
    "rutherford.md": "# Ernest Rutherford\n\nErnest Rutherford was born in New Zealand. Ernest "
    "Rutherford worked at the Cavendish Laboratory with Niels Bohr. Hans Geiger assisted Ernest "
    "Rutherford in Manchester.\n",
    "bohr.md": "# Niels Bohr\n\nNiels Bohr founded an institute in Copenhagen. Niels Bohr worked "
    "with Werner Heisenberg.\n",
    "pierre.md": "# Pierre Curie\n\nPierre Curie studied crystals in Paris with Jacques Curie. "
    "Pierre Curie taught Paul Langevin.\n",
    "cache.md": "# Cache\n\nThe cache has three settings: the size of the memory, the folder and "
    "the lifetime of an entry.\n",
}
DIRECT = "How is Marie Curie connected with Ernest Rutherford?"
DISTANT = "How is Marie Curie connected with Niels Bohr?"
PLAIN = "Which settings does the cache have?"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return publish_pages(tmp_path_factory.mktemp("connections"), PAGES)


@pytest.fixture(scope="module")
def hades(settings: Settings) -> Iterator[Hades]:
    with open_hades(settings) as opened:
        yield opened


@pytest.fixture(scope="module")
def rag(settings: Settings, hades: Hades) -> MemoryEnhancedPathRAG:
    uncached = {"enable_caching": False}
    return MemoryEnhancedPathRAG(uncached, settings=settings, answers=hades.answers)


def names_of(path: AnswerPath) -> list[str]:
    return [node.name for node in path.nodes]


def test_the_edge_between_the_two_things_asked_about_stands_first(hades: Hades):
    first = hades.retrieve(DIRECT).paths[0]
    assert sorted(names_of(first)) == ["Ernest Rutherford", "Marie Curie"]
    assert "joins what the question names" in first.why


def test_without_an_edge_the_shortest_path_that_the_plan_allows_joins_them(hades: Hades):
    plan = {"graph": {"hops": 2, "fanout": 3}}
    ends = names_of(hades.retrieve(DISTANT, plan=plan).paths[0])
    assert sorted((ends[0], ends[-1])) == ["Marie Curie", "Niels Bohr"]
    assert len(ends) == 3


def test_names_in_lower_case_are_joined_too(hades: Hades):
    first = hades.retrieve(DIRECT.lower()).paths[0]
    assert sorted(names_of(first)) == ["Ernest Rutherford", "Marie Curie"]


def test_no_path_is_called_more_reliable_than_the_one_that_joins(rag: MemoryEnhancedPathRAG):
    found = rag.retrieve_paths(DIRECT)
    assert found["count"] > 1
    first, *later = found["paths"]
    assert {node["name"] for node in first["nodes"]} == {"Marie Curie", "Ernest Rutherford"}
    assert all(path["reliability"] <= first["reliability"] for path in later)
    scores = [rag.calculate_path_score(path, path["nodes"][0]) for path in found["paths"]]
    assert scores == pytest.approx([path["reliability"] for path in found["paths"]])
    prompt = rag.retrieve_and_format(DIRECT)["formatted_prompt"]
    most_relevant = prompt.partition("Most relevant path")[2]
    assert "Ernest Rutherford" in most_relevant


def test_agents_get_a_path_of_two_edges_where_no_edge_joins(rag: MemoryEnhancedPathRAG):
    first = rag.retrieve_paths(DISTANT)["paths"][0]
    assert {first["nodes"][0]["name"], first["nodes"][-1]["name"]} == {"Marie Curie", "Niels Bohr"}


def test_as_many_paths_as_asked_for_where_there_are_more_than_passages(
    rag: MemoryEnhancedPathRAG, hades: Hades
):
    usual = hades.retrieve("Who is Marie Curie?", anyway=True)
    more = hades.retrieve("Who is Marie Curie?", anyway=True, max_paths=6)
    assert len(more.paths) > len(usual.paths)
    assert more.paths[: len(usual.paths)] == usual.paths
    assert rag.retrieve_paths(DIRECT, max_paths=5)["pruned_from"] > 5


def test_a_prompt_for_agents_holds_passages_also_where_no_path_is_reliable(
    settings: Settings, hades: Hades
):
    rules = {"enable_caching": False, "pruning_threshold": 1.0}
    strict = MemoryEnhancedPathRAG(rules, settings=settings, answers=hades.answers)
    found = strict.retrieve_and_format(PLAIN)
    assert (found["success"], found["count"], found["reason"]) == (True, 0, "no_paths")
    assert found["formatted_prompt"].startswith(f"Query: {PLAIN}")
    last = found["formatted_prompt"].strip().splitlines()[-1]
    assert "the lifetime of an entry" in last


def test_a_prompt_for_agents_holds_passages_beside_paths(rag: MemoryEnhancedPathRAG):
    prompt = rag.retrieve_and_format(DIRECT)["formatted_prompt"]
    assert "Marie Curie was a Polish physicist" in prompt
    assert prompt.index("Passage ") < prompt.index("Path (") < prompt.index("Most relevant path")


def test_count_is_the_number_of_paths_that_the_prompt_holds(settings: Settings, hades: Hades):
    for tokens in (45, 60, 120, 400):
        rules = {"enable_caching": False, "context_window_tokens": tokens, "reserve_tokens": 0}
        small = MemoryEnhancedPathRAG(rules, settings=settings, answers=hades.answers)
        found = small.retrieve_and_format(DIRECT)
        prompt = found["formatted_prompt"]
        assert found["count"] == prompt.count("Path (") + prompt.count("Most relevant path (")
        assert found["tokens"]["prompt"] <= tokens
        assert found["reason"] == (None if found["count"] else Reason.PROMPT_FULL)


def test_the_default_shows_the_topics_of_what_it_found(tmp_path: Path, monkeypatch):
    settings = publish_pages(tmp_path, PAGES)
    live_in(settings.home, monkeypatch)
    assert run("run", "build_hierarchy").exit_code == 0
    assert run("publish").exit_code == 0
    answer = run_json("query", DIRECT)
    levels = [topic["level"] for topic in answer["hierarchy"]]
    assert 1 in levels
    assert levels == sorted(levels, reverse=True)
    assert answer["tokens"]["hierarchy"] > 0
    assert answer["tokens"]["prompt"] <= answer["plan"]["budget"]["tokens_max"]
    past = run_json("query", DIRECT, "--as-of", "2000-01-01")
    assert past["hierarchy"] == answer["hierarchy"]  # no page has a date, so none is later


def numbers_in(answer: Retrieval) -> list[int]:
    lines = [line for line in answer.prompt.splitlines() if line[:1].isdigit()]
    return sorted(int(line.partition(")")[0]) for line in lines)


def test_each_result_has_its_number_in_the_prompt(hades: Hades):
    answer = hades.retrieve(DIRECT)
    results = (*answer.paths, *answer.passages)
    assert [result.number for result in results] == list(range(1, len(results) + 1))
    assert [result.number for result in results if result.in_prompt] == numbers_in(answer)
    assert not all(result.in_prompt for result in results)


def test_feedback_names_a_passage_by_its_number(settings: Settings, monkeypatch):
    live_in(settings.home, monkeypatch)
    answer = run_json("query", DIRECT)
    second = answer["passages"][1]
    judged = run_json("feedback", answer["query_id"], "--good", str(second["number"]))
    assert judged["feedback"]["good"] == {"paths": [], "passages": [2]}
    text = run("query", DIRECT).stdout
    assert f"number {second['number']}" in text
