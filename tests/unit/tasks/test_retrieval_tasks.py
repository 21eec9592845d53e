"""Each API function as a task: on a real snapshot, without a workflow server."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hades.errors import HadesError
from hades.wiring import open_hades
from tasks import retrieval
from tests.homes import live_in, publish_pages

PAGE = (
    "# Rivers\n\nThe Rhine flows from Basel to the North Sea. Basel lies on the Rhine, says "
    "Erasmus.\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("tasks")
    publish_pages(place, {"page.md": PAGE})
    return place


@pytest.fixture(autouse=True)
def home(folder, monkeypatch):
    live_in(folder / "home", monkeypatch)


@pytest.fixture
def entity():
    view = retrieval.open_graph().view
    return view.ids(view.match_names("Rhine").numbers[:1])[0]


def test_a_whole_answer():
    assert retrieval.retrieve.fn("Where is Basel?")["passages"][0]["document"] == "page.md"


def test_paths_and_prompt():
    paths = retrieval.retrieve_paths.fn("Where is Basel?")
    assert (paths["success"], paths["count"]) == (True, len(paths["paths"]))
    told = retrieval.retrieve_and_format.fn("Where is Basel?")
    assert told["formatted_prompt"].startswith("Hierarchy context")
    scored = retrieval.prune_paths.fn(paths["paths"], 0.0)
    assert [one["reliability"] for one in scored] == pytest.approx(
        sorted((one["reliability"] for one in paths["paths"]), reverse=True)
    )
    last = retrieval.format_paths_for_prompt.fn(scored, "Where is Basel?").partition(
        "Most relevant path"
    )[2]
    assert scored[0]["text"] in last


def test_what_cannot_be_asked_is_no_success_and_no_exception():
    assert retrieval.retrieve_paths.fn("  ")["success"] is False
    assert "empty" in retrieval.retrieve_and_format.fn("  ")["error"]


def test_walks_start_at_ids(entity):
    scores = retrieval.personalized_pagerank.fn({entity: 1.0})["scores"]
    assert entity in [one["id"] for one in scores]
    assert not [one["id"] for one in scores if one["id"].startswith("clusters/")]
    by_list = retrieval.personalized_pagerank.fn([entity], alpha=0.85, max_iter=100, tol=1e-5)
    assert by_list["scores"] == scores
    for ppr_scores in ({entity: 1.0}, by_list, scores):
        assert (
            retrieval.rank_chunks_by_ppr.fn(ppr_scores, top_k=1)["passages"][0]["document"]
            == "page.md"
        )
    assert (
        retrieval.multi_hop_search.fn([entity], max_hops=1)["passages"][0]["document"] == "page.md"
    )
    assert retrieval.expand_with_synonyms.fn([entity]) == retrieval.expand_with_synonyms.fn(
        {entity: 1.0}
    )
    assert sum(
        one["score"] for one in retrieval.expand_with_synonyms.fn({entity: 1.0})["mass"]
    ) == pytest.approx(1.0)
    edges = retrieval.get_entity_neighborhood.fn(entity)["edges"]
    assert all(entity in (edge["from"], edge["to"]) for edge in edges)
    assert edges


def test_walks_start_at_names_and_leave_out_what_is_unknown(entity):
    by_id = retrieval.personalized_pagerank.fn([entity])
    by_name = retrieval.personalized_pagerank.fn(["rhine", "no_such_thing"])
    assert by_name["scores"] == by_id["scores"]
    assert [one["id"] for one in by_name["unknown"]] == ["no_such_thing"]
    assert "neither a node nor a name" in by_name["unknown"][0]["reason"]
    assert retrieval.multi_hop_search.fn(["north_sea", "no_such_thing"])["passages"]
    with pytest.raises(HadesError, match="no_such_thing"):
        retrieval.personalized_pagerank.fn(["no_such_thing"])


def test_scores_of_a_walk_sum_to_one(entity):
    every = retrieval.personalized_pagerank.fn([entity], top=100_000)
    assert sum(one["score"] for one in every["scores"]) == pytest.approx(1.0)
    first = retrieval.personalized_pagerank.fn([entity], top=2)
    assert sum(one["score"] for one in first["scores"]) + first["rest"] == pytest.approx(1.0)


def test_a_neighbourhood_is_asked_for_by_either_name(entity):
    by_entity = retrieval.get_entity_neighborhood.fn(entity)
    assert retrieval.get_entity_neighborhood.fn(entity_id=entity) == by_entity
    assert retrieval.get_entity_neighborhood.fn("Rhine")["edges"] == by_entity["edges"]
    with pytest.raises(HadesError, match="no entity is named"):
        retrieval.get_entity_neighborhood.fn()


def test_a_passage_does_not_win_by_mentioning_more(folder, monkeypatch):
    (folder / "other").mkdir()
    for name, text in {
        "short": "Zürich is old.",
        "long": "Zürich, Geneva, Lausanne, Lugano and Chur are old.",
    }.items():
        (folder / "other" / f"{name}.md").write_text(f"# {name}\n\n{text}\n", encoding="utf-8")
    monkeypatch.setenv("HADES_HOME", str(folder / "other_home"))
    with open_hades() as hades:
        hades.ingest.documents(folder / "other")
        hades.publish()
    view = retrieval.open_graph().view
    names = {
        name: view.ids(view.match_names(name).numbers[:1])[0]
        for name in ("Zürich", "Geneva", "Lausanne", "Lugano")
    }
    scores = {names["Zürich"]: 0.35} | {
        names[name]: 0.01 for name in ("Geneva", "Lausanne", "Lugano")
    }
    ranked = retrieval.rank_chunks_by_ppr.fn(scores, top_k=2)["passages"]
    assert [(one["document"], one["score"]) for one in ranked] == [
        ("short.md", pytest.approx(0.35)),
        ("long.md", pytest.approx(0.38 / 2)),
    ]


def test_multi_hop_and_best_paths():
    assert retrieval.multi_hop_search.fn("Who says that Basel lies on the Rhine?")["passages"]
    best = retrieval.get_best_paths.fn("Basel and the Rhine and Erasmus", M=2, L=2)
    assert len(best["paths"]) <= 2
    assert all(len(path["edges"]) <= 2 for path in best["paths"])


def test_without_topics_there_are_no_candidates_and_the_reason():
    assert retrieval.get_hierarchy_candidates.fn("Basel") == {
        "nodes": [],
        "topics": [],
        "reasons": ["hierarchy_unavailable"],
    }


def test_the_same_question_of_the_same_snapshot_has_the_same_key(folder):
    context = SimpleNamespace(task=SimpleNamespace(name="retrieve"))
    first = retrieval.by_snapshot(context, {"text": "Where is Basel?"})
    assert retrieval.by_snapshot(context, {"text": "Where is Basel?"}) == first
    assert retrieval.by_snapshot(context, {"text": "Where is the sea?"}) != first
    publish_pages(folder, {"more.md": "# More\n\nThe Aare flows into the Rhine.\n"})
    assert retrieval.by_snapshot(context, {"text": "Where is Basel?"}) != first


def test_every_task_has_a_policy_and_those_of_a_snapshot_a_cache():
    assert all(one.retries == 1 and one.timeout_seconds == 900 for one in retrieval.DELAYABLE)
    uncached = [one.name for one in retrieval.DELAYABLE if one.cache_key_fn is None]
    assert uncached == [
        "calculate path score",
        "prune paths",
        "format paths for prompt",
        "format path prompt",
    ]
