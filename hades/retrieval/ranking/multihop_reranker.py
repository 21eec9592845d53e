"""A closer look at the passages that a walk brought up: which of them, together, hold what the question asks.

Two linear looks. The first sees each passage: its rank in the walk, its cosine, the question's words in it, and whether
a passage about something the question names speaks of it in a sentence that fits. The second sees the passages beside
each other: who is spoken of by the good ones, and who adds words that the best few lack. The coefficients
(`models/linear_looks/multihop.json`) were fitted listwise on the training questions of musique and hotpotqa.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hades.retrieval.ranking.bridge_features import hold_shares
from hades.retrieval.ranking.fitted_files import linear_looks
from hades.retrieval.ranking.sentence_match import Floats, QuestionWords, Reading, links

_UNREACHED = 1e-7  # what a passage counts that the walk did not reach; logarithms need a floor
_GOOD = 3  # passages as good as the third best speak at full voice


@dataclass(frozen=True)
class Pool:
    """Passages to be judged, arrays of one length: how they were read, and what the searches gave them.

    `vectors` (n, dim) are unit length or zero; `asked` is the question's vector, zeros when it has none.
    """

    readings: Sequence[Reading]
    walk: Floats
    second_walk: Floats
    lexical: Floats
    vectors: NDArray[np.float32]
    asked: NDArray[np.float32]


def look_closer(pool: Pool, want: QuestionWords) -> Floats:
    """(n,) the worth of each passage; only differences mean something."""
    first, linked = first_look(pool, want)
    looks = linear_looks("multihop")
    return weigh(second_look(pool, want, weigh(first, looks.first), linked), looks.second)


def first_look(pool: Pool, want: QuestionWords) -> tuple[dict[str, Floats], Floats]:
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


def second_look(
    pool: Pool, want: QuestionWords, first: Floats, linked: Floats, holds: Floats | None = None
) -> dict[str, Floats]:
    """What is seen of passages beside each other, by name, given the worth that the first look found.

    `holds` are the `hold_shares` of the pool, where they are known.
    """
    ranked = np.argsort(-first, kind="stable")
    worth, voice = np.exp(first - first.max()), voice_of(first)
    holds = hold_shares(pool.readings, want) if holds is None else holds
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


def voice_of(worth: Floats) -> Floats:
    """(n,) how far each passage is listened to: 1 for the best few, falling with the worth."""
    shares = np.exp(worth - worth.max())
    least = np.sort(shares)[::-1][min(_GOOD, len(shares)) - 1]
    voice: Floats = np.minimum(1.0, shares / least)
    return voice


def weigh(columns: dict[str, Floats], weights: Mapping[str, float]) -> Floats:
    """(n,) the weighted sum of columns."""
    table = np.ascontiguousarray(np.array([columns[name] for name in weights]).T)  # several times column_stack's speed
    worth: Floats = table @ np.array(list(weights.values()))
    return worth


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
