"""Where a walk starts: names, facts, synonyms."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from hades.ports.graph import KINDS, Expansion, Hits, Kind, NodeFacts, Numbers
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import Question, Seed
from hades.retrieval.core.words import ANY, IN, MENTIONS, content_words, stem, words
from hades.retrieval.search.seeds import nearest_chunks
from hades.settings.tree import HippoSettings
from schemas.ids import Mask

# Where the walk starts over: the things a question names, the rarer the more, and a little on the
# nearest passages. Mass by specificity is HippoRAG's (there 1 / passages that name a thing; 1 /
# sqrt of them was better on the development sets). Dense passages get only a few percent: with a
# third of the mass they drown the names.
_MANY = 400
_WORD = re.compile(r"\w+")
TERM = 0.2  # what a plain repeated term counts of a name
LOWER = 0.05  # what a name counts that the question writes in lower case
# what a single word counts that stands inside a longer capitalised name which the graph does not
# know
PIECE = 0.3
_MAX_NAMES = 24  # names that are looked at
_PASSAGES = 50  # nearest passages that share the passage mass


@dataclass(frozen=True)
class NamedEntity:
    """An entity that a text spells at [start, end), and how much it should count."""

    node: int
    start: int
    end: int
    weight: float
    is_name: bool


def named_entities(
    view: MeteredView,
    text: str,
    rules: HippoSettings = HippoSettings(),
) -> list[NamedEntity]:
    """The entities a question names, each with its weight; one read each, to tell a name from a
    plain term.
    """
    matches = view.match_names(text)
    numbers = np.unique(matches.numbers)[:_MAX_NAMES]

    if not len(numbers):
        return []

    facts = dict(zip(numbers.tolist(), view.nodes(numbers), strict=False))
    passage_counts = passages_naming(view, numbers).tolist()
    count_of = dict(zip(numbers.tolist(), passage_counts, strict=True))
    columns = (matches.numbers, matches.starts, matches.ends)
    spans = zip(*(column.tolist() for column in columns), strict=True)
    known = [(node, start, end) for node, start, end in spans if node in facts and count_of[node]]
    sharing = Counter((start, end) for _, start, end in known)
    entities = []
    is_lower = text[1:].islower()

    for node, start, end in known:
        specific = float(count_of[node]) ** -rules.specificity
        weight = specific / sharing[start, end] * _trust(text, start, end, facts[node])
        is_name = _is_name(facts[node]) and (is_lower or not text[start].islower())
        entities.append(NamedEntity(node, start, end, weight, is_name))

    return entities


def passages_naming(view: MeteredView, entities: Numbers) -> Numbers:
    """How many passages name each entity, counted to `_MANY`: beyond it a name is common, however
    common.
    """
    expansion = view.expand(
        entities,
        direction=IN,
        types=[MENTIONS],
        fanout=_MANY,
    )
    return np.bincount(expansion.row, minlength=len(entities)).astype(np.int64)


def restart_mass(
    view: MeteredView,
    question: Question,
    entities: list[NamedEntity],
    rules: HippoSettings = HippoSettings(),
) -> dict[int, float]:
    """Restart mass by node, summing to 1; all of it lies on passages where the question names
    nothing.
    """
    weights: dict[int, float] = {}
    for entity in entities:
        weights[entity.node] = max(weights.get(entity.node, 0.0), entity.weight)

    passages = nearest_passages(view, question, _PASSAGES)
    closeness = np.maximum(passages.scores.astype(np.float64), 0.0)
    total = sum(weights.values())
    total_closeness = float(closeness.sum())
    on_passages = 0.0

    if total_closeness > 0.0:
        on_passages = rules.passage_mass if total > 0.0 else 1.0

    mass = {node: (1.0 - on_passages) * weight / total for node, weight in weights.items()}
    if total_closeness > 0.0:
        shares = closeness / total_closeness * on_passages
        for node, share in zip(passages.numbers.tolist(), shares.tolist(), strict=True):
            mass[node] = mass.get(node, 0.0) + share

    return mass


def nearest_passages(
    view: MeteredView,
    question: Question,
    limit: int,
) -> Hits:
    """Chunks by cosine; by their words where the question or the graph has no vector of the same
    model.
    """
    near = nearest_chunks(view, question, limit)
    if near is None:
        return view.lexical(
            question.text,
            kind=Kind.CHUNK,
            limit=limit,
        )

    return near


def as_seeds(mass: Mapping[int, float], entities: Iterable[int]) -> list[Seed]:
    """Entities with the restart mass they were given, heaviest first, as shares of the heaviest."""
    nodes = {node for node in entities if mass.get(node, 0.0) > 0.0}
    ranked = sorted(nodes, key=lambda node: (-mass[node], node))
    return [
        Seed(
            node,
            mass[node] / mass[ranked[0]],
            {"names": mass[node]},
        )
        for node in ranked
    ]


def _trust(
    text: str,
    start: int,
    end: int,
    facts: NodeFacts,
) -> float:
    if not _is_name(facts):
        return TERM
    if text[start].islower():
        return LOWER
    return PIECE if _is_piece(text, start, end) else 1.0


def _is_name(facts: NodeFacts) -> bool:
    """Names have a capital or a digit; what is written in lower case alone is a term."""
    return facts.name != facts.name.lower() or any(letter.isdigit() for letter in facts.name)


def _is_piece(text: str, start: int, end: int) -> bool:
    """Whether one word stands right beside another capitalised word, as Leonard does in "Leonard
    Francis".
    """
    if _WORD.fullmatch(text, start, end) is None:
        return False

    neighbours = []
    if text[:start].endswith(" "):
        neighbours.append(text[: start - 1].rpartition(" ")[2])
    if text.startswith(" ", end) and (following := _WORD.match(text, end + 1)):
        neighbours.append(following.group())

    return any(word[:1].isupper() and word.isalpha() and content_words(word) for word in neighbours)


SYNONYM_TYPES = ("similar_to", "coref")
SYNONYM_SHARE = 0.1  # what all synonyms of an entity together get of its mass
_LEAST_WEIGHT = 0.5  # of a synonym
_SYNONYMS = 4  # of an entity


def expand_with_synonyms(
    view: MeteredView,
    mass: dict[int, float],
    mask: Mask = Mask(),
) -> dict[int, float]:
    """The mass with a share of each entity's given to its synonyms by weight; the sum stays what it
    was.
    """
    nodes = np.array(sorted(mass), np.int64)
    if len(nodes):
        entities = nodes[view.kinds(nodes) == KINDS.index(Kind.ENTITY)]
    else:
        entities = nodes

    if not len(entities) or view.turn.expired():
        return mass

    expansion = view.expand(
        entities,
        direction=ANY,
        types=SYNONYM_TYPES,
        fanout=_SYNONYMS,
        mask=mask,
    )
    is_close = expansion.weight >= _LEAST_WEIGHT
    row = expansion.row[is_close]
    target = expansion.target[is_close]
    weight = expansion.weight[is_close].astype(np.float64)

    if not len(row):
        return mass

    total = np.bincount(row, weight, minlength=len(entities))
    spread = dict(mass)
    for entity in entities[np.unique(row)].tolist():
        spread[entity] -= SYNONYM_SHARE * mass[entity]

    entity_masses = np.array([mass[entity] for entity in entities[row].tolist()])
    shares = SYNONYM_SHARE * entity_masses * weight / total[row]
    for node, share in zip(target.tolist(), shares.tolist(), strict=True):
        spread[node] = spread.get(node, 0.0) + share

    return spread


# From a question to stated facts: among the relations of what it names, those whose own words the
# question uses. Only where triples were given do relations carry words. Which facts are worth
# reading is decided from memory first: by the vector of what stands at the other end.
FACT_TYPES = ("refers_to", "derives_from", "extends", "implements", "cites")
FACT_SHARE = 0.15  # of the restart mass, for the ends of fitting facts, all together
_READS, _PROBES = 12, 3  # facts read; those read first
_FACTS = 48  # of an entity that are looked at


def link_facts(
    view: MeteredView,
    question: Question,
    entities: list[NamedEntity],
    mass: dict[int, float],
) -> dict[int, float]:
    """The mass with a share of it moved to the far ends of facts that fit the question; the sum
    stays what it was.

    A few facts are read first: where none has words of its own nothing more is read.
    """
    names = []
    for entity in entities:
        if entity.is_name:
            names.append(entity)

    nodes = np.unique(np.array([name.node for name in names], np.int64))
    if not len(nodes) or view.turn.expired():
        return mass

    expansion = view.expand(
        nodes,
        direction=ANY,
        types=FACT_TYPES,
        fanout=_FACTS,
        mask=question.mask,
    )
    question_stems = set(map(stem, content_words(question.text)))
    for name in names:
        question_stems -= set(map(stem, words(question.text[name.start : name.end])))

    if not len(expansion) or not question_stems:
        return mass

    order = _nearest_first(view, question, expansion)
    fits: dict[int, float] = {}
    has_words = False

    for rows in (order[:_PROBES], order[_PROBES:_READS]):
        facts = view.edges(expansion.edge[rows])
        for row, fact in zip(rows.tolist(), facts, strict=False):
            fact_stems = set(map(stem, content_words(fact.label)))
            has_words = has_words or bool(fact_stems)
            shared = fact_stems & question_stems

            if shared:
                far_end = int(expansion.target[row])
                fit = len(shared) / len(fact_stems)
                fits[far_end] = max(fits.get(far_end, 0.0), fit)

        if not has_words:
            return mass

    return move_mass(mass, fits, FACT_SHARE)


def move_mass(
    mass: dict[int, float],
    towards: dict[int, float],
    share: float,
) -> dict[int, float]:
    """The mass with a share of it moved to other nodes by their weights; all of it stays where
    these weigh nothing.
    """
    total = sum(towards.values())
    if total <= 0.0:
        return mass

    moved = {node: (1.0 - share) * weight for node, weight in mass.items()}
    for node, weight in towards.items():
        moved[node] = moved.get(node, 0.0) + share * weight / total

    return moved


def _nearest_first(
    view: MeteredView,
    question: Question,
    facts: Expansion,
) -> Numbers:
    """Facts by the cosine of their far end with the question, then heaviest first."""
    cosine = np.zeros(len(facts))
    if question.vector is not None:
        vectors, _ = view.vectors(facts.target, model=question.model)
        if vectors.shape[1] == len(question.vector):
            cosine = (vectors @ question.vector).astype(np.float64)

    return np.lexsort((facts.edge, -facts.weight, -cosine))
