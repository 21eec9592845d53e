"""What each mode offers, and that what it answers is right."""

import json

import pytest

from hades.ports.store import Mode
from hades.surfaces.access.limits import Door
from hades.surfaces.rest.app import routers_of
from hades.wiring import open_hades
from tests.homes import settings_of
from tests.integration.rest_site import build_home, serving

QUESTION = {"query": "which towns does the Rhine flow through?", "recipe": "pathrag"}


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    return build_home(tmp_path_factory.mktemp("routes"))


@pytest.fixture(scope="module")
def ro(settings):
    with serving(settings) as running:
        yield running.client


@pytest.fixture(scope="module")
def rw(settings):
    with serving(settings, Door(Mode.READ_WRITE)) as running:
        yield running.client


@pytest.fixture(scope="module")
def admin(settings):
    with serving(settings, Door(Mode.ADMIN)) as running:
        yield running.client


def paths(client):
    spec = client.get("/v1/openapi.json").json()["paths"]
    return {(method.upper(), path) for path, methods in spec.items() for method in methods}


def test_a_route_that_writes_is_not_there_on_the_read_only_service(ro, rw, admin):
    writes = {
        (method, f"/v1{route.path}".replace(":path}", "}"))
        for needed, router in routers_of(Mode.READ_WRITE)
        if needed is Mode.READ_WRITE
        for route in router.routes
        for method in route.methods
    }
    assert ("POST", "/v1/queries/{query_id}/feedback") in writes
    assert ("POST", "/v1/snapshots/rollback") in writes
    assert paths(ro).isdisjoint(writes)
    assert writes <= paths(rw) <= paths(admin)
    assert ro.post("/v1/queries/q_1/feedback", json={}).status_code in (404, 405)
    assert ro.post("/v1/snapshots/rollback", json={}).status_code in (404, 405)
    assert ro.post("/v1/entities/rhine", json={"fields": {}}).status_code in (404, 405)
    assert rw.post("/v1/memory/erase", json={"names": ["x"], "why": "asked"}).status_code in (
        404,
        405,
    )


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("states", {"topic": " ", "content": "x"}, 400),
        ("states", {"topic": "a", "content": "x", "metadata": {"n": 10**30}}, 422),
        ("links", {"source": "a", "target": "b", "relation": "Not A Relation"}, 400),
    ],
)
def test_what_cannot_be_remembered_is_refused_with_a_reason(rw, path, body, status):
    answer = rw.post(f"/v1/memory/{path}", json=body)
    assert answer.status_code == status, answer.text
    assert answer.json()["message"]


def test_the_same_question_again_is_kept_but_is_a_turn_of_its_own(ro):
    asked = {"query": "where does the Elbe flow?"}
    first, second = ro.post("/v1/query", json=asked), ro.post("/v1/query", json=asked)
    assert first.headers["X-Hades-Answer"] == "computed"
    assert second.headers["X-Hades-Answer"] == "cached"
    assert first.json()["query_id"] != second.json()["query_id"]
    same = {name: value for name, value in second.json().items() if name != "query_id"}
    assert same == {name: value for name, value in first.json().items() if name != "query_id"}


def test_a_plan_is_held_to_the_online_caps(ro):
    plan = {"profile": "offline", "budget": {"docs_max": 1_000_000}}
    answer = ro.post("/v1/query", json={**QUESTION, "plan": plan}).json()
    assert answer["plan"]["budget"]["docs_max"] == 160
    assert answer["plan"]["profile"] == "online"
    assert "plan_clamped" in answer["reasons"]


def test_time_travel_is_a_parameter(ro):
    answer = ro.post(
        "/v1/query", json={**QUESTION, "as_of": "2020-01-01", "known_at": "2020-01-01T10:00:00Z"}
    ).json()
    assert answer["as_of"] == "2020-01-01T00:00:00Z"
    assert answer["known_at"] == "2020-01-01T10:00:00Z"


def test_stages_are_streamed_before_the_answer(ro):
    events = []
    with ro.stream(
        "POST", "/v1/query/stream", json={"query": "what flows through Vienna?"}
    ) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        for block in response.read().decode().strip().split("\n\n"):
            name, data = block.split("\n")
            events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    assert [name for name, _ in events] == ["stage"] * (len(events) - 1) + ["answer"]
    answer = events[-1][1]
    assert [data["name"] for _, data in events[:-1]] == [
        stage["name"] for stage in answer["telemetry"]["stages"]
    ]
    assert {"reads", "ms", "in", "out", "capped"} <= set(events[0][1])


def test_a_streamed_question_that_cannot_be_asked_ends_in_a_problem(ro):
    body = {"query": "x", "plan": {"graph": {"hops": "many"}}}
    text = ro.post("/v1/query/stream", json=body).text
    assert text.startswith("event: problem")
    assert json.loads(text.split("data: ")[1])["error"] == "PlanError"


