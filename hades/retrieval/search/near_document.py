"""A question asked from a document."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from hades.errors import HadesError
from hades.ports.graph import CHUNK, Hits, Kind, Numbers, Passage, SourceFacts
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import FoundPassage, Question, rank_by_worth
from hades.retrieval.core.words import (
    IN,
    MENTIONS,
    OUT,
    Floats,
    content_words,
    fitted_file,
    passage_body,
    stem,
    wording,
)
from hades.retrieval.features.passages import (
    Columns,
    reciprocal,
    reciprocal_found,
    share_of_greatest,
    weigh,
)
from hades.retrieval.search.seeds import NO_HITS
from hades.retrieval.walks import pagerank
from schemas.ids import content_key
from schemas.sources import SourceKind

# A question that is asked from somewhere: words, vectors and a walk that know both what is asked
# and where. A sentence of a paper says little by itself; the paper says what it is about, and its
# neighbours in the graph are what papers like it lead to.

# From a place the stated relations lead on; what a text merely speaks of leads everywhere.
FACTORS: Mapping[str, float] = {
    "mentions": 0.3,
    "refers_to": 0.1,
    "similar_to": 0.1,
    "related_to": 0.0,
    "references": 0.3,
    "next": 0.3,
    "PART_OF": 0.0,
    "SUBTOPIC_OF": 0.0,
    "SIBLING_OF": 0.0,
}
_LEAN = 0.5  # how far the vector of the question leans to that of the place
_DEPTH = 100  # of each ranking
_DAMPING, _EPSILON, _MAX_WORK = 0.5, 3e-6, 2_000_000


def lean_to(
    view: MeteredView,
    question: Question,
    place: Numbers,
) -> NDArray[np.float32] | None:
    """The question's vector drawn towards the mean of the place's, unit length; None where nothing
    compares.
    """
    if question.vector is None or question.model not in view.info.models.get(Kind.CHUNK, ()):
        return None

    vectors, has_vector = view.vectors(place, model=question.model)
    if not has_vector.any():
        return question.vector

    mean = vectors[has_vector].mean(axis=0)
    drawn = question.vector + _LEAN * mean / max(float(np.linalg.norm(mean)), 1e-9)
    leaning = drawn / max(float(np.linalg.norm(drawn)), 1e-9)
    return np.asarray(leaning, np.float32)


def walk_from(
    view: MeteredView,
    question: Question,
    start: Numbers,
) -> Hits:
    """Passages by where a walk is that starts over at the place."""
    mass = dict.fromkeys(start.tolist(), 1.0)
    ppr = pagerank.walk_from(
        view,
        mass,
        question.mask,
        FACTORS,
        max_work=_MAX_WORK,
        damping=_DAMPING,
        epsilon=_EPSILON,
    )
    ours = np.flatnonzero(view.kinds(ppr.numbers) == CHUNK)[:_DEPTH]
    return Hits(ppr.numbers[ours], ppr.scores[ours].astype(np.float32))


# Works that a text refers to as papers do, by author and year: "(Kadlec et al., 2016)", "Nair and
# Tambe [2003]". The graph knows authors as entities that works refer to. A surname is looked up
# among the names of entities; what refers to one of those is a work of that author, and the
# passages that are about such a work are what the reference may mean.
_NAME = r"[^\W\d_a-z][^\W\d_]*(?:['’-][^\W\d_]+)*"
_YEAR = r"(?:,?\s*[(\[]?\s*(?P<year>(?:19|20)\d\d)[a-z]?\b|\s*(?P<numbered>\[\d))"
_REFERENCE = re.compile(
    rf"(?P<first>{_NAME})(?:(?:,\s*{_NAME})*,?\s+(?:and|&)\s+(?P<last>{_NAME})"
    rf"|\s+(?P<others>et\s+al)\.?)?{_YEAR}?"
)
_REFERS = "refers_to"  # from a work to its authors
_MOST = 12  # references of one text that are looked up
_PEOPLE = 64  # entities looked at for one surname
_WORKS = 400  # works looked at for one reference
_ABOUT = 0.6  # weight of a mention from which a passage is about the entity


@dataclass(frozen=True)
class Reference:
    """A work by the surnames of its first and last named author, and its year; None where the text
    gives none.
    """

    names: tuple[str, ...]
    year: int | None


# References, each with the passages of works by all its named authors, or by the first of them.
ReferredWorks = list[tuple[Reference, Numbers]]


def references_in(text: str) -> list[Reference]:
    """The references of a text, each once.

    A name alone is none: a year or "et al" stands behind it, or a second name and a number in
    brackets.
    """
    references: dict[Reference, None] = {}
    for match in _REFERENCE.finditer(text):
        year = int(match["year"]) if match["year"] else None
        if year is not None or match["others"] or (match["last"] and match["numbered"]):
            names = tuple(name for name in (match["first"], match["last"]) if name)
            references[Reference(names, year)] = None

    return list(references)[:_MOST]


def referred_works(view: MeteredView, text: str) -> ReferredWorks:
    """The passages that the references of a text may mean; no document is read.

    They are of works of every named author, or of the first where these share none.
    """
    references = references_in(text)

    by_name: dict[str, Numbers] = {}
    for reference in references:
        by_name |= {name: _works_by(view, name) for name in reference.names}

    referred: ReferredWorks = []
    for reference in references:
        works = reduce(np.intersect1d, [by_name[name] for name in reference.names])
        if not len(works):
            works = by_name[reference.names[0]]
        referred.append((reference, _passages_about(view, works)))

    return referred


def _works_by(view: MeteredView, name: str) -> Numbers:
    """Entities that refer to someone of this name."""
    people = view.lexical(
        name,
        kind=Kind.ENTITY,
        limit=_PEOPLE,
    ).numbers
    if not len(people):
        return people

    return np.unique(
        view.expand(
            people,
            direction=IN,
            types=[_REFERS],
            fanout=_WORKS,
        ).target
    )


def _passages_about(view: MeteredView, works: Numbers) -> Numbers:
    """The passages that state these works as what they are about."""
    if not len(works):
        return works

    expansion = view.expand(
        works[:_WORKS],
        direction=IN,
        types=[MENTIONS],
        fanout=4,
    )
    return np.unique(expansion.target[expansion.weight >= _ABOUT])


# A question that is asked from somewhere, ranked by what was fitted: candidates of every channel
# that knows the place. Words and vectors of the question and of the place, a walk from the place, a
# walk from what resembles the question there, and works that the question refers to by author give
# candidates. Two linear looks rank them: the first without reading, the second with the words and
# dates of the passages that were read. Passages of the place itself are left out. The coefficients
# are `models/fitted/placed.json` (`benchmarks/fit_placed.py`, fitted on citation sentences). The
# rank in the walk from the place is no column: the sentences of the fit ask for citations that were
# taken out of the graph, so what stands beside the place would be learned as a wrong answer.
_CITES = "cites"
_RESEMBLING = 20  # passages near the question, there, from which the second walk starts
_OF_A_REFERENCE = 20  # passages of one reference that become candidates
_UNREACHED = 1e-7  # what a passage counts that a walk did not reach; logarithms need a floor


@dataclass(frozen=True)
class PlacedCandidates:
    """Candidates with what each channel knows of them: `columns` by name, arrays of one length."""

    nodes: Numbers
    columns: Columns
    works: ReferredWorks
    since: datetime | None  # when the place was written

    def take(self, rows: Numbers) -> PlacedCandidates:
        """These rows alone."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return PlacedCandidates(
            self.nodes[rows],
            columns,
            self.works,
            self.since,
        )


