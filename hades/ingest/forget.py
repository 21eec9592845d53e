"""Remove documents, and find what they left."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path, PurePath

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.errors import HadesError
from hades.ingest import manifest
from hades.ingest.cleanup import blank_questions
from hades.ingest.edges import derive_edges
from hades.ingest.entities.tables import values_of
from hades.ingest.manifest import OWNED_BY_DOCUMENT, keys_of_documents, known, remove_nodes
from hades.ingest.sources.material import RejectReason
from hades.ingest.stated_edges import remove_unused
from hades.ports.services import Embedder
from hades.ports.store import GraphStore, RowStore, Term, scan_rows, scan_values
from schemas.builds import ManifestEntry
from schemas.catalogue import COLLECTIONS, NAMES, Collection, edge_collections
from schemas.ids import key_of, node_id
from schemas.record import JsonObject
from schemas.sources import SourceSpec

# Traces of documents anywhere in the store: their ids, the ids of what went with them, and runs of
# their words. Every column of every collection that can hold text is read, whatever the collection
# is for, so one that is added to the catalogue tomorrow is searched as well.

RUN_WORDS, RUN_CHARS = 6, 24  # a run of words long enough to be a quotation
RUNS_OF_DOCUMENT, RUNS_IN_ALL = 64, 4_096
_AT_ONCE = 100  # alternatives of one pattern: more and RE2 leaves its fast path
_IN_KEYS = r"A-Za-z0-9_\-.@()+,=;$!*'%"
_HASHED = re.compile(r"-[0-9a-f]{10}$")
_PLAIN = re.compile(r'[^"\\\x00-\x1f\x7f\ud800-\udfff]+')  # what JSON writes as it is
_WORDS = re.compile(r"\S+")
_LETTERS = re.compile(r"[^\W_]+")
_SHORTEST_WORD = 4  # letters; a shorter word is too common to tell of one document


def _collect_traces(
    store: RowStore,
    documents: Sequence[str],
) -> tuple[list[str], dict[str, str], list[str]]:
    """What would tell of documents (keys): keys of their rows, entities by key that may go with
    them, runs of words.
    """
    owned = {}
    for name in OWNED_BY_DOCUMENT:
        owned[name] = keys_of_documents(store, name, documents)

    chunks = []
    for key in sorted(owned["doc_chunks"]):
        chunks.append(node_id("doc_chunks", key))

    mentioned = scan_values(
        store,
        "mentions",
        "_to",
        where=[Term("_from", "in", chunks)],
    )
    entity_keys = sorted({key_of(target) for target in mentioned})
    entities = store.get(
        "entities",
        entity_keys,
        columns=["_key", "name"],
    )
    names = dict(values_of(entities, "_key", "name"))
    texts = store.get(
        "documents",
        list(documents),
        columns=["text"],
    )["text"].to_pylist()
    run_limit = min(RUNS_OF_DOCUMENT, max(1, RUNS_IN_ALL // max(1, len(texts))))

    runs: dict[str, None] = {}
    for text in texts:
        runs |= dict.fromkeys(runs_of(text, run_limit))

    return sorted(set(documents).union(*owned.values())), names, list(runs)


def find_traces(
    store: RowStore,
    rows: Sequence[str],
    entities: Sequence[str],
    relations: Sequence[str],
    runs: Sequence[str],
) -> dict[str, list[str]]:
    """Keys of the rows that still hold one of these, by collection; collections without any are
    left out.
    """
    hashed = []
    for key in entities:
        if _HASHED.search(key):
            hashed.append(key)

    ids = [*rows, *relations, *hashed, *(node_id("entities", key) for key in entities)]
    whole = []
    for anyone in _alternatives(ids):
        whole.append(rf"(?:^|[^{_IN_KEYS}]){anyone}(?:$|[^{_IN_KEYS}])")

    patterns = [*whole, *_alternatives(runs)]
    traces: dict[str, list[str]] = {}
    for collection in COLLECTIONS:
        if keys := [*_rows_with(store, collection, patterns, {*entities})]:
            traces[collection.name] = keys

    return traces


def runs_of(text: str, limit: int) -> list[str]:
    """Runs of six words as they stand in one line of a text, spread over it; none of a text of a
    few words.
    """
    runs = []
    for line in _PLAIN.finditer(text):
        words = [word.span() for word in _WORDS.finditer(line.group())]
        for first in range(0, len(words) - RUN_WORDS + 1, RUN_WORDS):
            run = line.group()[words[first][0] : words[first + RUN_WORDS - 1][1]]
            if len(run) >= RUN_CHARS:
                runs.append(run)

    step = max(1, -(-len(runs) // limit))
    return runs[::step]


def _alternatives(texts: Sequence[str]) -> list[str]:
    quoted = [rf"\Q{text}\E" for text in texts]
    starts = range(0, len(quoted), _AT_ONCE)

    alternatives = []
    for start in starts:
        alternatives.append(f"(?:{'|'.join(quoted[start : start + _AT_ONCE])})")

    return alternatives


def _rows_with(
    store: RowStore,
    collection: Collection,
    patterns: Sequence[str],
    entities: set[str],
) -> Iterator[str]:
    """Keys of rows with a pattern in any text; bare keys of entities are common words and count in
    their columns.
    """
    columns = [column.name for column in collection.columns if not column.is_vector]
    of_entities = [name for name in columns if "entity" in name or "entities" in name]

    for batch in store.scan(collection.name, columns=columns):
        rows = batch.to_pylist()
        texts = pa.array(["\n".join(_texts(row)) for row in rows], pa.string())
        has_trace = np.zeros(len(rows), np.bool_)

        for number, row in enumerate(rows):
            named = _texts([row[name] for name in of_entities])
            has_trace[number] = not entities.isdisjoint(named)

        for pattern in patterns:
            has_trace |= pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)

        yield from batch["_key"].filter(pa.array(has_trace)).to_pylist()


def _texts(value: object) -> Iterator[str]:
    """Every text within a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _absent(
    store: RowStore,
    collection: str,
    keys: Sequence[str],
) -> list[str]:
    stored = store.get(collection, list(keys), columns=["_key"])["_key"].to_pylist()
    present_keys = set(stored)
    return [key for key in keys if key not in present_keys]


