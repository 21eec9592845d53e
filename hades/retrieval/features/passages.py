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
from hades.retrieval.core.words import Floats, match_titles, passage_body, wording
from hades.retrieval.features.sentences import QuestionWords, Reading, links
from hades.text.dates import Interval, closeness, end_years, times_in

# A closer look at the passages that a walk brought up: which of them, together, hold what the
# question asks. `passage_features` sees each passage: its rank in the walk, its cosine, the
# question's words in it, and whether a passage about something the question names speaks of it in a
# sentence that fits. `pairwise_features` sees the passages beside each other: who is spoken of by
# the good ones, and who adds words that the best few lack. `features/table.py` says what each
# means.
Columns = dict[str, Floats]  # (n,) values of passages, by the name of the feature
_UNREACHED = 1e-7  # what a passage counts that the walk did not reach; logarithms need a floor
_GOOD = 3  # passages as good as the third best speak at full voice


@dataclass(frozen=True)
class Pool:
    """Passages to be judged, arrays of one length: how they were read, and what the searches gave
    them.

    `vectors` (n, dim) are unit length or zero; `question_vector` is all zeros where the question
    has none. `is_late` is called between the looks: the first serves where there is no time for the
    next.
    """

    readings: Sequence[Reading]
    walk: Floats
    second_walk: Floats
    lexical: Floats
    vectors: NDArray[np.float32]
    question_vector: NDArray[np.float32]
    is_late: Callable[[], bool] = bool  # never late by default


def passage_features(pool: Pool, want: QuestionWords) -> tuple[Columns, Floats]:
    """What is seen of each passage alone, by name; and the links between them."""
    readings = pool.readings
    fits = [want.fit_each(reading) for reading in readings]
    linked = links(readings, fits)
    cosine = (pool.vectors @ pool.question_vector).astype(np.float64)
    walk = _log_walk(pool.walk)
    second_walk = _log_walk(pool.second_walk)

    is_named = []
    for reading in readings:
        is_named.append(len(reading.name) > 4 and reading.name in want.text)

    named_flags = np.array(is_named, np.float64)
    namesakes, namesake_place = _namesakes([reading.title for reading in readings], cosine)
    columns = {
        "walk": walk,
        "walk_rank": reciprocal(walk),
        "again": second_walk,
        "again_rank": reciprocal(second_walk),
        "cosine_gap": cosine - cosine.max(),
        "remaining_cosine": _remaining(pool, walk, cosine),
        "words_share": pool.lexical / max(float(pool.lexical.max()), 1e-9),
        "held": np.array([want.share(reading.all_roots) for reading in readings]),
        "title_held": np.array([want.share(reading.title_roots) for reading in readings]),
        "best_sentence": np.array([max(fit) for fit in fits]),
        "first_sentence": np.array([fit[0] for fit in fits]),
        "named": named_flags,
        "spoken_of_by_named": (named_flags[:, None] * linked).max(axis=0),
        "spoken_of": (np.exp(0.3 * walk)[:, None] * linked).max(axis=0),
        "speaks_of_named": ((linked > 0) * named_flags[None, :]).max(axis=1),
        "namesakes": namesakes,
        "namesake_place": namesake_place,
    }
    return columns, linked


def _log_walk(walk: Floats) -> Floats:
    """The logarithm of a walk, 0 for the passage that it reached best."""
    logarithms: Floats = np.log(walk + _UNREACHED)
    logarithms -= logarithms.max()
    return logarithms


