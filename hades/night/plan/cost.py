"""What a plan spent on models: texts embedded, calls of the language model, money."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hades.night.forecast import price_of, topic_prompts
from hades.night.stage import Report
from hades.ports.services import PaidModels
from hades.ports.store import RowChange, RowStore, Term
from schemas.record import JsonObject

_EMBEDDED = {
    "doc_chunks": "passages",
    "entities": "names",
    "memory_states": "memory",
}
_OF_NAME = [Term("vector_of", "==", "name")]


def cost_of(
    rows: Sequence[RowChange],
    store: RowStore,
    report: Report,
    paid: PaidModels,
) -> JsonObject:
    """The texts that were embedded and the summaries that were written, with their price.

    A price of None: one that is needed is not set. Texts that have a vector of the model are not
    embedded again, and an application of the plan embeds none.
    """
    texts = dict.fromkeys(_EMBEDDED.values(), 0)
    embeddings = report.get("embeddings", {})
    texts["passages"] = int(embeddings.get("embedded", 0))
    texts["memory"] = int(embeddings.get("memory", 0))
    names = set(_keys(rows, "entities", "embedding"))
    by_name = (
        store.scan(
            "entities",
            columns=["_key"],
            where=_OF_NAME,
        )
        if names
        else ()
    )

    for batch in by_name:
        texts["names"] += len(names.intersection(batch.column("_key").to_pylist()))

    tokens = _embedded_tokens(rows, store) if paid.embedder and texts["passages"] else 0
    calls = int(report.get("topics", {}).get("summaries_written", 0))
    prompts = []

    if paid.writer and calls:
        prompts = topic_prompts(store, set(_keys(rows, "clusters", "summary")))

    prompt_tokens = sum(paid.count_tokens(prompt) for prompt in prompts)
    return {
        "texts": texts,
        **price_of(paid, tokens, calls, prompt_tokens),
    }


def _keys(
    rows: Iterable[RowChange],
    collection: str,
    column: str,
) -> list[str]:
    """The rows of a collection that are new or have another value in a column."""
    keys = []
    for row in rows:
        if row.collection == collection and (row.change == "added" or column in row.columns):
            keys.append(row.key)

    return keys


def _embedded_tokens(rows: Sequence[RowChange], store: RowStore) -> int:
    keys = _keys(rows, "doc_chunks", "embedding")
    counts = store.get(
        "doc_chunks",
        keys,
        columns=["token_count"],
    ).column("token_count")
    return sum(count or 0 for count in counts.to_pylist())
