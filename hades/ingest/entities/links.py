"""Co-occurrence, coref, stated triples, titles."""

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
from numpy.typing import NDArray

from hades.ingest.entities.corpus import Corpus
from hades.ingest.entities.find_names import Reading
from hades.ingest.entities.resolve import Sense
from hades.ingest.entities.tables import edge_columns, fill, lists_array, moments_array, oldest_dates
from hades.text.dates import times_in
from hades.text.word_lists import GIVEN_NAMES
from hades.text.words import Longs, fold_letters, strongest
from schemas.edges import MentionType, Provenance, allows
from schemas.ids import microseconds, node_id
from schemas.nodes import EntityType, NameType, RelationType
from schemas.record import arrow_schema

# Things that are named together: pairs that share sentences, scored by how much more often than chance. The score
# is normalised pointwise mutual information over sentences, in [0, 1] for pairs that attract each other. Each thing
# keeps only its strongest partners, so that what is everywhere does not tie everything to everything. From 256
# sentences on their number counts in steps of 2^(1/4): a document that is added or removed then leaves the score of
# every pair that it does not name as it was, and topics, weights and bridges have only its own pairs to follow.
_FEW = 256
_STEPS = 4  # to a doubling of the number of sentences
MAX_RELATED = 12  # co-occurrence relations kept for one entity
_MIN_TOGETHER = 2  # sentences in which two entities must meet
_WINDOW = 12  # mentions of one sentence that are paired with each other


def link_companions(linked: LinkedCorpus) -> pa.Table:
    """Entities named in the same sentences, from the smaller id to the larger, as old as the oldest such sentence.

    Each pair is cited by the first sentence that holds both.
    """
    thing, sentence, size = linked.entity, linked.reading.sentence, max(1, linked.n_entities)
    parts = []
    for step in range(1, _WINDOW):
        here = np.flatnonzero(sentence[step:] == sentence[: max(0, len(sentence) - step)])
        here = here[thing[here] != thing[here + step]]
        one, other = thing[here], thing[here + step]
        parts.append((np.minimum(one, other), np.maximum(one, other), sentence[here], here, linked.since[here]))
    columns = map(np.concatenate, zip(*parts, strict=True))
    named = pa.table(dict(zip(("left", "right", "sentence", "mention", "since"), columns, strict=True)))
    told = [("sentence", "count_distinct"), ("mention", "min"), ("since", "min")]
    pairs = named.group_by(["left", "right"]).aggregate(told)
    pairs = pairs.filter(pc.greater_equal(pairs.column("sentence_count_distinct"), _MIN_TOGETHER))
    pairs = pairs.sort_by([("left", "ascending"), ("right", "ascending")])
    names = ("left", "right", "sentence_count_distinct", "mention_min", "since_min")
    left, right, count, first, oldest = (pairs.column(name).to_numpy() for name in names)
    alone = np.bincount(np.unique(sentence * size + thing) % size, minlength=size)
    total = nearest_step(len(np.unique(sentence)))
    strength = _strength(count, alone[left], alone[right], total)
    keep = (strength > 0) & strongest(left, right, strength * np.log1p(count), MAX_RELATED)
    more = {"strength": strength[keep], "co_occurrence_count": count[keep]}
    place = linked.sentence_span(first[keep])
    return linked.relations(RelationType.RELATED_TO, left[keep], right[keep], place, count[keep], oldest[keep], **more)


def nearest_step(count: int) -> float:
    """The count, at least 2; of a larger corpus the nearest power of 2^(1/4)."""
    if count < _FEW:
        return float(max(2, count))
    return float(2.0 ** (round(_STEPS * math.log2(count)) / _STEPS))


