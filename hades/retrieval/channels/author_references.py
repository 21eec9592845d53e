"""Works that a text refers to as papers do, by author and year: "(Kadlec et al., 2016)", "Nair and Tambe [2003]".

The graph knows authors as entities that works refer to. A surname is looked up among the names of entities; what refers
to one of those is a work of that author, and the passages that are about such a work are what the reference may mean.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hades.ports.graph import Kind, Numbers
from hades.retrieval.ranking.relevance import IN, MENTIONS, distinct

if TYPE_CHECKING:
    from hades.retrieval.turn.metered_view import MeteredView

_NAME = r"[^\W\d_a-z][^\W\d_]*(?:['’-][^\W\d_]+)*"
_YEAR = r"(?:,?\s*[(\[]?\s*(?P<year>(?:19|20)\d\d)[a-z]?\b|\s*(?P<numbered>\[\d))"
_REFERENCE = re.compile(
    rf"(?P<first>{_NAME})(?:(?:,\s*{_NAME})*,?\s+(?:and|&)\s+(?P<last>{_NAME})|\s+(?P<others>et\s+al)\.?)?{_YEAR}?"
)
_REFERS = "refers_to"  # from a work to its authors
_MOST = 12  # references of one text that are looked up
_PEOPLE = 64  # entities looked at for one surname
_WORKS = 400  # works looked at for one reference
_ABOUT = 0.6  # weight of a mention from which a passage is about the entity


@dataclass(frozen=True)
class Reference:
    """A work by the surnames of its first and last named author, and its year; None where the text gives none."""

    names: tuple[str, ...]
    year: int | None


@dataclass(frozen=True)
class ReferredWorks:
    """For each reference the passages of works by all its named authors, or by the first of them."""

    references: tuple[Reference, ...]
    passages: tuple[Numbers, ...]


def references_in(text: str) -> list[Reference]:
    """The references of a text, each once.

    A name alone is none: a year or "et al" stands behind it, or a second name and a number in brackets.
    """
    found: dict[Reference, None] = {}
    for match in _REFERENCE.finditer(text):
        year = int(match["year"]) if match["year"] else None
        if year is not None or match["others"] or (match["last"] and match["numbered"]):
            names = tuple(name for name in (match["first"], match["last"]) if name)
            found[Reference(names, year)] = None
    return list(found)[:_MOST]


def referred_works(view: MeteredView, text: str) -> ReferredWorks:
    """The passages that the references of a text may mean; no document is read."""
    references = references_in(text)
    by_name: dict[str, Numbers] = {}
    for name in dict.fromkeys(name for one in references for name in one.names):
        by_name[name] = _works_by(view, name)
    works = [_joint(one, by_name) for one in references]
    passages = [_passages_about(view, own) for own in works]
    return ReferredWorks(tuple(references), tuple(passages))


def _works_by(view: MeteredView, name: str) -> Numbers:
    """Entities that refer to someone of this name."""
    people = view.lexical(name, kind=Kind.ENTITY, limit=_PEOPLE).numbers
    if not len(people):
        return people
    return distinct(view.expand(people, direction=IN, types=[_REFERS], fanout=_WORKS).target)


def _joint(reference: Reference, by_name: dict[str, Numbers]) -> Numbers:
    """Works of every named author; of the first where they share none."""
    works = by_name[reference.names[0]]
    for name in reference.names[1:]:
        works = np.intersect1d(works, by_name[name])
    return works if len(works) else by_name[reference.names[0]]


def _passages_about(view: MeteredView, works: Numbers) -> Numbers:
    """The passages that state these works as what they are about."""
    if not len(works):
        return works
    found = view.expand(works[:_WORKS], direction=IN, types=[MENTIONS], fanout=4)
    return distinct(found.target[found.weight >= _ABOUT])
