"""Topics, bridges and logs after a removal: no row of a build, a query log or a journal refers to
what is gone.

Ingestion may not import the stages, so this works from the catalogue's rows alone. The stages then
find their ledger records reopened and bring their rows to what a build without the removed material
gives.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import orjson

from hades import build_state
from hades.build_state import EDITS
from hades.ingest.manifest import remove_nodes
from hades.ports.store import Row, RowStore, Term, scan_rows, scan_values
from schemas.catalogue import as_table, collection_named
from schemas.edges import ClusterEdgeType
from schemas.ids import key_of, node_id
from schemas.record import canonical_json
from schemas.telemetry import FORGOTTEN
from schemas.topics import LOST

_WORD = re.compile(r"\w+")
_COLUMNS = ["_key", "level", "name", "parent", "summary", "size", "metadata"]
_BETWEEN = ", "  # terms of a topic's name


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
    """Remove entities from their topics and update each topic to what its other members and its
    current quotes support.

    A topic that loses its last member is deleted, and a super-topic with its last topic. The
    centroid of a remaining topic is the average over its members at the last full build; it is
    updated by the next one.
    """
    rows = {row["_key"]: row for row in scan_rows(store, "clusters", columns=_COLUMNS)}
    for row in rows.values():
        row["metadata"] = orjson.loads(row["metadata"])
    leaving = [Term("_from", "in", [node_id("entities", key) for key in gone])]
    left_behind = scan_values(store, "cluster_edges", "_to", where=leaving) if gone else ()
    lost = Counter(key_of(target) for target in left_behind)
    edges = store.delete("cluster_edges", where=leaving) if gone else 0
    stale = _stale_quotes(store, rows)
    touched = {key for key in {*lost, *stale} if key in rows}
    touched |= {rows[key]["parent"] for key in touched} & rows.keys()
    member_names = _member_names(store, rows, touched)
    empty = sorted(key for key in touched if not member_names[key])
    remove_nodes(store, "clusters", empty)
    nonempty = sorted(touched.difference(empty))
    names = (
        store.get("entities", sorted(gone), columns=["name"])["name"].to_pylist()
        if nonempty
        else []
    )
    forgotten = {name.casefold() for name in names}
    corrected = [
        _correct(rows[key], member_names[key], lost[key], stale.get(key, set()), forgotten)
        for key in nonempty
    ]
    if corrected:
        rows_now = [{**row, "metadata": canonical_json(row["metadata"])} for row in corrected]
        store.patch("clusters", as_table("clusters", rows_now))
    hierarchy = build_state.complete(store, build_state.HIERARCHY) if corrected or empty else None
    if (
        hierarchy is not None
    ):  # its report names the biggest topics; the next build finds them again
        report = {**hierarchy.report, "biggest": []}
        build_state.record(
            store, hierarchy.stage, hierarchy.digest, hierarchy.generation, hierarchy.as_of, report
        )
    return {
        "clusters": Change(changed=len(corrected), removed=len(empty)),
        "cluster_edges": Change(removed=edges),
    }


def _stale_quotes(store: RowStore, rows: dict[str, Row]) -> dict[str, set[str]]:
    """Chunks that a cluster quotes and that are gone or have another text, by cluster."""
    quoted: dict[str, set[tuple[str, str]]] = {}
    for key, row in rows.items():
        evidence = row["metadata"].get("evidence", ())
        quoted[key] = {(quote["chunk"], quote["sha256"]) for quote in evidence}
    chunk_keys = sorted({chunk for chunk, _ in chain.from_iterable(quoted.values())})
    chunks = store.get("doc_chunks", chunk_keys, columns=["_key", "sha256"]).to_pylist()
    current = {(row["_key"], row["sha256"]) for row in chunks}
    stale: dict[str, set[str]] = {}
    for key, quotes in quoted.items():
        if not quotes <= current:
            stale[key] = {chunk for chunk, _ in quotes - current}
    return stale


def _member_names(store: RowStore, rows: dict[str, Row], touched: Set[str]) -> dict[str, list[str]]:
    """The names of the entities left in each touched cluster, most mentioned first; a super-topic
    has those of its topics.
    """
    topics = [
        key
        for key, row in rows.items()
        if row["level"] == 1 and not touched.isdisjoint((key, row["parent"]))
    ]
    names: dict[str, list[str]] = {key: [] for key in touched}
    if not topics:
        return names
    ids = [node_id("clusters", key) for key in sorted(topics)]
    where = [Term("_to", "in", ids), Term("type", "==", str(ClusterEdgeType.PART_OF))]
    edges = list(scan_rows(store, "cluster_edges", where=where, columns=["_from", "_to"]))
    members = {key_of(edge["_from"]) for edge in edges}
    entities = store.get(
        "entities", sorted(members), columns=["_key", "name", "frequency"]
    ).to_pylist()
    ranked = {
        node_id("entities", row["_key"]): (-row["frequency"], row["_key"], row["name"])
        for row in entities
    }
    memberships = [
        (ranked[edge["_from"]], edge["_to"]) for edge in edges if edge["_from"] in ranked
    ]
    for (_, _, name), topic in sorted(memberships):
        topic_key = key_of(topic)
        for key in {topic_key, rows[topic_key]["parent"]} & touched:
            names[key].append(name)
    return names


def _correct(
    row: Row, member_names: list[str], lost: int, stale: set[str], forgotten: set[str]
) -> Row:
    """The row as the remaining members and quotes support it; its metadata says how many members
    were removed, 0 included.
    """
    metadata = row["metadata"]
    terms = [term for term in metadata.get("terms", ()) if _is_supported(member_names, term)]
    name = _correct_name(row["name"], bool(metadata.get("terms")), member_names, forgotten)
    quotes = [quote for quote in metadata.get("evidence", ()) if quote["chunk"] not in stale]
    is_same = name == row["name"] and terms == list(metadata.get("terms", ())) and not stale
    # A text that a model wrote about what is gone does not stay.
    cleared_fields = {} if is_same else {"written_by": "", "written_from": ""}
    return {
        "_key": row["_key"],
        "name": name,
        "summary": row["summary"] if is_same else " ".join(quote["text"] for quote in quotes),
        "size": len(member_names),
        "metadata": {
            **metadata,
            "terms": terms,
            "evidence": quotes,
            **cleared_fields,
            LOST: metadata.get(LOST, 0) + lost,
        },
    }


def _correct_name(name: str, of_terms: bool, member_names: list[str], forgotten: set[str]) -> str:
    """The parts of a name that a member still supports, or the name of the member mentioned most.

    A topic without terms is named after one member: its name is replaced only where that member was
    forgotten.
    """
    if of_terms:
        supported_name = _BETWEEN.join(
            part for part in name.split(_BETWEEN) if _is_supported(member_names, part)
        )
    else:
        supported_name = "" if name.casefold() in forgotten else name
    return supported_name or next(iter(member_names), "")


def _is_supported(names: Iterable[str], phrase: str) -> bool:
    """Whether one of the names has every word of a phrase."""
    phrase_words = _words(phrase)
    return any(phrase_words <= _words(name) for name in names)


@lru_cache(1 << 16)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


_BRIDGE_COLUMNS = ["_key", "nodes", "edges", "provenance"]


def correct_bridges(store: RowStore) -> Change:
    """Delete bridges whose nodes or edges are gone; update the source of every edge of the others.

    A pinned bridge is kept while its edges exist, so it is not deleted where only the source of an
    edge changed.
    """
    rows = list(scan_rows(store, "bridge_cache", columns=_BRIDGE_COLUMNS))
    nodes = _existing_rows(
        store, "entities", chain.from_iterable(row["nodes"] for row in rows), ["_key"]
    )
    edge_ids = chain.from_iterable(row["edges"] for row in rows)
    edges = _existing_rows(store, "relations", edge_ids, ["_key", "provenance"])
    broken, changed = [], []
    for row in rows:
        if not (set(row["nodes"]) <= nodes.keys() and set(row["edges"]) <= edges.keys()):
            broken.append(row["_key"])
        elif (provenance := _refresh_provenance(row["provenance"], edges)) != row["provenance"]:
            changed.append({"_key": row["_key"], "provenance": provenance})
    if broken:
        store.delete("bridge_cache", keys=broken)
    if changed:
        store.patch("bridge_cache", as_table("bridge_cache", changed))
    return Change(changed=len(changed), removed=len(broken))


def _existing_rows(
    store: RowStore, collection: str, identifiers: Iterable[str], columns: list[str]
) -> dict[str, Row]:
    keys = sorted({key_of(identifier) for identifier in identifiers})
    return {
        f"{collection}/{row['_key']}": row
        for row in store.get(collection, keys, columns=columns).to_pylist()
    }


def _refresh_provenance(provenance: str, edges: Mapping[str, Row]) -> str:
    """The provenance with each edge's document and span as the relation has them now."""
    fields = orjson.loads(provenance)
    steps = []
    for step in fields.get("edges", ()):
        source = edges[step["id"]]["provenance"] or {"doc": "", "span": None}
        steps.append({**step, "doc": source["doc"], "span": source["span"]})
    return canonical_json({**fields, "edges": steps})


