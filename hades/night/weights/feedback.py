"""What judged answers teach."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades import stage_ledger
from hades.night.columns import ids
from hades.night.stage import Report
from hades.ports.store import RowStore, Term, scan_rows
from hades.settings.tree import LearningSettings
from models.arrays import Flags, Floats, Longs
from models.weights import (
    PART_DECIMALS,
    Comparison,
    Pairs,
    Results,
    compare,
    learn_offsets,
    scores_of,
)
from schemas.record import JsonObject
from schemas.telemetry import FORGOTTEN, Feedback, ShownResults

# Judged turns of `query_logs` as choices: which shown result was held above which other one. A
# result that somebody called good was preferred to those of its list called bad, and to every other
# one shown with it. The second is only worth so much as the first was likely to be looked at: a
# good result found at rank six tells more than one found at rank one, which is read in any case
# (Joachims, Swaminathan and Schnabel, 2017). Where nothing was called good, what was called bad
# loses to what was not; nothing gains. Turns that nobody judged teach nothing.
# what a pair of a good and an unjudged result counts, beside one of a good and a bad result
UNJUDGED = 0.5
# ranks beyond are taken to be looked at as often as this one, so that no turn counts for many
FARTHEST = 6
_ROWS = 4_096


@dataclass(frozen=True)
class JudgedTurn:
    """One answered question: what it showed, what somebody said of that, and whether it only
    tests.
    """

    key: str
    shown: ShownResults
    feedback: Feedback
    is_held_out: bool


@dataclass(frozen=True)
class Choices:
    """What turns say, as arrays: results by places in `edges`, pairs of them, and which pairs only
    test.

    `edges` are rows of whatever numbers the caller's edges; `turns` counts turns that gave a pair.
    """

    edges: Longs
    results: Results
    pairs: Pairs
    is_test: Flags
    turns: int


def judge_digest(store: RowStore) -> str:
    """One hash over everything that was judged: a night whose hash is that of the night before
    learned it already.
    """
    return stage_ledger.digest_of(
        [[row["_key"], row["query"], row["feedback"], row["results"]] for row in _judge(store)]
    )


def read_turns(store: RowStore, rules: LearningSettings) -> list[JudgedTurn]:
    """Judged turns in the order in which they were judged, whatever order they were logged in.

    A question whose words were forgotten teaches nothing any more.
    """
    turns = []
    for row in _judge(store):
        if row["query"] == FORGOTTEN:
            continue

        shown = ShownResults.model_validate_json(row["results"])
        feedback = Feedback.model_validate_json(row["feedback"])
        is_test = is_held_out(row["query"], rules.held_out)
        turns.append(JudgedTurn(row["_key"], shown, feedback, is_test))

    return sorted(turns, key=lambda turn: (turn.feedback.at, turn.key))


def choices_of(
    turns: Sequence[JudgedTurn],
    mentions: Mapping[str, Sequence[str]],
    row_of: Mapping[str, int],
    power: float,
) -> Choices:
    """The pairs that turns give, each list compared within itself; a passage stands for its
    mentions.

    `row_of` numbers the edges that can learn, by id: others, and results without any, are passed
    over.
    """
    place: dict[int, int] = {}  # of each edge that a result has, by its row
    starts = [0]
    members = list[int]()

    pairs: list[tuple[int, int, int, float, bool]] = []
    for number, turn in enumerate(turns):
        for shown, best, worst in _judged_lists(turn, mentions):
            rows_by_rank = _rows_by_rank(shown, row_of)
            preferences = list(_preferences(list(rows_by_rank), best, worst, power))
            if not preferences:
                continue

            result = {rank: len(starts) - 1 + at for at, rank in enumerate(rows_by_rank)}
            for preferred, less_liked, weight, lifts in preferences:
                share = weight / len(less_liked)
                for rank in less_liked:
                    pairs.append((number, result[preferred], result[rank], share, lifts))

            for rows in rows_by_rank.values():
                members += [place.setdefault(row, len(place)) for row in rows]
                starts.append(len(members))

    columns = list(zip(*pairs, strict=True)) or [()] * len(_PAIR_TYPES)
    typed = zip(columns, _PAIR_TYPES, strict=True)

    arrays: list[Any] = []
    for column, kind in typed:
        arrays.append(np.array(column, kind))

    results = Results(np.array(starts, np.int64), np.array(members, np.int64))
    edges = np.fromiter(place, np.int64, len(place))
    is_held_out = np.array([turn.is_held_out for turn in turns], np.bool_)
    learned = Pairs(*arrays)
    turn_count = len({pair[0] for pair in pairs})
    return Choices(
        edges,
        results,
        learned,
        is_held_out[learned.turn],
        turn_count,
    )


_PAIR_TYPES = (np.int64, np.int64, np.int64, np.float64, np.bool_)
ShownEdges = Sequence[tuple[int, Sequence[str]]]  # the rank of each result, and its edges


def _judged_lists(
    turn: JudgedTurn,
    mentions: Mapping[str, Sequence[str]],
) -> Iterator[tuple[ShownEdges, Collection[int], Collection[int]]]:
    """What a turn showed, list by list, with the ranks that were liked and disliked."""
    liked = turn.feedback.good
    disliked = turn.feedback.bad
    paths = [(path.rank, path.edges) for path in turn.shown.paths]
    yield paths, liked.paths, disliked.paths

    passages: list[tuple[int, Sequence[str]]] = []
    for passage in turn.shown.passages:
        passages.append((passage.rank, mentions.get(passage.id, ())))

    yield passages, liked.passages, disliked.passages


def _rows_by_rank(
    shown: ShownEdges,
    row_of: Mapping[str, int],
) -> dict[int, list[int]]:
    """The rows of each shown result's edges that can learn, by rank; results without any are left
    out.
    """
    rows_by_rank = {}
    for rank, edge_ids in shown:
        if rows := [row_of[edge_id] for edge_id in dict.fromkeys(edge_ids) if edge_id in row_of]:
            rows_by_rank[rank] = rows

    return rows_by_rank


def mentions_in(store: RowStore, turns: Sequence[JudgedTurn]) -> dict[str, list[str]]:
    """Ids of the mentions in each passage that turns showed; none for one that is no longer
    there.
    """
    shown = chain.from_iterable(turn.shown.passages for turn in turns)
    passages = sorted({passage.id for passage in shown} - {FORGOTTEN})

    edges_by_passage: dict[str, list[str]] = {}
    for start in range(0, len(passages), _ROWS):
        where = [Term("_from", "in", passages[start : start + _ROWS])]
        for edge in scan_rows(
            store,
            "mentions",
            where=where,
            columns=["_from"],
        ):
            edges_by_passage.setdefault(edge["_from"], []).append(f"mentions/{edge['_key']}")

    return {node: sorted(edges) for node, edges in edges_by_passage.items()}


def is_held_out(question: str, share: float) -> bool:
    """Whether a question only tests: by its words alone, so that asking it again changes
    nothing.
    """
    words = " ".join(question.casefold().split())
    digest = hashlib.sha256(f"held out: {words}".encode()).digest()
    return int.from_bytes(digest[:4]) < share * 2**32


def _preferences(
    ranks: Sequence[int],
    best: Collection[int],
    worst: Collection[int],
    power: float,
) -> Iterator[tuple[int, list[int], float, bool]]:
    """A preferred rank, those it was preferred to, what that counts in all, and whether it lifts
    the preferred one.
    """
    good = [rank for rank in ranks if rank in best]
    bad = [rank for rank in ranks if rank in worst and rank not in best]
    unjudged = [rank for rank in ranks if rank not in best and rank not in worst]

    for rank in good:
        if bad:  # both were looked at: where they stood favours neither
            yield rank, bad, 1.0, True

        # Other good ones too: they are preferred as often in turn, and leaving such pairs out would
        # favour low ranks.
        less_liked = []
        for shown in (*good, *unjudged):
            if shown != rank:
                less_liked.append(shown)

        if less_liked:
            yield rank, less_liked, UNJUDGED * (min(rank, FARTHEST) / FARTHEST) ** power, True

    if bad and not good:
        for rank in unjudged:
            yield rank, bad, 1.0 / len(unjudged), False


def _judge(store: RowStore) -> Iterator[JsonObject]:
    """Rows that hold a judgement, in key order."""
    rows = scan_rows(
        store,
        "query_logs",
        columns=["_key", "query", "results", "feedback"],
    )
    return (row for row in rows if row["feedback"] not in (None, "", "{}"))


_DECIMALS = 6
_NOTHING_JUDGED: Report = {
    "turns": 0,
    "pairs": 0,
    "moved": {},
    "held_out": {
        "questions": 0,
        "before": 0.0,
        "after": 0.0,
        "difference": 0.0,
        "interval": None,
    },
    "kept": False,
    "why": "nobody has judged an answer yet",
    "largest": [],
}


def tell(learned: Report) -> str:
    """One sentence; empty where nobody judged anything."""
    if not learned.get("turns"):
        return ""
    if not learned["kept"]:
        return f"nothing learned from {learned['turns']:,} judged answers: {learned['why']}"

    held_out = learned["held_out"]
    moved = sum(learned["moved"].values())
    return (
        f"{learned['turns']:,} judged answers moved {moved:,} edges; "
        f"held-out choices ordered right {held_out['before']:.2f} before, "
        f"{held_out['after']:.2f} after"
    )


def _round(value: float) -> float:
    return round(float(value), _DECIMALS) + 0.0


# Learning weights from judged answers, every night from the beginning: the same logs always give
# the same offsets. Part of the judged questions never teaches. What the rest taught is used only if
# it orders the choices made on those at least as well as weights without it; otherwise nothing is
# used, and the report says why. Because every night starts from the priors, a log that was
# forgotten has left no trace, and the order in which logs arrived does not matter.
WeighedEdges = Mapping[str, tuple[pa.ChunkedArray, Floats]]  # keys and weights by collection
_LARGEST = 8
_CERTAIN = 1e-6  # weights are taken to be this far from 0 and 1, so that their logit is finite


def learn_from_use(
    store: RowStore,
    edges: WeighedEdges,
    rules: LearningSettings,
    judged: str = "",
) -> tuple[dict[str, Floats], JsonObject]:
    """Replay every judged turn over edges, test, and keep or leave what was learned.

    `edges` are keys and weights of `relations` and `mentions`. Given back are what to add to the
    logit of every edge, 0 where nothing was learned, and a report: counts, how often choices on
    held-out questions are ordered right without and with it (the interval of the difference is at
    95%, None where there are too few), and the edges that moved most.
    """
    turns = read_turns(store, rules)
    if not turns:
        zeros = {name: np.zeros(len(weights)) for name, (_, weights) in edges.items()}
        return zeros, {"judged": judged, **_NOTHING_JUDGED}

    mentions = mentions_in(store, turns)
    row_of = _rows(edges, turns, mentions)
    choices = choices_of(
        turns,
        mentions,
        row_of,
        rules.position_power,
    )
    weights = np.concatenate([weights for _, weights in edges.values()])[choices.edges]
    safe = weights.clip(_CERTAIN, 1.0 - _CERTAIN)
    prior = np.log(safe) - np.log1p(-safe)
    learned = learn_offsets(
        prior,
        choices.results,
        choices.pairs.where(~choices.is_test),
        rate=rules.rate,
        radius=rules.radius,
    )
    offsets = learned.round(PART_DECIMALS) + 0.0  # no minus zero in the store
    comparison = compare(
        scores_of(prior, choices.results),
        scores_of(prior + offsets, choices.results),
        choices.pairs.where(choices.is_test),
    )
    refusal = _refusal(comparison, offsets, rules)

    if refusal:
        offsets[:] = 0.0

    whole = _spread(edges, choices.edges, offsets)
    report = {
        "judged": judged,
        "turns": choices.turns,
        "pairs": len(choices.pairs),
        "moved": {name: int(np.count_nonzero(values)) for name, values in whole.items()},
        "held_out": _held_out_figures(comparison),
        "kept": not refusal,
        "why": refusal or "not worse on held-out questions",
        "largest": _largest(choices, row_of, prior, offsets),
    }
    return whole, report


def _held_out_figures(comparison: Comparison) -> JsonObject:
    interval = None
    if np.isfinite(comparison.low):
        interval = [_round(comparison.low), _round(comparison.high)]
    return {
        "questions": comparison.turns,
        "before": _round(comparison.before),
        "after": _round(comparison.after),
        "difference": _round(comparison.difference),
        "interval": interval,
    }


def shift(weights: Floats, offsets: Floats) -> Floats:
    """sigma(logit(weight) + offset), written so that 0 and 1 stay what they are and an offset of 0
    changes no bit.
    """
    raised = weights * np.exp(offsets)
    moved: Floats = np.where(
        offsets == 0.0,
        weights,
        raised / (1.0 - weights + raised),
    )
    return moved


def _refusal(
    comparison: Comparison,
    offsets: Floats,
    rules: LearningSettings,
) -> str:
    """Why what was learned is not used; empty when it is."""
    if not offsets.any():
        return (
            "no choice among results that differ in their edges was made on a question that teaches"
        )

    if comparison.turns < rules.least_held_out:
        return (
            f"{comparison.turns} judged questions were held out to test it, {rules.least_held_out} "
            "are needed"
        )

    if comparison.difference < 0.0:
        return (
            f"held-out choices are ordered right {comparison.before:.3f} without it and "
            f"{comparison.after:.3f} with it "
            f"(difference {comparison.difference:+.3f}, 95% interval {comparison.low:+.3f} to "
            f"{comparison.high:+.3f})"
        )

    return ""


def _rows(
    edges: WeighedEdges,
    turns: Sequence[JudgedTurn],
    mentions: Mapping[str, Sequence[str]],
) -> dict[str, int]:
    """The row of every edge that turns name and that is stored; collections follow each other."""
    paths = chain.from_iterable(turn.shown.paths for turn in turns)
    edge_ids = set(chain.from_iterable(path.edges for path in paths))
    edge_ids.update(*mentions.values())
    columns = [ids(name, keys) for name, (keys, _) in edges.items()]
    every = pa.chunked_array(
        chain.from_iterable(column.chunks for column in columns),
        pa.string(),
    )
    rows = np.flatnonzero(
        pc.is_in(
            every,
            value_set=pa.array(sorted(edge_ids), pa.string()),
        )
    )
    return dict(zip(every.take(pa.array(rows)).to_pylist(), rows.tolist(), strict=True))


def _spread(
    edges: WeighedEdges,
    rows: Longs,
    offsets: Floats,
) -> dict[str, Floats]:
    """Offsets of some rows as a column of each collection."""
    ends = np.cumsum([len(keys) for keys, _ in edges.values()])
    whole = np.zeros(ends[-1])
    whole[rows] = offsets
    return dict(zip(edges, np.split(whole, ends[:-1]), strict=True))


def _largest(
    choices: Choices,
    row_of: Mapping[str, int],
    prior: Floats,
    offsets: Floats,
) -> list[JsonObject]:
    """The edges that moved most, then by id: the offset of the logit, and the weight before and
    after.
    """
    name_of = {}
    for name, row in row_of.items():
        name_of[row] = name

    edge_names = {at: name_of[int(choices.edges[at])] for at in np.flatnonzero(offsets).tolist()}
    prior_weights = 1.0 / (1.0 + np.exp(-prior))
    figures = {
        "learned": offsets,
        "before": prior_weights,
        "after": shift(prior_weights, offsets),
    }

    largest = []
    for at in sorted(
        edge_names,
        key=lambda at: (-abs(offsets[at]), edge_names[at]),
    )[:_LARGEST]:
        rounded = {}
        for name, values in figures.items():
            rounded[name] = _round(values[at])

        largest.append({"edge": edge_names[at], **rounded})

    return largest