def search_placed(
    view: MeteredView,
    question: Question,
    limit: int,
) -> list[FoundPassage]:
    """Passages for a question asked from `question.near`, best first; `limit` are read and
    judged.
    """
    candidates = gather_placed(view, question)
    weights = fitted_file("placed")
    order = np.argsort(
        -weigh(candidates.columns, weights["first"]),
        kind="stable",
    )[:limit]
    passages = view.passages(candidates.nodes[order])
    judged = candidates.take(order[: len(passages)])

    if not passages:
        return []

    worth = weigh(read_placed(question, judged, passages), weights["second"])
    return rank_by_worth(
        judged.nodes.tolist(),
        worth,
        lambda row: _tiers(judged.columns, row),
    )


def gather_placed(view: MeteredView, question: Question) -> PlacedCandidates:
    """The candidates and what each channel gave them; only the place itself is read."""
    near = np.array(question.near, np.int64)
    is_chunk = view.kinds(near) == CHUNK
    pieces = near[is_chunk]
    entities = near[~is_chunk]
    passages = view.passages(pieces) if len(pieces) else []
    texts = [passage.text for passage in passages]

    if not texts:
        texts = [facts.name for facts in view.nodes(entities)]

    by_words = view.lexical(
        question.text,
        kind=Kind.CHUNK,
        limit=_DEPTH,
    )
    text_there = " ".join([question.text, *texts])
    by_words_there = view.lexical(
        text_there,
        kind=Kind.CHUNK,
        limit=_DEPTH,
    )
    leaning = lean_to(
        view,
        question,
        pieces if len(pieces) else entities,
    )
    by_vector_there = by_vector = alike = NO_HITS

    if leaning is not None and question.vector is not None:
        by_vector_there = _nearest(view, question, leaning)
        by_vector = _nearest(view, question, question.vector)

    walk = walk_from(
        view,
        question,
        entities if len(entities) else pieces,
    )
    if len(by_vector_there):
        alike = walk_from(
            view,
            question,
            by_vector_there.numbers[:_RESEMBLING],
        )

    works = referred_works(view, question.text)
    channels = (by_words, by_words_there, by_vector_there, by_vector, walk, alike)
    found = [hits.numbers[:_DEPTH] for hits in channels]
    found += [_closest(view, question, leaning, meant) for _, meant in works]
    distinct = dict.fromkeys(np.concatenate(found).tolist())
    nodes = np.array(list(distinct), np.int64)
    nodes = nodes[~np.isin(nodes, pieces)]
    words = _column(by_words, nodes)
    words_there = _column(by_words_there, nodes)
    columns = {
        "words": share_of_greatest(words),
        "words_rank": reciprocal_found(words),
        "words_there": share_of_greatest(words_there),
        "words_there_rank": reciprocal_found(words_there),
        **_cosines(view, question, leaning, nodes),
        "walk": _reach(walk, nodes),
        "alike": _reach(alike, nodes),
        **_reference_columns(works, nodes),
        "cited": _cited(view, nodes),
    }
    dates = (passage.timestamp for passage in passages if passage.timestamp is not None)
    return PlacedCandidates(
        nodes,
        columns,
        works,
        since=next(dates, None),
    )


