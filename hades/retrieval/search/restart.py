"""Where a walk starts: names, facts, synonyms."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from hades.ports.graph import KINDS, Expansion, Hits, Kind, NodeFacts, Numbers
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import Question, Seed
from hades.retrieval.core.words import ANY, IN, MENTIONS, content_words, stem, words
from hades.retrieval.search.seeds import nearest_chunks
from hades.settings.tree import HippoSettings
from schemas.ids import Mask

# Where the walk starts over: the things a question names, the rarer the more, and a little on the nearest passages.
# Mass by specificity is HippoRAG's (there 1 / passages that name a thing; 1 / sqrt of them was better on the
# development sets). Dense passages get only a few percent: with a third of the mass they drown the names.
_MANY = 400
_WORD = re.compile(r"\w+")
TERM = 0.2  # what a plain repeated term counts of a name
LOWER = 0.05  # what a name counts that the question writes in lower case
PIECE = 0.3  # what a single word counts that stands inside a longer capitalised name which the graph does not know
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


def named_entities(view: MeteredView, text: str, rules: HippoSettings = HippoSettings()) -> list[NamedEntity]:
    """The entities a question names, each with its weight; one read each, to tell a name from a plain term."""
    found = view.match_names(text)
    numbers = np.unique(found.numbers)[:_MAX_NAMES]
    if not len(numbers):
        return []
    facts = dict(zip(numbers.tolist(), view.nodes(numbers), strict=False))
    arriving = dict(zip(numbers.tolist(), passages_naming(view, numbers).tolist(), strict=True))
    spans = zip(found.numbers.tolist(), found.starts.tolist(), found.ends.tolist(), strict=True)
    known = [(node, start, end) for node, start, end in spans if node in facts and arriving[node]]
    sharing = Counter((start, end) for _, start, end in known)
    named, is_lower = [], text[1:].islower()
    for node, start, end in known:
        specific = float(arriving[node]) ** -rules.specificity
        weight = specific / sharing[start, end] * _trust(text, start, end, facts[node])
        is_name = _is_name(facts[node]) and (is_lower or not text[start].islower())
        named.append(NamedEntity(node, start, end, weight, is_name))
    return named


def passages_naming(view: MeteredView, entities: Numbers) -> Numbers:
    """How many passages name each entity, counted to `_MANY`: beyond it a name is common, however common."""
    found = view.expand(entities, direction=IN, types=[MENTIONS], fanout=_MANY)
    return np.bincount(found.row, minlength=len(entities)).astype(np.int64)


def restart_mass(
    view: MeteredView, question: Question, named: list[NamedEntity], rules: HippoSettings = HippoSettings()
) -> dict[int, float]:
    """Restart mass by node, summing to 1; all of it lies on passages where the question names nothing."""
    weights: dict[int, float] = {}
    for one in named:
        weights[one.node] = max(weights.get(one.node, 0.0), one.weight)
    passages = nearest_passages(view, question, _PASSAGES)
    close = np.maximum(passages.scores.astype(np.float64), 0.0)
    total, near = sum(weights.values()), float(close.sum())
    on_passages = 0.0 if near <= 0.0 else rules.passage_mass if total > 0.0 else 1.0
    mass = {node: (1.0 - on_passages) * weight / total for node, weight in weights.items()}
    if near > 0.0:
        for node, score in zip(passages.numbers.tolist(), (close / near * on_passages).tolist(), strict=True):
            mass[node] = mass.get(node, 0.0) + score
    return mass


def nearest_passages(view: MeteredView, question: Question, limit: int) -> Hits:
    """Chunks by cosine; by their words where the question or the graph has no vector of the same model."""
    near = nearest_chunks(view, question, limit)
    return view.lexical(question.text, kind=Kind.CHUNK, limit=limit) if near is None else near


def as_seeds(mass: dict[int, float], entities: Numbers) -> list[Seed]:
    """Entities with the restart mass they were given, heaviest first, as shares of the heaviest."""
    held = {node: mass[node] for node in set(entities.tolist()) if mass.get(node, 0.0) > 0.0}
    most = max(held.values(), default=1.0)
    ranked = sorted(held.items(), key=lambda one: (-one[1], one[0]))
    return [Seed(node, weight / most, {"names": weight}) for node, weight in ranked]


def _trust(text: str, start: int, end: int, facts: NodeFacts) -> float:
    if not _is_name(facts):
        return TERM
    if text[start].islower():
        return LOWER
    return PIECE if _is_piece(text, start, end) else 1.0


def _is_name(facts: NodeFacts) -> bool:
    """Names have a capital or a digit; what is written in lower case alone is a term."""
    return facts.name != facts.name.lower() or any(letter.isdigit() for letter in facts.name)


def _is_piece(text: str, start: int, end: int) -> bool:
    """Whether one word stands right beside another capitalised word, as Leonard does in "Leonard Francis"."""
    if _WORD.fullmatch(text, start, end) is None:
        return False
    before, after = text[:start].rpartition(" ")[0], text[end:]
    last = before.rpartition(" ")[2] if text[:start].endswith(" ") else ""
    following = _WORD.match(after[1:]) if after.startswith(" ") else None
    beside = [last, following.group() if following else ""]
    return any(word[:1].isupper() and word.isalpha() and content_words(word) for word in beside)


SYNONYM_TYPES = ("similar_to", "coref")
SYNONYM_SHARE = 0.1  # what all synonyms of an entity together get of its mass
_LEAST_WEIGHT = 0.5  # of a synonym
_SYNONYMS = 4  # of an entity


def expand_with_synonyms(view: MeteredView, mass: dict[int, float], mask: Mask = Mask()) -> dict[int, float]:
    """The mass with a share of each entity's given to its synonyms by weight; the sum stays what it was."""
    nodes = np.array(sorted(mass), np.int64)
    entities = nodes[view.kinds(nodes) == KINDS.index(Kind.ENTITY)] if len(nodes) else nodes
    if not len(entities) or view.turn.expired():
        return mass
    found = view.expand(entities, direction=ANY, types=SYNONYM_TYPES, fanout=_SYNONYMS, mask=mask)
    kept = found.weight >= _LEAST_WEIGHT
    row, target, weight = found.row[kept], found.target[kept], found.weight[kept].astype(np.float64)
    if not len(row):
        return mass
    total = np.bincount(row, weight, minlength=len(entities))
    spread = dict(mass)
    for place in np.unique(row).tolist():
        spread[int(entities[place])] -= SYNONYM_SHARE * mass[int(entities[place])]
    given = SYNONYM_SHARE * np.array([mass[int(entities[place])] for place in row.tolist()]) * weight / total[row]
    for node, part in zip(target.tolist(), given.tolist(), strict=True):
        spread[node] = spread.get(node, 0.0) + part
    return spread


