"""Topics, bridges and logs after a removal: no row of a build, a query log or a journal refers to
what is gone.

Ingestion may not import the stages, so this works from the catalogue's rows alone. The stages then
find their ledger records reopened and bring their rows to what a build without the removed material
gives.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import orjson

from hades import stage_ledger
from hades.entity_edits import EDITS
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

    leaving = [
        Term(
            "_from",
            "in",
            [node_id("entities", key) for key in gone],
        )
    ]
    left_behind = (
        scan_values(
            store,
            "cluster_edges",
            "_to",
            where=leaving,
        )
        if gone
        else ()
    )
    lost = Counter(key_of(target) for target in left_behind)
    edges = store.delete("cluster_edges", where=leaving) if gone else 0
    stale = _stale_quotes(store, rows)
    touched = {key for key in {*lost, *stale} if key in rows}
    touched |= {rows[key]["parent"] for key in touched} & rows.keys()
    member_names = _member_names(store, rows, touched)
    empty = sorted(key for key in touched if not member_names[key])
    remove_nodes(store, "clusters", empty)
    nonempty = sorted(touched.difference(empty))
    forgotten: set[str] = set()

    if nonempty:
        names = store.get(
            "entities",
            sorted(gone),
            columns=["name"],
        )["name"]
        forgotten.update(map(str.casefold, names.to_pylist()))

    corrected = []
    for key in nonempty:
        members, stale_chunks = member_names[key], stale.get(key, set())
        corrected.append(
            _correct(
                rows[key],
                members,
                lost[key],
                stale_chunks,
                forgotten,
            )
        )

    _patch(store, "clusters", corrected)
    hierarchy = stage_ledger.last_completion(store, stage_ledger.HIERARCHY)
    if touched and hierarchy is not None:
        # Its report names the biggest topics; the next build finds them again.
        report = {**hierarchy.report, "biggest": []}
        stage_ledger.record(
            store,
            hierarchy.stage,
            hierarchy.digest,
            hierarchy.generation,
            hierarchy.as_of,
            report,
        )

    return {
        "clusters": Change(changed=len(nonempty), removed=len(empty)),
        "cluster_edges": Change(removed=edges),
    }


def _patch(
    store: RowStore,
    collection: str,
    rows: Sequence[Row],
) -> None:
    """Change these columns of rows, where there are any."""
    if rows:
        store.patch(collection, as_table(collection, rows))


def _stale_quotes(store: RowStore, rows: dict[str, Row]) -> dict[str, set[str]]:
    """Chunks that a cluster quotes and that are gone or have another text, by cluster."""
    quoted: dict[str, set[tuple[str, str]]] = {}
    for key, row in rows.items():
        evidence = row["metadata"].get("evidence", ())
        quoted[key] = {(quote["chunk"], quote["sha256"]) for quote in evidence}

    chunk_keys = sorted({chunk for chunk, _ in chain.from_iterable(quoted.values())})
    chunks = store.get(
        "doc_chunks",
        chunk_keys,
        columns=["_key", "sha256"],
    ).to_pylist()
    current = {(row["_key"], row["sha256"]) for row in chunks}

    stale: dict[str, set[str]] = {}
    for key, quotes in quoted.items():
        if not quotes <= current:
            stale[key] = {chunk for chunk, _ in quotes - current}

    return stale


def _member_names(
    store: RowStore,
    rows: dict[str, Row],
    touched: Set[str],
) -> dict[str, list[str]]:
    """The names of the entities left in each touched cluster, most mentioned first; a super-topic
    has those of its topics.
    """
    topics = []
    for key, row in rows.items():
        if row["level"] == 1 and not touched.isdisjoint((key, row["parent"])):
            topics.append(node_id("clusters", key))

    names: dict[str, list[str]] = {key: [] for key in touched}
    if not topics:
        return names

    where = [Term("_to", "in", sorted(topics)), Term("type", "==", str(ClusterEdgeType.PART_OF))]
    topics_of: dict[str, list[str]] = defaultdict(list)
    for edge in scan_rows(
        store,
        "cluster_edges",
        where=where,
        columns=["_from", "_to"],
    ):
        topics_of[key_of(edge["_from"])].append(key_of(edge["_to"]))

    columns = ["_key", "name", "frequency"]
    entities = store.get(
        "entities",
        sorted(topics_of),
        columns=columns,
    ).to_pylist()
    for row in sorted(
        entities,
        key=lambda row: (-row["frequency"], row["_key"]),
    ):
        for topic in sorted(topics_of[row["_key"]]):
            for key in {topic, rows[topic]["parent"]} & touched:
                names[key].append(row["name"])

    return names


def _correct(
    row: Row,
    member_names: list[str],
    lost: int,
    stale: set[str],
    forgotten: set[str],
) -> Row:
    """The row as the remaining members and quotes support it; its metadata says how many members
    were removed, 0 included.
    """
    metadata = row["metadata"]

    terms = []
    for term in metadata.get("terms", ()):
        if _is_supported(member_names, term):
            terms.append(term)

    name = _correct_name(
        row["name"],
        bool(metadata.get("terms")),
        member_names,
        forgotten,
    )
    quotes = []
    for quote in metadata.get("evidence", ()):
        if quote["chunk"] not in stale:
            quotes.append(quote)

    is_same = name == row["name"] and terms == list(metadata.get("terms", ())) and not stale
    # A text that a model wrote about what is gone does not stay.
    if is_same:
        cleared_fields = {}
    else:
        cleared_fields = {"written_by": "", "written_from": ""}

    counted = {
        "terms": terms,
        "evidence": quotes,
        LOST: metadata.get(LOST, 0) + lost,
    }
    return {
        "_key": row["_key"],
        "name": name,
        "summary": row["summary"] if is_same else " ".join(quote["text"] for quote in quotes),
        "size": len(member_names),
        "metadata": canonical_json(
            {
                **metadata,
                **counted,
                **cleared_fields,
            }
        ),
    }


def _correct_name(
    name: str,
    of_terms: bool,
    member_names: list[str],
    forgotten: set[str],
) -> str:
    """The parts of a name that a member still supports, or the name of the member mentioned most.

    A topic without terms is named after one member: its name is replaced only where that member was
    forgotten.
    """
    if of_terms:
        parts = []
        for part in name.split(_BETWEEN):
            if _is_supported(member_names, part):
                parts.append(part)

        name = _BETWEEN.join(parts)
    elif name.casefold() in forgotten:
        name = ""

    return name or next(iter(member_names), "")


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
    rows = list(
        scan_rows(
            store,
            "bridge_cache",
            columns=_BRIDGE_COLUMNS,
        )
    )
    node_ids = set().union(*(row["nodes"] for row in rows))
    nodes = _existing_rows(
        store,
        "entities",
        node_ids,
        ["_key"],
    )
    edge_ids = set().union(*(row["edges"] for row in rows))
    edges = _existing_rows(
        store,
        "relations",
        edge_ids,
        ["_key", "provenance"],
    )
    broken = []

    changed = []
    for row in rows:
        if not (set(row["nodes"]) <= nodes.keys() and set(row["edges"]) <= edges.keys()):
            broken.append(row["_key"])
        elif (provenance := _refresh_provenance(row["provenance"], edges)) != row["provenance"]:
            changed.append(
                {
                    "_key": row["_key"],
                    "provenance": provenance,
                }
            )

    if broken:
        store.delete("bridge_cache", keys=broken)

    _patch(store, "bridge_cache", changed)
    return Change(changed=len(changed), removed=len(broken))


def _existing_rows(
    store: RowStore,
    collection: str,
    identifiers: Set[str],
    columns: list[str],
) -> dict[str, Row]:
    rows = store.get(
        collection,
        sorted(map(key_of, identifiers)),
        columns=columns,
    ).to_pylist()
    return {node_id(collection, row["_key"]): row for row in rows}


def _refresh_provenance(provenance: str, edges: Mapping[str, Row]) -> str:
    """The provenance with each edge's document and span as the relation has them now."""
    fields = orjson.loads(provenance)

    steps = []
    for step in fields.get("edges", ()):
        source = edges[step["id"]]["provenance"] or {"doc": "", "span": None}
        steps.append(
            {
                **step,
                "doc": source["doc"],
                "span": source["span"],
            }
        )

    return canonical_json({**fields, "edges": steps})