def _find_own_runs(store: RowStore, runs: Sequence[str]) -> list[str]:
    """The runs that no other document holds: a run that several hold is no trace of one."""
    own_runs = list(runs)
    for text in scan_values(store, "documents", "text") if runs else ():
        own_runs = [run for run in own_runs if run not in text]

    return own_runs


def words_of(text: str) -> Iterator[str]:
    """The words of a text in lower case: letters alone, so no numbers and no hashes."""
    for word in _LETTERS.findall(text):
        if len(word) >= _SHORTEST_WORD and word.isalpha():
            yield word.casefold()


def find_own_words(store: RowStore, ids: Sequence[str]) -> set[str]:
    """Words of these documents, their titles and their ids that no other document writes."""
    keys = {resolve(store, identifier) for identifier in ids}
    columns = ["_key", "origin", "title", "text"]
    documents = store.get(
        "documents",
        sorted(keys),
        columns=columns,
    ).to_pylist()

    words: set[str] = set()
    for row in documents:
        words.update(words_of(f"{row['origin']} {row['title']} {row['text']}"))

    for row in scan_rows(store, "documents", columns=columns) if words else ():
        if row["_key"] not in keys:
            words.difference_update(words_of(f"{row['title']} {row['text']}"))

    return words


def sources_holding(store: RowStore, forgotten: Iterable[ManifestEntry]) -> list[str]:
    """Files that the next build would read these documents from; a file of many documents may hold
    them.

    Forgetting changes the store and never a source: the document has to be taken out there as well.
    """
    places = set()
    for spec, entry in product(known(store), forgotten):
        places.add(_place_of(spec, entry))

    return sorted(filter(None, places))


