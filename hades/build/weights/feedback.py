"""What judged answers teach."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades import build_state
from hades.build.columns import ids
from hades.ports.store import RowStore, Term, scan_rows
from hades.settings.tree import LearningSettings
from models.arrays import Flags, Floats, Longs
from models.weights import PART_DECIMALS, Comparison, Pairs, Results, compare, learn_offsets, scores_of
from schemas.telemetry import FORGOTTEN, Feedback, ShownResults

# Judged turns of `query_logs` as choices: which shown result was held above which other one. A result that somebody
# called good was preferred to those of its list called bad, and to every other one shown with it. The second is
# only worth so much as the first was likely to be looked at: a good result found at rank six tells more than one
# found at rank one, which is read in any case (Joachims, Swaminathan and Schnabel, 2017). Where nothing was called
# good, what was called bad loses to what was not; nothing gains. Turns that nobody judged teach nothing.
UNJUDGED = 0.5  # what a pair of a good and an unjudged result counts, beside one of a good and a bad result
FARTHEST = 6  # ranks beyond are taken to be looked at as often as this one, so that no turn counts for many
_ROWS = 4_096


@dataclass(frozen=True)
class JudgedTurn:
    """One answered question: what it showed, what somebody said of that, and whether it only tests."""

    key: str
    shown: ShownResults
    said: Feedback
    is_held_out: bool


@dataclass(frozen=True)
class Choices:
    """What turns say, as arrays: results by places in `edges`, pairs of them, and which pairs only test.

    `edges` are rows of whatever numbers the caller's edges; `turns` counts turns that gave a pair.
    """

    edges: Longs
    results: Results
    pairs: Pairs
    is_test: Flags
    turns: int


def judge_digest(store: RowStore) -> str:
    """One hash over everything that was judged: a night whose hash is that of the night before learned it already."""
    return build_state.digest_of(
        [[row["_key"], row["query"], row["feedback"], row["results"]] for row in _judge(store)]
    )


def read_turns(store: RowStore, rules: LearningSettings) -> list[JudgedTurn]:
    """Judged turns in the order in which they were judged, whatever order they were logged in.

    A question whose words were forgotten teaches nothing any more.
    """
    turns = [
        JudgedTurn(
            row["_key"],
            ShownResults.model_validate(orjson.loads(row["results"])),
            Feedback.model_validate(orjson.loads(row["feedback"])),
            is_held_out(row["query"], rules.held_out),
        )
        for row in _judge(store)
        if row["query"] != FORGOTTEN
    ]
    return sorted(turns, key=lambda turn: (turn.said.at, turn.key))


def choices_of(
    turns: Sequence[JudgedTurn], mentions: Mapping[str, Sequence[str]], row_of: Mapping[str, int], power: float
) -> Choices:
    """The pairs that turns give, each list compared within itself; a passage stands for its mentions.

    `row_of` numbers the edges that can learn, by id: others, and results without any, are passed over.
    """
    place: dict[int, int] = {}  # of each edge that a result has, by its row
    starts, members = [0], list[int]()
    rows: list[tuple[int, int, int, float, bool]] = []
    for number, turn in enumerate(turns):
        liked, disliked = turn.said.good, turn.said.bad
        paths = [(one.rank, one.edges) for one in turn.shown.paths]
        passages = [(one.rank, mentions.get(one.id, ())) for one in turn.shown.passages]
        for shown, best, worst in ((paths, liked.paths, disliked.paths), (passages, liked.passages, disliked.passages)):
            held = [(rank, [row_of[name] for name in dict.fromkeys(named) if name in row_of]) for rank, named in shown]
            known = [(rank, edges) for rank, edges in held if edges]
            result = {rank: len(starts) - 1 + at for at, (rank, _) in enumerate(known)}
            good = [rank for rank in result if rank in best]
            bad = [rank for rank in result if rank in worst and rank not in best]
            unjudged = [rank for rank in result if rank not in best and rank not in worst]
            found = [
                (number, result[preferred], result[one], weight / len(others), lifts)
                for preferred, others, weight, lifts in _preferences(good, unjudged, bad, power)
                for one in others
            ]
            rows += found
            for _, edges in known if found else ():
                members += [place.setdefault(row, len(place)) for row in edges]
                starts.append(len(members))
    columns = list(zip(*rows, strict=True)) or [()] * 5
    kinds = (np.int64, np.int64, np.int64, np.float64, np.bool_)
    pairs = Pairs(*(np.array(one, kind) for one, kind in zip(columns, kinds, strict=True)))
    results = Results(np.array(starts, np.int64), np.array(members, np.int64))
    tests = np.array([turn.is_held_out for turn in turns], np.bool_)
    edges_named = np.fromiter(place, np.int64, len(place))
    return Choices(edges_named, results, pairs, tests[pairs.turn], len({row[0] for row in rows}))


def mentions_in(store: RowStore, turns: Sequence[JudgedTurn]) -> dict[str, list[str]]:
    """Ids of the mentions in each passage that turns showed; none for one that is no longer there."""
    passages = sorted({one.id for turn in turns for one in turn.shown.passages} - {FORGOTTEN})
    found: dict[str, list[str]] = {}
    for start in range(0, len(passages), _ROWS):
        some = passages[start : start + _ROWS]
        for edge in scan_rows(store, "mentions", where=[Term("_from", "in", some)], columns=["_from"]):
            found.setdefault(edge["_from"], []).append(f"mentions/{edge['_key']}")
    return {node: sorted(edges) for node, edges in found.items()}


def is_held_out(question: str, share: float) -> bool:
    """Whether a question only tests: by its words alone, so that asking it again changes nothing."""
    words = " ".join(question.casefold().split())
    return int.from_bytes(hashlib.sha256(f"held out: {words}".encode()).digest()[:4]) < share * 2**32


def _preferences(
    good: Sequence[int], unjudged: Sequence[int], bad: Sequence[int], power: float
) -> Iterator[tuple[int, list[int], float, bool]]:
    """A preferred rank, those it was preferred to, what that counts in all, and whether it lifts the preferred one."""
    for rank in good:
        if bad:
            yield rank, list(bad), 1.0, True  # both were looked at: where they stood favours neither
        # Other good ones too: they are preferred as often in turn, and leaving such pairs out would favour low ranks.
        if beside := [one for one in (*good, *unjudged) if one != rank]:
            yield rank, beside, UNJUDGED * (min(rank, FARTHEST) / FARTHEST) ** power, True
    if bad and unjudged and not good:
        for rank in unjudged:
            yield rank, list(bad), 1.0 / len(unjudged), False


def _judge(store: RowStore) -> Iterator[dict[str, Any]]:
    """Rows that hold a judgement, in key order."""
    rows = scan_rows(store, "query_logs", columns=["_key", "query", "results", "feedback"])
    return (row for row in rows if row["feedback"] not in (None, "", "{}"))


_DECIMALS = 6
_NOTHING_JUDGED: Mapping[str, Any] = {
    "turns": 0,
    "pairs": 0,
    "moved": {},
    "held_out": {"questions": 0, "before": 0.0, "after": 0.0, "difference": 0.0, "interval": None},
    "kept": False,
    "why": "nobody has judged an answer yet",
    "largest": [],
}


def tell(learned: Mapping[str, Any]) -> str:
    """One sentence; empty where nobody judged anything."""
    if not learned.get("turns"):
        return ""
    if not learned["kept"]:
        return f"nothing learned from {learned['turns']:,} judged answers: {learned['why']}"
    held, moved = learned["held_out"], sum(learned["moved"].values())
    return (
        f"{learned['turns']:,} judged answers moved {moved:,} edges; "
        f"held-out choices ordered right {held['before']:.2f} before, {held['after']:.2f} after"
    )


def _round(value: float) -> float:
    return round(float(value), _DECIMALS) + 0.0


# Learning weights from judged answers, every night from the beginning: the same logs always give the same offsets. Part
# of the judged questions never teaches. What the rest taught is used only if it orders the choices made on those at
# least as well as weights without it; otherwise nothing is used, and the report says why. Because every night starts
# from the priors, a log that was forgotten has left no trace, and the order in which logs arrived does not matter.
_LARGEST = 8
_CERTAIN = 1e-6  # weights are taken to be this far from 0 and 1, so that their logit is finite


def learn_from_use(
    store: RowStore, edges: Mapping[str, tuple[pa.ChunkedArray, Floats]], rules: LearningSettings, judged: str = ""
) -> tuple[dict[str, Floats], dict[str, Any]]:
    """Replay every judged turn over edges, test, and keep or leave what was learned.

    es` are keys and weights of `relations` and `mentions`. Given back are what to add to the logit of every edge, 0
    where nothing was learned, and a report: counts, how often choices on held-out questions are ordered right without
    and with it (the interval of the difference is at 95%, None where there are too few), and the edges that moved most.
    """
    turns = read_turns(store, rules)
    if not turns:
        return {name: np.zeros(len(one)) for name, (_, one) in edges.items()}, {"judged": judged, **_NOTHING_JUDGED}
    mentions = mentions_in(store, turns)
    row_of = _rows(edges, turns, mentions)
    choices = choices_of(turns, mentions, row_of, rules.position_power)
    safe = np.concatenate([one for _, one in edges.values()])[choices.edges].clip(_CERTAIN, 1.0 - _CERTAIN)
    prior = np.log(safe) - np.log1p(-safe)
    found = learn_offsets(
        prior, choices.results, choices.pairs.where(~choices.is_test), rate=rules.rate, radius=rules.radius
    )
    offsets = found.round(PART_DECIMALS) + 0.0  # no minus zero in the store
    before, after = scores_of(prior, choices.results), scores_of(prior + offsets, choices.results)
    tested = compare(before, after, choices.pairs.where(choices.is_test))
    refusal = _refusal(tested, offsets, rules)
    if refusal:
        offsets[:] = 0.0
    whole = _spread(edges, choices.edges, offsets)
    return whole, {
        "judged": judged,
        "turns": choices.turns,
        "pairs": len(choices.pairs),
        "moved": {name: int(np.count_nonzero(values)) for name, values in whole.items()},
        "held_out": {
            "questions": tested.turns,
            "before": _round(tested.before),
            "after": _round(tested.after),
            "difference": _round(tested.difference),
            "interval": [_round(tested.low), _round(tested.high)] if np.isfinite(tested.low) else None,
        },
        "kept": not refusal,
        "why": refusal or "not worse on held-out questions",
        "largest": _largest(choices, row_of, prior, offsets),
    }


def shift(weights: Floats, offsets: Floats) -> Floats:
    """sigma(logit(weight) + offset), written so that 0 and 1 stay what they are and an offset of 0 changes no bit."""
    odds = np.exp(offsets)
    moved: Floats = np.where(offsets == 0.0, weights, weights * odds / (1.0 - weights + weights * odds))
    return moved


def _refusal(tested: Comparison, offsets: Floats, rules: LearningSettings) -> str:
    """Why what was learned is not used; empty when it is."""
    if not offsets.any():
        return "no choice among results that differ in their edges was made on a question that teaches"
    if tested.turns < rules.least_held_out:
        return f"{tested.turns} judged questions were held out to test it, {rules.least_held_out} are needed"
    if tested.difference < 0.0:
        return (
            f"held-out choices are ordered right {tested.before:.3f} without it and {tested.after:.3f} with it "
            f"(difference {tested.difference:+.3f}, 95% interval {tested.low:+.3f} to {tested.high:+.3f})"
        )
    return ""


def _rows(
    edges: Mapping[str, tuple[pa.ChunkedArray, Floats]],
    turns: Sequence[JudgedTurn],
    mentions: Mapping[str, Sequence[str]],
) -> dict[str, int]:
    """The row of every edge that turns name and that is stored; collections follow each other."""
    named = {edge for turn in turns for path in turn.shown.paths for edge in path.edges}
    named |= {one for found in mentions.values() for one in found}
    every = pa.chunked_array(
        [chunk for name, (keys, _) in edges.items() for chunk in ids(name, keys).chunks], pa.string()
    )
    rows = np.flatnonzero(pc.is_in(every, value_set=pa.array(sorted(named), pa.string())))
    return dict(zip(every.take(pa.array(rows)).to_pylist(), rows.tolist(), strict=True))


def _spread(edges: Mapping[str, tuple[pa.ChunkedArray, Floats]], rows: Longs, offsets: Floats) -> dict[str, Floats]:
    """Offsets of some rows as a column of each collection."""
    ends = np.cumsum([len(keys) for keys, _ in edges.values()])
    whole = np.zeros(ends[-1])
    whole[rows] = offsets
    return dict(zip(edges, np.split(whole, ends[:-1]), strict=True))


def _largest(choices: Choices, row_of: Mapping[str, int], prior: Floats, offsets: Floats) -> list[dict[str, Any]]:
    """The edges that moved most, then by id: the offset of the logit, and the weight before and after."""
    if not offsets.any():
        return []
    far = np.abs(offsets)
    name_of = {row: name for name, row in row_of.items()}
    named = {at: name_of[int(choices.edges[at])] for at in np.flatnonzero(offsets).tolist()}
    order = sorted(named, key=lambda at: (-far[at], named[at]))[:_LARGEST]
    before = 1.0 / (1.0 + np.exp(-prior))
    after = shift(before, offsets)
    moved = {"learned": offsets, "before": before, "after": after}
    return [{"edge": named[at], **{name: _round(values[at]) for name, values in moved.items()}} for at in order]