def _nearest(
    view: MeteredView,
    question: Question,
    vector: NDArray[np.float32],
) -> Hits:
    return view.nearest(
        vector,
        kind=Kind.CHUNK,
        model=question.model,
        limit=_DEPTH,
    )


def _reach(walk: Hits, nodes: Numbers) -> Floats:
    """How well a walk reached nodes: logarithms, 0 for the best of them."""
    logs = np.log(_column(walk, nodes) + _UNREACHED)
    return np.asarray(logs - logs.max(initial=np.log(_UNREACHED)))


def read_placed(
    question: Question,
    candidates: PlacedCandidates,
    passages: Sequence[Passage],
) -> Columns:
    """The columns of candidates with what reading them adds: their words, their title, and when
    they were written.
    """
    bodies = []
    for passage in passages:
        bodies.append(passage_body(passage.title, passage.text))

    overlap = wording(question.text, bodies)
    question_stems = frozenset(map(stem, content_words(question.text)))

    titles = []
    for passage in passages:
        titles.append(frozenset(map(stem, content_words(passage.title))))

    title_shares = []
    for stems in titles:
        title_shares.append(len(stems & question_stems) / max(1, len(stems)))

    since = candidates.since
    dates = [passage.timestamp for passage in passages]

    is_later = []
    for date in dates:
        is_later.append(since is not None and date is not None and date > since)

    years = [None if date is None else date.year for date in dates]
    return {
        **candidates.columns,
        "closely": share_of_greatest(overlap.bm25),
        "holds": overlap.rarity @ overlap.holds / max(float(overlap.rarity.sum()), 1e-9),
        "title": np.array(title_shares),
        "later": np.array(is_later, np.float64),
        **_year_columns(
            candidates.works,
            candidates.nodes,
            years,
        ),
    }