# Query logs after a change of the graph: results that are gone are blanked, their number stays. A
# log holds ids, and the id of an entity contains its name. Ranks, scores and counts remain, so that
# judgements by rank and every figure over the logs stay as they were.
_ROWS = 4_096


def redact_logs(store: RowStore) -> Change:
    """Blank the paths and passages of each log that name a row which is no longer there."""
    changed = 0
    for batch in store.scan("query_logs", columns=["_key", "results"], batch_rows=_ROWS):
        shown = {row["_key"]: orjson.loads(row["results"]) for row in batch.to_pylist()}
        gone = _missing(store, chain.from_iterable(map(_find_ids, shown.values())))
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
    """Blank the questions that quote one of these passages; returns how many."""
    rows = [
        {"_key": row["_key"], "query": FORGOTTEN}
        for row in scan_rows(store, "query_logs", columns=["_key", "query"])
        if any(quote in row["query"] for quote in quotes)
    ]
    if rows:
        store.patch("query_logs", as_table("query_logs", rows))
    return len(rows)


def _find_ids(results: Row) -> set[str]:
    """Ids of what a log showed; not of topics, whose keys tell nothing and may change with every
    full build.
    """
    passage_ids = {passage["id"] for passage in results.get("passages", ())}
    return passage_ids.union(*map(_path_ids, results.get("paths", ())))


