"""Names and summaries."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from hades.ingest.entities.describe import is_clear
from hades.night.topics.cluster import BUCKET, UNPLACED, Hierarchy, Previous
from hades.night.topics.inputs import NAMED, HierarchyRules, Material
from hades.ports.services import LanguageModel
from hades.ports.store import RowStore, Term, scan_rows
from hades.stage_ledger import digest_of
from hades.text.blocks import plain_words
from hades.text.sentences import documentation_sentences, sentences
from hades.text.words import split_identifier
from models.topics import NONE, Labels, best_sentence, characteristic_terms, term_counts, topic_name
from schemas.nodes import CODE_KINDS
from schemas.record import JsonObject

Chunk = Mapping[str, Any]  # a row of `doc_chunks`
Span = tuple[int, int]  # of a sentence in the text of a chunk
TERMS = 20
CHUNKS_OF_MEMBER = 2
ASKED_AT_ONCE = 500
_QUOTED = ["_key", "document", "text", "span", "kind", "sha256"]
_FENCED = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Quote:
    """A sentence of a document, and the chunk it was read in with that chunk's hash, by which a
    change is seen.
    """

    text: str
    doc: str
    span: Span
    chunk: str
    sha256: str


@dataclass(frozen=True)
class Wording:
    """What is said of a topic. `written_by` names the language model, empty when the summary is
    quoted.
    """

    name: str
    terms: tuple[str, ...] = ()
    quotes: tuple[Quote, ...] = ()
    summary: str = ""
    written_by: str = ""
    written_from: str = ""

    def metadata(self) -> JsonObject:
        """As kept with the cluster."""
        return {
            "terms": list(self.terms),
            "evidence": list(map(vars, self.quotes)),
            "written_by": self.written_by,
            "written_from": self.written_from,
        }


@dataclass(frozen=True)
class Writer:
    """What wording needs beside the topics; the language model is optional, `previous` are the
    clusters before.
    """

    store: RowStore
    material: Material
    hierarchy: Hierarchy
    previous: Previous
    rules: HierarchyRules
    model: str
    language_model: LanguageModel | None = None
    # Topics a language model was asked about, for the report.
    written: list[str] = field(default_factory=list)
    # And those it was not, because they are above its cap.
    left_out: list[str] = field(default_factory=list)


def describe_clusters(writer: Writer) -> tuple[list[Wording], list[Wording]]:
    """Name and summary of every topic and super-topic. Reads a few chunks a topic, never whole
    documents.

    A topic of pages quotes how its largest pages begin. A super-topic has the terms of all its
    entities, and quotes its largest topics.
    """
    hierarchy = writer.hierarchy
    labels = _speakers(hierarchy)
    words = term_counts(words_of_names(writer.material))
    terms = characteristic_terms(
        *words,
        labels,
        len(hierarchy.topics),
        TERMS,
    )
    topics = _describe_topics(writer, labels, terms)
    above = []

    if hierarchy.above:
        raised = np.where(
            labels == NONE,
            NONE,
            hierarchy.parents[labels],
        )
        terms = characteristic_terms(
            *words,
            raised,
            len(hierarchy.above),
            TERMS,
        )
        above = _describe_super_topics(writer, topics, terms)

    wordings = _summarise(
        writer,
        [*hierarchy.topics, *hierarchy.above],
        [*topics, *above],
    )
    return wordings[: len(topics)], wordings[len(topics) :]


def _describe_topics(
    writer: Writer,
    labels: Labels,
    terms: Sequence[dict[str, float]],
) -> list[Wording]:
    """The name, terms and quotes of every topic."""
    hierarchy = writer.hierarchy
    most = writer.rules.summary_sentences

    nearest = []
    for topic in range(len(hierarchy.topics)):
        nearest.append(_nearest(writer, labels, topic))

    chunks = _chunks_near(writer, nearest)
    openings = _read_openings(writer)

    topics = []
    for number, key in enumerate(hierarchy.topics):
        if number < len(hierarchy.outline):
            outlined = hierarchy.outline[number].name
        else:
            outlined = ""

        if key == BUCKET:
            name = UNPLACED
        else:
            name = outlined or topic_name(terms[number])

        quotes = (
            _quotes(openings[number], {}, most)
            or _quotes(chunks[number], terms[number], most)
            or _quotes(
                chunks[number],
                terms[number],
                most,
                _sentences,
            )
        )
        name = name or writer.material.names[nearest[number][0]]
        topics.append(Wording(name, tuple(terms[number]), quotes))

    return topics


def _describe_super_topics(
    writer: Writer,
    topics: Sequence[Wording],
    terms: Sequence[dict[str, float]],
) -> list[Wording]:
    """The name and terms of every super-topic, and a quote of each of its largest topics."""
    hierarchy = writer.hierarchy
    sizes = hierarchy.sizes()

    above = []
    for number, name in enumerate(_names_above(hierarchy)):
        children = sorted(
            np.flatnonzero(hierarchy.parents == number).tolist(),
            key=lambda topic: (-sizes[topic], topic),  # not by its key, which has a history
        )
        name_of_largest = topics[children[0]].name
        if len(children) == 1:
            name = name_of_largest
        else:
            name = name or topic_name(terms[number]) or name_of_largest

        quotes = tuple(chain.from_iterable(topics[topic].quotes[:1] for topic in children))
        quotes = quotes[: writer.rules.summary_sentences]
        above.append(Wording(name, tuple(terms[number]), quotes))

    return above


def _names_above(hierarchy: Hierarchy) -> list[str]:
    """A name for each super-topic of pages, no two the same: the folder that only its topics share,
    else that folder and the largest pages of its largest topics. Empty where it has no pages.
    """
    sizes = hierarchy.sizes()
    parents = hierarchy.parents[: len(hierarchy.outline)]
    folders = [_shared_folder(hierarchy, number) for number in range(len(hierarchy.above))]
    used: set[str] = set()

    names: list[str] = []
    for number, folder in enumerate(folders):
        if folder and folders.count(folder) == 1:
            names.append(folder)
            continue

        children = np.flatnonzero(parents == number).tolist()
        largest = sorted(children, key=lambda topic: (-sizes[topic], topic))
        pages = dict.fromkeys(hierarchy.outline[topic].page for topic in largest)
        chosen = [page for page in pages if page not in used][:NAMED]
        used.update(chosen)
        names.append(": ".join(filter(None, [folder, "; ".join(chosen)])))

    return names


def _shared_folder(hierarchy: Hierarchy, number: int) -> str:
    """The folder of more than half of the pages' topics below a super-topic."""
    children = np.flatnonzero(hierarchy.parents[: len(hierarchy.outline)] == number).tolist()
    counts = Counter(hierarchy.outline[topic].folder for topic in children)
    folder, most = counts.most_common(1)[0] if counts else ("", 0)
    return folder if 2 * most > len(children) else ""


