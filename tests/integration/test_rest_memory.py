"""Memory over HTTP: written on the services that may, read at any moment, erased by administrators only."""

import pytest

from hades.ports.store import Mode
from hades.surfaces.access.limits import Door
from tests.integration.rest_site import build_home, serving


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    return build_home(tmp_path_factory.mktemp("memory"))


@pytest.fixture(scope="module")
def admin(settings):
    with serving(settings, Door(Mode.ADMIN)) as running:
        yield running.client


@pytest.fixture(scope="module")
def ro(settings, admin):
    with serving(settings) as running:
        yield running.client


def said(client, topic, content, **more):
    return client.post("/v1/memory/states", json={"topic": topic, "content": content, **more})


def test_versions_follow_each_other_and_are_read_on_the_other_service(admin, ro):
    first = said(admin, "plan/ferry", "The ferry runs daily.", valid_from="2026-01-01", tags=["ferry"])
    assert first.status_code == 201
    assert "embedding" not in first.json()
    said(admin, "plan/ferry", "The ferry runs on Sundays.", valid_from="2026-06-01")
    latest = ro.get("/v1/memory/plan/ferry/latest").json()
    assert (latest["version"], latest["content"]) == (2, "The ferry runs on Sundays.")
    then = ro.get("/v1/memory/plan/ferry/at", params={"moment": "2026-03-01"}).json()
    assert then["content"] == "The ferry runs daily."
    states = ro.get("/v1/memory/plan/ferry/history").json()["states"]
    assert [state["version"] for state in states] == [1, 2]
    assert len(ro.get("/v1/memory/plan/ferry/trace").json()["states"]) == 2
    assert ro.get("/v1/memory/topics", params={"prefix": "plan/"}).json() == {"topics": ["plan/ferry"], "total": 1}
    acts = ro.get("/v1/memory/plan/ferry/audit").json()["acts"]
    assert {act["who"] for act in acts} == {"127.0.0.1"}


def test_edges_begin_and_end(admin, ro):
    said(admin, "bridge", "The bridge is closed.")
    said(admin, "road", "The road leads over the bridge.")
    drawn = admin.post("/v1/memory/links", json={"source": "road", "target": "bridge", "relation": "blocked_by"})
    assert drawn.status_code == 201
    edges = ro.get("/v1/memory/road/edges", params={"types": "blocked_by"}).json()["edges"]
    assert [edge["relationship_type"] for edge in edges] == ["blocked_by"]
    closed = admin.post(f"/v1/memory/links/{edges[0]['id']}/close", json={"why": "opened"})
    assert closed.status_code == 200, closed.text
    assert ro.get("/v1/memory/road/edges", params={"types": "blocked_by"}).json()["edges"] == []


def test_promotion_and_change_say_what_they_did(admin):
    said(admin, "approach", "Approach X is slow.")
    said(admin, "index", "An index is missing.")
    admin.post("/v1/memory/links", json={"source": "approach", "target": "index", "relation": "blocked_by"})
    promoted = admin.post("/v1/memory/approach/promote", json={"reason": "reviewed"})
    assert promoted.status_code == 201, promoted.text
    assert promoted.json()["state"]["version"] == 2
    fact = {"relation": "enabled_by", "target": "index", "replaces": "blocked_by"}
    body = {"old_state_id": "approach", "change_description": "The index was built.", "facts": [fact]}
    changed = admin.post("/v1/memory/change", json=body)
    assert changed.status_code == 201, changed.text
    assert [edge["relationship_type"] for edge in changed.json()["new_edges"]] == ["enabled_by"]
    assert admin.get("/v1/memory/approach/why").json()["topic"] == "approach"


def test_memory_is_searched_by_what_was_said(admin, ro):
    said(admin, "boats/red", "The red boat leaves at noon.")
    said(admin, "boats/blue", "The blue boat stays in the harbour.")
    found = ro.get("/v1/memory/search", params={"query": "which boat leaves at noon?", "limit": 1}).json()
    assert (found["count"], found["results"][0]["state"]["topic"]) == (1, "boats/red")
    assert ro.get("/v1/memory/search", params={"query": "boat", "began_until": "2000-01-01"}).json()["count"] == 0


def test_erasing_is_for_administrators_and_leaves_a_certificate(admin, ro):
    said(admin, "secret/plan", "Nobody should keep this sentence.")
    assert ro.post("/v1/memory/erase", json={"names": ["secret/plan"], "why": "asked"}).status_code in (404, 405)
    proof = admin.post("/v1/memory/erase", json={"names": ["secret/plan"], "why": "asked to"})
    assert proof.status_code == 200, proof.text
    assert "Nobody should keep" not in proof.text
    assert ro.get("/v1/memory/secret/plan/latest").status_code == 404


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("states", {"topic": " ", "content": "x"}, 400),
        ("states", {"topic": "a", "content": "x", "metadata": {"n": 10**30}}, 422),
        ("links", {"source": "nobody", "target": "nothing", "relation": "blocked_by"}, 404),
        ("links", {"source": "a", "target": "b", "relation": "Not A Relation"}, 400),
        ("links/no_such_edge/close", {}, 404),
        ("nobody/promote", {"reason": "x"}, 404),
    ],
)
def test_what_cannot_be_remembered_is_refused_with_a_reason(admin, path, body, status):
    answer = admin.post(f"/v1/memory/{path}", json=body)
    assert answer.status_code == status, answer.text
    assert answer.json()["message"]
