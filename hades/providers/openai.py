"""OpenAI-compatible vectors and completions."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from hades.ports.services import Completion, EmbeddingModel, Progress, ProviderError, Vectors, check_texts
from hades.providers.tokens import ByteTokenizer, encodable

if TYPE_CHECKING:
    import httpx


# Vectors and completions from any OpenAI-compatible endpoint (vLLM, OpenRouter, OpenAI). Waits and retries are
# bounded and without chance, answers are checked before they are believed, and the key is in no representation, log
# or error.


RETRIED_STATUS = frozenset({408, 429, 500, 502, 503, 504})
ATTEMPTS = 5
FIRST_WAIT_SECONDS, MAX_WAIT_SECONDS = 0.5, 30.0
TIMEOUT_SECONDS = 60.0
_CHARACTERS_PER_TOKEN = 16  # no tokenizer has longer tokens on average
MAX_SHOWN = 240  # letters of a failure that an error repeats


class OpenAIEmbedder:
    """Embeds with a model behind `POST {base_url}/embeddings`."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        dimension: int | None = None,
        version: str | None = None,
        batch_texts: int = 64,
        timeout_seconds: float = TIMEOUT_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._endpoint = Endpoint(base_url, api_key, timeout_seconds=timeout_seconds, sleep=sleep)
        self._model_id, self._dimension, self._batch_texts = model, dimension, batch_texts
        self._version = version or _version(self._endpoint.host, model)

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self._endpoint.url!r}, {self._model_id!r})"

    @property
    def model(self) -> EmbeddingModel:
        """The model; where the dimension was not given and nothing was embedded yet, one short text is."""
        if self._dimension is None:
            self._embed_batch(["dimension"])
        assert self._dimension is not None
        return EmbeddingModel(self._model_id, self._version, self._dimension)

    def embed(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """(n_texts, dimension) float32, rows unit length."""
        check_texts(texts)
        found = []
        for first in range(0, len(texts), self._batch_texts):
            batch = list(texts[first : first + self._batch_texts])
            found.append(self._embed_batch(batch))
            if progress:
                progress(first + len(batch), len(texts))
        return np.concatenate(found) if found else np.empty((0, self.model.dimension), dtype=np.float32)

    def close(self) -> None:
        """Give the connections back."""
        self._endpoint.close()

    def _embed_batch(self, texts: list[str]) -> Vectors:
        readable = [encodable(text) for text in texts]
        question = {"model": self._model_id, "input": readable, "encoding_format": "float"}
        answer = self._endpoint.post("embeddings", question)
        try:
            by_place = {row.get("index", place): row["embedding"] for place, row in enumerate(answer["data"])}
            places = sorted(by_place)
            vectors = np.array([by_place[place] for place in places], dtype=np.float64)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise self._bad("an answer without one list of numbers of equal length for each text") from None
        if places != list(range(len(texts))):
            raise self._bad(f"{len(answer['data'])} vectors for {len(texts)} texts, or not one for each")
        self._check(vectors)
        self._dimension = vectors.shape[1]
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)

    def _check(self, vectors: np.ndarray[Any, np.dtype[np.float64]]) -> None:
        if vectors.ndim != 2:
            raise self._bad("vectors that are not lists of numbers")
        if self._dimension is not None and vectors.shape[1] != self._dimension:
            raise self._bad(f"vectors of dimension {vectors.shape[1]}, expected {self._dimension}")
        usable = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
        if not usable.all():
            raise self._bad(f"a vector for row {int(np.argmin(usable))} that is zero or not finite")

    def _bad(self, what: str) -> ProviderError:
        where = f"{self._endpoint.url}/embeddings"
        return ProviderError(f"{where} sent {what}; check that {self._model_id!r} is its embedding model")


