"""Names and summaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hades.build.topics.cluster import BUCKET, UNPLACED, Shape
from hades.build.topics.inputs import HierarchyRules, Material, PreviousHierarchy
from hades.build_state import digest_of
from hades.ports.services import LanguageModel
from hades.ports.store import Direction, RowStore
from hades.text.sentences import documentation_sentences, sentences
from hades.text.words import split_identifier
from models.topics.cluster import NONE, Flags, Labels
from models.topics.describe import TermCounts, best_sentence, characteristic_terms, term_counts, topic_name
from schemas.nodes import CODE_KINDS
from schemas.topics import LOST

# Names of topics of code: the module that most of its symbols are in, and what they do. `pixels.decoders: decode
# frame, available` says more than three modules side by side. Words are those of the functions' and classes' own
# names; a word pair is taken instead of its word where the word stands mostly in that pair.


CODE_MEMBERS = 0.2  # share of symbols from which on a topic is one of code
PLACE_SHARE = 0.5  # of the symbols that must be in a module before the topic is named after it
PAIR_SHARE = 0.5  # of a word's weight that its pair must reach to stand for it
PLACE_PARTS = 2  # of a module's name; the first parts, the project, say little
PARTS = 3


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
    """What wording needs beside the topics; the language model is optional."""

    store: RowStore
    material: Material
    standing: PreviousHierarchy
    rules: HierarchyRules
    model: str
    language_model: LanguageModel | None = None
    written: list[str] = field(default_factory=list)  # topics a language model was asked about, for the report


def keep_wording(standing: PreviousHierarchy, key: str) -> Wording:
    """What the last build said of a cluster."""
    row = standing.clusters[key]
    kept = row["metadata"]
    quotes = tuple(Quote(**{**quote, "span": tuple(quote["span"])}) for quote in kept["evidence"])
    return Wording(row["name"], tuple(kept["terms"]), quotes, row["summary"], kept["written_by"], kept["written_from"])


def outdated(store: RowStore, standing: PreviousHierarchy) -> set[str]:
    """Keys of clusters that quote a chunk which is no longer there or reads otherwise, or that ingestion corrected."""
    quoted = {
        key: {(quote["chunk"], quote["sha256"]) for quote in row["metadata"]["evidence"]}
        for key, row in standing.clusters.items()
    }
    chunks = sorted({chunk for quotes in quoted.values() for chunk, _ in quotes})
    held = store.get("doc_chunks", chunks, columns=["_key", "sha256"])
    standing_now = set(zip(held.column("_key").to_pylist(), held.column("sha256").to_pylist(), strict=True))
    corrected = {key for key, row in standing.clusters.items() if LOST in row["metadata"]}
    return corrected | {key for key, quotes in quoted.items() if quotes - standing_now}


def terms_said(material: Material, shape: Shape) -> TermCounts:
    """What the names of those who speak for their topic say, counted once for both levels."""
    speaks = (_speakers(material, shape) != NONE).tolist()
    return term_counts(
        [name if speaker else "" for name, speaker in zip(words_of_names(material), speaks, strict=True)]
    )


def word_topics(writer: Writer, shape: Shape, said: TermCounts, wanted: Iterable[int]) -> dict[int, Wording]:
    """Name and summary of the wanted topics, by their number. Reads a few chunks a topic, never whole documents."""
    labels = _speakers(writer.material, shape)
    chosen = sorted(wanted)
    terms = characteristic_terms(said, labels, len(shape.topics), TERMS, chosen)
    of_code = code_topics(writer.material, shape.labels, len(shape.topics))
    chunks = _chunks_near(writer, shape, labels, chosen)
    worded = {}
    for number in chosen:
        key = shape.topics[number]
        name = _name(writer, terms[number], np.flatnonzero(labels == number), is_code=bool(of_code[number]))
        name = UNPLACED if key == BUCKET else name or _nearest_name(writer, shape, labels, number)
        quotes = _quotes(chunks.get(number, ()), terms[number], writer.rules.summary_sentences)
        worded[number] = _write(writer, key, Wording(name, tuple(terms[number]), quotes))
    return worded


def word_above(
    writer: Writer, shape: Shape, said: TermCounts, below: Sequence[Wording], wanted: Iterable[int]
) -> dict[int, Wording]:
    """The same for super-topics: terms over all their entities, quotes from their largest topics."""
    speakers = _speakers(writer.material, shape)
    labels = np.where(speakers == NONE, NONE, shape.parents[speakers])
    of_code = code_topics(writer.material, shape.above_labels(), len(shape.above))
    chosen = sorted(wanted)
    terms = characteristic_terms(said, labels, len(shape.above), TERMS, chosen)
    sizes = shape.sizes()
    worded = {}
    for number in chosen:
        children = sorted(
            np.flatnonzero(shape.parents == number).tolist(), key=lambda topic: (-sizes[topic], shape.topics[topic])
        )
        quotes = tuple(quote for topic in children for quote in below[topic].quotes[:1])
        name = _name(writer, terms[number], np.flatnonzero(labels == number), is_code=bool(of_code[number]))
        name = name or below[children[0]].name
        quoted = Wording(name, tuple(terms[number]), quotes[: writer.rules.summary_sentences])
        worded[number] = _write(writer, shape.above[number], quoted)
    return worded


def _speakers(material: Material, shape: Shape) -> Labels:
    """Labels of the entities that name a topic: symbols where it is of code, else its core, or everyone without one."""
    has_core = np.zeros(len(shape.topics), bool)
    has_core[shape.labels[shape.is_core]] = True
    of_code = code_topics(material, shape.labels, len(shape.topics))[shape.labels]
    return np.where(np.where(of_code, material.is_symbol, shape.is_core | ~has_core[shape.labels]), shape.labels, NONE)


def _name(writer: Writer, terms: dict[str, float], members: np.ndarray, *, is_code: bool) -> str:
    """Terms side by side; for code the common module and what its symbols do."""
    if not is_code:
        return topic_name(terms)
    symbols = [writer.material.names[row] for row in members.tolist() if writer.material.is_symbol[row]]
    return code_topic_name(terms, symbols)


def _nearest_name(writer: Writer, shape: Shape, labels: Labels, number: int) -> str:
    return writer.material.names[_nearest(writer, shape, labels, number)[0]]


def _nearest(writer: Writer, shape: Shape, labels: Labels, number: int) -> list[int]:
    """The members nearest to the centroid, nearest first, then by key."""
    rows = np.flatnonzero(labels == number)
    cosine = np.round(writer.material.vectors[rows] @ shape.centroids[number], 5)
    nearest: list[int] = rows[np.argsort(-cosine, kind="stable")[: writer.rules.summary_members]].tolist()
    return nearest


def _chunks_near(
    writer: Writer, shape: Shape, labels: Labels, topics: Sequence[int]
) -> dict[int, list[dict[str, Any]]]:
    """For each topic the chunks that name its nearest members, best first by the cosine to the centroid."""
    nearest = {topic: _nearest(writer, shape, labels, topic) for topic in topics}
    ids = sorted({f"entities/{writer.material.keys[row]}" for rows in nearest.values() for row in rows})
    naming: dict[str, list[str]] = {}
    for start in range(0, len(ids), ASKED_AT_ONCE):
        part = ids[start : start + ASKED_AT_ONCE]
        found = writer.store.neighbours(part, edges="mentions", direction=Direction.IN, fanout=CHUNKS_OF_MEMBER)
        for node, chunk in zip(found.column("node").to_pylist(), found.column("neighbour").to_pylist(), strict=True):
            naming.setdefault(node, []).append(chunk.partition("/")[2])
    columns = ["_key", "document", "text", "span", "kind", "sha256", "embedding", "embedding_model"]
    keys = sorted({chunk for chunks in naming.values() for chunk in chunks})
    rows = {row["_key"]: row for row in writer.store.get("doc_chunks", keys, columns=columns).to_pylist()}
    return {topic: _rank(writer, shape.centroids[topic], nearest[topic], naming, rows) for topic in topics}


def _rank(
    writer: Writer,
    centroid: np.ndarray,
    members: Sequence[int],
    naming: dict[str, list[str]],
    rows: dict[str, dict[str, Any]],
) -> list[dict[str, Any]]:
    def nearness(row: dict[str, Any]) -> float:
        if row["embedding_model"] != writer.model or row["embedding"] is None:
            return 0.0
        return round(float(np.dot(np.asarray(row["embedding"], np.float32), centroid)), 5)

    keys = {chunk for member in members for chunk in naming.get(f"entities/{writer.material.keys[member]}", ())}
    return sorted((rows[key] for key in keys if key in rows), key=lambda row: (-nearness(row), row["_key"]))


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
    quoted = " ".join(" ".join(quote.text.split()) for quote in said.quotes)
    if writer.language_model is None or not quoted:
        return Wording(said.name, said.terms, said.quotes, quoted)
    asked = writer.language_model.model
    source = digest_of(asked, said.name, [quote.text for quote in said.quotes], writer.rules.summary_tokens)
    before = writer.standing.clusters.get(key)
    if before is not None and before["metadata"]["written_from"] == source:
        return Wording(said.name, said.terms, said.quotes, before["summary"], asked, source)
    prompt = summary_prompt(said.name, said.terms, [quote.text for quote in said.quotes])
    answer = writer.language_model.complete(prompt, max_tokens=writer.rules.summary_tokens).text.strip()
    writer.written.append(key)
    if not answer:  # it had nothing to say; the quotes do
        return Wording(said.name, said.terms, said.quotes, quoted)
    return Wording(said.name, said.terms, said.quotes, answer, asked, source)


def summary_prompt(name: str, terms: Sequence[str], quotes: Sequence[str]) -> str:
    """What a language model is asked about a topic."""
    lines = "\n".join(f"- {quote}" for quote in quotes)
    return (
        "Say in two sentences what the following topic is about. Use only the sentences given.\n\n"
        f"Topic: {name}\nTerms: {', '.join(terms[:10])}\nSentences:\n{lines}\n\nSummary:"
    )
