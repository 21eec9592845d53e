"""Multi-hop and dated features of a passage."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Passage
from hades.retrieval.core.words import Floats, fitted_file, match_titles, passage_body, wording
from hades.retrieval.features.sentences import QuestionWords, Reading, hold_shares, links
from hades.text.dates import Interval, closeness, end_years, times_in

# A closer look at the passages that a walk brought up: which of them, together, hold what the question asks. Two linear
# looks. The first sees each passage: its rank in the walk, its cosine, the question's words in it, and whether a
# passage about something the question names speaks of it in a sentence that fits. The second sees the passages beside
# each other: who is spoken of by the good ones, and who adds words that the best few lack. The coefficients
# (`models/fitted/multihop.json`) were fitted listwise on the training questions of musique and hotpotqa.
_UNREACHED = 1e-7  # what a passage counts that the walk did not reach; logarithms need a floor
_GOOD = 3  # passages as good as the third best speak at full voice


@dataclass(frozen=True)
class Pool:
    """Passages to be judged, arrays of one length: how they were read, and what the searches gave them.

    `vectors` (n, dim) are unit length or zero; `asked` is the question's vector, zeros when it has none. `is_late` is
    asked between the passes of a closer look: the first pass serves where there is no time for the next.
    """

    readings: Sequence[Reading]
    walk: Floats
    second_walk: Floats
    lexical: Floats
    vectors: NDArray[np.float32]
    asked: NDArray[np.float32]
    is_late: Callable[[], bool] = bool  # never, unless told


def score_multihop(pool: Pool, want: QuestionWords) -> Floats:
    """(n,) the worth of each passage; only differences mean something."""
    first, linked = passage_features(pool, want)
    looks = fitted_file("multihop")
    worth = weigh(first, looks["first"])
    if pool.is_late():
        return worth
    return weigh(pairwise_features(worth, linked, hold_shares(pool.readings, want)), looks["second"])


def passage_features(pool: Pool, want: QuestionWords) -> tuple[dict[str, Floats], Floats]:
    """What is seen of each passage alone, by name; and the links between them."""
    readings = pool.readings
    fits = [want.fit_each(reading) for reading in readings]
    linked = links(readings, fits)
    cosine = (pool.vectors @ pool.asked).astype(np.float64)
    walk, again = np.log(pool.walk + _UNREACHED), np.log(pool.second_walk + _UNREACHED)
    walk, again = walk - walk.max(), again - again.max()
    anchor = np.array([float(len(reading.name) > 4 and reading.name in want.text) for reading in readings])
    like, place = _namesakes([reading.title for reading in readings], cosine)
    return {
        "walk": walk,
        "walk_rank": reciprocal(walk),
        "again": again,
        "again_rank": reciprocal(again),
        "cosine": cosine - cosine.max(),
        "remaining_cosine": _remaining(pool, walk, cosine),
        "lexical": pool.lexical / max(float(pool.lexical.max()), 1e-9),
        "words": np.array([want.share(reading.all_roots) for reading in readings]),
        "title_words": np.array([want.share(reading.title_roots) for reading in readings]),
        "best_sentence": np.array([max(fit) for fit in fits]),
        "first_sentence": np.array([fit[0] for fit in fits]),
        "named": anchor,
        "spoken_of_by_named": (anchor[:, None] * linked).max(axis=0),
        "spoken_of": (np.exp(0.3 * walk)[:, None] * linked).max(axis=0),
        "speaks_of_named": ((linked > 0) * anchor[None, :]).max(axis=1),
        "namesakes": like,
        "namesake_place": place,
    }, linked


def pairwise_features(first: Floats, linked: Floats, holds: Floats) -> dict[str, Floats]:
    """What is seen of passages beside each other, by name, given the worth that the first look found.

    `linked` (n, n) are the links between them, `holds` (n, words) their `hold_shares`.
    """
    ranked = np.argsort(-first, kind="stable")
    worth, voice = np.exp(first - first.max()), share_of_best(first)
    steps = np.minimum(1.0, linked)
    return {
        "first": first - first.max(),
        "share": worth,
        "rank": reciprocal(first),
        "spoken_of": (voice[:, None] * linked).max(axis=0),
        "speaks_of": (voice[None, :] * linked).max(axis=1),
        "adds_to_1": _add(holds, ranked, 1),
        "adds_to_2": _add(holds, ranked, 2),
        "adds_to_4": _add(holds, ranked, 4),
        "two_steps": np.log1p(((voice[:, None] * steps) @ steps).sum(axis=0)),
    }


def share_of_best(worth: Floats) -> Floats:
    """(n,) how far each passage is listened to: 1 for the best few, falling with the worth."""
    shares = np.exp(worth - worth.max())
    least = np.sort(shares)[::-1][min(_GOOD, len(shares)) - 1]
    voice: Floats = np.minimum(1.0, shares / least)
    return voice


def weigh(columns: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """(n,) the weighted sum of columns; only differences mean something."""
    table = np.ascontiguousarray(np.array([columns[name] for name in weights]).T)  # several times column_stack's speed
    worth: Floats = table @ np.array(list(weights.values()))
    return worth


def match_tokens(tokens: NDArray[np.float32] | None, passages: Sequence[Passage]) -> Floats:
    """(n,) late interaction: the mean over a question's tokens of the cosine with what of a passage is nearest to each.

    A passage is known by the signs of its tokens' states; one without them counts like the mean of the others.
    """
    packed = [base64.b64decode(one.token_signs) for one in passages]
    if tokens is None or not len(tokens) or not any(packed):
        return np.zeros(len(passages))
    rows = np.array([8 * len(one) // tokens.shape[1] for one in packed])
    bits = np.unpackbits(np.frombuffer(b"".join(packed), np.uint8)).reshape(-1, tokens.shape[1]).astype(np.float32)
    nearest = np.maximum.reduceat(tokens @ bits.T, (np.cumsum(rows) - rows)[rows > 0], axis=1)
    found = np.full(len(passages), np.nan)  # a sign is twice its bit less 1
    found[rows > 0] = (2.0 * nearest - tokens.sum(axis=1, keepdims=True)).mean(axis=0) / math.sqrt(tokens.shape[1])
    return np.where(rows > 0, found, np.nanmean(found))


def reciprocal(scores: Floats) -> Floats:
    """1 for the best, 1/2 for the second, 1/3 ..."""
    place = np.empty(len(scores))
    place[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    return 1.0 / (1.0 + place)


def _namesakes(titles: Sequence[str], cosine: Floats) -> tuple[Floats, Floats]:
    """For each passage the logarithm of how many share its title, and of its place among them by cosine."""
    seen: dict[str, int] = {}
    place = np.zeros(len(titles))
    for row in np.argsort(-cosine, kind="stable").tolist():
        place[row] = seen.get(titles[row], 0)
        seen[titles[row]] = int(place[row]) + 1
    return np.log(np.array([seen[title] for title in titles], np.float64)), np.log1p(place)


def _remaining(pool: Pool, walk: Floats, cosine: Floats) -> Floats:
    """Cosine with what the best passage leaves of the question: the question's vector without the passage's part."""
    best = pool.vectors[int(np.argmax(0.3 * walk + 4.0 * reciprocal(walk) + 3.0 * cosine))]
    rest = pool.asked - (pool.asked @ best) * best
    remaining: Floats = (pool.vectors @ rest / max(float(np.linalg.norm(rest)), 1e-9)).astype(np.float64)
    return remaining


def _add(holds: Floats, ranked: NDArray[np.int64], n_best: int) -> Floats:
    """How much of the question each passage holds that the best few others do not."""
    best = ranked[:n_best]
    gain: Floats = np.maximum(holds - holds[best].max(axis=0), 0.0).sum(axis=1)
    for row in best.tolist():
        others = [place for place in ranked[: n_best + 1].tolist() if place != row]
        if others:
            gain[row] = np.maximum(holds[row] - holds[others].max(axis=0), 0.0).sum()
    return gain


# What speaks for a passage of a dated or told corpus: its words, its neighbours in the telling, and its time. Two
# linear looks, as the closer look has them. The first costs no read: what searches and a short walk gave a passage, and
# what they gave to what was said right before and after it, since an answer follows its question. The second looks at
# the best of them closely: their words, their title, and whether a time they state fits the time asked for. A time
# never hides a passage, it ranks. The coefficients (`models/fitted/memory.json`) were fitted listwise on one half of
# the articles and conversations of timeqa and locomo; docs/memory_evaluation.md shows the other half.
Columns = dict[str, Floats]
_DATED_UNREACHED = 1e-6  # what a passage counts that the walk did not reach; logarithms need a floor
_TITLE_VOICES = 3  # passages of one title that speak for each other
_DAY = timedelta(days=1)
_SELF = frozenset({"i", "me", "my", "mine", "we", "us", "our", "ours"})
_OTHER = frozenset({"you", "your", "yours"})
_SENTENCE_END = re.compile(r"[.!?]+(?=\s|$)")
_REMEMBERED_TIMES = 4096  # passages


@dataclass(frozen=True)
class ChannelScores:
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


def dated_features(heard: ChannelScores) -> Columns:
    """What is known of candidates without reading them, by name."""
    spoken = share_of_greatest(heard.words)
    base = spoken + share_of_greatest(np.maximum(heard.cosine, 0.0))
    before, after = _beside(base, heard.before), _beside(base, heard.after)
    walk = np.log(heard.walk + _DATED_UNREACHED)
    return {
        "words": spoken,
        "words_rank": reciprocal_found(heard.words),
        "cosine": heard.cosine - heard.cosine.max(initial=-1.0),
        "walk": walk - walk.max(initial=np.log(_DATED_UNREACHED)),
        "walk_rank": reciprocal_found(heard.walk),
        "years": share_of_greatest(heard.years),
        "before": before,
        "after": after,
        "two_before": _beside(before, heard.before),
        "two_after": _beside(after, heard.after),
    }


def dated_pair_features(question: str, asked: Interval | None, passages: Sequence[Passage], first: Columns) -> Columns:
    """The first look at passages with what reading them adds, by name; `first` has the rows of these passages."""
    bodies = [passage_body(one.title, one.text) for one in passages]
    spoken = wording(question, bodies)
    closely = spoken.rarity @ spoken.holds / max(float(spoken.rarity.sum()), 1e-9)
    base = first["words"] + share_of_greatest(first["cosine"] - first["cosine"].min(initial=0.0))
    return {
        **first,
        **time_fit(asked, passages),
        "title": match_titles(question, [one.title for one in passages]),
        "closely": share_of_greatest(spoken.bm25),
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
        told = tell_times(passage.text, passage.timestamp)
        best = max((closeness(asked, one) for one in told), default=0.0)
        ends = [end_years(one) for one in told]
        found["time"][row], found["overlaps"][row] = best, float(best > 0.0)
        found["begins"][row] = float(first is not None and any(first == start for start, _ in ends))
        found["ends"][row] = float(last is not None and any(last == end for _, end in ends))
    return found


@lru_cache(maxsize=_REMEMBERED_TIMES)
def tell_times(text: str, told_at: datetime | None) -> tuple[Interval, ...]:
    """The times that a text states, relative ones taken from its date, and the day it is dated."""
    told = [one.interval for one in times_in(text, told_at)]
    if told_at is not None:
        told.append((told_at, told_at + _DAY))
    return tuple(told)


def share_of_greatest(values: Floats) -> Floats:
    """Values as shares of the greatest."""
    most = float(values.max(initial=0.0))
    return values / most if most > 0.0 else np.zeros(len(values))


def reciprocal_found(scores: Floats) -> Floats:
    """As `reciprocal`; 0 for what has no score."""
    return np.where(scores > 0.0, reciprocal(scores), 0.0)


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