class OpenAILanguageModel:
    """Completes with a model behind `POST {base_url}/chat/completions`, at temperature 0."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.model = model
        self._endpoint = Endpoint(base_url, api_key, timeout_seconds=timeout_seconds, sleep=sleep)

    def __repr__(self) -> str:
        return f"OpenAILanguageModel({self._endpoint.url!r}, {self.model!r})"

    def complete(self, prompt: str, *, max_tokens: int) -> Completion:
        """The model's answer to one user message."""
        answer = self._endpoint.post("chat/completions", self._question(prompt, max_tokens))
        try:
            text = answer["choices"][0]["message"]["content"]
        except (KeyError, TypeError, IndexError):
            text = None
        if not isinstance(text, str):
            raise ProviderError(f"{self._endpoint.url}/chat/completions sent no text (model {self.model})")
        used = answer.get("usage") or {}
        return Completion(
            text,
            _tokens(used.get("prompt_tokens"), prompt),
            _tokens(used.get("completion_tokens"), text),
        )

    def stream(self, prompt: str, *, max_tokens: int) -> Iterator[str]:
        """The model's answer piece by piece, from an endpoint that streams or one that answers whole.

        Ends after twice the time limit of a request, or at the length that `max_tokens` can have.
        """
        question = {**self._question(prompt, max_tokens), "stream": True}
        room = _CHARACTERS_PER_TOKEN * max_tokens
        for piece in self._endpoint.stream("chat/completions", question):
            yield piece[:room]
            room -= len(piece)
            if room <= 0:
                return

    def _question(self, prompt: str, max_tokens: int) -> dict[str, Any]:
        if max_tokens < 1:
            raise ValueError(f"max_tokens is {max_tokens}; expected 1 or more")
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": encodable(prompt)}],
            "max_tokens": max_tokens,
            "temperature": 0,
        }

    def close(self) -> None:
        """Give the connections back."""
        self._endpoint.close()


class Endpoint:
    """One base URL and its key: posts JSON, waits and repeats where that helps, and says what went wrong."""

    def __init__(
        self, base_url: str, api_key: str | None, *, timeout_seconds: float, sleep: Callable[[float], None]
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ProviderError("the endpoint's base URL must look like https://host/v1")
        if "@" in parts.netloc or parts.query:
            raise ProviderError(f"the base URL of {parts.hostname} carries a credential; use the API key")
        key = (api_key or "").strip()
        if not key.isascii() or not key.isprintable():
            raise ProviderError(f"the API key for {parts.hostname} holds characters that no header can carry")
        self.url, self.host = base_url.rstrip("/"), parts.netloc
        self._key, self._timeout_seconds, self._sleep = key, timeout_seconds, sleep
        self._stream_seconds = 2 * timeout_seconds  # of one streamed answer, however slowly it comes

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r})"

    def post(self, path: str, question: dict[str, Any]) -> dict[str, Any]:
        """The JSON object the endpoint answers, after at most ATTEMPTS tries."""
        for attempt in range(1, ATTEMPTS + 1):
            failure, wait_seconds = "", _backoff_seconds(attempt)
            try:
                response = self._client.post(f"{self.url}/{path}", json=question)
            except self._request_errors as error:
                failure = f"{type(error).__name__}: {error}"
            else:
                if response.is_success:
                    return self._object(path, response)
                failure = f"HTTP {response.status_code}: {response.text}"
                if response.status_code not in RETRIED_STATUS:
                    raise self._error(path, failure)
                wait_seconds = _retry_after_seconds(response.headers.get("retry-after"), wait_seconds)
            if attempt < ATTEMPTS:
                self._sleep(wait_seconds)
        raise self._error(path, failure, tries=ATTEMPTS)

    def stream(self, path: str, question: dict[str, Any]) -> Iterator[str]:
        """Pieces of text of a streamed answer; not repeated, because part of it may have been shown already."""

        try:
            with self._client.stream("POST", f"{self.url}/{path}", json=question) as response:
                if not response.is_success:
                    raise self._error(path, f"HTTP {response.status_code}: {_start_of(response)}")
                yield from read_pieces(
                    _until(response.iter_bytes(), time.monotonic() + self._stream_seconds),
                    response.headers.get("content-type", ""),
                )
        except self._request_errors as error:
            raise self._error(path, f"{type(error).__name__}: {error}") from None
        except ValueError as error:
            raise self._error(path, str(error)) from None

    def close(self) -> None:
        """Close the connections; the next question opens new ones."""
        if "_client" in self.__dict__:
            self.__dict__.pop("_client").close()

    def _object(self, path: str, response: httpx.Response) -> dict[str, Any]:
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise self._error(path, f"not a JSON object: {response.text}")
        return answer

    def _error(self, path: str, failure: str, tries: int = 1) -> ProviderError:
        # Servers echo keys; the key goes before the cut, which could leave half of it.
        shown = (failure.replace(self._key, "***") if self._key else failure)[:MAX_SHOWN]
        often = f" {tries} times" if tries > 1 else ""
        return ProviderError(f"{self.url}/{path} failed{often}: {shown}; check endpoint, model and key")

    @cached_property
    def _client(self) -> httpx.Client:
        import httpx

        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        return httpx.Client(headers=headers, timeout=self._timeout_seconds)

    @cached_property
    def _request_errors(self) -> type[httpx.RequestError]:
        import httpx

        return httpx.RequestError


