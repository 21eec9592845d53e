"""Fitted rankings of recipes as the files of `models/fitted` hold them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from models.arrays import Flags, Floats, Longs

# The one ranking: a linear sum over the features of a passage, whose coefficients follow the
# context. Contexts are shares that add up to one: what was read is plain text, a telling in its
# order, pages whose names lead to each other, or asked for in a language that the model does not
# know. Each look but the first also sees the passages beside each other, as the look before ranked
# them: what the second step of a question found is known when the third is judged.
Weights = Mapping[str, Mapping[str, float]]  # coefficients by feature, by context


@dataclass(frozen=True)
class Ranking:
    """The coefficients of each look; the last one's ranking serves."""

    looks: tuple[Weights, ...]

    @cached_property
    def digest(self) -> str:
        """sha256 of the features and their coefficients."""
        return hashlib.sha256(json.dumps(self.looks, sort_keys=True).encode()).hexdigest()

    def counts(self, look: int, contexts: Mapping[str, float]) -> dict[str, float]:
        """What each feature counts in these contexts; one that counts in none of them is left
        out.
        """
        counts: dict[str, float] = {}
        for context, share in contexts.items():
            for feature, coefficient in self.looks[look].get(context, {}).items():
                if share:
                    counts[feature] = counts.get(feature, 0.0) + share * coefficient

        return counts

    def score(
        self,
        look: int,
        contexts: Mapping[str, float],
        columns: Mapping[str, Floats],
    ) -> Floats:
        """(n,) higher is better; only differences within one question mean something."""
        counts = self.counts(look, contexts)
        # Several times faster than column_stack.
        table = np.ascontiguousarray(np.array([columns[feature] for feature in counts]).T)
        scores: Floats = table @ np.array(list(counts.values()))
        return scores


@dataclass(frozen=True, eq=False)
class Forest:
    """Complete trees of one depth: (trees, 2**depth - 1) columns and thresholds inside, (trees,
    2**depth) leaf values.

    A row goes right where its value is above the threshold. The score is the sum of the leaves it
    ends in.
    """

    columns: tuple[str, ...]
    column: Longs
    threshold: Floats
    value: Floats

    def score(self, rows: Floats) -> Floats:
        """(n, columns) to (n,): higher is better; only the order of rows of one question means
        something.
        """
        scores = np.zeros(len(rows))
        every = np.arange(len(rows))
        inner = self.column.shape[1]

        for column, threshold, value in zip(
            self.column,
            self.threshold,
            self.value,
            strict=True,
        ):
            node = np.zeros(len(rows), np.int64)
            while len(node) and node[0] < inner:
                node = 2 * node + 1 + (rows[every, column[node]] > threshold[node])

            scores += value[node - inner] if len(node) else 0.0

        return scores

    @staticmethod
    def from_json(stored: Mapping[str, Any]) -> Forest:
        """The trees of a fitted file."""
        threshold, value = (np.array(stored[name], np.float64) for name in ("threshold", "value"))
        return Forest(
            tuple(stored["columns"]),
            np.array(stored["column"], np.int64),
            threshold,
            value,
        )


# The line of the default ranking: a few coefficients beside the shipped weights, fitted by choice
# among candidates. A passage's score is z + X d: z what the shipped weights say, in units of its
# own spread, X the columns, d what is fitted. The loss is that of a choice, -log of the softmax at
# the gold, plus a ridge on d: where there is nothing to learn d is 0, which is the shipped ranking.
RIDGE = 1.0


@dataclass(frozen=True)
class Choice:
    """The candidates of one question. `gold` (parts, n): which candidates serve each part of the
    answer.
    """

    worth: Floats
    columns: Floats
    gold: Flags
    weight: float = 1.0

    def ranking(self, line: Floats) -> tuple[str, ...]:
        """The candidates by this line, best first: the part that each serves, or its own number."""
        order = np.argsort(-(self.worth + self.columns @ line), kind="stable").tolist()

        parts = []
        for row in order:
            parts.append(
                f"part {int(self.gold[:, row].argmax())}" if self.gold[:, row].any() else str(row)
            )

        return tuple(parts)

    @property
    def parts(self) -> frozenset[str]:
        """What `ranking` calls the parts of the answer, found or not."""
        return frozenset(f"part {number}" for number in range(len(self.gold)))