# Query logs after a change of the graph: results that are gone are blanked, their number stays. A
# log holds ids, and the id of an entity contains its name. Ranks, scores and counts remain, so that
# judgements by rank and every figure over the logs stay as they were.
_ROWS = 4_096


def redact_logs(store: RowStore) -> Change:
    """Blank the paths and passages of each log that name a row which is no longer there."""
    changed = 0
    for batch in store.scan(
        "query_logs",
        columns=["_key", "results"],
        batch_rows=_ROWS,
    ):
        shown = {}
        for row in batch.to_pylist():
            shown[row["_key"]] = orjson.loads(row["results"])

        gone = _missing(store, chain.from_iterable(map(_find_ids, shown.values())))
        rows = []
        for key, results in shown.items():
            if not gone.isdisjoint(_find_ids(results)):
                rows.append(
                    {
                        "_key": key,
                        "results": canonical_json(_redact(results, gone)),
                    }
                )

        _patch(store, "query_logs", rows)
        changed += len(rows)

    return Change(changed=changed)


def blank_questions(store: RowStore, quotes: Sequence[str]) -> int:
    """Blank the questions that quote one of these passages; returns how many."""
    logs = scan_rows(
        store,
        "query_logs",
        columns=["_key", "query"],
    )

    quoting = []
    for row in logs:
        if any(map(row["query"].__contains__, quotes)):
            quoting.append(row["_key"])

    rows = [{"_key": key, "query": FORGOTTEN} for key in quoting]
    _patch(store, "query_logs", rows)
    return len(rows)