def _read_openings(writer: Writer) -> list[list[Chunk]]:
    """For each topic the chunks that open its pages, of the largest first; none where it has no
    pages.
    """
    openings = [topic.openings for topic in writer.hierarchy.outline]
    keys = sorted(set(chain.from_iterable(openings)))
    chunks = writer.store.get(
        "doc_chunks",
        keys,
        columns=_QUOTED,
    ).to_pylist()
    rows = {row["_key"]: row for row in chunks}

    of_topics: list[list[Chunk]] = []
    for _ in writer.hierarchy.topics:
        of_topics.append([])

    for chunks_of_topic, opening_keys in zip(of_topics, openings, strict=False):
        chunks_of_topic += [rows[key] for key in opening_keys if key in rows]

    return of_topics


def words_of_names(material: Material) -> list[str]:
    """What each entity says: a symbol the words of its own name, anyone else the name."""
    texts = list(material.names)
    for row in np.flatnonzero(material.is_symbol).tolist():
        symbol = texts[row].rpartition(".")[2]
        is_special = symbol.startswith("__") and symbol.endswith("__")  # every class has these
        words = split_identifier(symbol.strip("_")) or [symbol.strip("_").lower()]
        texts[row] = "" if is_special else " ".join(words)

    return texts


def _speakers(hierarchy: Hierarchy) -> Labels:
    """Labels of the entities that name a topic: its core, or everyone where it has none."""
    has_core = np.zeros(len(hierarchy.topics), bool)
    has_core[hierarchy.labels[hierarchy.is_core]] = True
    return np.where(
        hierarchy.is_core | ~has_core[hierarchy.labels],
        hierarchy.labels,
        NONE,
    )


def _nearest(
    writer: Writer,
    labels: Labels,
    topic: int,
) -> list[int]:
    """The members nearest to the centroid, nearest first, then by key."""
    rows = np.flatnonzero(labels == topic)
    cosine = np.round(writer.material.vectors[rows] @ writer.hierarchy.centroids[topic], 5)
    order = np.argsort(-cosine, kind="stable")[: writer.rules.summary_members]
    nearest: list[int] = rows[order].tolist()
    return nearest


def _chunks_near(
    writer: Writer,
    nearest: Sequence[Sequence[int]],
) -> list[list[Chunk]]:
    """For each topic the chunks that name its nearest members, best first by the cosine to the
    centroid.
    """
    keys_of = writer.material.keys
    rows = sorted(set(chain.from_iterable(nearest)))
    naming = _chunks_naming(
        writer.store,
        sorted(f"entities/{keys_of[row]}" for row in rows),
    )
    columns = [*_QUOTED, "embedding", "embedding_model"]
    keys = sorted(set(chain.from_iterable(naming.values())))
    stored = writer.store.get(
        "doc_chunks",
        keys,
        columns=columns,
    ).to_pylist()
    chunks = {chunk["_key"]: chunk for chunk in stored}

    of_topics = []
    for centroid, members in zip(writer.hierarchy.centroids, nearest, strict=True):
        entity_ids = [f"entities/{keys_of[row]}" for row in members]
        near = set(chain.from_iterable(naming.get(entity, ()) for entity in entity_ids))

        similarity: dict[str, float] = {}
        for key in near & chunks.keys():
            similarity[key] = _similarity(chunks[key], centroid, writer.model)

        best = sorted(similarity, key=lambda key: (-similarity[key], key))
        of_topics.append([chunks[key] for key in best])

    return of_topics