def drop_quarantined(store: RowStore, forgotten: Iterable[ManifestEntry]) -> list[str]:
    """Remove what was set aside of these documents; copies of their text, which would be read in
    their place.
    """
    copies = []
    for entry in forgotten:
        where = [Term("source", "==", entry.source), Term("corpus", "==", entry.corpus)]
        keys = []
        for row in scan_rows(store, "quarantine", where=where):
            is_duplicate = row["reason"] == RejectReason.DUPLICATE
            is_copy = is_duplicate and row["detail"].endswith(f" {entry.origin}")
            if is_copy:
                copies.append(str(Path(entry.place) / row["uri"]))
            if is_copy or row["uri"] == entry.origin:
                keys.append(row["_key"])

        store.delete("quarantine", keys=keys)

    return sorted(copies)


def _place_of(spec: SourceSpec, entry: ManifestEntry) -> str:
    """The file that a corpus reads a document from; empty where it is not of it, or gone."""
    path = Path(spec.path)
    if spec.source != entry.source or path.name != PurePath(entry.corpus).name:
        return ""

    if entry.place:  # a folder or a file of one document each
        path = Path(entry.place)
        path = path / entry.origin if path.is_dir() else path

    return str(path) if path.exists() else ""


_SHOWN = 200
_LATER = ("clusters", "bridge_cache", "query_logs")  # rows that stay and are corrected


class UnknownDocument(HadesError):
    """An id that names no ingested document."""


