"""An endpoint on the loopback that says what a test tells it to."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from typing import Any

import numpy as np
import pytest

from hades.errors import CallsAboveCap
from hades.ports.services import ProviderError
from hades.providers import openai
from hades.providers.openai import OpenAIEmbedder, OpenAILanguageModel
from tests.loopback import Answer, answering

KEY = "sk-secret-0123456789"


@dataclass
class Server:
    """Answers in order from `script` (status, headers, body); afterwards as a proper endpoint
    would.
    """

    url: str = ""
    script: list[tuple[int, dict[str, str], Any]] = field(default_factory=list)
    seen: list[dict[str, Any]] = field(default_factory=list)

    def embedder(self, **options: Any) -> OpenAIEmbedder:
        return OpenAIEmbedder(self.url, "m", api_key=KEY, **options)

    def language_model(self) -> OpenAILanguageModel:
        return OpenAILanguageModel(self.url, "writer", api_key=KEY)

    def answer(self, path: str, question: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        if self.script:
            return self.script.pop(0)
        if path.endswith("/embeddings"):
            texts = enumerate(question["input"])
            rows = [{"index": row, "embedding": [len(text), 3.0]} for row, text in texts]
            return 200, {}, {"data": rows[::-1]}
        usage = {"prompt_tokens": 5, "completion_tokens": 2}
        return 200, {}, {"choices": [{"message": {"content": "a path"}}], "usage": usage}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    told = Server()

    def answer(path: str, headers: Message, content: bytes) -> Answer:
        question = json.loads(content)
        told.seen.append({"path": path, "key": headers["authorization"], **question})
        status, more, body = told.answer(path, question)
        reply = body if isinstance(body, bytes) else json.dumps(body).encode()
        return status, {"content-length": str(len(reply)), **more}, [reply]

    with answering(answer) as address:
        told.url = f"{address}/v1"
        yield told


def test_vectors_come_in_the_order_of_the_texts_and_unit_length(server: Server) -> None:
    embedder = server.embedder(batch_texts=2)
    seen: list[tuple[int, int]] = []
    vectors = embedder.embed(
        ["abcd", "a", "ab"], progress=lambda done, total: seen.append((done, total))
    )
    assert vectors.dtype == np.float32
    assert np.allclose(vectors[0], [0.8, 0.6])
    assert np.allclose(vectors[:, 0] / vectors[:, 1], [4 / 3, 1 / 3, 2 / 3])
    assert [len(question["input"]) for question in server.seen] == [2, 1]
    assert server.seen[0]["path"] == "/v1/embeddings"
    assert server.seen[0]["key"] == f"Bearer {KEY}"
    assert seen == [(2, 3), (3, 3)]


def test_dimension_is_learned_and_the_version_names_host_and_model(server: Server) -> None:
    embedder, other = server.embedder(), OpenAIEmbedder(server.url, "n")
    assert embedder.model.dimension == 2
    assert len(server.seen) == 1
    assert embedder.model.version != other.model.version
    assert embedder.embed([]).shape == (0, 2)


def test_too_many_requests_are_repeated(server: Server) -> None:
    server.script = [(429, {"retry-after": "0.01"}, {}), (503, {"retry-after-ms": "1"}, {})]
    embedder = server.embedder()
    assert embedder.embed(["a"]).shape == (1, 2)
    assert len(server.seen) == 3


def test_a_refusal_is_not_repeated(server: Server) -> None:
    server.script = [(404, {}, {"error": "no such model"})]
    embedder = server.embedder()
    with pytest.raises(ProviderError, match=r"HTTP 404.*no such model"):
        embedder.embed(["a"])
    assert len(server.seen) == 1


def test_nobody_listening_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai, "MAX_RETRIES", 0)
    embedder = OpenAIEmbedder("http://127.0.0.1:9/v1", "m")
    with pytest.raises(ProviderError, match=r"127.0.0.1:9/v1/embeddings failed: ConnectError"):
        embedder.embed(["a"])


def test_an_endpoint_without_a_key_is_sent_none(server: Server) -> None:
    embedder = OpenAIEmbedder(server.url, "m")
    embedder.embed(["a"])
    assert server.seen[0]["key"] is None


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"data": [{"index": 0, "embedding": [1, 2, 3]}]}, "dimension 3, expected 2"),
        (
            {"data": [{"index": 0, "embedding": [1, float("nan")]}]},
            "row 0 that is zero or not finite",
        ),
        ({"data": [{"index": 0, "embedding": [1, None]}]}, "row 0 that is zero or not finite"),
        ({"data": [{"index": 0, "embedding": [0, 0]}]}, "row 0 that is zero or not finite"),
        ({"data": []}, "0 vectors for 1 texts"),
        ({"data": [{"index": 1, "embedding": [1, 2]}]}, "not one for each"),
        ({"data": [{"embedding": [1, 2]}, {"embedding": [1, 2]}]}, "2 vectors for 1 texts"),
        ({"data": [{"index": 0, "embedding": "AAAA"}]}, "without one list of numbers"),
        ({"data": [{"index": 0, "embedding": 1.5}]}, "not lists of numbers"),
        ({"data": [7]}, "without one list of numbers"),
        ({"error": "odd"}, "without one list of numbers"),
        ([1, 2], "without one list of numbers"),
        (b"<html>", "without one list of numbers"),
    ],
)
def test_an_answer_that_cannot_be_right_is_refused(
    server: Server, body: Any, complaint: str
) -> None:
    embedder = server.embedder()
    assert embedder.model.dimension == 2  # learned from a right answer
    server.script = [(200, {}, body)]
    with pytest.raises(ProviderError, match=complaint):
        embedder.embed(["a"])


def test_blank_texts_never_reach_the_endpoint(server: Server) -> None:
    with pytest.raises(ValueError, match="row 1 of 2 is blank"):
        server.embedder().embed(["a", ""])
    assert server.seen == []


def test_the_key_is_in_no_error_log_or_repr(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.script = [(401, {}, {"error": "x" * 180 + f" wrong key {KEY}"})]
    embedder, writer = server.embedder(), server.language_model()
    with pytest.raises(ProviderError) as failed:
        embedder.embed(["a"])
    shown = "".join(traceback.format_exception(failed.value))
    assert "HTTP 401" in shown
    for place in (shown, caplog.text, repr(embedder), repr(writer), repr(embedder._endpoint)):
        assert KEY not in place
        assert KEY[:10] not in place


@pytest.mark.parametrize("key", ["sk-secret\nx", "sk-secret-ключ"])
def test_a_key_no_header_can_carry_is_refused_unseen(key: str) -> None:
    with pytest.raises(ProviderError, match="characters that no header can carry") as failed:
        OpenAIEmbedder("https://host/v1", "m", api_key=key)
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize(
    "url", ["https://user:secret@host/v1", "https://host/v1?key=secret", "host/v1", "ftp://host"]
)
def test_a_base_url_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(ProviderError) as failed:
        OpenAIEmbedder(url, "m")
    assert "secret" not in str(failed.value)


def test_a_completion_has_text_and_cost(server: Server) -> None:
    writer = server.language_model()
    done = writer.complete("say \ud800", max_tokens=9)
    assert (done.text, done.prompt_tokens, done.completion_tokens) == ("a path", 5, 2)
    asked = server.seen[0]
    assert (asked["model"], asked["max_tokens"], asked["temperature"]) == ("writer", 9, 0)
    assert asked["messages"] == [{"role": "user", "content": "say ?"}]


def test_cost_is_counted_conservatively_where_the_endpoint_does_not_say(server: Server) -> None:
    server.script = [(200, {}, {"choices": [{"message": {"content": "abcd"}}]})]
    writer = server.language_model()
    done = writer.complete("abcdefg", max_tokens=9)
    assert (done.prompt_tokens, done.completion_tokens) == (3, 2)


@pytest.mark.parametrize(
    "body", [{"choices": []}, {"choices": [{"message": {"content": None}}]}, {}]
)
def test_a_completion_without_text_is_refused(server: Server, body: Any) -> None:
    server.script = [(200, {}, body)]
    writer = server.language_model()
    with pytest.raises(ProviderError, match="sent no text"):
        writer.complete("say", max_tokens=9)


def test_more_calls_than_the_cap_are_refused_or_left_to_a_person(caplog):
    capped = OpenAILanguageModel("http://127.0.0.1:9/v1", "writer", max_calls=2)
    assert capped.allows(2, 600)
    assert not capped.allows(3, 900)
    assert (
        "3 calls of writer of up to 900 tokens in all; HADES_LLM_MAX_CALLS=2: texts are quoted"
        in caplog.text
    )
    with pytest.raises(CallsAboveCap, match="HADES_APPROVAL_MINUTES=0 to go on without the model"):
        OpenAILanguageModel("http://127.0.0.1:9/v1", "writer", max_calls=2, asks=True).allows(
            3, 900
        )
    assert OpenAILanguageModel("http://127.0.0.1:9/v1", "writer").allows(1_000_000, 0)
