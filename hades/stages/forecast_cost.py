"""What the paid models of a nightly build would be sent, and what that costs at the prices of the settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson

from hades.ports.store import RowStore, Term
from hades.stages.topics.topic_rules import HierarchyRules

_MILLION = 1_000_000


@dataclass(frozen=True)
class PaidModels:
    """The models behind an endpoint and their prices for a million tokens; None where a price is not set.

    Without an endpoint both names are empty: the models of the installation run on this machine and cost nothing.
    """

    embedder: str = ""
    embedder_price: float | None = None
    writer: str = ""
    input_price: float | None = None
    output_price: float | None = None
    count_tokens: Callable[[str], int] = len


@dataclass(frozen=True)
class CostForecast:
    """Tokens to send and to receive, at most, and their price; None: a price that is needed is not set."""

    embedding_tokens: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    price: float | None = 0.0


def forecast_cost(store: RowStore, paid: PaidModels, *, is_embedding: bool, is_writing: bool) -> CostForecast:
    """Count the texts that have no vector, and the topics that the language model may have to summarise again.

    A topic whose quotes do not change is not sent again, so the summaries are an upper bound. Before the first build
    there are no topics to count.
    """
    embedded = _tokens_to_embed(store) if paid.embedder and is_embedding else 0
    prompts = _topic_prompts(store) if paid.writer and is_writing else []
    asked = sum(paid.count_tokens(prompt) for prompt in prompts)
    written = len(prompts) * HierarchyRules().summary_tokens
    parts = ((embedded, paid.embedder_price), (asked, paid.input_price), (written, paid.output_price))
    return CostForecast(embedded, len(prompts), asked, written, _price(parts))


def _tokens_to_embed(store: RowStore) -> int:
    waiting = [Term("embedding_model", "is_null")]
    return sum(
        tokens or 0
        for batch in store.scan("doc_chunks", where=waiting, columns=["token_count"])
        for tokens in batch.column("token_count").to_pylist()
    )


def _topic_prompts(store: RowStore) -> list[str]:
    """What the language model would be asked about the topics as they are now."""
    from hades.stages.topics.topic_wording import summary_prompt  # with scipy, which most forecasts do not need

    prompts = []
    for batch in store.scan("clusters", columns=["name", "metadata"]):
        for row in batch.to_pylist():
            facts = orjson.loads(row["metadata"])
            if facts["evidence"]:
                prompts.append(summary_prompt(row["name"], facts["terms"], [one["text"] for one in facts["evidence"]]))
    return prompts


def _price(parts: Sequence[tuple[int, float | None]]) -> float | None:
    known = [(tokens, price) for tokens, price in parts if tokens]
    if any(price is None for _, price in known):
        return None
    return round(sum(tokens * (price or 0.0) for tokens, price in known) / _MILLION, 6)