def _until(chunks: Iterator[bytes], deadline: float) -> Iterator[bytes]:
    """The chunks that come before the deadline; a server that never ends is an error."""
    for chunk in chunks:
        if time.monotonic() > deadline:
            raise ValueError("the answer did not end in time")
        yield chunk


def _start_of(response: httpx.Response) -> str:
    """The first bytes of a refusal."""
    start = next(iter(response.iter_bytes()), b"")
    return start[: 4 * MAX_SHOWN].decode("utf-8", "replace")


def _backoff_seconds(attempt: int) -> float:
    """Doubling waits, the same each time: a build that fails must fail alike when it is repeated."""
    return min(FIRST_WAIT_SECONDS * 2.0 ** (attempt - 1), MAX_WAIT_SECONDS)


def _retry_after_seconds(header: str | None, otherwise: float) -> float:
    """What the server asks for, in seconds or as a date, up to a cap."""
    if header is None:
        return otherwise
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except ValueError:
            return otherwise
    if math.isnan(seconds):
        return otherwise
    return min(max(seconds, 0.0), MAX_WAIT_SECONDS)


def _version(host: str, model: str) -> str:
    """A mark for a model of which only address and name are known."""
    return hashlib.sha256(f"{host}/{model}".encode()).hexdigest()[:12]


def _tokens(reported: object, text: str) -> int:
    """What the endpoint counted, or a conservative count where it does not say."""
    return reported if isinstance(reported, int) and reported >= 0 else ByteTokenizer().count(text)


# Text of a streamed chat completion: server-sent events, or one JSON object where the endpoint does not stream.


MAX_LINE_BYTES = 1 << 20
MAX_EMPTY_EVENTS = 10_000


def read_pieces(chunks: Iterable[bytes], content_type: str) -> Iterator[str]:
    """The pieces of text in order; raises ValueError on what is no such answer."""
    if "json" in content_type:
        yield _whole(b"".join(_limit_bytes(chunks)))
        return
    empty = 0
    for line in _lines(chunks):
        name, _, data = line.partition(":")
        if name != "data":
            continue
        if data.strip() == "[DONE]":
            return
        piece = _piece(data)
        empty = 0 if piece else empty + 1
        if empty > MAX_EMPTY_EVENTS:
            raise ValueError(f"{MAX_EMPTY_EVENTS} events in a row without text")
        if piece:
            yield piece


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace").strip()
        if len(rest) > MAX_LINE_BYTES:
            raise ValueError(f"a line of more than {MAX_LINE_BYTES} bytes")
    if rest.strip():
        yield rest.decode("utf-8", "replace").strip()


def _limit_bytes(chunks: Iterable[bytes]) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > MAX_LINE_BYTES:
            raise ValueError(f"an answer of more than {MAX_LINE_BYTES} bytes")
        yield chunk


def _piece(data: str) -> str:
    event = _object(data)
    choices = event.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    delta = first.get("delta") if isinstance(first, dict) else None
    text = delta.get("content") if isinstance(delta, dict) else None
    return text if isinstance(text, str) else ""


def _whole(data: bytes) -> str:
    try:
        text = _object(data.decode("utf-8", "replace"))["choices"][0]["message"]["content"]
    except (KeyError, TypeError, IndexError):
        text = None
    if not isinstance(text, str):
        raise ValueError("no text in the answer")
    return text


def _object(data: str) -> dict[str, Any]:
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError(f"not JSON: {data[:80]!r}") from None
    if not isinstance(event, dict):
        raise ValueError(f"not a JSON object: {data[:80]!r}")
    return event
