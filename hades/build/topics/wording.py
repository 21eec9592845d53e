"""Names and summaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hades.build.topics.cluster import BUCKET, UNPLACED, Hierarchy
from hades.build.topics.inputs import HierarchyRules, Material
from hades.build_state import digest_of
from hades.ports.services import LanguageModel
from hades.ports.store import Direction, RowStore
from hades.text.sentences import documentation_sentences, sentences
from hades.text.words import split_identifier
from models.topics.cluster import NONE, Flags, Labels
from models.topics.describe import TermCounts, best_sentence, characteristic_terms, term_counts, topic_name
from schemas.nodes import CODE_KINDS

# Names of topics of code: the module that most of its symbols are in, and what they do. `pixels.decoders: decode
# frame, available` says more than three modules side by side. Words are those of the functions' and classes' own
# names; a word pair is taken instead of its word where the word stands mostly in that pair.


CODE_MEMBERS = 0.2  # share of symbols from which on a topic is one of code
PLACE_SHARE = 0.5  # of the symbols that must be in a module before the topic is named after it
PAIR_SHARE = 0.5  # of a word's weight that its pair must reach to stand for it
PLACE_PARTS = 2  # of a module's name; the first parts, the project, say little
PARTS = 3
PAGES = 2  # titles in the name of a topic of pages


def code_topics(material: Material, labels: Labels, topics: int) -> Flags:
    """Whether each topic is one of code."""
    held = labels != NONE
    members = np.bincount(labels[held], minlength=topics)
    symbols = np.bincount(labels[held & material.is_symbol], minlength=topics)
    flags: Flags = symbols >= np.maximum(1, CODE_MEMBERS * members)
    return flags


def words_of_names(material: Material) -> list[str]:
    """What each entity says: a symbol the words of its own name, anyone else the name."""
    return [
        _own_words(name) if is_symbol else name
        for name, is_symbol in zip(material.names, material.is_symbol.tolist(), strict=True)
    ]


def code_topic_name(terms: Mapping[str, float], symbols: Sequence[str]) -> str:
    """Module and deeds, or one of them where the other is missing; empty when there is neither."""
    place = common_module(symbols)
    deeds = ", ".join(_deeds(terms, set(place.split("."))))
    return f"{place}: {deeds}" if place and deeds else place or deeds


def common_module(symbols: Sequence[str]) -> str:
    """The last parts of the longest module name that at least half of the symbols share; empty when there is none."""
    modules = [_module_parts(symbol) for symbol in symbols]
    prefix: list[str] = []
    while modules:
        inside = Counter(parts[len(prefix)] for parts in modules if len(parts) > len(prefix))
        best = min(inside, key=lambda part: (-inside[part], part), default="")
        if not best or inside[best] < PLACE_SHARE * len(symbols):
            break
        modules = [parts for parts in modules if len(parts) > len(prefix) and parts[len(prefix)] == best]
        prefix.append(best)
    return ".".join(prefix[-PLACE_PARTS:])


def page_topic_name(material: Material, members: np.ndarray, nearest: Sequence[int]) -> str:
    """The folder that at least half of the pages are in, and the titles of the pages nearest to the centroid.

    Empty where most members are no pages of a folder: words of titles say less than titles.
    """
    folders = Counter(material.folder[row] for row in members.tolist())
    if 2 * folders[""] >= len(members):
        return ""
    del folders[""], folders["."]
    common = min((name for name in folders if folders[name] >= PLACE_SHARE * len(members)), default="")
    titles = "; ".join([material.names[row] for row in nearest if material.folder[row]][:PAGES])
    return f"{common}: {titles}" if common else titles


def _own_words(name: str) -> str:
    own = name.rpartition(".")[2]
    if own.startswith("__") and own.endswith("__"):
        return ""  # every class has these
    return " ".join(split_identifier(own.strip("_")) or [own.strip("_").lower()])


def _module_parts(symbol: str) -> list[str]:
    """The parts of a symbol's name in front of its class, or of its own name."""
    parts = symbol.split(".")[:-1]
    classes = [place for place, part in enumerate(parts) if part.lstrip("_")[:1].isupper()]
    return parts[: classes[0]] if classes else parts


def _deeds(terms: Mapping[str, float], told: set[str]) -> list[str]:
    """The heaviest terms, word pairs before words, that repeat neither each other nor the module."""
    chosen: list[str] = []
    used = set(told)
    for term, weight in terms.items():
        pairs = [pair for pair in terms if " " in pair and term in pair.split() and terms[pair] >= PAIR_SHARE * weight]
        said = term if " " in term or not pairs else pairs[0]
        words = set(said.split())
        if words & used:
            continue
        chosen.append(said)
        used |= words
        if len(chosen) == PARTS:
            break
    return chosen