def _find_ids(results: Row) -> set[str]:
    """Ids of what a log showed; not of topics, whose keys tell nothing and may change with every
    full build.
    """
    passage_ids = set()
    for passage in results.get("passages", ()):
        passage_ids.add(passage["id"])

    return passage_ids.union(*map(_path_ids, results.get("paths", ())))


def _path_ids(path: Row) -> list[str]:
    return [*path["nodes"], *path["edges"]]


def _redact(results: Row, gone: set[str]) -> Row:
    paths = []
    for path in results.get("paths", ()):
        paths.append(_redact_path(path, gone))

    passages = []
    for passage in results.get("passages", ()):
        passages.append(_redact_passage(passage, gone))

    return {
        **results,
        "paths": paths,
        "passages": passages,
    }


def _redact_path(path: Row, gone: set[str]) -> Row:
    if gone.isdisjoint(_path_ids(path)):
        return path
    return {
        **path,
        "nodes": [],
        "edges": [],
        "why": FORGOTTEN,
    }


def _redact_passage(passage: Row, gone: set[str]) -> Row:
    if passage["id"] in gone:
        return {**passage, "id": FORGOTTEN}
    return passage


def _missing(store: RowStore, identifiers: Iterable[str]) -> set[str]:
    """Ids that name no row; text that is no id of a collection names nothing and is left alone."""
    keys_by_collection: dict[str, set[str]] = {}
    for identifier in identifiers:
        collection, _, key = identifier.partition("/")
        if key and collection_named(collection):
            keys_by_collection.setdefault(collection, set()).add(key)

    gone = set()
    for collection, keys in sorted(keys_by_collection.items()):
        stored = store.get(
            collection,
            sorted(keys),
            columns=["_key"],
        )["_key"].to_pylist()
        gone |= {node_id(collection, key) for key in keys.difference(stored)}

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
