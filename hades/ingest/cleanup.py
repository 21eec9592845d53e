"""Topics, bridges and logs after a removal: no row that a build, a question or a journal left leans on what is gone.

Ingestion may not import the stages, so this works from the catalogue's rows alone. The stages then find their ledger
records opened again and bring their rows to what a build without the removed material gives.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from hades import build_state
from hades.build_state import EDITS
from hades.ingest.manifest import remove_nodes
from hades.ports.store import RowStore, Term, scan_rows, scan_values
from schemas.catalogue import as_table, collection_named
from schemas.edges import ClusterEdgeType
from schemas.ids import node_id
from schemas.record import canonical_json
from schemas.telemetry import FORGOTTEN
from schemas.topics import LOST

_WORD = re.compile(r"\w+")
_COLUMNS = ["_key", "level", "name", "parent", "summary", "size", "metadata"]
_BETWEEN = ", "  # terms of a topic's name
Row = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """What bringing a collection up to date did."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    removed_keys: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Rows touched."""
        return self.added + self.changed + self.removed


def correct_topics(store: RowStore, gone: Sequence[str]) -> dict[str, Change]:
    """Take entities out of their topics and bring each topic to what its other members and standing quotes say.

    A topic that loses its last member goes, and a super-topic with its last topic. The centroid of one that stays is
    an average over its members at the last full build; it stands until the next one.
    """
    rows = {row["_key"]: row for row in scan_rows(store, "clusters", columns=_COLUMNS)}
    for row in rows.values():
        row["metadata"] = orjson.loads(row["metadata"])
    leaving = [Term("_from", "in", [node_id("entities", key) for key in gone])]
    left_behind = scan_values(store, "cluster_edges", "_to", where=leaving) if gone else ()
    lost = Counter(target.partition("/")[2] for target in left_behind)
    edges = store.delete("cluster_edges", where=leaving) if gone else 0
    stale = _stale_quotes(store, rows)
    touched = {key for key in {*lost, *stale} if key in rows}
    touched |= {rows[key]["parent"] for key in touched} & rows.keys()
    left = _left(store, rows, touched)
    empty = sorted(key for key in touched if not left[key])
    remove_nodes(store, "clusters", empty)
    kept = sorted(touched.difference(empty))
    names = store.get("entities", sorted(gone), columns=["name"]).column("name").to_pylist() if kept else []
    forgotten = {name.casefold() for name in names}
    corrected = [_correct(rows[key], left[key], lost[key], stale.get(key, set()), forgotten) for key in kept]
    if corrected:
        rows_now = [{**row, "metadata": canonical_json(row["metadata"])} for row in corrected]
        store.patch("clusters", as_table("clusters", rows_now))
    done = build_state.complete(store, build_state.HIERARCHY) if corrected or empty else None
    if done is not None:  # its report names the biggest topics; the next build finds them again
        report = {**done.report, "biggest": []}
        build_state.record(store, done.stage, done.digest, done.generation, done.as_of, report)
    return {"clusters": Change(changed=len(corrected), removed=len(empty)), "cluster_edges": Change(removed=edges)}


def _stale_quotes(store: RowStore, rows: dict[str, Row]) -> dict[str, set[str]]:
    """Chunks that a cluster quotes and that are gone or read otherwise, by cluster."""
    quoted = {
        key: {(quote["chunk"], quote["sha256"]) for quote in row["metadata"].get("evidence", ())}
        for key, row in rows.items()
    }
    asked = sorted({chunk for quotes in quoted.values() for chunk, _ in quotes})
    held = store.get("doc_chunks", asked, columns=["_key", "sha256"]).to_pylist()
    standing = {(row["_key"], row["sha256"]) for row in held}
    return {key: {chunk for chunk, _ in quotes - standing} for key, quotes in quoted.items() if quotes - standing}


def _left(store: RowStore, rows: dict[str, Row], touched: Set[str]) -> dict[str, list[str]]:
    """The names of those left in each of these clusters, who is mentioned most first; a super-topic has its topics'."""
    topics = [key for key, row in rows.items() if row["level"] == 1 and not touched.isdisjoint((key, row["parent"]))]
    names: dict[str, list[str]] = {key: [] for key in touched}
    if not topics:
        return names
    ids = [node_id("clusters", key) for key in sorted(topics)]
    where = [Term("_to", "in", ids), Term("type", "==", str(ClusterEdgeType.PART_OF))]
    edges = list(scan_rows(store, "cluster_edges", where=where, columns=["_from", "_to"]))
    members = {edge["_from"].partition("/")[2] for edge in edges}
    held = store.get("entities", sorted(members), columns=["_key", "name", "frequency"]).to_pylist()
    ranked = {node_id("entities", row["_key"]): (-row["frequency"], row["_key"], row["name"]) for row in held}
    found = [(ranked[edge["_from"]], edge["_to"]) for edge in edges if edge["_from"] in ranked]
    for (_, _, name), topic in sorted(found):
        for key in {topic.partition("/")[2], rows[topic.partition("/")[2]]["parent"]} & touched:
            names[key].append(name)
    return names