# A name and a summary for each topic: terms of its members, and sentences quoted with where they stand.


TERMS = 20
CHUNKS_OF_MEMBER = 2
ASKED_AT_ONCE = 500


@dataclass(frozen=True)
class Quote:
    """A sentence of a document, and the chunk it was read in with that chunk's hash, by which a change is seen."""

    text: str
    doc: str
    span: tuple[int, int]
    chunk: str
    sha256: str

    def as_json(self) -> dict[str, Any]:
        """As kept in a cluster's metadata."""
        return {**vars(self), "span": list(self.span)}


@dataclass(frozen=True)
class Wording:
    """What is said of a topic. `written_by` names the language model, empty when the summary is quoted."""

    name: str
    terms: tuple[str, ...] = ()
    quotes: tuple[Quote, ...] = ()
    summary: str = ""
    written_by: str = ""
    written_from: str = ""

    def metadata(self) -> dict[str, Any]:
        """As kept with the cluster."""
        return {
            "terms": list(self.terms),
            "evidence": [quote.as_json() for quote in self.quotes],
            "written_by": self.written_by,
            "written_from": self.written_from,
        }


@dataclass(frozen=True)
class Writer:
    """What wording needs beside the topics; the language model is optional, `previous` are the clusters before."""

    store: RowStore
    material: Material
    hierarchy: Hierarchy
    previous: Mapping[str, Mapping[str, Any]]
    rules: HierarchyRules
    model: str
    language_model: LanguageModel | None = None
    written: list[str] = field(default_factory=list)  # topics a language model was asked about, for the report


def describe_clusters(writer: Writer) -> tuple[list[Wording], list[Wording]]:
    """Name and summary of every topic and super-topic. Reads a few chunks a topic, never whole documents.

    A super-topic has the terms of all its entities, and quotes its largest topics.
    """
    found = writer.hierarchy
    labels = _speakers(writer.material, found)
    said = term_counts(words_of_names(writer.material))
    names, terms = _names_and_terms(writer, said, labels, found.labels, len(found.topics))
    chunks = _chunks_near(writer, labels)
    topics = []
    for number, key in enumerate(found.topics):
        nearest = _nearest(writer, labels, number, found.centroids[number])
        name = page_topic_name(writer.material, np.flatnonzero(labels == number), nearest) or names[number]
        name = UNPLACED if key == BUCKET else name or writer.material.names[nearest[0]]
        quotes = _quotes(chunks[number], terms[number], writer.rules.summary_sentences)
        topics.append(_write(writer, key, Wording(name, tuple(terms[number]), quotes)))
    above = []
    if found.above:
        raised = np.where(labels == NONE, NONE, found.parents[labels])
        names, terms = _names_and_terms(writer, said, raised, found.above_labels(), len(found.above))
        sizes = found.sizes()
        for number, key in enumerate(found.above):
            children = sorted(
                np.flatnonzero(found.parents == number).tolist(), key=lambda topic: (-sizes[topic], found.topics[topic])
            )
            quotes = tuple(quote for topic in children for quote in topics[topic].quotes[:1])
            nearest = _nearest(writer, raised, number, found.above_centroids[number])
            name = page_topic_name(writer.material, np.flatnonzero(raised == number), nearest) or names[number]
            name = name or topics[children[0]].name
            quoted = Wording(name, tuple(terms[number]), quotes[: writer.rules.summary_sentences])
            above.append(_write(writer, key, quoted))
    return topics, above


def _names_and_terms(
    writer: Writer, said: TermCounts, labels: Labels, all_labels: Labels, groups: int
) -> tuple[list[str], list[dict[str, float]]]:
    """Of each group a name and its terms: terms side by side; for code the common module and what its symbols do."""
    terms = characteristic_terms(said, labels, groups, TERMS)
    of_code = code_topics(writer.material, all_labels, groups)
    names = []
    for group in range(groups):
        if of_code[group]:
            symbols = np.flatnonzero((labels == group) & writer.material.is_symbol).tolist()
            names.append(code_topic_name(terms[group], [writer.material.names[row] for row in symbols]))
        else:
            names.append(topic_name(terms[group]))
    return names, terms


def _speakers(material: Material, found: Hierarchy) -> Labels:
    """Labels of the entities that name a topic: symbols where it is of code, else its core, or everyone without one."""
    has_core = np.zeros(len(found.topics), bool)
    has_core[found.labels[found.is_core]] = True
    of_code = code_topics(material, found.labels, len(found.topics))[found.labels]
    return np.where(np.where(of_code, material.is_symbol, found.is_core | ~has_core[found.labels]), found.labels, NONE)


