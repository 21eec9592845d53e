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
