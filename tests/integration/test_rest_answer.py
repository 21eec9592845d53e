"""POST /v1/answer and its stream over a real socket."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from hades.ports.graph import DocumentFilter
from hades.ports.store import Mode
from hades.providers.tokens import MiniLmTokenizer
from hades.settings.tree import Settings
from hades.surfaces.access.limits import Door, TokenError, Tokens
from tests.chat_endpoint import chat_endpoint
from tests.integration.rest_site import build_home, serving

pytestmark = pytest.mark.integration
QUESTION = {"query": "Through which towns does the Danube flow?"}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return build_home(tmp_path_factory.mktemp("answer"))


def test_an_answer_is_quoted_whole_and_by_events(settings: Settings) -> None:
    with serving(settings) as site:
        answer = site.client.post("/v1/answer", json=QUESTION).json()
        assert answer["mode"] == "extracted"
        assert any("Vienna" in one["text"] for one in answer["sentences"])
        numbers = {one["number"] for one in answer["sources"]}
        assert all(numbers.issuperset(one["citations"]) for one in answer["sentences"])
        events = _events(site.client.post("/v1/answer/stream", json=QUESTION).text)
        assert [name for name, _ in events][:2] == ["sources", "cost"]
        assert events[-1][0] == "answer"
        assert site.client.post("/v1/answer", json={"query": ""}).status_code == 400


def test_a_conversation_goes_on_over_rest(settings: Settings) -> None:
    with serving(settings) as site:
        first = site.client.post("/v1/query", json={**QUESTION, "source": ["documents"]}).json()
        later = {"query": "and where does it end?", "follow": first["query_id"], "drop": ["towns"]}
        streamed = _events(site.client.post("/v1/query/stream", json=later).text)[-1][1]
        written = site.client.post("/v1/answer", json=later).json()
        for told in (streamed, written):
            assert told["query"] == "and where does it end? Danube flow"
            assert told["carried"]["filters"] == {"source": ["documents"]}
        assert site.client.post("/v1/answer", json={**later, "follow": "q_none"}).status_code == 404


def test_a_streamed_answer_of_a_model_is_checked(settings: Settings) -> None:
    with chat_endpoint() as endpoint:
        endpoint.pieces = ["The Danube flows through Vienna. ", "Mozart lived in 1791."]
        asked = settings.model_copy(update={"llm_base_url": endpoint.url, "llm_model": "writer"})
        with serving(asked) as site:
            events = _events(site.client.post("/v1/answer/stream", json=QUESTION).text)
    sentences = [value for name, value in events if name == "sentence"]
    assert [one["is_supported"] for one in sentences] == [True, False]
    assert events[-1][1]["model"] == "writer"


def _events(text: str) -> list[tuple[str, object]]:
    blocks = [block.split("\n") for block in text.strip().split("\n\n")]
    return [
        (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for name, data in blocks
    ]


def test_a_chat_front_end_uses_hades_as_a_model(settings: Settings) -> None:
    from openai import NotFoundError, OpenAI

    with serving(settings) as site:
        client = OpenAI(base_url=f"{site.address}/v1", api_key="none", max_retries=0)
        assert "hades/hipporag" in [one.id for one in client.models.list()]
        asked = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": QUESTION["query"]}]},
        ]
        whole = client.chat.completions.create(model="hades", messages=asked)
        text = whole.choices[0].message.content or ""
        assert "Vienna" in text
        assert "Sources:\n[1] " in text
        assert whole.model_extra is not None
        assert whole.model_extra["sources"][0]["document"]
        chunks = list(client.chat.completions.create(model="hades", messages=asked, stream=True))
        assert "".join(one.choices[0].delta.content or "" for one in chunks) == text
        assert chunks[-1].choices[0].finish_reason == "stop"
        assert whole.usage is not None
        assert whole.usage.prompt_tokens > MiniLmTokenizer().count(QUESTION["query"])
        assert whole.usage.completion_tokens == MiniLmTokenizer().count(text)
        assert whole.usage.total_tokens > whole.usage.completion_tokens > 10
        counted = client.chat.completions.create(
            model="hades", messages=asked, stream=True, stream_options={"include_usage": True}
        )
        assert list(counted)[-1].usage == whole.usage
        with pytest.raises(NotFoundError, match="no model 'gpt-9'"):
            client.chat.completions.create(model="gpt-9", messages=asked)


def test_a_limited_token_asks_its_part_of_the_corpus_and_nothing_else(settings: Settings) -> None:
    only = DocumentFilter(paths=("rhine.md",))
    text, _ = Tokens(settings.home).add("guest", Mode.READ_ONLY, datetime.now(UTC), limit=only)
    with serving(settings, Door(Mode.READ_ONLY, needs_token=True)) as site:
        site.client.headers["Authorization"] = f"Bearer {text}"
        found = site.client.post("/v1/query", json=QUESTION).json()
        assert {one["document"] for one in found["passages"]} == {"rhine.md"}
        assert (found["paths"], found["excluded"], found["telemetry"]["reads"]) == ([], None, 0)
        for path in ("/v1/answer", "/v1/answer/stream", "/v1/query/stream"):
            assert "Vienna" not in site.client.post(path, json=QUESTION).text
        chat = {"model": "hades", "messages": [{"role": "user", "content": QUESTION["query"]}]}
        assert "Vienna" not in site.client.post("/v1/chat/completions", json=chat).text
        for path in (
            "/v1/overview",
            "/v1/hierarchy",
            f"/v1/queries/{found['query_id']}/explain",
            "/metrics",
        ):
            assert site.client.get(path).status_code == 403
    with pytest.raises(TokenError, match="sees everything"):
        Tokens(settings.home).add("writer", Mode.READ_WRITE, datetime.now(UTC), limit=only)