def fit_line(
    choices: Sequence[Choice],
    width: int,
    ridge: float = RIDGE,
) -> Floats:
    """(width,) the coefficients of the columns; zeros where no choice has something to choose."""
    from scipy.optimize import minimize  # two seconds to load, and only fitting needs it

    taught: list[tuple[Choice, Flags]] = []  # those that have something to choose

    for choice in choices:
        is_gold = np.asarray(choice.gold.any(axis=0), np.bool_)
        if 0 < is_gold.sum() < len(is_gold):
            taught.append((choice, is_gold))

    if not taught:
        return np.zeros(width)

    total = sum(choice.weight for choice, _ in taught)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        """The loss and its gradient at log temperature and coefficients."""
        steep = np.exp(parameters[0])
        line = parameters[1:]
        value = 0.0
        slope = np.zeros(len(parameters))

        for choice, is_gold in taught:
            score = choice.worth + choice.columns @ line
            chance = np.exp(steep * (score - score.max()))
            chance /= chance.sum()
            hit = float(chance[is_gold].sum()) + 1e-12
            pull = choice.weight * (chance - np.where(is_gold, chance, 0.0) / hit)
            value -= choice.weight * float(np.log(hit))
            slope[0] += steep * float(pull @ score)
            slope[1:] += steep * (choice.columns.T @ pull)

        slope /= total
        slope[1:] += 2.0 * ridge * line
        return value / total + ridge * float(line @ line), slope

    start = np.concatenate([[0.5], np.zeros(width)])
    coefficients: Floats = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
    ).x[1:]
    return coefficients.round(6)


# The rule of abstention: what the signals of an answer count beside the shipped margin, which is
# above 0 where it says to answer. Questions with and without an answer count the same in the fit.
# Then the rule is moved to where it leaves
# `LEAST_SURE` of those with an answer unanswered, for that is what people mind. An exam's questions
# are longer than people's and surer: fitted to them alone, the least sure stay as sure as the
# shipped rule has them.
LEAST_SURE = 0.01  # of the answerable questions
LEAST_OWN = (
    20  # questions of people from which on these say how far the rule may go, and states are fitted
)


def fit_margin(
    shipped: Floats,
    signals: Floats,
    is_answerable: Flags,
    is_own: Flags,
    ridge: float = RIDGE,
) -> Floats:
    """(signals,) from the shipped margins (n,) and the signals (n, signals), of which the last is 1
    everywhere.

    `is_own` are people's questions; where there are enough, they say how far the rule may go.
    """
    from scipy.optimize import minimize  # two seconds to load, and only fitting needs it
    from scipy.special import expit

    fitted_signals = signals[:, :-1]
    middle = fitted_signals.mean(axis=0)
    spread = np.where(
        fitted_signals.std(axis=0) > 0.0,
        fitted_signals.std(axis=0),
        1.0,
    )
    table = np.column_stack([(fitted_signals - middle) / spread, signals[:, -1]])
    counts = np.where(
        is_answerable,
        0.5 / max(1, is_answerable.sum()),
        0.5 / max(1, (~is_answerable).sum()),
    )

    def loss(line: Floats) -> tuple[float, Floats]:
        """The loss and its gradient."""
        score = shipped + table @ line
        pull = counts * (expit(score) - is_answerable)
        penalty = ridge * np.append(line[:-1], 0.0)
        lost = counts @ (np.logaddexp(0.0, score) - is_answerable * score)
        return float(lost + penalty @ line), pull @ table + 2.0 * penalty

    margin_line: Floats = minimize(
        loss,
        np.zeros(len(spread) + 1),
        jac=True,
        method="L-BFGS-B",
    ).x
    margin_line = np.append(
        margin_line[:-1] / spread,
        margin_line[-1] - middle @ (margin_line[:-1] / spread),
    )
    known = is_answerable & is_own
    has_own = bool(known.sum() >= LEAST_OWN)
    known = known if has_own else is_answerable
    fitted = shipped + signals @ margin_line
    least_before = float(np.quantile(shipped[known], LEAST_SURE))
    least_now = float(np.quantile(fitted[known], LEAST_SURE))
    margin_line[-1] += (0.0 if has_own else max(0.0, least_before)) - least_now
    return margin_line.round(6)