def _closest(
    view: MeteredView,
    question: Question,
    vector: np.ndarray | None,
    nodes: Numbers,
) -> Numbers:
    """The few of these passages that are nearest to the question."""
    if vector is None or not len(nodes):
        return nodes[:_OF_A_REFERENCE]

    cosines = view.cosines(vector, nodes, model=question.model)
    return nodes[np.argsort(-cosines, kind="stable")[:_OF_A_REFERENCE]]


def _cosines(
    view: MeteredView,
    question: Question,
    leaning: np.ndarray | None,
    nodes: Numbers,
) -> Columns:
    """Cosines with the question, and with the question drawn to the place; 0 where nothing
    compares.
    """
    if leaning is None or question.vector is None:
        names = ("cosine", "cosine_rank", "cosine_there", "cosine_there_rank")
        return {name: np.zeros(len(nodes)) for name in names}

    exact = view.cosines(
        question.vector,
        nodes,
        model=question.model,
    ).astype(np.float64)
    leaning_cosines = view.cosines(leaning, nodes, model=question.model).astype(np.float64)
    return {
        "cosine": exact - exact.max(initial=-1.0),
        "cosine_rank": reciprocal(exact),
        "cosine_there": leaning_cosines - leaning_cosines.max(initial=-1.0),
        "cosine_there_rank": reciprocal(leaning_cosines),
    }


def _reference_columns(works: ReferredWorks, nodes: Numbers) -> Columns:
    """Whether a reference may mean a passage, and how few others it may mean."""
    is_meant = np.zeros(len(nodes))
    rarity = np.zeros(len(nodes))

    for _, passages in works:
        among = np.isin(nodes, passages)
        is_meant[among] = 1.0
        rarity[among] = np.maximum(rarity[among], 1.0 / (1.0 + np.log1p(len(passages))))

    return {
        "reference": is_meant,
        "reference_rare": rarity,
    }


def _year_columns(
    works: ReferredWorks,
    nodes: Numbers,
    years: Sequence[int | None],
) -> Columns:
    """Whether a reference that may mean a passage gives its year, or the one after; and one that it
    cannot mean.
    """
    exact = np.zeros(len(nodes))
    next_year = np.zeros(len(nodes))
    misfit = np.zeros(len(nodes))
    stated_years = np.array([-1 if year is None else year for year in years])

    for reference, passages in works:
        if reference.year is not None:
            among = np.isin(nodes, passages) & (stated_years >= 0)
            ahead = reference.year - stated_years
            exact[among & (ahead == 0)] = 1.0
            next_year[among & (ahead == 1)] = 1.0
            misfit[among & ((ahead < 0) | (ahead > 1))] = 1.0

    fits = np.maximum(exact, next_year)
    return {
        "year": exact,
        "year_before": np.where(exact > 0, 0.0, next_year),
        "year_other": np.where(fits > 0, 0.0, misfit),
    }


def _cited(view: MeteredView, nodes: Numbers) -> Floats:
    """The logarithm of how often what a passage is about is cited."""
    expansion = view.expand(
        nodes,
        direction=OUT,
        types=[MENTIONS],
        fanout=1,
    )
    degrees = view.degree(
        expansion.target,
        direction=IN,
        types=[_CITES],
    ).astype(np.float64)
    counts = np.zeros(len(nodes))
    np.maximum.at(counts, expansion.row, degrees)
    logs: Floats = np.log1p(counts)
    return logs


