"""Relations and mentions of entities: by co-occurrence, titles, stated triples, derivations and
short forms.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.entities.corpus import Corpus
from hades.ingest.entities.find_names import Reading
from hades.ingest.entities.senses import Sense
from hades.ingest.entities.tables import (
    edge_columns,
    fill,
    lists_array,
    moments_array,
    oldest_dates,
)
from hades.text.dates import times_in
from hades.text.word_lists import GIVEN_NAMES
from hades.text.words import fold_letters, strongest
from models.arrays import Floats, Longs, rows_of
from schemas.edges import MentionType, Provenance, allows
from schemas.ids import microseconds, node_id
from schemas.nodes import EntityType, NameType, RelationType
from schemas.record import arrow_schema

# Things that are named together: pairs that share sentences, scored by how much more often than
# chance. The score is normalised pointwise mutual information over sentences, in [0, 1] for pairs
# that attract each other. Each thing keeps only its strongest partners, so that what is everywhere
# does not tie everything to everything. From 256 sentences on their number counts in steps of
# 2^(1/4): a document that is added or removed then leaves the score of every pair that it does not
# name as it was, and topics, weights and bridges have only its own pairs to follow.
_FEW = 256
_STEPS = 4  # to a doubling of the number of sentences
MAX_RELATED = 12  # co-occurrence relations kept for one entity
_MIN_TOGETHER = 2  # sentences in which two entities must meet
_WINDOW = 12  # mentions of one sentence that are paired with each other


def link_companions(linked: LinkedCorpus) -> pa.Table:
    """Entities named in the same sentences, from the smaller id to the larger, as old as the oldest
    such sentence.

    Each pair is cited by the first sentence that holds both.
    """
    entity = linked.entity
    sentence = linked.reading.sentence
    size = linked.size

    parts = []
    for step in range(1, _WINDOW):
        mention = np.flatnonzero(sentence[step:] == sentence[: max(0, len(sentence) - step)])
        ends = np.sort([entity[mention], entity[mention + step]], axis=0)
        is_pair = ends[0] != ends[1]
        parts.append(np.vstack([ends, mention])[:, is_pair])

    left, right, mention = np.concatenate(parts, axis=1)
    columns = {
        "left": left,
        "right": right,
        "sentence": sentence[mention],
        "mention": mention,
        "since": linked.since[mention],
    }
    aggregates = [("sentence", "count_distinct"), ("mention", "min"), ("since", "min")]
    pairs = pa.table(columns).group_by(["left", "right"]).aggregate(aggregates)
    pairs = pairs.filter(pc.greater_equal(pairs["sentence_count_distinct"], _MIN_TOGETHER))
    pairs = pairs.sort_by([("left", "ascending"), ("right", "ascending")])
    names = ["left", "right", "sentence_count_distinct", "mention_min", "since_min"]
    source, target, count, first, oldest = (
        column.to_numpy() for column in pairs.select(names).itercolumns()
    )
    alone = np.bincount(
        np.unique(sentence * size + entity) % size,
        minlength=size,
    )
    total = nearest_step(len(np.unique(sentence)))
    strength = _strength(
        count,
        alone[source],
        alone[target],
        total,
    )
    keep = (strength > 0) & strongest(source, target, strength * np.log1p(count), MAX_RELATED)
    return linked.relations(
        RelationType.RELATED_TO,
        source[keep],
        target[keep],
        linked.sentence_span(first[keep]),
        evidence=count[keep],
        since=oldest[keep],
        strength=strength[keep],
        co_occurrence_count=count[keep],
    )


def nearest_step(count: int) -> float:
    """The count, at least 2; of a larger corpus the nearest power of 2^(1/4)."""
    if count < _FEW:
        return float(max(2, count))
    return float(2.0 ** (round(_STEPS * math.log2(count)) / _STEPS))


def _strength(
    count: Longs,
    source_count: Longs,
    target_count: Longs,
    total: float,
) -> Floats:
    """Normalised pointwise mutual information, cut to [0, 1]; 1 when the two are never seen
    apart.
    """
    together = np.minimum(count / total, 1.0)
    by_chance = source_count * target_count.astype(np.float64)

    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.log(count * total / by_chance) / -np.log(together)

    return np.clip(
        np.where(together >= 1.0, 1.0, score),
        0.0,
        1.0,
    )


_AS_OF = re.compile(r"\b[Aa]s of (?:the (?:end|start|beginning) of )?(?=\S)")
_DATE_CHARS = 40


@dataclass(frozen=True)
class LinkedCorpus:
    """The corpus with every mention resolved: the entity of each mention and of each document's
    title (-1: none).
    """

    corpus: Corpus
    reading: Reading
    entity: Longs
    title: Longs
    entity_ids: pa.Array  # `_id`s

    @property
    def n_entities(self) -> int:
        """How many entities there are."""
        return len(self.entity_ids)

    @property
    def size(self) -> int:
        """What the first of two entities is multiplied by to number a pair of them."""
        return max(1, self.n_entities)

    @cached_property
    def document_ids(self) -> pa.Array:
        """The `_id` of each document."""
        ids = []
        for document in self.corpus.documents:
            ids.append(node_id("documents", document.key))

        return pa.array(ids, pa.string())

    @cached_property
    def since(self) -> Longs:
        """When each mention was written: as its sentence says ("as of May 2019"), else as its
        document does.
        """
        reading = self.reading
        since = self.corpus.dates[reading.document]
        first = np.searchsorted(reading.sentence_chunk, np.arange(len(self.corpus.texts) + 1))

        for chunk, text in enumerate(self.corpus.texts):
            for match in _AS_OF.finditer(text):
                place = match.end()
                times = times_in(text[place : place + _DATE_CHARS])
                if times and times[0].at == 0 and times[0].start is not None:
                    begins = reading.sentence_begin[first[chunk] : first[chunk + 1]]
                    sentence = first[chunk] + np.searchsorted(begins, place, "right") - 1
                    rows = slice(*np.searchsorted(reading.sentence, [sentence, sentence + 1]))
                    since[rows] = microseconds(times[0].start)

        return since

    def sentence_span(self, mention: Longs) -> tuple[Longs, Longs, Longs]:
        """Document and [begin, end) in it of the sentence each mention stands in."""
        sentence = self.reading.sentence[mention]
        chunk = self.reading.chunk[mention]
        offset = self.corpus.begins[chunk]
        return (
            self.reading.document[mention].astype(np.int64),
            offset + self.reading.sentence_begin[sentence],
            offset + self.reading.sentence_end[sentence],
        )

    def relations(
        self,
        kind: str,
        source: Longs,
        target: Longs,
        place: Place,
        evidence: Longs,
        since: Longs,
        **more: Any,
    ) -> pa.Table:
        """Relations of one type between rows of the entities, each read at a place; `more` are
        further columns.

        `since` is when the first document or sentence that states it was written; `ALWAYS`: not
        said.
        """
        document, *span = place
        where = pa.array(document)
        tail, head = (self.entity_ids.take(pa.array(ends)) for ends in (source, target))
        spanned = np.arange(len(source)).repeat(2)  # the relation of each end of a span
        spans = lists_array(
            np.stack(span, axis=1).ravel(),
            spanned,
            len(source),
        )
        cited = [self.document_ids.take(where), spans]
        columns = {
            **edge_columns(kind, tail, head, more.get("label")),
            "created": self.corpus.created.take(where),
            "provenance": pa.StructArray.from_arrays(
                cited,
                fields=list(arrow_schema(Provenance)),
            ),
            "evidence_count": pa.array(evidence),
            "valid_from": moments_array(since),
        }

        for name, values in more.items():
            columns[name] = pa.array(values)

        return fill("relations", len(source), columns)


Place = tuple[Longs, Longs, Longs]  # document, begin and end in it
# What sources state beside the text: documents in order, entities.
DocumentNames = tuple[Longs, Longs]


def link_chunks(
    linked: LinkedCorpus,
    stated_names: DocumentNames,
) -> tuple[pa.Table, Longs]:
    """Mentions and how often each entity is mentioned. A document's title counts once in each of
    its chunks.

    What a document without title states beside its text counts in its first chunk, since no title
    can carry it.
    """
    corpus = linked.corpus
    starts = linked.reading.start
    size = linked.size
    text_codes = linked.reading.chunk.astype(np.int64) * size + linked.entity
    title = linked.title[corpus.document_of]
    titled = np.flatnonzero(title >= 0)
    documents, entities = stated_names
    opening = corpus.opening_chunks[documents]
    bare = np.flatnonzero((linked.title[documents] < 0) & (opening >= 0))
    stated_codes = np.setdiff1d(opening[bare] * size + entities[bare], text_codes)
    title_codes = titled * size + title[titled]
    mentioned = np.concatenate([text_codes, title_codes, stated_codes])
    codes, row, count = np.unique(
        mentioned,
        return_inverse=True,
        return_counts=True,
    )
    text_row = row[: len(text_codes)]
    order = np.lexsort((starts, text_row))
    chunk = codes // size
    entity = codes % size
    ids = pa.array(
        [node_id("doc_chunks", key) for key in corpus.chunk_keys],
        pa.string(),
    )
    tail = ids.take(pa.array(chunk))
    head = linked.entity_ids.take(pa.array(entity))
    columns = {
        **edge_columns(MentionType.MENTIONS, tail, head),
        "count": pa.array(count),
        "positions": lists_array(
            starts[order],
            text_row[order],
            len(codes),
        ),
        "valid_from": moments_array(corpus.dates[corpus.document_of[chunk]]),
    }
    frequency = np.bincount(entity, count, linked.n_entities).astype(np.int64)
    return fill("mentions", len(codes), columns), frequency


def link_titles(linked: LinkedCorpus, stated_names: DocumentNames) -> pa.Table:
    """From the entity of a title to what its text names, and to what its source states beside the
    text.
    """
    size, (documents, entities) = linked.size, stated_names
    source = linked.title[linked.reading.document]
    stating = linked.title[documents]
    mentions = np.flatnonzero((source >= 0) & (source != linked.entity))
    statements = np.flatnonzero((stating >= 0) & (stating != entities))
    where = documents[statements]
    text_codes = source[mentions] * size + linked.entity[mentions]
    stated_codes = stating[statements] * size + entities[statements]
    # What texts name comes first, so that a relation is read there if it can be.
    codes, first, row = np.unique(
        np.concatenate([text_codes, stated_codes]),
        return_index=True,
        return_inverse=True,
    )
    spans = linked.sentence_span(mentions), (where, *linked.corpus.opening_spans(where))
    document, begin, end = np.concatenate(spans, axis=1)[:, first]
    count = np.maximum(np.bincount(row[: len(mentions)], minlength=len(codes)), 1)
    written = np.concatenate([linked.since[mentions], linked.corpus.dates[where]])
    return linked.relations(
        RelationType.REFERS_TO,
        codes // size,
        codes % size,
        (document, begin, end),
        evidence=count,
        since=oldest_dates(row, written, len(codes)),
    )


def link_triples(
    linked: LinkedCorpus,
    triples: Iterable[tuple[int, int, str, int]],
    senses: Sequence[Sense],
) -> Iterator[pa.Table]:
    """Relations that documents state as triples (document, subject, relation, object), in their own
    words.

    Each has the sentence that fits best, or the first chunk where none does. Things are entities,
    -1 for none; a relation of a thing to itself says nothing, and one that is stated twice counts
    twice.
    """
    stated: dict[RelationType, dict[tuple[int, int, str], list[int]]]
    stated = {kind: defaultdict(list) for kind in (RelationType.REFERS_TO, *_LABELS)}

    stating: list[int] = []
    for document, subject, relation, target in triples:
        if min(subject, target) >= 0 and subject != target and relation:
            kind = kind_of_relation(
                relation,
                senses[subject],
                senses[target],
            )
            stated[kind][subject, target, relation].append(document)
            stating.append(document)

    best = _find_sentences(linked, stating)
    dates = linked.corpus.dates
    for kind, relations in stated.items():
        rows = []
        labels = []
        for (source, target, label), documents in sorted(relations.items()):
            first = min(documents)
            oldest = dates[documents].min()
            mention = best(first, source, target)
            rows.append((source, target, first, len(documents), mention, oldest))
            labels.append(label)

        columns = np.array(rows, np.int64).reshape(-1, 6).T
        sources, targets, where, counts, mentions, since = columns
        begin, end = linked.corpus.opening_spans(where)
        with_sentence = np.flatnonzero(mentions >= 0)
        _, begin[with_sentence], end[with_sentence] = linked.sentence_span(mentions[with_sentence])
        yield linked.relations(
            kind,
            sources,
            targets,
            (where, begin, end),
            evidence=counts,
            since=since,
            label=labels,
        )


def _find_sentences(
    linked: LinkedCorpus,
    documents: Sequence[int],
) -> Callable[[int, int, int], int]:
    """For a document, a source and a target: a mention in the sentence that fits best.

    That is the first that names both ends, else the target, else the source; -1 for none. Only the
    wanted documents are read.
    """
    reading = linked.reading
    # By document and sentence.
    entities_of: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    first: dict[int, int] = {}
    chosen = np.flatnonzero(np.isin(reading.document, np.array(documents, np.int64)))
    columns = (reading.document[chosen], reading.sentence[chosen], linked.entity[chosen])

    for mention, document, sentence, entity in rows_of(chosen, *columns):
        entities_of[document][sentence].add(entity)
        first.setdefault(sentence, mention)

    def best(document: int, source: int, target: int) -> int:
        most = 0
        chosen_sentence = -1
        for sentence, entities in sorted(entities_of[document].items()):
            worth = 2 * (target in entities) + (source in entities)
            if worth > most:
                most = worth
                chosen_sentence = sentence

        return first[chosen_sentence] if most else -1

    return best


# How texts say that one thing was made from another: both words and article of each type.
_WAS = r"(?:is|was|are|were)(?: \w+ly)?"
_MADE_FROM = {
    RelationType.DERIVES_FROM: (
        rf"{_WAS} (?:derived from|based on|adapted from|an? (?:variant|fork|adaptation) of)"
        r"|derives from|builds on"
    ),
    RelationType.EXTENDS: rf"{_WAS} an? extension of|extends",
}
_BETWEEN = {
    kind: re.compile(rf",? (?:{words}) (?:the |an? )?") for kind, words in _MADE_FROM.items()
}
_LABELS = {
    RelationType.DERIVES_FROM: re.compile(
        rf"{_MADE_FROM[RelationType.DERIVES_FROM]}|derived from|based on|adapted from|forked from",
        re.IGNORECASE,
    ),
    RelationType.EXTENDS: re.compile(_MADE_FROM[RelationType.EXTENDS], re.IGNORECASE),
}
_MAX_BETWEEN = 48  # characters


def kind_of_relation(
    relation: str,
    source: Sense,
    target: Sense,
) -> RelationType:
    """The type of a stated relation by its words: one that says what a thing was made from, else a
    reference.
    """
    words = " ".join(relation.split())
    for kind, pattern in _LABELS.items():
        if pattern.fullmatch(words) and may_be_made(kind, source, target):
            return kind

    return RelationType.REFERS_TO


def link_derivations(
    linked: LinkedCorpus,
    senses: Sequence[Sense],
) -> Iterator[pa.Table]:
    """From a thing to the one it was made from, where a text says "X is derived from Y" or "X
    extends Y": a table for each type.
    """
    reading = linked.reading
    entity = linked.entity
    gap = reading.start[1:] - reading.end[:-1]
    near = (np.diff(reading.sentence) == 0) & (gap > 0) & (gap <= _MAX_BETWEEN)
    rows = np.flatnonzero(near & (np.diff(entity) != 0)).tolist()

    for kind, between in _BETWEEN.items():
        places = []
        for row in rows:
            text = linked.corpus.texts[reading.chunk[row]]
            is_said = between.fullmatch(
                text,
                reading.end[row],
                reading.start[row + 1],
            )
            if is_said and may_be_made(
                kind,
                senses[entity[row]],
                senses[entity[row + 1]],
            ):
                places.append(row)

        yield _relate_neighbours(
            linked,
            kind,
            np.array(places, np.int64),
        )


def _relate_neighbours(
    linked: LinkedCorpus,
    kind: RelationType,
    mentions: Longs,
) -> pa.Table:
    """Relations from the entity of each mention to that of the next one."""
    entity = linked.entity
    size = linked.size
    codes, first, row, count = np.unique(
        entity[mentions] * size + entity[mentions + 1],
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    return linked.relations(
        kind,
        codes // size,
        codes % size,
        linked.sentence_span(mentions[first]),
        evidence=count,
        since=oldest_dates(
            row,
            linked.since[mentions],
            len(codes),
        ),
    )


def may_be_made(
    kind: RelationType,
    source: Sense,
    target: Sense,
) -> bool:
    """Whether one thing can be made from the other: works, methods and products, no people and no
    places.
    """
    is_place = NameType.GPE in (source.kind, target.kind)
    return not is_place and allows(kind, source.type, target.type)


# `coref` edges: from the entity of a short form to the one entity that documents mean by it. Within
# a document a short form is resolved at once (`resolve.py`): where a text names Gene Hackman, its
# Hackman is a mention of Gene Hackman. Another document may say Hackman alone, which stays an
# entity of its own. Where documents that tell agree on one referent, an edge joins the two: Hackman
# to Gene Hackman, Lothair II to Lothair II (king). The edge is a supposition with the weight of
# one; the mentions of the short form stay its own. An acronym that all texts explain the same way
# needs no edge: it is folded into the name that it stands for (`meanings.py`).


def link_short_forms(
    linked: LinkedCorpus,
    plain: Longs,
    senses: Sequence[Sense],
) -> pa.Table:
    """Short form to referent, with the sentence in which the first document says so.

    `plain` is the entity that the name of each mention stands for where its document does not tell
    (-1: none); `senses` are those of the entities. A short form with several referents in the
    corpus has no edge: it is ambiguous.
    """
    size = linked.size
    n_documents = max(1, len(linked.corpus.documents))
    mentions = np.flatnonzero((plain >= 0) & (plain != linked.entity))
    codes, first, row = np.unique(
        plain[mentions] * size + linked.entity[mentions],
        return_index=True,
        return_inverse=True,
    )
    stating = np.unique(row * n_documents + linked.reading.document[mentions])
    documents = np.bincount(stating // n_documents, minlength=len(codes))
    short = codes // size
    full = codes % size
    alone = np.flatnonzero(np.bincount(short)[short] == 1)

    is_selected = []
    for pair in alone:
        is_selected.append(_stands_for(senses[short[pair]], senses[full[pair]]))

    selected = alone[np.array(is_selected, np.bool_)]
    return linked.relations(
        RelationType.COREF,
        short[selected],
        full[selected],
        linked.sentence_span(mentions[first[selected]]),
        evidence=documents[selected],
        since=oldest_dates(
            row,
            linked.since[mentions],
            len(codes),
        )[selected],
    )


def _stands_for(short: Sense, full: Sense) -> bool:
    """Whether a name is the other without its qualifier, or the family name of a person.

    Other words inside a longer name, such as Germany in West Germany, and given names mean
    something else as often.
    """
    words = fold_letters(full.stem).split()
    letters = fold_letters(short.name)

    if full.qualifier and fold_letters(full.stem) == letters:
        return True

    is_person = full.type == EntityType.PERSON or (len(words) > 1 and words[0] in GIVEN_NAMES)
    return is_person and letters.split()[-1] == words[-1]