def _correct(row: Row, left: list[str], lost: int, stale: set[str], forgotten: set[str]) -> Row:
    """The row as what is left supports it; its metadata carries how many members went, also when none did."""
    kept = row["metadata"]
    terms = [term for term in kept.get("terms", ()) if _say(left, term)]
    name = _name(row["name"], bool(kept.get("terms")), left, forgotten)
    quotes = [quote for quote in kept.get("evidence", ()) if quote["chunk"] not in stale]
    same = name == row["name"] and terms == list(kept.get("terms", ())) and not stale
    said = {} if same else {"written_by": "", "written_from": ""}  # no model's words about what is gone
    return {
        "_key": row["_key"],
        "name": name,
        "summary": row["summary"] if same else " ".join(quote["text"] for quote in quotes),
        "size": len(left),
        "metadata": {**kept, "terms": terms, "evidence": quotes, **said, LOST: kept.get(LOST, 0) + lost},
    }


def _name(name: str, of_terms: bool, left: list[str], forgotten: set[str]) -> str:
    """The parts of a name that a member still bears out, or the name of the member mentioned most.

    A topic without terms is called after one member, or says that it has no place: only a forgotten name is replaced.
    """
    if of_terms:
        said = _BETWEEN.join(part for part in name.split(_BETWEEN) if _say(left, part))
    else:
        said = "" if name.casefold() in forgotten else name
    return said or next(iter(left), "")


def _say(names: Iterable[str], phrase: str) -> bool:
    """Whether one of the names has every word of a phrase."""
    asked = _words(phrase)
    return any(asked <= _words(name) for name in names)


@lru_cache(1 << 16)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


_BRIDGE_COLUMNS = ["_key", "nodes", "edges", "provenance"]


def correct_bridges(store: RowStore) -> Change:
    """Drop bridges whose nodes or edges are gone; name the present source of every edge of the others.

    A pinned bridge is kept while its edges stand, so a change of where an edge was read must not cost it.
    """
    rows = list(scan_rows(store, "bridge_cache", columns=_BRIDGE_COLUMNS))
    nodes = _standing(store, "entities", (node for row in rows for node in row["nodes"]), ["_key"])
    edges = _standing(store, "relations", (edge for row in rows for edge in row["edges"]), ["_key", "provenance"])
    broken, changed = [], []
    for row in rows:
        if not (set(row["nodes"]) <= nodes.keys() and set(row["edges"]) <= edges.keys()):
            broken.append(row["_key"])
        elif (now := _tell(row["provenance"], edges)) != row["provenance"]:
            changed.append({"_key": row["_key"], "provenance": now})
    if broken:
        store.delete("bridge_cache", keys=broken)
    if changed:
        store.patch("bridge_cache", as_table("bridge_cache", changed))
    return Change(changed=len(changed), removed=len(broken))


def _standing(
    store: RowStore, collection: str, identifiers: Iterable[str], columns: list[str]
) -> dict[str, dict[str, Any]]:
    keys = sorted({one.partition("/")[2] for one in identifiers})
    return {f"{collection}/{row['_key']}": row for row in store.get(collection, keys, columns=columns).to_pylist()}


def _tell(provenance: str, edges: Mapping[str, dict[str, Any]]) -> str:
    """The provenance with each edge's document and span as the relation has them now."""
    held = orjson.loads(provenance)
    steps = []
    for step in held.get("edges", ()):
        source = edges[step["id"]]["provenance"] or {"doc": "", "span": None}
        steps.append({**step, "doc": source["doc"], "span": source["span"]})
    return canonical_json({**held, "edges": steps})


# Logs of questions after a change of the graph: what was shown and is gone is blanked, how much was shown stays. A
# log holds ids, and the id of an entity tells its name. Ranks, scores and counts remain, so that judgements by rank
# and every figure over the logs stay as they were.
_ROWS = 4_096


def redact_logs(store: RowStore) -> Change:
    """Blank the paths and passages of each log that name a row which is no longer there."""
    changed = 0
    for batch in store.scan("query_logs", columns=["_key", "results"], batch_rows=_ROWS):
        shown = {row["_key"]: orjson.loads(row["results"]) for row in batch.to_pylist()}
        gone = _missing(store, (one for results in shown.values() for one in _find_ids(results)))
        rows = [
            {"_key": key, "results": canonical_json(_redact(results, gone))}
            for key, results in shown.items()
            if not gone.isdisjoint(_find_ids(results))
        ]
        if rows:
            store.patch("query_logs", as_table("query_logs", rows))
            changed += len(rows)
    return Change(changed=changed)


def blank_questions(store: RowStore, quotes: Sequence[str]) -> int:
    """Take away the words of questions that quote one of these passages; how many did."""
    rows = [
        {"_key": row["_key"], "query": FORGOTTEN}
        for row in scan_rows(store, "query_logs", columns=["_key", "query"])
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


JOURNAL = "cluster_membership_journal"
SWEPT = ("clusters", "cluster_edges", "bridge_cache", JOURNAL, "query_logs", "build_stages", EDITS)


def detach_entities(store: RowStore, gone: Sequence[str]) -> dict[str, Change]:
    """Take entities (keys) out of their topics; call it while their rows still tell their names."""
    changes = correct_topics(store, gone)
    # Keys are made of names, so even a bare audit of moves would tell what was forgotten: its rows go.
    for name in (JOURNAL, EDITS):
        changes[name] = Change(removed=store.delete(name, where=[Term("entity", "in", list(gone))]) if gone else 0)
    return changes