def _path_ids(path: Row) -> list[str]:
    return [*path["nodes"], *path["edges"]]


def _redact(results: Row, gone: set[str]) -> Row:
    blank_path = {"nodes": [], "edges": [], "why": FORGOTTEN}
    paths = [
        path if gone.isdisjoint(_path_ids(path)) else path | blank_path
        for path in results.get("paths", ())
    ]
    passages = [
        passage | {"id": FORGOTTEN} if passage["id"] in gone else passage
        for passage in results.get("passages", ())
    ]
    return {**results, "paths": paths, "passages": passages}


def _missing(store: RowStore, identifiers: Iterable[str]) -> set[str]:
    """Ids that name no row; text that is no id of a collection names nothing and is left alone."""
    keys_by_collection: dict[str, set[str]] = {}
    for identifier in identifiers:
        collection, _, key = identifier.partition("/")
        if key and collection_named(collection):
            keys_by_collection.setdefault(collection, set()).add(key)
    gone = set()
    for collection, keys in sorted(keys_by_collection.items()):
        present_keys = set(
            store.get(collection, sorted(keys), columns=["_key"])["_key"].to_pylist()
        )
        gone |= {f"{collection}/{key}" for key in keys - present_keys}
    return gone


JOURNAL = "cluster_membership_journal"
SWEPT = ("clusters", "cluster_edges", "bridge_cache", JOURNAL, "query_logs", "build_stages", EDITS)


def detach_entities(store: RowStore, gone: Sequence[str]) -> dict[str, Change]:
    """Remove entities (keys) from their topics; call it while their rows still hold their names."""
    changes = correct_topics(store, gone)
    # Keys are made of names, so rows of the journal would still show what was forgotten.
    where = [Term("entity", "in", list(gone))]
    for name in (JOURNAL, EDITS):
        changes[name] = Change(removed=store.delete(name, where=where) if gone else 0)
    return changes