# From a question to stated facts: among the relations of what it names, those whose own words the question uses.
# Only where triples were given do relations carry words. Which facts are worth reading is told from memory first:
# the vector of what stands at the other end.
FACT_TYPES = ("refers_to", "derives_from", "extends", "implements", "cites")
FACT_SHARE = 0.15  # of the restart mass, for the ends of fitting facts, all together
_READS, _PROBES = 12, 3  # facts read; those read first
_FACTS = 48  # of an entity that are looked at


def link_facts(
    view: MeteredView, question: Question, named: list[NamedEntity], mass: dict[int, float]
) -> dict[int, float]:
    """The mass with a share of it moved to the far ends of facts that fit the question; the sum stays what it was.

    A few facts are read first: where none has words of its own nothing more is read.
    """
    entities = np.unique(np.array([one.node for one in named if one.is_name], np.int64))
    if not len(entities) or view.turn.expired():
        return mass
    found = view.expand(entities, direction=ANY, types=FACT_TYPES, fanout=_FACTS, mask=question.mask)
    asked = {stem(word) for word in content_words(question.text)}
    asked -= {stem(word) for one in named if one.is_name for word in words(question.text[one.start : one.end])}
    if not len(found) or not asked:
        return mass
    order = _nearest_first(view, question, found)
    fits: dict[int, float] = {}
    any_words = False
    for rows in (order[:_PROBES], order[_PROBES:_READS]):
        facts = view.edges(found.edge[rows])
        for row, fact in zip(rows.tolist(), facts, strict=False):
            said = {stem(word) for word in content_words(fact.label)}
            any_words = any_words or bool(said)
            if said & asked:
                far = int(found.target[row])
                fits[far] = max(fits.get(far, 0.0), len(said & asked) / len(said))
        if not any_words:
            return mass
    return move_mass(mass, fits, FACT_SHARE)


def move_mass(mass: dict[int, float], towards: dict[int, float], share: float) -> dict[int, float]:
    """The mass with a share of it moved to other nodes by their weights; all of it stays where these weigh nothing."""
    total = sum(towards.values())
    if total <= 0.0:
        return mass
    moved = {node: (1.0 - share) * weight for node, weight in mass.items()}
    for node, weight in towards.items():
        moved[node] = moved.get(node, 0.0) + share * weight / total
    return moved


def _nearest_first(view: MeteredView, question: Question, found: Expansion) -> Numbers:
    """Facts by the cosine of their far end with the question, then heaviest first."""
    cosine = np.zeros(len(found))
    if question.vector is not None:
        vectors, _ = view.vectors(found.target, model=question.model)
        if vectors.shape[1] == len(question.vector):
            cosine = (vectors @ question.vector).astype(np.float64)
    return np.lexsort((found.edge, -found.weight, -cosine))
