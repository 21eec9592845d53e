"""What speaks for a passage of a dated or told corpus: its words, its neighbours in the telling, and its time.

Two linear looks, as the closer look has them. The first costs no read: what searches and a short walk gave a passage,
and what they gave to what was said right before and after it, since an answer follows its question. The second looks at
the best of them closely: their words, their title, and whether a time they state fits the time asked for. A time never
hides a passage, it ranks. The coefficients (`models/linear_looks/memory.json`) were fitted listwise on one half of
the articles and conversations of timeqa and locomo; docs/memory_evaluation.md shows the other half.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Passage
from hades.retrieval.ranking.word_overlap import match_titles, passage_body, wording
from hades.text.dates import Interval, closeness, end_years, times_in, years_of

Floats = NDArray[np.float64]
Columns = dict[str, Floats]

_UNREACHED = 1e-6  # what a passage counts that the walk did not reach; logarithms need a floor
_TITLE_VOICES = 3  # passages of one title that speak for each other
_DAY = timedelta(days=1)
_SELF = frozenset({"i", "me", "my", "mine", "we", "us", "our", "ours"})
_OTHER = frozenset({"you", "your", "yours"})
_SENTENCE_END = re.compile(r"[.!?]+(?=\s|$)")
_REMEMBERED_TIMES = 4096  # passages


@dataclass(frozen=True)
class Heard:
    """What the searches gave to candidates, arrays of one length; 0 where a search did not find one.

    `before` and `after` hold places of candidates, as (candidate, neighbour) pairs: what was said right before it, and
    right after it.
    """

    words: Floats
    cosine: Floats
    years: Floats
    walk: Floats
    before: NDArray[np.int64]
    after: NDArray[np.int64]


def first_look(heard: Heard) -> Columns:
    """What is known of candidates without reading them, by name."""
    spoken = _share(heard.words)
    base = spoken + _share(np.maximum(heard.cosine, 0.0))
    before, after = _beside(base, heard.before), _beside(base, heard.after)
    walk = np.log(heard.walk + _UNREACHED)
    return {
        "words": spoken,
        "words_rank": _reciprocal(heard.words),
        "cosine": heard.cosine - heard.cosine.max(initial=-1.0),
        "walk": walk - walk.max(initial=np.log(_UNREACHED)),
        "walk_rank": _reciprocal(heard.walk),
        "years": _share(heard.years),
        "before": before,
        "after": after,
        "two_before": _beside(before, heard.before),
        "two_after": _beside(after, heard.after),
    }


def second_look(question: str, asked: Interval | None, passages: Sequence[Passage], first: Columns) -> Columns:
    """The first look at passages with what reading them adds, by name; `first` has the rows of these passages."""
    bodies = [passage_body(one.title, one.text) for one in passages]
    spoken = wording(question, bodies)
    closely = spoken.rarity @ spoken.holds / max(float(spoken.rarity.sum()), 1e-9)
    base = first["words"] + _share(first["cosine"] - first["cosine"].min(initial=0.0))
    return {
        **first,
        **time_fit(asked, passages),
        "title": match_titles(question, [one.title for one in passages]),
        "closely": _share(spoken.bm25),
        "holds": closely,
        "same_title": _same_title([one.title for one in passages], base),
        "length": np.log1p(np.array([len(body.words) for body in bodies], np.float64)),
    }


def speech(passages: Sequence[Passage]) -> Columns:
    """How a passage speaks: share of its sentences that ask, whether it speaks of its speaker, and to someone.

    What answers a question about someone is more often a turn that states something of its speaker than one that asks.
    """
    bodies = [passage_body(one.title, one.text) for one in passages]
    return {
        "asks": np.array([_asking_share(one.text) for one in passages]),
        "of_self": np.array([float(not body.counts.keys().isdisjoint(_SELF)) for body in bodies]),
        "to_other": np.array([float(not body.counts.keys().isdisjoint(_OTHER)) for body in bodies]),
    }


@lru_cache(maxsize=_REMEMBERED_TIMES)
def _asking_share(text: str) -> float:
    """Sentences that end with a question mark, of all that end; the last one may end without a mark."""
    if "?" not in text:
        return 0.0
    ends = _SENTENCE_END.findall(text)
    last = text.rstrip()[-1:]
    count = len(ends) + (last not in ".!?" if last else 0)
    return sum("?" in end for end in ends) / count if count else 0.0


def time_fit(asked: Interval | None, passages: Sequence[Passage]) -> Columns:
    """How the times that passages state, and their own date, fit the time asked for; all 0 where none is asked for."""
    found = {name: np.zeros(len(passages)) for name in ("time", "overlaps", "begins", "ends")}
    if asked is None:
        return found
    first, last = end_years(asked)
    for row, passage in enumerate(passages):
        told = tell_times(passage)
        best = max((closeness(asked, one) for one in told), default=0.0)
        ends = [end_years(one) for one in told]
        found["time"][row], found["overlaps"][row] = best, float(best > 0.0)
        found["begins"][row] = float(first is not None and any(first == start for start, _ in ends))
        found["ends"][row] = float(last is not None and any(last == end for _, end in ends))
    return found


def tell_times(passage: Passage) -> list[Interval]:
    """The times that a passage states, relative ones taken from its date, and the day it is dated."""
    return [*_find_times(passage.text, passage.timestamp)]


@lru_cache(maxsize=_REMEMBERED_TIMES)
def _find_times(text: str, told_at: datetime | None) -> tuple[Interval, ...]:
    told = [one.interval for one in times_in(text, told_at)]
    if told_at is not None:
        told.append((told_at, told_at + _DAY))
    return tuple(told)


def weigh(columns: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """(n,) the worth of each row; only differences mean something."""
    table = np.ascontiguousarray(np.array([columns[name] for name in weights]).T)  # several times column_stack's speed
    worth: Floats = table @ np.array(list(weights.values()))
    return worth


def years_as_words(asked: Interval | None) -> str:
    """The years of an interval, to be searched for beside the question: a range names only its ends."""
    return "" if asked is None else " ".join(map(str, years_of(asked)))


def _share(values: Floats) -> Floats:
    """Values as shares of the greatest."""
    most = float(values.max(initial=0.0))
    return values / most if most > 0.0 else np.zeros(len(values))


def _reciprocal(scores: Floats) -> Floats:
    """1 for the best, 1/2 for the second, 1/3 ...; 0 for what has no score."""
    place = np.empty(len(scores))
    place[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    return np.where(scores > 0.0, 1.0 / (1.0 + place), 0.0)


def _beside(values: Floats, pairs: NDArray[np.int64]) -> Floats:
    """For each candidate the greatest value of its neighbours; 0 without any."""
    found = np.zeros(len(values))
    if len(pairs):
        np.maximum.at(found, pairs[:, 0], values[pairs[:, 1]])
    return found


def _same_title(titles: Sequence[str], base: Floats) -> Floats:
    """For each passage the mean of the best few of its title: an article or a session that the question is about."""
    held: dict[str, list[float]] = {}
    for title, value in zip(titles, base.tolist(), strict=True):
        held.setdefault(title, []).append(value)
    best = {title: sorted(values)[-_TITLE_VOICES:] for title, values in held.items()}
    means = {title: sum(values) / len(values) for title, values in best.items()}
    return np.array([means[title] for title in titles])
