"""Topics after members or quoted texts are gone: they count, name and quote what is left until the next build."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.build_state import ledger
from hades.ingest.manifest import as_table
from hades.ingest.remove_nodes import remove_nodes
from hades.ingest.sync_rows import Change
from hades.ports.store import Direction, RowStore, Term
from schemas.edges import ClusterEdgeType
from schemas.hierarchy import LOST
from schemas.ids import node_id
from schemas.record import canonical_json

_WORD = re.compile(r"\w+")
_COLUMNS = ["_key", "level", "name", "parent", "summary", "size", "metadata"]
_UPWARD = [str(kind) for kind in ClusterEdgeType if kind is not ClusterEdgeType.SIBLING_OF]
_ALL = 1_000_000_000  # edges of one topic
_BETWEEN = ", "  # terms of a topic's name

Row = dict[str, Any]


@dataclass(frozen=True)
class StandingRows:
    """What topics may lean on: chunks (_key, sha256) and entities (_key, name, frequency) as they are from now on."""

    chunks: pa.Table
    entities: pa.Table


def correct_topics(store: RowStore, gone: Sequence[str], standing: StandingRows) -> dict[str, Change]:
    """Take entities out of their topics and bring each topic to what its other members and standing quotes say.

    A topic that loses its last member goes, and a super-topic with its last topic. The centroid of one that stays is
    an average over its members at the last full build; it stands until the next one.
    """
    rows = {row["_key"]: row for batch in store.scan("clusters", columns=_COLUMNS) for row in batch.to_pylist()}
    for row in rows.values():
        row["metadata"] = orjson.loads(row["metadata"])
    lost, edges = _leave(store, gone)
    empty = _remove_empty(store, rows, lost)
    stale = _stale_quotes(rows, standing.chunks)
    touched = {key for key in {*lost, *stale} if key in rows}
    touched |= {rows[key]["parent"] for key in touched} & rows.keys()
    touched |= {row["parent"] for row in empty} & rows.keys()
    forgotten = _names(store.get("entities", sorted(gone), columns=["_key", "name"]).to_pylist()) if touched else set()
    left = _left(store, rows, touched, standing.entities)
    corrected = [_correct(rows[key], left[key], lost[key], stale.get(key, set()), forgotten) for key in sorted(touched)]
    if corrected:
        store.patch("clusters", as_table("clusters", [_store(row) for row in corrected]))
    if corrected or empty:
        _tell_ledger(store, {row["_key"]: row["name"] for row in corrected}, empty, lost)
    return {"clusters": Change(changed=len(corrected), removed=len(empty)), "cluster_edges": Change(removed=edges)}


@dataclass(frozen=True)
class _Members:
    """The names of those left in a cluster, who is mentioned most first, and the words of each."""

    names: list[str]
    words: list[set[str]]

    def say(self, phrase: str) -> bool:
        """Whether one of them has every word of a phrase in its name."""
        asked = _words(phrase)
        return any(asked <= words for words in self.words)


def _leave(store: RowStore, gone: Sequence[str]) -> tuple[Counter[str], int]:
    """Delete the edges from these entities up to their topics; how many each topic lost, and edges removed."""
    members = [node_id("entities", key) for key in gone]
    if not members:
        return Counter(), 0
    where = [Term("_from", "in", members)]
    lost = Counter(
        target.partition("/")[2]
        for batch in store.scan("cluster_edges", where=where, columns=["_to"])
        for target in batch.column("_to").to_pylist()
    )
    return lost, store.delete("cluster_edges", where=where)


def _remove_empty(store: RowStore, rows: dict[str, Row], lost: Iterable[str]) -> list[Row]:
    """Delete topics without a member and super-topics without a topic, from the store and from `rows`."""
    removed: list[Row] = []
    asked = set(lost)
    while asked:
        ids = [node_id("clusters", key) for key in sorted(asked)]
        below = store.neighbours(ids, edges="cluster_edges", direction=Direction.IN, types=_UPWARD, fanout=1)
        held = {target.partition("/")[2] for target in below.column("node").to_pylist()}
        bare = sorted((asked - held) & rows.keys())
        remove_nodes(store, "clusters", bare)
        removed += [rows.pop(key) for key in bare]
        asked = {row["parent"] for row in removed if row["parent"] in rows} if bare else set()
    return removed


def _stale_quotes(rows: dict[str, Row], chunks: pa.Table) -> dict[str, set[str]]:
    """Chunks that a cluster quotes and that are gone or read otherwise, by cluster."""
    quoted = {
        (quote["chunk"], quote["sha256"]) for row in rows.values() for quote in row["metadata"].get("evidence", ())
    }
    asked = pa.array(sorted({chunk for chunk, _ in quoted}), pa.string())
    held = chunks.filter(pc.is_in(chunks.column("_key"), value_set=asked))
    standing = zip(held.column("_key").to_pylist(), held.column("sha256").to_pylist(), strict=True)
    gone = {chunk for chunk, _ in quoted.difference(standing)}
    by_cluster = {
        key: {quote["chunk"] for quote in row["metadata"].get("evidence", ())} & gone for key, row in rows.items()
    }
    return {key: chunks for key, chunks in by_cluster.items() if chunks}


def _left(store: RowStore, rows: dict[str, Row], touched: Set[str], entities: pa.Table) -> dict[str, _Members]:
    """Who is left in each of these clusters; those of a super-topic are in its topics.

    Members are read from the edges, which a store keeps by their ends, and their names from the rows given: a
    super-topic may hold a large part of all entities.
    """
    topics = {key for key, row in rows.items() if row["level"] == 1 and not touched.isdisjoint((key, row["parent"]))}
    members: dict[str, list[str]] = {key: [] for key in touched}
    words: dict[str, list[set[str]]] = {key: [] for key in touched}
    for name, topic in _rank_members(store, sorted(topics), entities):
        said = _words(name)
        for key in {topic, rows[topic]["parent"]} & touched:
            members[key].append(name)
            words[key].append(said)
    return {key: _Members(members[key], words[key]) for key in touched}


def _rank_members(store: RowStore, topics: Sequence[str], entities: pa.Table) -> Iterator[tuple[str, str]]:
    """The name and topic of each member that stands, the one mentioned most first."""
    ids = [node_id("clusters", key) for key in topics]
    if not ids:
        return
    part_of = [str(ClusterEdgeType.PART_OF)]
    edges = store.neighbours(ids, edges="cluster_edges", direction=Direction.IN, types=part_of, fanout=_ALL)
    members = pc.replace_substring(edges.column("neighbour"), "entities/", "", max_replacements=1)
    place = pc.index_in(members, value_set=entities.column("_key").combine_chunks())
    stands = pc.is_valid(place)
    found = entities.select(["_key", "name", "frequency"]).take(place.filter(stands))
    found = found.append_column("topic", edges.column("node").filter(stands))
    for row in found.sort_by([("frequency", "descending"), ("_key", "ascending")]).to_pylist():
        yield row["name"], row["topic"].partition("/")[2]


def _correct(row: Row, left: _Members, lost: int, stale: set[str], forgotten: set[str]) -> Row:
    """The row as what is left supports it; its metadata carries how many members went, also when none did."""
    kept = row["metadata"]
    terms = [term for term in kept.get("terms", ()) if left.say(term)]
    name = _name(row["name"], bool(kept.get("terms")), left, forgotten)
    quotes = [quote for quote in kept.get("evidence", ()) if quote["chunk"] not in stale]
    same = name == row["name"] and terms == list(kept.get("terms", ())) and not stale
    said = {} if same else {"written_by": "", "written_from": ""}  # no model's words about what is gone
    return {
        "_key": row["_key"],
        "name": name,
        "summary": row["summary"] if same else " ".join(quote["text"] for quote in quotes),
        "size": len(left.names),
        "metadata": {**kept, "terms": terms, "evidence": quotes, **said, LOST: kept.get(LOST, 0) + lost},
    }


def _name(name: str, of_terms: bool, left: _Members, forgotten: set[str]) -> str:
    """The parts of a name that a member still bears out, or the name of the member mentioned most.

    A topic without terms is called after one member, or says that it has no place: only a forgotten name is replaced.
    """
    if of_terms:
        said = _BETWEEN.join(part for part in name.split(_BETWEEN) if left.say(part))
    else:
        said = "" if name.casefold() in forgotten else name
    return said or (left.names[0] if left.names else "")


def _tell_ledger(store: RowStore, names: dict[str, str], empty: Sequence[Row], lost: Counter[str]) -> None:
    """The report of the last build names its biggest topics, and the next one counts changes from it."""
    done = ledger.complete(store, ledger.HIERARCHY)
    if done is None:
        return
    went = {row["_key"] for row in empty}
    biggest = [
        {**one, "name": names.get(one["cluster"], one["name"])}
        for one in done.report.get("biggest", ())
        if one["cluster"] not in went
    ]
    changed = done.report.get("changed_since_full", 0) + sum(lost[key] for key in went)
    ledger.record(store, replace(done, report={**done.report, "biggest": biggest, "changed_since_full": changed}))


def _store(row: Row) -> Row:
    return {**row, "metadata": canonical_json(row["metadata"])}


def _names(rows: Iterable[Row]) -> set[str]:
    return {row["name"].casefold() for row in rows}


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))