def pairwise_features(
    first: Floats,
    linked: Floats,
    holds: Floats,
) -> Columns:
    """What is seen of passages beside each other, by name, given the worth that the first look
    found.

    `linked` (n, n) are the links between them, `holds` (n, words) their `hold_shares`.
    """
    ranked = np.argsort(-first, kind="stable")
    voice = share_of_best(first)
    steps = np.minimum(1.0, linked)
    two_steps = ((voice[:, None] * steps) @ steps).sum(axis=0)
    return {
        "first": first - first.max(),
        "share": np.exp(first - first.max()),
        "rank": reciprocal(first),
        "spoken_of": (voice[:, None] * linked).max(axis=0),
        "speaks_of": (voice[None, :] * linked).max(axis=1),
        "adds_to_1": _added_share(holds, ranked, 1),
        "adds_to_2": _added_share(holds, ranked, 2),
        "adds_to_4": _added_share(holds, ranked, 4),
        "two_steps": np.log1p(two_steps),
    }


def share_of_best(worth: Floats) -> Floats:
    """(n,) how much each passage counts for others: 1 for the best few, falling with the worth."""
    shares = np.exp(worth - worth.max())
    least = np.sort(shares)[::-1][min(_GOOD, len(shares)) - 1]
    voice: Floats = np.minimum(1.0, shares / least)
    return voice