def _strength(count: Longs, left: Longs, right: Longs, total: float) -> NDArray[np.float64]:
    """Normalised pointwise mutual information, cut to [0, 1]; 1 when the two are never seen apart."""
    together = np.minimum(count / total, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.log(count * total / (left * right.astype(np.float64))) / -np.log(together)
    return np.clip(np.where(together >= 1.0, 1.0, score), 0.0, 1.0)


_AS_OF = re.compile(r"\b[Aa]s of (?:the (?:end|start|beginning) of )?(?=\S)")
_DATE_CHARS = 40


@dataclass(frozen=True)
class LinkedCorpus:
    """The corpus with every mention resolved: the entity of each mention and of each document's title (-1: none)."""

    corpus: Corpus
    reading: Reading
    entity: Longs
    title: Longs
    entity_ids: pa.Array  # `_id`s

    @property
    def n_entities(self) -> int:
        """How many entities there are."""
        return len(self.entity_ids)

    @cached_property
    def document_ids(self) -> pa.Array:
        """The `_id` of each document."""
        return pa.array([node_id("documents", one.key) for one in self.corpus.documents], pa.string())

    @cached_property
    def since(self) -> Longs:
        """When each mention was written: as its sentence says ("as of May 2019"), else as its document does."""
        reading = self.reading
        since = self.corpus.dates[reading.document]
        first = np.searchsorted(reading.sentence_chunk, np.arange(len(self.corpus.texts) + 1))
        for chunk, text in enumerate(self.corpus.texts):
            for said in _AS_OF.finditer(text):
                times = times_in(text[said.end() : said.end() + _DATE_CHARS])
                if times and times[0].at == 0 and times[0].start is not None:
                    begins = reading.sentence_begin[first[chunk] : first[chunk + 1]]
                    sentence = first[chunk] + np.searchsorted(begins, said.end(), side="right") - 1
                    rows = slice(*np.searchsorted(reading.sentence, [sentence, sentence + 1]))
                    since[rows] = microseconds(times[0].start)
        return since

    def sentence_span(self, mention: Longs) -> tuple[Longs, Longs, Longs]:
        """Document and [begin, end) in it of the sentence each mention stands in."""
        sentence, chunk = self.reading.sentence[mention], self.reading.chunk[mention]
        offset = self.corpus.begins[chunk]
        return (
            self.reading.document[mention].astype(np.int64),
            offset + self.reading.sentence_begin[sentence],
            offset + self.reading.sentence_end[sentence],
        )

    def relations(
        self, kind: str, source: Longs, target: Longs, place: Place, evidence: Longs, since: Longs, **more: Any
    ) -> pa.Table:
        """Relations of one type between rows of the entities, each read at a place; `more` are further columns.

        `since` is when the first document or sentence that states it was written; `ALWAYS`: not said.
        """
        document, *span = place
        where = pa.array(document)
        tail, head = (self.entity_ids.take(pa.array(ends)) for ends in (source, target))
        cited = [
            self.document_ids.take(where),
            lists_array(np.stack(span, axis=1).ravel(), np.arange(len(source)).repeat(2), len(source)),
        ]
        columns = {
            **edge_columns(kind, tail, head, more.get("label")),
            "created": self.corpus.created.take(where),
            "provenance": pa.StructArray.from_arrays(cited, fields=list(arrow_schema(Provenance))),
            "evidence_count": pa.array(evidence),
            "valid_from": moments_array(since),
            **{name: pa.array(values) for name, values in more.items()},
        }
        return fill("relations", len(source), columns)


Place = tuple[Longs, Longs, Longs]  # document, begin and end in it
DocumentNames = tuple[Longs, Longs]  # what sources state beside the text: documents in order, entities


def link_chunks(linked: LinkedCorpus, given: DocumentNames) -> tuple[pa.Table, Longs]:
    """Mentions and how often each entity is mentioned. A document's title counts once in each of its chunks.

    What a document without title states beside its text counts in its first chunk, since no title can carry it.
    """
    size = max(1, linked.n_entities)
    said = linked.reading.chunk.astype(np.int64) * size + linked.entity
    title = linked.title[linked.corpus.document_of]
    titled = np.flatnonzero(title >= 0)
    documents, entities = given
    opening = linked.corpus.opening_chunks[documents]
    bare = np.flatnonzero((linked.title[documents] < 0) & (opening >= 0))
    beside = np.setdiff1d(opening[bare] * size + entities[bare], said)
    codes, row = np.unique(np.concatenate([said, titled * size + title[titled], beside]), return_inverse=True)
    count = np.bincount(row, minlength=len(codes))
    row_said = row[: len(said)]
    order = np.lexsort((linked.reading.start, row_said))
    positions = lists_array(linked.reading.start[order], row_said[order], len(codes))
    chunk, entity = codes // size, codes % size
    ids = pa.array([node_id("doc_chunks", key) for key in linked.corpus.chunk_keys], pa.string())
    columns = {
        **edge_columns(MentionType.MENTIONS, ids.take(pa.array(chunk)), linked.entity_ids.take(pa.array(entity))),
        "count": pa.array(count),
        "positions": positions,
        "valid_from": moments_array(linked.corpus.dates[linked.corpus.document_of[chunk]]),
    }
    frequency = np.bincount(entity, weights=count, minlength=linked.n_entities).astype(np.int64)
    return fill("mentions", len(codes), columns), frequency


def link_titles(linked: LinkedCorpus, given: DocumentNames) -> pa.Table:
    """From the entity of a title to what its text names, and to what its source states beside the text."""
    size, (documents, entities) = max(1, linked.n_entities), given
    source, stating = linked.title[linked.reading.document], linked.title[documents]
    held = np.flatnonzero((source >= 0) & (source != linked.entity))
    told = np.flatnonzero((stating >= 0) & (stating != entities))
    where = documents[told]
    # What texts name comes first, so that a relation is read there if it can be.
    codes = np.concatenate([source[held] * size + linked.entity[held], stating[told] * size + entities[told]])
    codes, first, row = np.unique(codes, return_index=True, return_inverse=True)
    places = zip(linked.sentence_span(held), (where, *linked.corpus.opening_spans(where)), strict=True)
    document, begin, end = (np.concatenate(place)[first] for place in places)
    count = np.maximum(np.bincount(row[: len(held)], minlength=len(codes)), 1)
    since = oldest_dates(row, np.concatenate([linked.since[held], linked.corpus.dates[where]]), len(codes))
    return linked.relations(RelationType.REFERS_TO, codes // size, codes % size, (document, begin, end), count, since)


def link_triples(
    linked: LinkedCorpus, triples: Iterable[tuple[int, int, str, int]], senses: Sequence[Sense]
) -> Iterator[pa.Table]:
    """Relations that documents state as triples (document, subject, relation, object), in their own words.

    Each has the sentence that fits best, or the first chunk where none does. Things are entities, -1 for none; a
    relation of a thing to itself says nothing, and one that is stated twice counts twice.
    """
    stated: dict[RelationType, dict[tuple[int, int, str], list[int]]]
    stated = {kind: defaultdict(list) for kind in (RelationType.REFERS_TO, RelationType.DERIVES_FROM)}
    for document, subject, relation, target in triples:
        if min(subject, target) >= 0 and subject != target and relation:
            is_derived = says_derived(relation) and may_derive(senses[subject], senses[target])
            kind = RelationType.DERIVES_FROM if is_derived else RelationType.REFERS_TO
            stated[kind][subject, target, relation].append(document)
    best = _find_sentences(
        linked, [one for kind in stated.values() for documents in kind.values() for one in documents]
    )
    dates = linked.corpus.dates
    for kind, relations in stated.items():
        rows, labels = [], []
        for (source, target, label), documents in sorted(relations.items()):
            first = min(documents)
            rows.append((source, target, first, len(documents), best(first, source, target), dates[documents].min()))
            labels.append(label)
        sources, targets, where, count, mention, oldest = np.array(rows, dtype=np.int64).reshape(-1, 6).T
        begin, end = linked.corpus.opening_spans(where)
        named = np.flatnonzero(mention >= 0)
        _, begin[named], end[named] = linked.sentence_span(mention[named])
        yield linked.relations(kind, sources, targets, (where, begin, end), count, oldest, label=labels)


def _find_sentences(linked: LinkedCorpus, wanted: Sequence[int]) -> Callable[[int, int, int], int]:
    """For a document, a source and a target: a mention in the sentence that fits best.

    That is the first that names both ends, else the target, else the source; -1 for none. Only the wanted documents
    are read.
    """
    named: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))  # by document and sentence
    first: dict[int, int] = {}
    columns = (linked.reading.document, linked.reading.sentence, linked.entity)
    chosen = np.flatnonzero(np.isin(columns[0], np.array(wanted, dtype=np.int64)))
    for mention, document, sentence, entity in zip(
        chosen.tolist(), *(column[chosen].tolist() for column in columns), strict=True
    ):
        named[document][sentence].add(entity)
        first.setdefault(sentence, mention)

    def best(document: int, source: int, target: int) -> int:
        worth = {where: 2 * (target in own) + (source in own) for where, own in named[document].items()}
        top = max(worth.values(), default=0)
        return first[min(where for where, value in worth.items() if value == top)] if top else -1

    return best