def _column(hits: Hits, nodes: Numbers) -> Floats:
    scores = hits.by_number()
    return np.array([scores.get(node, 0.0) for node in nodes.tolist()], np.float64)


def _tiers(columns: Columns, row: int) -> dict[str, float]:
    """What each channel gave to a passage; a channel that did not find it is left out."""
    names = {
        "lexical": "words",
        "lexical_near": "words_there",
        "vector": "cosine_there_rank",
    }
    tiers = {
        tier: float(columns[name][row]) for tier, name in names.items() if columns[name][row] > 0.0
    }

    if columns["reference"][row] > 0.0:
        tiers["reference"] = float(columns["reference_rare"][row])

    for tier, name in (("ppr", "walk"), ("alike", "alike")):
        if columns[name][row] > columns[name].min():
            tiers[tier] = float(np.exp(columns[name][row]))

    return tiers


# Where a question is asked from: documents and nodes that the asker already stands at, as nodes of
# the view.
_DOCUMENTS = "documents/"
# Sources whose ids alone make the key of a document.
_BY_ORIGIN = (SourceKind.ARXIV, SourceKind.PASSAGES)
_OPENING = 240  # characters of a document by which its pieces are searched
_PIECES = 6  # pieces looked at


class UnknownPlace(HadesError):
    """A question asked from something that the graph does not hold."""


def nodes_near(view: MeteredView, ids: Sequence[str]) -> tuple[int, ...]:
    """The nodes that a question is asked from, each once, in the order given.

    An id is that of a node (`entities/...`), of a document (`documents/...`), or the one that a
    paper or passage came in with. A document stands for the entity that bears its title and for its
    opening pieces. What the budget does not allow to look up is left out, with the meter's reason.
    """
    if ids:
        numbers = dict(zip(ids, view.number(list(ids)).tolist(), strict=True))
    else:
        numbers = {}

    near: list[int] = []
    for identifier, number in numbers.items():
        if number >= 0:
            nodes = [number]
        else:
            nodes = _of_document(view, identifier)

        if not nodes and view.turn.reads_left > 0:
            raise UnknownPlace(
                f"{identifier!r} is neither a node nor a document of snapshot "
                f"{view.info.snapshot}; give an id such as entities/NAME, "
                "documents/KEY, or the id that a paper or passage came in with"
            )

        near += nodes

    return tuple(dict.fromkeys(near))


def _of_document(view: MeteredView, identifier: str) -> list[int]:
    document_ids = [_DOCUMENTS + content_key("d", kind, identifier) for kind in _BY_ORIGIN]
    if identifier.startswith(_DOCUMENTS):
        document_ids = [identifier]

    source = next(
        (source for source in view.sources(document_ids) if source is not None),
        None,
    )
    if source is None:
        return []

    hits = view.lexical(
        f"{source.title} {source.text[:_OPENING]}",
        kind=Kind.CHUNK,
        limit=_PIECES,
    )
    passages = zip(hits.numbers.tolist(), view.passages(hits.numbers), strict=False)

    pieces = []
    for number, passage in passages:
        if passage.document_id == source.id:
            pieces.append((passage.span, number))

    chunks = [number for _, number in sorted(pieces)]
    return [*_find_title_entity(view, source, chunks), *chunks]


def _find_title_entity(
    view: MeteredView,
    source: SourceFacts,
    chunks: list[int],
) -> list[int]:
    """The entity among those that its pieces mention whose name is the document's title."""
    title = fold_title(source.title)
    if title:
        spelled = np.unique(view.match_names(source.title).numbers)
    else:
        spelled = np.empty(0, np.int64)

    mentioned = view.expand(
        np.array(chunks, np.int64),
        direction=OUT,
        types=[MENTIONS],
    ).target
    numbers = spelled[np.isin(spelled, mentioned)]
    facts = zip(numbers.tolist(), view.nodes(numbers), strict=False)
    return [number for number, node in facts if fold_title(node.name) == title]


def fold_title(text: str) -> str:
    """A title as it is compared: single spaces, one case."""
    return " ".join(text.split()).casefold()