def _chunks_naming(store: RowStore, entity_ids: Sequence[str]) -> dict[str, list[str]]:
    """The keys of the chunks that name each entity most often."""
    naming: dict[str, list[str]] = {}
    for start in range(0, len(entity_ids), ASKED_AT_ONCE):
        where = [
            Term(
                "_to",
                "in",
                entity_ids[start : start + ASKED_AT_ONCE],
            )
        ]
        edges = scan_rows(
            store,
            "mentions",
            where=where,
            columns=["_from", "_to", "count"],
        )
        # not by weight: this night has not weighed them yet, and the former night's would make
        # quotes differ from those of a first build
        for edge in sorted(
            edges,
            key=lambda row: (-(row["count"] or 0), row["_key"]),
        ):
            chunks = naming.setdefault(edge["_to"], [])
            if len(chunks) < CHUNKS_OF_MEMBER:
                chunks.append(edge["_from"].partition("/")[2])

    return naming


def _similarity(
    chunk: Chunk,
    centroid: np.ndarray,
    model: str,
) -> float:
    if chunk["embedding_model"] != model or chunk["embedding"] is None:
        return 0.0  # a vector of another model says nothing
    return round(float(np.dot(np.asarray(chunk["embedding"], np.float32), centroid)), 5)


def _clear_sentences(row: Chunk) -> list[Span]:
    """The sentences of a chunk that are prose and understood without those before them."""
    text = row["text"]
    return [span for span in _sentences(row) if is_clear(text[slice(*span)])]


def _sentences(row: Chunk) -> list[Span]:
    """The sentences of a chunk; of code those of its documentation."""
    is_code = row["kind"] in CODE_KINDS
    if is_code:
        return list(documentation_sentences(row["text"]))

    return _prose(row["text"])


def _quotes(
    chunks: Iterable[Chunk],
    terms: dict[str, float],
    limit: int,
    spans_of: Callable[[Chunk], list[Span]] = _clear_sentences,
) -> tuple[Quote, ...]:
    """The best sentence of each of the first chunks, one a document; the first without terms."""
    quotes: dict[str, Quote] = {}
    for row in chunks:
        span = best_sentence(row["text"], spans_of(row), terms)
        if span is None or row["document"] in quotes:
            continue

        start = row["span"][0]
        text = row["text"][slice(*span)]
        place = (start + span[0], start + span[1])
        quote = Quote(
            text,
            row["document"],
            place,
            row["_key"],
            row["sha256"],
        )
        quotes[row["document"]] = quote

        if len(quotes) == limit:
            break

    return tuple(quotes.values())


def _prose(text: str) -> list[Span]:
    """The sentences of a text outside its fenced examples; all of them where there is nothing
    else.
    """
    # Places stay what they are.
    blanked = _FENCED.sub(lambda fence: "\n" * len(fence.group()), text)
    return list(sentences(blanked)) or list(sentences(text))


def _summarise(
    writer: Writer,
    keys: Sequence[str],
    wordings: Sequence[Wording],
) -> list[Wording]:
    """The words of the quotes, without markup; a language model says them its own way, once for the
    same quotes.
    """
    summarised = list(map(_quote_summary, wordings))
    model = writer.language_model

    if model is None:
        return summarised

    most = writer.rules.summary_tokens
    prompts: dict[int, tuple[str, str]] = {}
    for place, (key, wording) in enumerate(zip(keys, summarised, strict=True)):
        texts = [quote.text for quote in wording.quotes]
        former = writer.previous.get(key)
        source = digest_of(model.model, wording.name, texts, most)

        if former is not None and former["metadata"]["written_from"] == source:
            summarised[place] = replace(
                wording,
                summary=former["summary"],
                written_by=model.model,
                written_from=source,
            )
        elif wording.summary:
            prompts[place] = (source, summary_prompt(wording.name, wording.terms, texts))

    tokens = sum(len(prompt) // 3 + most for _, prompt in prompts.values())
    if not model.allows(len(prompts), tokens):
        writer.left_out.extend(keys[place] for place in prompts)
        return summarised

    for place, (source, prompt) in prompts.items():
        writer.written.append(keys[place])
        answer = model.complete(prompt, max_tokens=most).text.strip()
        if answer:
            summarised[place] = replace(
                summarised[place],
                summary=answer,
                written_by=model.model,
                written_from=source,
            )

    return summarised


def _quote_summary(wording: Wording) -> Wording:
    """A topic whose summary is the words of its quotes."""
    texts = dict.fromkeys(plain_words(quote.text) for quote in wording.quotes)
    return replace(wording, summary=" ".join(texts))


def summary_prompt(
    name: str,
    terms: Sequence[str],
    quotes: Sequence[str],
) -> str:
    """What a language model is asked about a topic."""
    lines = "\n".join(f"- {quote}" for quote in quotes)
    return (
        "Say in two sentences what the following topic is about. Use only the sentences given.\n\n"
        f"Topic: {name}\nTerms: {', '.join(terms[:10])}\nSentences:\n{lines}\n\nSummary:"
    )