_DERIVES = (
    r"(?:(?:is|was|are|were)(?: \w+ly)? (?:derived from|based on|adapted from"
    r"|an? (?:extension|variant|fork|adaptation) of)"
    r"|derives from|extends|builds on)"
)
_DERIVES_BETWEEN = re.compile(rf",? {_DERIVES} (?:the |an? )?")
_DERIVES_LABEL = re.compile(rf"(?:{_DERIVES}|derived from|based on|adapted from|forked from)", re.IGNORECASE)
_MAX_BETWEEN = 48  # characters


def says_derived(relation: str) -> bool:
    """Whether the words of a stated relation say that its subject was made from its object."""
    return _DERIVES_LABEL.fullmatch(" ".join(relation.split())) is not None


def link_derivations(linked: LinkedCorpus, senses: Sequence[Sense]) -> pa.Table:
    """From a thing to the one it was made from, where a text says "X is derived from Y" or "X extends Y"."""
    reading, entity = linked.reading, linked.entity
    gap = reading.start[1:] - reading.end[:-1]
    near = (reading.sentence[1:] == reading.sentence[:-1]) & (gap > 0) & (gap <= _MAX_BETWEEN)
    near &= entity[1:] != entity[:-1]
    places = [
        row
        for row in np.flatnonzero(near).tolist()
        if _DERIVES_BETWEEN.fullmatch(linked.corpus.texts[reading.chunk[row]], reading.end[row], reading.start[row + 1])
        and may_derive(senses[entity[row]], senses[entity[row + 1]])
    ]
    said, size = np.array(places, dtype=np.int64), max(1, linked.n_entities)
    codes, first, row, count = np.unique(
        entity[said] * size + entity[said + 1], return_index=True, return_inverse=True, return_counts=True
    )
    place, since = linked.sentence_span(said[first]), oldest_dates(row, linked.since[said], len(codes))
    return linked.relations(RelationType.DERIVES_FROM, codes // size, codes % size, place, count, since)


def may_derive(source: Sense, target: Sense) -> bool:
    """Whether one thing can be made from the other: works, methods and products, no people and no places."""
    is_place = NameType.GPE in (source.kind, target.kind)
    return not is_place and allows(RelationType.DERIVES_FROM, source.type, target.type)


# `coref` edges: from the entity of a short form to the one entity that documents mean by it. Within a document a
# short form is resolved at once (`resolve.py`): where a text names Gene Hackman, its Hackman is a mention of
# Gene Hackman. Another document may say Hackman alone, which stays an entity of its own. Where documents that tell
# agree on one referent, an edge joins the two: Hackman to Gene Hackman, Lothair II to Lothair II (king). The edge
# is a supposition with the weight of one; the mentions of the short form stay its own. An acronym that all texts
# explain the same way needs no edge: it is folded into the name that it stands for (`meanings.py`).


def link_short_forms(linked: LinkedCorpus, plain: Longs, senses: Sequence[Sense]) -> pa.Table:
    """Short form to referent, with the sentence in which the first document says so.

    `plain` is the entity that the name of each mention stands for where its document does not tell (-1: none); `senses`
    are those of the entities. A short form with several referents in the corpus has no edge: it tells too little.
    """
    size, n_documents = max(1, linked.n_entities), max(1, len(linked.corpus.documents))
    held = np.flatnonzero((plain >= 0) & (plain != linked.entity))
    codes, first, row = np.unique(plain[held] * size + linked.entity[held], return_index=True, return_inverse=True)
    told = np.unique(row * n_documents + linked.reading.document[held]) // n_documents
    documents = np.bincount(told, minlength=len(codes))
    short, full = codes // size, codes % size
    alone = np.flatnonzero(np.bincount(short, minlength=size)[short] == 1)
    kept = np.array(
        [one for one in alone.tolist() if _stands_for(senses[short[one]], senses[full[one]])], dtype=np.int64
    )
    place, since = linked.sentence_span(held[first[kept]]), oldest_dates(row, linked.since[held], len(codes))[kept]
    return linked.relations(RelationType.COREF, short[kept], full[kept], place, documents[kept], since)


def _stands_for(short: Sense, full: Sense) -> bool:
    """Whether a name is the other without its qualifier, or the family name of a person.

    Other words inside a longer name, such as Germany in West Germany, and given names mean something else as often.
    """
    words, letters = fold_letters(full.stem).split(), fold_letters(short.name)
    if full.qualifier and fold_letters(full.stem) == letters:
        return True
    is_person = full.type == EntityType.PERSON or (len(words) > 1 and words[0] in GIVEN_NAMES)
    return is_person and letters.split()[-1] == words[-1]