@dataclass(frozen=True)
class Certificate:
    """Proof of one act of forgetting.

    `corrected` counts rows that stay without what they took from the documents. `left_behind` names
    rows, by collection, in which a search of the whole store still finds them. `read_again` are the
    files, as far as known, from which a nightly build would read them again. `answers_removed`
    counts kept answers that were deleted. `files_removed` are files of the home that held words
    which only the documents wrote; `files_left` hold such words and were not touched.
    """

    documents: list[dict[str, str]]
    removed: dict[str, int]
    entities_removed: list[str]
    entities_kept: list[JsonObject]
    corrected: dict[str, int] = field(default_factory=dict)
    left_behind: dict[str, list[str]] = field(default_factory=dict)
    read_again: list[str] = field(default_factory=list)
    answers_removed: int = 0
    files_removed: list[str] = field(default_factory=list)
    files_left: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether nothing in the store names the documents any more."""
        return not self.left_behind

    def as_dict(self) -> JsonObject:
        """The certificate as JSON."""
        return {
            **vars(self),
            "left_behind": {name: len(keys) for name, keys in self.left_behind.items()},
            "left_behind_rows": {name: keys[:_SHOWN] for name, keys in self.left_behind.items()},
            "complete": self.is_complete,
        }


def forget_documents(
    store: GraphStore,
    embedder: Embedder,
    ids: Sequence[str],
) -> Certificate:
    """Remove documents named by origin or key; every derived row is brought to what the others
    still say.
    """
    keys = []
    for identifier in dict.fromkeys(ids):
        keys.append(resolve(store, identifier))

    stated = store.get(
        "documents",
        keys,
        columns=["origin", "source", "sha256"],
    )
    columns = ["origin", "_key", "source", "sha256"]
    documents = stated.select(columns).rename_columns(["id", "key", "source", "sha256"])
    entries = list(manifest.entries(store, keys).values())
    rows, names, runs = _collect_traces(store, keys)
    counts_before = store.counts()
    remove_documents(store, keys)
    copies = drop_quarantined(store, entries)
    changes = derive_edges(store, embedder)
    # The traces to search for: without entities that others support and words that others write.
    entities = _absent(store, "entities", list(names))
    runs = _find_own_runs(store, runs)

    if "relations" in changes:
        removed_relations = changes["relations"].removed_keys
    else:
        removed_relations = ()

    relations = _absent(store, "relations", removed_relations)
    corrected = {}
    for name in _LATER:
        if name in changes:
            corrected[name] = changes[name].changed

    corrected["query_logs"] = corrected.get("query_logs", 0) + blank_questions(store, runs)
    counts_after = store.counts()

    lost_rows = {}
    for name, count in counts_before.items():
        lost_rows[name] = count - counts_after[name]

    gone = []
    for name, key in product(OWNED_BY_DOCUMENT, rows):
        gone.append(node_id(name, key))

    gone += [node_id("entities", key) for key in entities]
    return Certificate(
        documents=documents.to_pylist(),
        removed={name: count for name, count in lost_rows.items() if count > 0},
        entities_removed=sorted(names[key] for key in entities)[:_SHOWN],
        entities_kept=_entities_kept(store, sorted(names)),
        corrected={name: count for name, count in corrected.items() if count},
        left_behind={
            **find_traces(store, rows, entities, relations, runs),
            **find_loose_edges(store, gone),
        },
        read_again=[*sources_holding(store, entries), *copies],
    )


def remove_documents(store: GraphStore, keys: Sequence[str]) -> None:
    """Take documents out with all rows that belong to them alone; derived rows follow in the edges
    phase.
    """
    if not keys:
        return

    with store.bulk(NAMES) as inside:
        take_out(inside, keys)
        remove_unused(inside)


def take_out(store: RowStore, keys: Sequence[str]) -> None:
    """Delete documents with the rows that belong to them, inside a transaction."""
    for collection in OWNED_BY_DOCUMENT:
        remove_nodes(
            store,
            collection,
            sorted(keys_of_documents(store, collection, keys)),
        )

    store.delete("documents", keys=keys)
    store.delete("ingest_manifest", keys=keys)


def resolve(store: RowStore, identifier: str) -> str:
    """The key of the document with this origin, key or `_id`."""
    plain = identifier.removeprefix("documents/")
    where = [Term("origin", "==", plain)]
    documents = list(
        scan_rows(
            store,
            "documents",
            where=where,
            columns=["source"],
        )
    )

    if len(documents) > 1:
        choices = ", ".join(f"{row['_key']} ({row['source']})" for row in documents)
        raise UnknownDocument(
            f"{identifier!r} is the id of several documents: {choices}; give the key of one"
        )

    if documents:
        key: str = documents[0]["_key"]
        return key

    if store.get("documents", [plain], columns=["_key"]).num_rows:
        return plain

    raise UnknownDocument(
        f"no document has the id {identifier!r}; `hades status` counts what there is"
    )


def _entities_kept(store: RowStore, keys: Sequence[str]) -> list[JsonObject]:
    """Those of the entities that stay, and why each does: how many chunks name it."""
    entities = store.get(
        "entities",
        keys,
        columns=["_key", "name"],
    ).slice(0, _SHOWN)

    ids = []
    for key in entities["_key"].to_pylist():
        ids.append(node_id("entities", key))

    counts = Counter(
        scan_values(
            store,
            "mentions",
            "_to",
            where=[Term("_to", "in", ids)],
        )
    )
    remaining = []
    for identifier, name in zip(ids, entities["name"].to_pylist(), strict=True):
        count = counts[identifier]
        why = f"mentioned in {count} other chunk{'s'[: count != 1]}"
        reason = why if count else "stated by another document"
        remaining.append(
            {
                "id": identifier,
                "name": name,
                "why": reason,
            }
        )

    return remaining


def find_loose_edges(store: RowStore, gone: Sequence[str]) -> dict[str, list[str]]:
    """Edges that still point at one of the nodes (ids) that went; found by their ends, so the cost
    follows `gone`.
    """
    loose: dict[str, list[str]] = {}
    for edges in edge_collections():
        keys: set[str] = set()
        for end in ("_from", "_to"):
            where = [Term(end, "in", list(gone))]
            keys.update(scan_values(store, edges.name, "_key", where=where))

        if keys:
            loose[f"{edges.name} without an end"] = sorted(keys)

    return loose
