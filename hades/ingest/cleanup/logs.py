"""Logs of questions after a change of the graph: what was shown and is gone is blanked, how much was shown stays.

A log holds ids, and the id of an entity tells its name. Ranks, scores and counts remain, so that judgements by rank and
every figure over the logs stay as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from hades.ingest.manifest import as_table
from hades.ingest.sync_rows import Change
from hades.ports.store import RowStore
from schemas.catalogue import collection_named
from schemas.record import canonical_json
from schemas.telemetry import FORGOTTEN

_ROWS = 4_096


def redact_logs(store: RowStore) -> Change:
    """Blank the paths and passages of each log that name a row which is no longer there."""
    changed = 0
    for batch in store.scan("query_logs", columns=["_key", "results"], batch_rows=_ROWS):
        keys, texts = batch.column("_key").to_pylist(), batch.column("results").to_pylist()
        shown = [orjson.loads(text) for text in texts]
        gone = _missing(store, (one for results in shown for one in _find_ids(results)))
        rows = [
            {"_key": key, "results": canonical_json(_redact(results, gone))}
            for key, results in zip(keys, shown, strict=True)
            if gone and not gone.isdisjoint(_find_ids(results))
        ]
        if rows:
            store.patch("query_logs", as_table("query_logs", rows))
            changed += len(rows)
    return Change(changed=changed)


def blank_questions(store: RowStore, quotes: Sequence[str]) -> int:
    """Take away the words of questions that quote one of these passages; how many did."""
    rows = [
        {"_key": row["_key"], "query": FORGOTTEN}
        for batch in store.scan("query_logs", columns=["_key", "query"], batch_rows=_ROWS)
        for row in batch.to_pylist()
        if any(quote in row["query"] for quote in quotes)
    ]
    if rows:
        store.patch("query_logs", as_table("query_logs", rows))
    return len(rows)


def _find_ids(results: dict[str, Any]) -> set[str]:
    """Ids of what a log showed; not of topics, whose keys tell nothing and may change with every full build."""
    paths, passages = results.get("paths", ()), results.get("passages", ())
    return {*(one for path in paths for one in _walk(path)), *(passage["id"] for passage in passages)}


def _walk(path: dict[str, Any]) -> list[str]:
    return [*path["nodes"], *path["edges"]]


def _redact(results: dict[str, Any], gone: set[str]) -> dict[str, Any]:
    return {
        **results,
        "paths": [
            path if gone.isdisjoint(_walk(path)) else {**path, "nodes": [], "edges": [], "why": FORGOTTEN}
            for path in results.get("paths", ())
        ],
        "passages": [
            passage if passage["id"] not in gone else {**passage, "id": FORGOTTEN}
            for passage in results.get("passages", ())
        ],
    }


def _missing(store: RowStore, identifiers: Iterable[str]) -> set[str]:
    """Ids that name no row; text that is no id of a collection names nothing and is left alone."""
    wanted: dict[str, set[str]] = {}
    for identifier in identifiers:
        collection, _, key = identifier.partition("/")
        if key and collection_named(collection):
            wanted.setdefault(collection, set()).add(key)
    gone = set()
    for collection, keys in sorted(wanted.items()):
        held = set(store.get(collection, sorted(keys), columns=["_key"]).column("_key").to_pylist())
        gone |= {f"{collection}/{key}" for key in keys - held}
    return gone
