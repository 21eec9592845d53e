"""Names and summaries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from hades.build.topics.cluster import BUCKET, UNPLACED, Hierarchy
from hades.build.topics.inputs import NAMED, HierarchyRules, Material
from hades.build_state import digest_of
from hades.ports.services import LanguageModel
from hades.ports.store import RowStore, Term, scan_rows
from hades.text.blocks import plain_words
from hades.text.sentences import documentation_sentences, sentences
from hades.text.words import split_identifier
from models.topics import NONE, Labels, best_sentence, characteristic_terms, term_counts, topic_name
from schemas.nodes import CODE_KINDS

TERMS = 20
CHUNKS_OF_MEMBER = 2
ASKED_AT_ONCE = 500
_FENCED = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Quote:
    """A sentence of a document, and the chunk it was read in with that chunk's hash, by which a change is seen."""

    text: str
    doc: str
    span: tuple[int, int]
    chunk: str
    sha256: str


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
            "evidence": [vars(quote) for quote in self.quotes],
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
    left_out: list[str] = field(default_factory=list)  # and those it was not, because they are above its cap


def describe_clusters(writer: Writer) -> tuple[list[Wording], list[Wording]]:
    """Name and summary of every topic and super-topic. Reads a few chunks a topic, never whole documents.

    A super-topic has the terms of all its entities, and quotes its largest topics.
    """
    found = writer.hierarchy
    labels = _speakers(found)
    said = term_counts(words_of_names(writer.material))
    terms = characteristic_terms(*said, labels, len(found.topics), TERMS)
    chunks = _chunks_near(writer, labels)
    topics = []
    for number, key in enumerate(found.topics):
        name = UNPLACED if key == BUCKET else found.names[number] or topic_name(terms[number])
        name = name or writer.material.names[_nearest(writer, labels, number, found.centroids[number])[0]]
        quotes = _quotes(chunks[number], terms[number], writer.rules.summary_sentences)
        topics.append(Wording(name, tuple(terms[number]), quotes))
    above = []
    if found.above:
        raised = np.where(labels == NONE, NONE, found.parents[labels])
        terms = characteristic_terms(*said, raised, len(found.above), TERMS)
        sizes = found.sizes()
        for number in range(len(found.above)):
            children = sorted(
                np.flatnonzero(found.parents == number).tolist(), key=lambda topic: (-sizes[topic], found.topics[topic])
            )
            quotes = tuple(quote for topic in children for quote in topics[topic].quotes[:1])
            places = dict.fromkeys(found.places[topic] for topic in children if found.places[topic])
            name = "; ".join(list(places)[:NAMED]) or topic_name(terms[number]) or topics[children[0]].name
            above.append(Wording(name, tuple(terms[number]), quotes[: writer.rules.summary_sentences]))
    summed_up = _summarise(writer, [*found.topics, *found.above], [*topics, *above])
    return summed_up[: len(topics)], summed_up[len(topics) :]


def words_of_names(material: Material) -> list[str]:
    """What each entity says: a symbol the words of its own name, anyone else the name."""
    said = list(material.names)
    for row in np.flatnonzero(material.is_symbol).tolist():
        own = said[row].rpartition(".")[2]
        is_special = own.startswith("__") and own.endswith("__")  # every class has these
        words = split_identifier(own.strip("_")) or [own.strip("_").lower()]
        said[row] = "" if is_special else " ".join(words)
    return said


