"""Learning weights from judged answers, every night from the beginning: the same logs always give the same offsets.

Part of the judged questions never teaches. What the rest taught is used only if it orders the choices made on those at
least as well as weights without it; otherwise nothing is used, and the report says why. Because every night starts from
the priors, a log that was forgotten has left no trace, and the order in which logs arrived does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ports.store import RowStore
from hades.settings.learning import LearningSettings
from hades.stages.weights import feedback
from hades.stages.weights.feedback import Choices, JudgedTurn
from hades.stages.weights.online_report import HeldOut, LearningReport, Move
from models.weights.components import PART_DECIMALS, Longs
from models.weights.holdout import Comparison, compare
from models.weights.pairwise import Doubles, learn_offsets, scores_of

_LARGEST = 8
_CERTAIN = 1e-6  # weights are taken to be this far from 0 and 1, so that their logit is finite


@dataclass(frozen=True)
class Edges:
    """One collection before learning: its keys and their weights, row by row."""

    keys: pa.ChunkedArray
    weights: Doubles


@dataclass(frozen=True)
class LearnedOffsets:
    """What to add to the logit of every edge, 0 where nothing was learned, by collection; and how it came about."""

    offsets: Mapping[str, Doubles]
    report: LearningReport


def learn_from_use(
    store: RowStore, edges: Mapping[str, Edges], rules: LearningSettings, judged: str = ""
) -> LearnedOffsets:
    """Replay every judged turn over these edges (`relations`, `mentions`), test, and keep or leave what was learned."""
    turns = feedback.read_turns(store, rules)
    if not turns:
        return LearnedOffsets(_nothing(edges), LearningReport(judged))
    mentions = feedback.mentions_in(store, turns)
    row_of = _rows(edges, turns, mentions)
    choices = feedback.choices_of(turns, mentions, row_of, rules.position_power)
    prior = _logit(np.concatenate([one.weights for one in edges.values()])[choices.edges])
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
    report = LearningReport(
        judged=judged,
        turns=choices.turns,
        pairs=len(choices.pairs),
        moved={name: int(np.count_nonzero(values)) for name, values in whole.items()},
        held_out=_hold_out(tested),
        kept=not refusal,
        why=refusal or "not worse on held-out questions",
        largest=_largest(choices, row_of, prior, offsets),
    )
    return LearnedOffsets(whole, report)


def shift(weights: Doubles, offsets: Doubles) -> Doubles:
    """sigma(logit(weight) + offset), written so that 0 and 1 stay what they are and an offset of 0 changes no bit."""
    odds = np.exp(offsets)
    moved: Doubles = np.where(offsets == 0.0, weights, weights * odds / (1.0 - weights + weights * odds))
    return moved


def _refusal(tested: Comparison, offsets: Doubles, rules: LearningSettings) -> str:
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


def _hold_out(tested: Comparison) -> HeldOut:
    interval = (tested.low, tested.high) if np.isfinite(tested.low) else None
    return HeldOut(tested.turns, tested.before, tested.after, tested.difference, interval)


def _rows(
    edges: Mapping[str, Edges], turns: Sequence[JudgedTurn], mentions: Mapping[str, Sequence[str]]
) -> dict[str, int]:
    """The row of every edge that turns name and that is stored; collections follow each other."""
    named = {one for turn in turns for shown in turn.paths for one in shown.named}
    named |= {one for found in mentions.values() for one in found}
    row_of: dict[str, int] = {}
    before = 0
    for name, one in edges.items():
        prefix = f"{name}/"
        wanted = sorted(identifier.removeprefix(prefix) for identifier in named if identifier.startswith(prefix))
        place = pc.index_in(one.keys, value_set=pa.array(wanted, pa.string()))
        rows = np.flatnonzero(place.is_valid().to_numpy())
        for row, at in zip(rows.tolist(), place.drop_null().to_pylist(), strict=True):
            row_of[prefix + wanted[at]] = before + row
        before += len(one.keys)
    return row_of


def _spread(edges: Mapping[str, Edges], rows: Longs, offsets: Doubles) -> dict[str, Doubles]:
    """Offsets of some rows as a column of each collection."""
    whole = np.zeros(sum(len(one.weights) for one in edges.values()))
    whole[rows] = offsets
    ends = np.cumsum([len(one.weights) for one in edges.values()])
    return dict(zip(edges, np.split(whole, ends[:-1]), strict=True))


def _nothing(edges: Mapping[str, Edges]) -> dict[str, Doubles]:
    return {name: np.zeros(len(one.weights)) for name, one in edges.items()}


def _logit(weights: Doubles) -> Doubles:
    safe = np.clip(weights, _CERTAIN, 1.0 - _CERTAIN)
    logits: Doubles = np.log(safe) - np.log1p(-safe)
    return logits


def _largest(choices: Choices, row_of: Mapping[str, int], prior: Doubles, offsets: Doubles) -> list[Move]:
    """The edges that moved most, then by id."""
    if not offsets.any():
        return []
    far = np.abs(offsets)
    least = np.partition(far, -min(_LARGEST, len(far)))[-min(_LARGEST, len(far))]
    among = np.flatnonzero((far >= least) & (far > 0.0))
    name_of = {row: name for name, row in row_of.items()}
    named = {at: name_of[int(choices.edges[at])] for at in among.tolist()}
    order = sorted(named, key=lambda at: (-far[at], named[at]))[:_LARGEST]
    before = 1.0 / (1.0 + np.exp(-prior))
    after = shift(before, offsets)
    return [Move(named[at], float(offsets[at]), float(before[at]), float(after[at])) for at in order]
