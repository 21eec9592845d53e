"""What a nightly build would do now, how long it would take, and what its paid models would
cost.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from pathlib import Path
from statistics import median

import orjson

from hades import stage_ledger
from hades.ingest import manifest
from hades.night.report import last_runs, newest_report
from hades.night.stage import Report
from hades.night.stages import NIGHT
from hades.night.topics.inputs import HierarchyRules
from hades.night.topics.wording import summary_prompt
from hades.night.weights.feedback import judge_digest
from hades.ports.services import PaidModels
from hades.ports.store import RowStore, Term, scan_rows, scan_values
from schemas.record import JsonObject

_ALWAYS = ("contracts", "released")
_RUNS = 10  # builds whose durations the forecast takes the median of
_MILLION = 1_000_000


def forecast_cost(
    store: RowStore,
    paid: PaidModels,
    *,
    is_embedding: bool,
    is_writing: bool,
) -> JsonObject:
    """Count the texts that have no vector, and the topics that the language model may have to
    summarise again.

    A topic whose quotes do not change is not sent again, so the summaries are an upper bound.
    Before the first build there are no topics to count. A `price` of None: one that is needed is
    not set.
    """
    embedded = 0
    if paid.embedder and is_embedding:
        waiting = [Term("embedding_model", "is_null")]
        counts = scan_values(
            store,
            "doc_chunks",
            "token_count",
            where=waiting,
        )
        embedded = sum(filter(None, counts))

    prompts = topic_prompts(store) if paid.writer and is_writing else []
    prompt_tokens = sum(paid.count_tokens(prompt) for prompt in prompts)
    return price_of(
        paid,
        embedded,
        len(prompts),
        prompt_tokens,
    )


def price_of(
    paid: PaidModels,
    embedding_tokens: int,
    calls: int,
    prompt_tokens: int,
) -> JsonObject:
    """These tokens and calls of a language model with their price; None where one is not set."""
    written = calls * HierarchyRules().summary_tokens
    parts = (
        (embedding_tokens, paid.embedder_price),
        (prompt_tokens, paid.input_price),
        (written, paid.output_price),
    )
    prices = [None if price is None else tokens * price for tokens, price in parts if tokens]
    known_prices = [price for price in prices if price is not None]

    if len(known_prices) == len(prices):
        price = round(sum(known_prices) / _MILLION, 6)
    else:
        price = None

    return {
        "embedding_tokens": embedding_tokens,
        "calls": calls,
        "prompt_tokens": prompt_tokens,
        "completion_tokens": written,
        "price": price,
    }


def topic_prompts(store: RowStore, keys: Set[str] | None = None) -> list[str]:
    """What the language model would be asked about the topics as they are now, or about these."""
    prompts = []
    for row in scan_rows(
        store,
        "clusters",
        columns=["_key", "name", "metadata"],
    ):
        facts = orjson.loads(row["metadata"])
        quotes = [quote["text"] for quote in facts["evidence"]]
        if quotes and (keys is None or row["_key"] in keys):
            prompts.append(summary_prompt(row["name"], facts["terms"], quotes))

    return prompts


def forecast_build(
    store: RowStore,
    home: Path,
    paid: PaidModels = PaidModels(),
) -> JsonObject:
    """What a nightly build has work for, by the store's own marks and the last reports; nothing is
    computed.

    `stages` have the seconds that each will take, None where it was never measured; `seconds` is
    their sum. `learned` is what the last weighing learned from judged answers, `runs` the number of
    earlier builds that seconds come from.
    """
    last_report = newest_report(home)
    missing = store.count(
        "doc_chunks",
        where=[Term("embedding_model", "is_null")],
    )
    sources = store.count("sources")
    weighed = stage_ledger.last_completion(store, stage_ledger.WEIGHTS)

    if weighed is not None:
        learned = weighed.report.get("learned", {})
    else:
        learned = {}

    digest = manifest.derive_digest(store)
    changed = {
        "sources": bool(sources),
        "embeddings": bool(missing),
        "edges": digest is None or digest != last_report.get("derived_from") or weighed is None,
        "weights": learned.get("judged") != judge_digest(store),
    }

    stale: list[str] = []  # stages whose own input changed, and those that need one of them
    for stage in NIGHT:
        if changed.get(stage.name) or any(name in stale for name in stage.needs):
            stale.append(stage.name)

    runs = last_runs(home, _RUNS)
    seconds = {name: forecast_seconds(name, runs, missing) for name in (*stale, *_ALWAYS)}
    cost = forecast_cost(
        store,
        paid,
        is_embedding=bool(missing),
        is_writing="topics" in stale,
    )
    return {
        "stages": seconds,
        "chunks_to_embed": missing,
        "sources": sources,
        "learned": learned,
        "runs": len(runs),
        "cost": cost,
        "seconds": round(sum(value for value in seconds.values() if value), 1),
    }


def forecast_seconds(
    stage: str,
    runs: Sequence[Report],
    chunks: int,
) -> float | None:
    """The median over earlier builds in which the stage had work; embedding by the chunk. None:
    never measured.
    """
    if stage == "embeddings":
        rates = []
        for run in runs:
            if run["embedded"] and stage in run["seconds"]:
                rates.append(run["seconds"][stage] / run["embedded"])

        return round(median(rates) * chunks, 1) if rates else None

    durations = []
    for run in runs:
        if stage in run["seconds"] and stage not in run["skipped"]:
            durations.append(run["seconds"][stage])

    return round(median(durations), 1) if durations else None
