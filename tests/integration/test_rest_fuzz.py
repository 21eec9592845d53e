"""Whatever the service's own description allows, and what it does not, gets an answer that is no
5xx.
"""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from hades.ports.store import Mode
from hades.surfaces.access.limits import Door
from tests.integration.rest_site import build_home, serving
from tests.patience import examples


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return build_home(tmp_path_factory.mktemp("fuzz"))


def test_no_request_breaks_the_service(home):
    """Made-up requests to every route of an administrator's service."""
    import schemathesis
    from schemathesis import GenerationMode

    sent = 0
    with serving(home, Door(Mode.ADMIN)) as running:
        spec = running.client.get("/v1/openapi.json").json()
        spec["paths"].pop(
            "/v1/snapshots/rollback", None
        )  # opens the registry, which takes seconds; tested by itself
        schema = schemathesis.openapi.from_dict(spec)
        for found in schema.get_all_operations():
            operation = found.ok()
            for generation in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

                @given(case=operation.as_strategy(generation_mode=generation))
                @settings(
                    max_examples=examples(2),
                    database=None,
                    phases=[Phase.explicit, Phase.generate],
                    suppress_health_check=list(HealthCheck),
                )
                def send(case):
                    nonlocal sent
                    sent += 1
                    response = case.call(base_url=running.address)
                    assert response.status_code < 500, (case.as_curl_command(), response.text)
                    kind = response.headers.get("content-type", [""])[0].split(";")[0]
                    if response.status_code >= 400 and response.status_code != 400:
                        assert kind == "application/problem+json", (
                            case.as_curl_command(),
                            response.text,
                        )

                try:
                    send()
                except Unsatisfiable:
                    continue  # a route without parameters cannot be asked wrongly
        assert running.client.get("/health").status_code == 200
    assert sent > 60


STRANGE = ("/x\0", "\0", "a\0b", "\ud800", "x" * 5_000)


def with_strange_text(value: Any, text: str) -> Iterator[Any]:
    """The value once for each text in it, which is replaced by this one."""
    if isinstance(value, str):
        yield text
    elif isinstance(value, list):
        for place, part in enumerate(value):
            for changed in with_strange_text(part, text):
                yield [*value[:place], changed, *value[place + 1 :]]
    elif isinstance(value, dict):
        for name, part in value.items():
            for changed in with_strange_text(part, text):
                yield {**value, name: changed}


def examples_of(operation: Any) -> Iterator[Any]:
    """A few requests that the description of the route allows."""
    import schemathesis

    allowed: list[Any] = []

    @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE))
    @settings(
        max_examples=examples(3),
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def collect(case: Any) -> None:
        allowed.append(case)

    collect()
    yield from allowed


def test_no_text_with_a_nul_or_half_a_character_breaks_a_route(home, tmp_path):
    """A file system, a database and JSON each refuse some texts: that is the caller's error."""
    import schemathesis

    sent = 0
    with serving(home, Door(Mode.ADMIN, folders=(tmp_path,))) as running:
        spec = running.client.get("/v1/openapi.json").json()
        spec["paths"].pop("/v1/snapshots/rollback", None)
        for found in schemathesis.openapi.from_dict(spec).get_all_operations():
            operation = found.ok()
            requests = set()
            for case in examples_of(operation):
                body = case.body if isinstance(case.body, dict | list) else None
                for text in STRANGE:
                    names = {
                        name: quote(text, safe="", errors="surrogatepass")
                        for name in case.path_parameters or {}
                    }
                    path = operation.path.format(**names)
                    query = dict.fromkeys(case.query or {}, text.replace("\ud800", "\0"))
                    bodies = [body] if body is None else with_strange_text(body, text)
                    requests |= {(path, json.dumps(query), json.dumps(part)) for part in bodies}
            for path, query, content in sorted(requests):
                response = running.client.request(
                    operation.method,
                    path,
                    params=json.loads(query),
                    content=None if content == "null" else content,
                    headers={"content-type": "application/json"},
                )
                sent += 1
                assert response.status_code < 500, (operation.label, query, content[:200])
    assert sent > 60