def _nearest(writer: Writer, labels: Labels, group: int, centroid: np.ndarray) -> list[int]:
    """The members nearest to the centroid, nearest first, then by key."""
    rows = np.flatnonzero(labels == group)
    cosine = np.round(writer.material.vectors[rows] @ centroid, 5)
    nearest: list[int] = rows[np.argsort(-cosine, kind="stable")[: writer.rules.summary_members]].tolist()
    return nearest


def _chunks_near(writer: Writer, labels: Labels) -> list[list[dict[str, Any]]]:
    """For each topic the chunks that name its nearest members, best first by the cosine to the centroid."""
    topics = range(len(writer.hierarchy.topics))
    middles, keys_of = writer.hierarchy.centroids, writer.material.keys
    members = [[f"entities/{keys_of[row]}" for row in _nearest(writer, labels, one, middles[one])] for one in topics]
    ids = sorted({one for ids in members for one in ids})
    naming: dict[str, list[str]] = {}
    for start in range(0, len(ids), ASKED_AT_ONCE):
        part = ids[start : start + ASKED_AT_ONCE]
        edges = writer.store.neighbours(part, edges="mentions", direction=Direction.IN, fanout=CHUNKS_OF_MEMBER)
        for node, chunk in zip(edges.column("node").to_pylist(), edges.column("neighbour").to_pylist(), strict=True):
            naming.setdefault(node, []).append(chunk.partition("/")[2])
    columns = ["_key", "document", "text", "span", "kind", "sha256", "embedding", "embedding_model"]
    keys = sorted({chunk for chunks in naming.values() for chunk in chunks})
    rows = {row["_key"]: row for row in writer.store.get("doc_chunks", keys, columns=columns).to_pylist()}

    return [
        _rank_chunks(writer, middles[topic], [rows[key] for key in sorted(keys) if key in rows])
        for topic, keys in enumerate({key for one in ids for key in naming.get(one, ())} for ids in members)
    ]


def _rank_chunks(writer: Writer, centroid: np.ndarray, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those nearest to the centroid first, then by key; a vector of another model says nothing."""

    def cosine(row: dict[str, Any]) -> float:
        if row["embedding_model"] != writer.model or row["embedding"] is None:
            return 0.0
        return round(float(np.dot(np.asarray(row["embedding"], np.float32), centroid)), 5)

    return sorted(rows, key=lambda row: (-cosine(row), row["_key"]))


def _quotes(chunks: Iterable[dict[str, Any]], terms: dict[str, float], limit: int) -> tuple[Quote, ...]:
    """The best sentence of each of the first chunks, one a document."""
    quotes: dict[str, Quote] = {}
    for row in chunks:
        is_code = row["kind"] in CODE_KINDS
        spans = documentation_sentences(row["text"]) if is_code else sentences(row["text"])
        span = best_sentence(row["text"], spans, terms)
        if span is None or row["document"] in quotes:
            continue
        start = row["span"][0]
        place = (start + span[0], start + span[1])
        quotes[row["document"]] = Quote(row["text"][slice(*span)], row["document"], place, row["_key"], row["sha256"])
        if len(quotes) == limit:
            break
    return tuple(quotes.values())


def _write(writer: Writer, key: str, said: Wording) -> Wording:
    """The quotes as they stand; with a language model its own words about them, asked once for the same quotes."""
    quoted = replace(said, summary=" ".join(" ".join(quote.text.split()) for quote in said.quotes))
    if writer.language_model is None or not quoted.summary:
        return quoted
    model = writer.language_model.model
    source = digest_of(model, said.name, [quote.text for quote in said.quotes], writer.rules.summary_tokens)
    before = writer.previous.get(key)
    if before is not None and before["metadata"]["written_from"] == source:
        return replace(said, summary=before["summary"], written_by=model, written_from=source)
    prompt = summary_prompt(said.name, said.terms, [quote.text for quote in said.quotes])
    answer = writer.language_model.complete(prompt, max_tokens=writer.rules.summary_tokens).text.strip()
    writer.written.append(key)
    return replace(said, summary=answer, written_by=model, written_from=source) if answer else quoted


def summary_prompt(name: str, terms: Sequence[str], quotes: Sequence[str]) -> str:
    """What a language model is asked about a topic."""
    lines = "\n".join(f"- {quote}" for quote in quotes)
    return (
        "Say in two sentences what the following topic is about. Use only the sentences given.\n\n"
        f"Topic: {name}\nTerms: {', '.join(terms[:10])}\nSentences:\n{lines}\n\nSummary:"
    )
