"""Vectors and completions from any OpenAI-compatible endpoint (vLLM, OpenRouter, OpenAI), by the
`openai` client.

Answers are checked before they are believed, and the key is in no representation, log or error.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from hades.errors import CallsAboveCap
from hades.ports.services import (
    Completion,
    EmbeddingModel,
    Progress,
    ProviderError,
    Vectors,
    check_texts,
)
from hades.providers.tokens import encodable
from schemas.record import JsonObject

if TYPE_CHECKING:
    import openai

logger = logging.getLogger(__name__)
MAX_RETRIES = 4
TIMEOUT_SECONDS = 60.0
MAX_ANSWER_BYTES = 1 << 26
BYTES_PER_TOKEN = 3  # English and code rarely have fewer
MAX_SHOWN = 240  # letters of a failure that an error repeats
_CHARACTERS_PER_TOKEN = 16  # no tokenizer has longer tokens on average


class OpenAIEmbedder:
    """Embeds with a model behind `POST {base_url}/embeddings`."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        batch_texts: int = 64,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._endpoint = Endpoint(base_url, api_key, timeout_seconds)
        self._model_id, self._batch_texts = model, batch_texts
        self._dimension: int | None = None
        known = f"{self._endpoint.host}/{model}"  # all that is known of the model
        self._version = hashlib.sha256(known.encode()).hexdigest()[:12]

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self._endpoint.url!r}, {self._model_id!r})"

    @property
    def model(self) -> EmbeddingModel:
        """The model; where nothing was embedded yet, one short text is."""
        if self._dimension is None:
            self._embed_batch(["dimension"])

        assert self._dimension is not None
        return EmbeddingModel(
            self._model_id,
            self._version,
            self._dimension,
        )

    def embed(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """(n_texts, dimension) float32, rows unit length."""
        check_texts(texts)

        batches = []
        for first in range(0, len(texts), self._batch_texts):
            batch = list(texts[first : first + self._batch_texts])
            batches.append(self._embed_batch(batch))
            if progress:
                progress(first + len(batch), len(texts))

        if not batches:
            return np.empty((0, self.model.dimension), np.float32)

        return np.concatenate(batches)

    def _embed_batch(self, texts: list[str]) -> Vectors:
        readable = [encodable(text) for text in texts]
        with self._endpoint.errors("embeddings"):
            answer = self._endpoint.client.embeddings.create(
                model=self._model_id,
                input=readable,
                encoding_format="float",
            )

        try:
            rows = []
            for place, row in enumerate(answer.data):
                rows.append(row.index if isinstance(row.index, int) else place)

            vectors = np.array([row.embedding for row in answer.data], np.float64)
        except (AttributeError, TypeError, ValueError):
            raise self._bad_answer(
                "an answer without one list of numbers of equal length for each text"
            ) from None

        if sorted(rows) != list(range(len(texts))):
            raise self._bad_answer(
                f"{len(rows)} vectors for {len(texts)} texts, or not one for each"
            )

        return self._check_vectors(vectors[np.argsort(rows)])

    def _check_vectors(self, vectors: NDArray[np.float64]) -> Vectors:
        if vectors.ndim != 2:
            raise self._bad_answer("vectors that are not lists of numbers")

        if self._dimension is not None and vectors.shape[1] != self._dimension:
            raise self._bad_answer(
                f"vectors of dimension {vectors.shape[1]}, expected {self._dimension}"
            )

        usable = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
        if not usable.all():
            raise self._bad_answer(
                f"a vector for row {int(np.argmin(usable))} that is zero or not finite"
            )

        self._dimension = vectors.shape[1]
        return np.asarray(
            vectors / np.linalg.norm(vectors, axis=1, keepdims=True),
            np.float32,
        )

    def _bad_answer(self, problem: str) -> ProviderError:
        where = f"{self._endpoint.url}/embeddings"
        return ProviderError(
            f"{where} sent {problem}; check that {self._model_id!r} is its embedding model"
        )


class OpenAILanguageModel:
    """Completes with a model behind `POST {base_url}/chat/completions`, at temperature 0.

    A stage that plans more than `max_calls` works without it, or stops where `asks` says that a
    person is asked.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        max_calls: int | None = None,
        asks: bool = False,
    ) -> None:
        self.model, self._max_calls, self._asks = model, max_calls, asks
        self._endpoint = Endpoint(base_url, api_key, timeout_seconds)

    def allows(self, calls: int, tokens: int) -> bool:
        if self._max_calls is None or calls <= self._max_calls:
            return True

        cost = (
            f"{calls:,} calls of {self.model} of up to {tokens:,} tokens in all; "
            f"HADES_LLM_MAX_CALLS={self._max_calls}"
        )
        if self._asks:
            raise CallsAboveCap(
                f"{cost}: raise it, or set HADES_APPROVAL_MINUTES=0 to go on without the model"
            )

        logger.warning("%s: texts are quoted instead", cost)
        return False

    def complete(self, prompt: str, *, max_tokens: int) -> Completion:
        """The model's answer to one user message."""
        question = self._question(prompt, max_tokens)
        with self._endpoint.errors("chat/completions"):
            answer = self._endpoint.client.chat.completions.create(**question)

        text = _text_of(answer, "message")
        if text is None:
            raise ProviderError(
                f"{self._endpoint.url}/chat/completions sent no text (model {self.model})"
            )

        used = getattr(answer, "usage", None)
        return Completion(
            text,
            _tokens(getattr(used, "prompt_tokens", None), prompt),
            _tokens(getattr(used, "completion_tokens", None), text),
        )

    def stream(self, prompt: str, *, max_tokens: int) -> Iterator[str]:
        """The model's answer piece by piece, from an endpoint that streams or one that answers
        whole.

        Not repeated, because part of it may have been shown already. Ends at the length that
        `max_tokens` can have.
        """
        question = self._question(prompt, max_tokens)
        room = _CHARACTERS_PER_TOKEN * max_tokens
        once = self._endpoint.client.with_options(
            max_retries=0
        ).chat.completions.with_streaming_response

        with (
            self._endpoint.errors("chat/completions"),
            once.create(**question, stream=True) as response,
        ):
            if "json" in response.headers.get("content-type", ""):
                pieces = iter([_whole_text(response.json())])
            else:
                pieces = (_text_of(chunk, "delta") or "" for chunk in response.parse())

            for piece in pieces:
                if piece:
                    yield piece[:room]

                room -= len(piece)
                if room <= 0:
                    return

    def _question(self, prompt: str, max_tokens: int) -> JsonObject:
        if max_tokens < 1:
            raise ValueError(f"max_tokens is {max_tokens}; expected 1 or more")
        return {
            "model": self.model,
            "messages": [
                {
                    "role": "user",
                    "content": encodable(prompt),
                }
            ],
            "max_tokens": max_tokens,
            "temperature": 0,
        }


class Endpoint:
    """One base URL and its key: the client, and errors that say what went wrong without the key."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        timeout_seconds: float,
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ProviderError("the endpoint's base URL must look like https://host/v1")

        if "@" in parts.netloc or parts.query:
            raise ProviderError(
                f"the base URL of {parts.hostname} carries a credential; use the API key"
            )

        key = (api_key or "").strip()
        if not key.isascii() or not key.isprintable():
            raise ProviderError(
                f"the API key for {parts.hostname} holds characters that no header can carry"
            )

        self.url, self.host = base_url.rstrip("/"), parts.netloc
        self._key, self._timeout_seconds = key, timeout_seconds

    @cached_property
    def client(self) -> openai.OpenAI:
        """The client; an answer ends after twice the time limit of a request, however slowly it
        comes.
        """
        import httpx2  # what the client is built on
        import openai

        class Bounded(httpx2.SyncByteStream):
            def __init__(self, stream: Any, seconds: float) -> None:
                self._stream, self._until = stream, time.monotonic() + seconds

            def __iter__(self) -> Iterator[bytes]:
                size = 0
                for chunk in self._stream:
                    size += len(chunk)
                    if time.monotonic() > self._until or size > MAX_ANSWER_BYTES:
                        raise httpx2.ReadTimeout("the answer did not end in time")
                    yield chunk

            def close(self) -> None:
                self._stream.close()

        def bound(response: httpx2.Response) -> None:
            response.stream = Bounded(response.stream, 2 * self._timeout_seconds)

        def drop_placeholder(request: httpx2.Request) -> None:
            if not self._key:
                del request.headers["authorization"]

        return openai.OpenAI(
            base_url=self.url,
            api_key=self._key or "none",  # the client wants one
            timeout=self._timeout_seconds,
            max_retries=MAX_RETRIES,
            http_client=openai.DefaultHttpxClient(
                event_hooks={
                    "request": [drop_placeholder],
                    "response": [bound],
                }
            ),
        )

    @contextmanager
    def errors(self, path: str) -> Iterator[None]:
        """Turn what the client raises into a `ProviderError`."""
        import httpx2
        import openai

        try:
            yield
        except openai.APIStatusError as error:
            failure = f"HTTP {error.status_code}: {error.response.text}"
        except openai.APIConnectionError as error:
            failure = f"{type(error.__cause__ or error).__name__}: {error.__cause__ or error}"
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            failure = f"{type(error).__name__}: {error}"
        except ValueError as error:
            failure = f"not JSON: {error}"
        else:
            return

        # Servers echo keys; the key goes before the cut, which could leave half of it.
        shown = (failure.replace(self._key, "***") if self._key else failure)[:MAX_SHOWN]
        raise ProviderError(f"{self.url}/{path} failed: {shown}; check endpoint, model and key")


def _text_of(answer: Any, part: str) -> str | None:
    """The text of the first choice; None where there is none. The client does not validate what it
    was sent.
    """
    choices = getattr(answer, "choices", None)
    if isinstance(choices, list) and choices:
        text = getattr(getattr(choices[0], part, None), "content", None)
    else:
        text = None

    return text if isinstance(text, str) else None


def _whole_text(answer: Any) -> str:
    try:
        text = answer["choices"][0]["message"]["content"]
    except (KeyError, TypeError, IndexError):
        text = None

    if not isinstance(text, str):
        raise ValueError("no text in the answer")
    return text


def _tokens(reported: object, text: str) -> int:
    """What the endpoint counted, or a conservative count where it does not say."""
    if isinstance(reported, int) and reported >= 0:
        return reported
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)