def test_a_turn_of_the_read_only_service_can_be_explained_and_leaves_no_row(ro, settings):
    answer = ro.post("/v1/query", json=QUESTION).json()
    told = ro.get(f"/v1/queries/{answer['query_id']}/explain", params={"missing": "Danube"}).json()
    assert told["query"] == QUESTION["query"]
    assert told["missing"]["name"] == "Danube"
    with open_hades(settings) as hades:
        assert hades.store.get("query_logs", [answer["query_id"]]).num_rows == 0


def test_feedback_reaches_the_log_of_the_turn(rw, settings):
    answer = rw.post("/v1/query", json=QUESTION).json()
    judged = rw.post(f"/v1/queries/{answer['query_id']}/feedback", json={"good": {"passages": [1]}})
    assert judged.json()["good"] == {"paths": [], "passages": [1]}
    with open_hades(settings) as hades:
        row = hades.store.get("query_logs", [answer["query_id"]]).to_pylist()[0]
    assert json.loads(row["feedback"])["good"]["passages"] == [1]
    wrong = rw.post(f"/v1/queries/{answer['query_id']}/feedback", json={"good": {"passages": [99]}})
    assert wrong.status_code == 404
    assert "has no passage 99" in wrong.json()["message"]


def test_a_node_and_what_surrounds_it(ro):
    found = ro.post("/v1/query", json=QUESTION).json()["passages"][0]
    node = ro.get(f"/v1/graph/nodes/{found['id']}").json()
    assert node["id"] == found["id"]
    assert node["text"] == found["text"]
    around = ro.get("/v1/graph/neighbours", params={"id": found["id"], "fanout": 3}).json()
    assert around["nodes"][0] == {**around["nodes"][0], "id": found["id"], "depth": 0}
    ends = {node["id"] for node in around["nodes"]}
    assert len(around["edges"]) >= 1
    assert all(edge["from"] in ends and edge["to"] in ends for edge in around["edges"])


def test_a_subgraph_stays_inside_its_budget(ro):
    found = ro.post("/v1/query", json=QUESTION).json()["passages"][0]["id"]
    budget = {"id": found, "hops": 3, "fanout": 50, "nodes": 4, "edges": 3}
    got = ro.get("/v1/graph/subgraph", params=budget).json()
    assert (len(got["nodes"]), len(got["edges"]), got["capped"]) == (4, 3, True)
    assert got["spent"]["reads"] <= 7


@pytest.mark.parametrize(
    ("method", "path", "status", "error"),
    [
        ("GET", "/v1/graph/nodes/entities/nobody", 404, "UnknownNode"),
        ("GET", "/v1/queries/q_nothing/explain", 404, "UnknownQuery"),
        ("GET", "/v1/graph/neighbours", 422, "BadRequest"),
        ("GET", "/v1/nothing", 404, "Http404"),
        ("PUT", "/v1/query", 405, "Http405"),
        ("GET", "/v1/graph/subgraph?id=entities/x&types=no_such_type", 404, "UnknownNode"),
    ],
)
def test_errors_name_the_thing_and_the_next_step(ro, method, path, status, error):
    answer = ro.request(method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert (body["status"], body["error"]) == (status, error)
    assert body["message"]
    assert body["next"]
    assert "Traceback" not in answer.text


def test_a_missing_field_and_a_body_that_is_not_json_are_called_that(ro):
    assert ro.post("/v1/query", json={}).json()["message"] == "body.query is missing"
    assert (
        ro.post("/v1/query", content=b"{query", headers={"content-type": "application/json"})
        .json()["message"]
        .startswith("the body is not JSON: ")
    )


def test_health_readiness_and_figures(ro, settings):
    assert ro.get("/health").json() == {"status": "ok"}
    ready = ro.get("/ready").json()
    assert ready["status"] == "ready"
    assert ready["nodes"]["doc_chunks"] > 0
    ro.post("/v1/query", json={"query": "is this counted?"})
    text = ro.get("/metrics").text
    assert f'hades_snapshot_info{{snapshot="{ready["snapshot"]}"}} 1.0' in text
    assert 'hades_turn_seconds_count{recipe="auto",stage="turn"}' in text
    assert 'hades_requests_total{mode="ro",route="/query",status="200"}' in text


def test_a_home_without_a_graph_lives_but_is_not_ready(tmp_path):
    with serving(settings_of(tmp_path), Door(Mode.READ_WRITE)) as running:
        assert running.client.get("/health").status_code == 200
        assert running.client.get("/ready").status_code == 409
        answer = running.client.post("/v1/query", json=QUESTION)
        assert answer.status_code == 409
        assert "nothing has been published" in answer.json()["message"]