def weigh(columns: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """(n,) the weighted sum of columns; only differences mean something."""
    # Several times faster than column_stack.
    table = np.ascontiguousarray(np.array([columns[name] for name in weights]).T)
    worth: Floats = table @ np.array(list(weights.values()))
    return worth


def match_tokens(
    tokens: NDArray[np.float32] | None,
    passages: Sequence[Passage],
) -> Floats:
    """(n,) late interaction: the mean over a question's tokens of the cosine with what of a passage
    is nearest to each.

    A passage is known by the signs of its tokens' states; one without them counts like the mean of
    the others.
    """
    packed = []
    for passage in passages:
        packed.append(base64.b64decode(passage.token_signs))

    if tokens is None or not len(tokens) or not any(packed):
        return np.zeros(len(passages))

    dimension = tokens.shape[1]
    token_counts = np.array([8 * len(signs) // dimension for signs in packed])
    has_tokens = token_counts > 0
    packed_bits = np.frombuffer(b"".join(packed), np.uint8)
    bits = np.unpackbits(packed_bits).reshape(-1, dimension).astype(np.float32)
    starts = (np.cumsum(token_counts) - token_counts)[has_tokens]
    nearest = np.maximum.reduceat(tokens @ bits.T, starts, axis=1)
    products = 2.0 * nearest - tokens.sum(axis=1, keepdims=True)  # a sign is twice its bit less 1
    cosines = np.full(len(passages), np.nan)
    cosines[has_tokens] = products.mean(axis=0) / math.sqrt(dimension)
    return np.where(has_tokens, cosines, np.nanmean(cosines))


def reciprocal(scores: Floats) -> Floats:
    """1 for the best, 1/2 for the second, 1/3 ..."""
    place = np.empty(len(scores))
    place[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    return 1.0 / (1.0 + place)


def _namesakes(titles: Sequence[str], cosine: Floats) -> tuple[Floats, Floats]:
    """For each passage the logarithm of how many share its title, and of its place among them by
    cosine.
    """
    title_counts: dict[str, int] = {}
    place = np.zeros(len(titles))

    for row in np.argsort(-cosine, kind="stable").tolist():
        count = title_counts.get(titles[row], 0)
        place[row] = count
        title_counts[titles[row]] = count + 1

    namesakes = np.array([title_counts[title] for title in titles], np.float64)
    return np.log(namesakes), np.log1p(place)


def _remaining(pool: Pool, walk: Floats, cosine: Floats) -> Floats:
    """Cosine with what the best passage leaves of the question: the question's vector without the
    passage's part.
    """
    first_guess = 0.3 * walk + 4.0 * reciprocal(walk) + 3.0 * cosine
    best = pool.vectors[int(np.argmax(first_guess))]
    remaining_vector = pool.question_vector - (pool.question_vector @ best) * best
    length = max(float(np.linalg.norm(remaining_vector)), 1e-9)
    remaining: Floats = (pool.vectors @ remaining_vector / length).astype(np.float64)
    return remaining


def _added_share(
    holds: Floats,
    ranked: NDArray[np.int64],
    n_best: int,
) -> Floats:
    """How much of the question each passage holds that the best few others do not."""
    best = ranked[:n_best]
    gain: Floats = np.maximum(holds - holds[best].max(axis=0), 0.0).sum(axis=1)

    for row in best.tolist():
        other_rows = []
        for place in ranked[: n_best + 1].tolist():
            if place != row:
                other_rows.append(place)

        if other_rows:
            gain[row] = np.maximum(holds[row] - holds[other_rows].max(axis=0), 0.0).sum()

    return gain


# What speaks for a passage of a dated corpus or a conversation: its words, the passages before and
# after it, and its time. Two linear looks, as above. The first costs no read: what searches and a
# short walk gave a passage, and what they gave to the passages right before and after it, since an
# answer follows its question. The second reads the best of them: their words, their title, and
# whether a time they state fits the time asked for. A time never hides a passage, it ranks. The
# coefficients (`models/fitted/memory.json`) were fitted listwise on one half of the articles and
# conversations of timeqa and locomo; docs/memory_evaluation.md shows the other half.
_DATED_UNREACHED = 1e-6  # the same for a walk among dated passages
_TITLE_VOICES = 3  # passages of one title that speak for each other
_DAY = timedelta(days=1)
_SELF = frozenset({"i", "me", "my", "mine", "we", "us", "our", "ours"})
_OTHER = frozenset({"you", "your", "yours"})
_SENTENCE_END = re.compile(r"[.!?]+(?=\s|$)")
_REMEMBERED_TIMES = 4096  # passages


@dataclass(frozen=True)
class ChannelScores:
    """What the searches gave to candidates, arrays of one length; 0 where a search did not find
    one.

    `before_pairs` and `after_pairs` hold places of candidates, as (candidate, neighbour): what was
    said right before it, and right after it.
    """

    words: Floats
    cosine: Floats
    years: Floats
    walk: Floats
    before_pairs: NDArray[np.int64]
    after_pairs: NDArray[np.int64]


def dated_features(scores: ChannelScores) -> Columns:
    """The features of candidates that need no reading, by name."""
    words = share_of_greatest(scores.words)
    base = words + share_of_greatest(np.maximum(scores.cosine, 0.0))
    preceding = _best_neighbour(base, scores.before_pairs)
    following = _best_neighbour(base, scores.after_pairs)
    walk = np.log(scores.walk + _DATED_UNREACHED)
    return {
        "words": words,
        "words_rank": reciprocal_found(scores.words),
        "cosine": scores.cosine - scores.cosine.max(initial=-1.0),
        "walk": walk - walk.max(initial=np.log(_DATED_UNREACHED)),
        "walk_rank": reciprocal_found(scores.walk),
        "years": share_of_greatest(scores.years),
        "before": preceding,
        "after": following,
        "two_before": _best_neighbour(preceding, scores.before_pairs),
        "two_after": _best_neighbour(following, scores.after_pairs),
    }


def dated_pair_features(
    question: str,
    asked_time: Interval | None,
    passages: Sequence[Passage],
    first: Columns,
) -> Columns:
    """`first`, the features of these passages before reading, with those that reading adds."""
    titles = [passage.title for passage in passages]

    bodies = []
    for passage in passages:
        bodies.append(passage_body(passage.title, passage.text))

    overlap = wording(question, bodies)
    rarity_sum = max(float(overlap.rarity.sum()), 1e-9)
    base = first["words"] + share_of_greatest(first["cosine"] - first["cosine"].min(initial=0.0))
    lengths = np.array([len(body.words) for body in bodies], np.float64)
    return {
        **first,
        **time_fit(asked_time, passages),
        "title": match_titles(question, titles),
        "closely": share_of_greatest(overlap.bm25),
        "holds": overlap.rarity @ overlap.holds / rarity_sum,
        "same_title": _same_title(titles, base),
        "length": np.log1p(lengths),
    }


def speech(passages: Sequence[Passage]) -> Columns:
    """How a passage speaks: share of its sentences that ask, whether it speaks of its speaker, and
    to someone.

    What answers a question about someone is more often a turn that states something of its speaker
    than one that asks.
    """
    asking_shares = []
    for passage in passages:
        asking_shares.append(_asking_share(passage.text))

    bodies = []
    for passage in passages:
        bodies.append(passage_body(passage.title, passage.text))

    of_self = []
    for body in bodies:
        of_self.append(not body.counts.keys().isdisjoint(_SELF))

    to_other = []
    for body in bodies:
        to_other.append(not body.counts.keys().isdisjoint(_OTHER))

    return {
        "asks": np.array(asking_shares),
        "of_self": np.array(of_self, np.float64),
        "to_other": np.array(to_other, np.float64),
    }


@lru_cache(maxsize=_REMEMBERED_TIMES)
def _asking_share(text: str) -> float:
    """Sentences that end with a question mark, of all that end; the last one may end without a
    mark.
    """
    if "?" not in text:
        return 0.0

    ends = _SENTENCE_END.findall(text)
    question_count = sum("?" in end for end in ends)
    sentence_count = len(ends) + (text.rstrip()[-1:] not in ".!?")
    return question_count / sentence_count


def time_fit(asked_time: Interval | None, passages: Sequence[Passage]) -> Columns:
    """How the times that passages state, and their own date, fit the time asked for; all 0 where
    none is asked for.
    """
    columns = {}
    for name in ("time", "overlaps", "begins", "ends"):
        columns[name] = np.zeros(len(passages))

    if asked_time is None:
        return columns

    first_year, last_year = end_years(asked_time)
    for row, passage in enumerate(passages):
        stated_times = tell_times(passage.text, passage.timestamp)
        best = max((closeness(asked_time, stated) for stated in stated_times), default=0.0)
        years = [end_years(stated) for stated in stated_times]
        columns["time"][row] = best
        columns["overlaps"][row] = best > 0.0

        if first_year is not None:
            columns["begins"][row] = any(first_year == start for start, _ in years)
        if last_year is not None:
            columns["ends"][row] = any(last_year == end for _, end in years)

    return columns


@lru_cache(maxsize=_REMEMBERED_TIMES)
def tell_times(text: str, written_at: datetime | None) -> tuple[Interval, ...]:
    """The times that a text states, relative ones taken from its date, and the day it is dated."""
    intervals = []
    for mention in times_in(text, written_at):
        intervals.append(mention.interval)

    if written_at is not None:
        intervals.append((written_at, written_at + _DAY))

    return tuple(intervals)


def share_of_greatest(values: Floats) -> Floats:
    """Values as shares of the greatest."""
    greatest = float(values.max(initial=0.0))
    if greatest > 0.0:
        return values / greatest

    return np.zeros(len(values))


def _best_neighbour(values: Floats, pairs: NDArray[np.int64]) -> Floats:
    """For each candidate the greatest value of its neighbours; 0 without any."""
    greatest = np.zeros(len(values))
    if len(pairs):
        np.maximum.at(
            greatest,
            pairs[:, 0],
            values[pairs[:, 1]],
        )

    return greatest


def reciprocal_found(scores: Floats) -> Floats:
    """As `reciprocal`; 0 for what has no score."""
    return np.where(scores > 0.0, reciprocal(scores), 0.0)


def _same_title(titles: Sequence[str], base: Floats) -> Floats:
    """For each passage the mean of the best few of its title: an article or a session that the
    question is about.
    """
    values_by_title: dict[str, list[float]] = {}
    for title, value in zip(titles, base.tolist(), strict=True):
        values_by_title.setdefault(title, []).append(value)

    best = {title: sorted(values)[-_TITLE_VOICES:] for title, values in values_by_title.items()}
    means = {title: sum(values) / len(values) for title, values in best.items()}
    return np.array([means[title] for title in titles])