def _speakers(found: Hierarchy) -> Labels:
    """Labels of the entities that name a topic: its core, or everyone where it has none."""
    has_core = np.zeros(len(found.topics), bool)
    has_core[found.labels[found.is_core]] = True
    return np.where(found.is_core | ~has_core[found.labels], found.labels, NONE)


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
        where, columns = [Term("_to", "in", part)], ["_from", "_to", "weight"]
        edges = scan_rows(writer.store, "mentions", where=where, columns=columns)
        for edge in sorted(edges, key=lambda row: (row["weight"] is None, -(row["weight"] or 0.0), row["_key"])):
            chunks = naming.setdefault(edge["_to"], [])
            if len(chunks) < CHUNKS_OF_MEMBER:
                chunks.append(edge["_from"].partition("/")[2])
    columns = ["_key", "document", "text", "span", "kind", "sha256", "embedding", "embedding_model"]
    keys = sorted({chunk for chunks in naming.values() for chunk in chunks})
    rows = {row["_key"]: row for row in writer.store.get("doc_chunks", keys, columns=columns).to_pylist()}

    def order(topic: int, row: dict[str, Any]) -> tuple[float, str]:
        if row["embedding_model"] != writer.model or row["embedding"] is None:
            return 0.0, row["_key"]  # a vector of another model says nothing
        return -round(float(np.dot(np.asarray(row["embedding"], np.float32), middles[topic])), 5), row["_key"]

    return [
        sorted((rows[key] for key in keys if key in rows), key=partial(order, topic))
        for topic, keys in enumerate({key for one in ids for key in naming.get(one, ())} for ids in members)
    ]


def _quotes(chunks: Iterable[dict[str, Any]], terms: dict[str, float], limit: int) -> tuple[Quote, ...]:
    """The best sentence of each of the first chunks, one a document."""
    quotes: dict[str, Quote] = {}
    for row in chunks:
        is_code = row["kind"] in CODE_KINDS
        spans = documentation_sentences(row["text"]) if is_code else _prose(row["text"])
        span = best_sentence(row["text"], spans, terms)
        if span is None or row["document"] in quotes:
            continue
        start = row["span"][0]
        place = (start + span[0], start + span[1])
        quotes[row["document"]] = Quote(row["text"][slice(*span)], row["document"], place, row["_key"], row["sha256"])
        if len(quotes) == limit:
            break
    return tuple(quotes.values())


def _prose(text: str) -> list[tuple[int, int]]:
    """The sentences of a text outside its fenced examples; all of them where there is nothing else."""
    blanked = _FENCED.sub(lambda fence: "\n" * len(fence.group()), text)  # places stay what they are
    return list(sentences(blanked)) or list(sentences(text))


def _summarise(writer: Writer, keys: Sequence[str], said: Sequence[Wording]) -> list[Wording]:
    """The words of the quotes, without markup; a language model says them its own way, once for the same quotes."""
    done = [
        replace(one, summary=" ".join(dict.fromkeys(plain_words(quote.text) for quote in one.quotes))) for one in said
    ]
    if (model := writer.language_model) is None:
        return done
    most = writer.rules.summary_tokens
    prompts: dict[int, tuple[str, str]] = {}
    for place, (key, one) in enumerate(zip(keys, done, strict=True)):
        texts, before = [quote.text for quote in one.quotes], writer.previous.get(key)
        source = digest_of(model.model, one.name, texts, most)
        if before is not None and before["metadata"]["written_from"] == source:
            done[place] = replace(one, summary=before["summary"], written_by=model.model, written_from=source)
        elif one.summary:
            prompts[place] = (source, summary_prompt(one.name, one.terms, texts))
    if not model.allows(len(prompts), sum(len(prompt) // 3 + most for _, prompt in prompts.values())):
        writer.left_out.extend(keys[place] for place in prompts)
        return done
    for place, (source, prompt) in prompts.items():
        writer.written.append(keys[place])
        if answer := model.complete(prompt, max_tokens=most).text.strip():
            done[place] = replace(done[place], summary=answer, written_by=model.model, written_from=source)
    return done


def summary_prompt(name: str, terms: Sequence[str], quotes: Sequence[str]) -> str:
    """What a language model is asked about a topic."""
    lines = "\n".join(f"- {quote}" for quote in quotes)
    return (
        "Say in two sentences what the following topic is about. Use only the sentences given.\n\n"
        f"Topic: {name}\nTerms: {', '.join(terms[:10])}\nSentences:\n{lines}\n\nSummary:"
    )
