"""Memory asked over HTTP with a body: searches, contexts, and consolidation for writers."""

import pytest

from hades.ports.store import Mode
from hades.surfaces.access.limits import Door
from tests.integration.rest_site import build_home, serving


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    return build_home(tmp_path_factory.mktemp("asking"))


@pytest.fixture(scope="module")
def admin(settings):
    with serving(settings, Door(Mode.ADMIN)) as running:
        for topic, content in (("boats/red", "The red boat leaves at noon."), ("crew/ana", "Ana steers.")):
            body = {"topic": topic, "content": content, "valid_from": "2026-01-05"}
            assert running.client.post("/v1/memory/states", json=body).status_code == 201
        link = {"source": "boats/red", "target": "crew/ana", "relation": "relates_to"}
        assert running.client.post("/v1/memory/links", json=link).status_code == 201
        yield running.client


@pytest.fixture(scope="module")
def ro(settings, admin):
    with serving(settings) as running:
        yield running.client


def test_a_search_with_a_window_and_edges(ro):
    found = ro.post("/v1/memory/search", json={"query": "when does the boat leave?", "limit": 1}).json()
    assert (found["count"], found["results"][0]["state"]["topic"]) == (1, "boats/red")
    walked = ro.post("/v1/memory/search", json={"query": "when does the boat leave?", "limit": 1, "depth": 1}).json()
    assert [one["state"]["topic"] for one in walked["matches"][0]["related_states"]] == ["crew/ana"]
    window = {"query": "boat", "began_from": "2026-02-01"}
    assert ro.post("/v1/memory/search", json=window).json()["count"] == 0
    assert ro.post("/v1/memory/search", json={"query": "boat", "limits": 1}).status_code == 422


def test_a_context_in_a_budget(ro):
    made = ro.post("/v1/memory/context", json={"query": "What is the status of the red boat?", "max_tokens": 500})
    assert made.status_code == 200, made.text
    assert made.json()["tokens"] <= 450
    assert "crew/ana" in made.json()["text"]


def test_consolidation_is_for_those_who_may_write(ro, admin):
    assert ro.post("/v1/memory/consolidate", json={"level": 1}).status_code in (403, 404, 405)
    made = admin.post("/v1/memory/consolidate", json={"level": 3, "as_of": "2027-01-01"})
    assert made.status_code == 200, made.text
    assert [one["name"] for one in made.json()["levels"]] == ["daily", "weekly", "monthly"]
    again = admin.post("/v1/memory/consolidate", json={"level": 3, "as_of": "2027-01-01"}).json()
    assert [one["written"] for one in again["levels"]] == [[], [], []]
