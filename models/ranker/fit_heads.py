"""Fitting heads by lists of candidates; seeded, stopped early, cross-fitted.

Every head is fitted once for each fold of the questions, without it; what serves is the mean of these, which is again
one small network, and what the folds say of the questions they have not seen is an honest score for all of them. When
to stop is decided for each fold by the others, so not even that was seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from models.ranker.dataset import Lists, Longs
from models.ranker.features import Singles
from models.ranker.fit_curve import Curve, Told, rectangle

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class HeadRules:
    """How a head is fitted. `first` is what the top place counts beside the whole list."""

    hidden: int = 8
    steps: int = 120
    every: int = 6
    rate: float = 0.02
    decay: float = 0.3
    dropout: float = 0.3
    first: float = 1.5
    seed: int = 20260101


@dataclass(frozen=True)
class FittedHead:
    """A head's arrays; those of the heads that were fitted without a fold; and how each fold went."""

    arrays: dict[str, Singles]
    without: dict[int, dict[str, Singles]]
    curve: Curve

    def unseen(self, fold: int) -> dict[str, Singles]:
        """The arrays of a head that has seen no question of this fold."""
        return self.without.get(fold, self.arrays)


def fit_head(
    lists: Lists,
    fold: Longs,
    rules: HeadRules,
    prior: Singles | None = None,
    *,
    each: bool = False,
    told: Told = lambda what, done, of: None,
) -> FittedHead:
    """Fit a head. `fold` is a question's fold; `each`: candidates are judged one by one, not against each other.

    `prior` (columns,) is added to what was learned: a voice for columns that rank well where nothing was learned.
    """
    mean = lists.columns.mean(axis=0, dtype=np.float64).astype(np.float32)
    scale = (1.0 / np.maximum(lists.columns.std(axis=0, dtype=np.float64), 1e-4)).astype(np.float32)
    scaled = Lists(np.clip((lists.columns - mean) * scale, -5.0, 5.0), lists.starts, lists.wanted, lists.weight)
    numbers = np.unique(fold).tolist()
    tries = []
    with _one_thread():
        for place, one in enumerate(numbers):
            inside = np.flatnonzero(fold != one) if len(numbers) > 1 else np.arange(len(lists))
            outside = np.flatnonzero(fold == one)
            tries.append(_fit_fold(scaled.subset(inside), scaled.subset(outside), rules, place, each))
            told("heads", place + 1, len(numbers))
    held = np.array([curve.held for _, curve in tries])
    voice = np.zeros_like(mean) if prior is None else prior / scale

    def head(arrays: dict[str, Singles]) -> dict[str, Singles]:
        return {"mean": mean, "scale": scale, **arrays, "line": arrays["line"] + voice}

    without: dict[int, dict[str, Singles]] = {}
    for place, one in enumerate(numbers):
        others = np.delete(held, place, axis=0) if len(numbers) > 1 else held
        without[one] = head(tries[place][0][int(np.argmin(others.mean(axis=0)))])
    best = int(np.argmin(held.mean(axis=0)))
    served = [head(kept[best]) for kept, _ in tries]
    curve = Curve(np.mean([one.fitted for _, one in tries], axis=0).tolist(), held.mean(axis=0).tolist())
    return FittedHead(_mean_head(served), without, curve)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Products as small as a head's are slower on several threads, and much slower on a busy machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _mean_head(parts: list[dict[str, Singles]]) -> dict[str, Singles]:
    """The mean of several heads as one: their hidden units side by side."""
    return {
        "mean": parts[0]["mean"],
        "scale": parts[0]["scale"],
        "line": np.mean([one["line"] for one in parts], axis=0, dtype=np.float32),
        "inner": np.hstack([one["inner"] for one in parts]),
        "inner_bias": np.concatenate([one["inner_bias"] for one in parts]),
        "outer": (np.concatenate([one["outer"] for one in parts]) / len(parts)).astype(np.float32),
    }


def _fit_fold(
    inside: Lists, outside: Lists, rules: HeadRules, place: int, each: bool
) -> tuple[list[dict[str, Singles]], Curve]:
    """The head of a fold after every few steps, with its losses; the other folds say which of them is taken."""
    import torch

    from models.ranker.network import Scores

    torch.manual_seed(rules.seed + place)
    network = Scores(inside.columns.shape[1], rules.hidden)
    learner = torch.optim.AdamW(network.parameters(), lr=rules.rate, weight_decay=rules.decay)
    fitted, held = _Tensors.of(inside), _Tensors.of(outside if len(outside) else inside)
    curve, kept = Curve(), []
    for step in range(1, rules.steps + 1):
        network.train()
        learner.zero_grad()
        loss = fitted.loss(network(fitted.columns, rules.dropout), each, rules.first)
        loss.backward()  # type: ignore[no-untyped-call]
        learner.step()
        if step % rules.every == 0:
            network.eval()
            with torch.no_grad():
                curve.held.append(float(held.loss(network(held.columns), each, rules.first)))
            curve.fitted.append(float(loss.detach()))
            kept.append(_head_arrays(network))
    return kept, curve


@dataclass(frozen=True)
class _Tensors:
    """Lists as rectangles: (q, most, columns), (q, most) wanted and there, (q,) weight."""

    columns: torch.Tensor
    wanted: torch.Tensor
    there: torch.Tensor
    weight: torch.Tensor

    @classmethod
    def of(cls, lists: Lists) -> _Tensors:
        import torch

        columns, there = rectangle(lists.columns, lists.starts)
        wanted, _ = rectangle(lists.wanted, lists.starts)
        return cls(*(torch.from_numpy(one) for one in (columns, wanted, there, lists.weight)))

    def loss(self, scores: torch.Tensor, each: bool, first: float) -> torch.Tensor:
        from torch.nn import functional

        from models.ranker.network import listwise

        if each:
            apart = functional.binary_cross_entropy_with_logits(scores, self.wanted, reduction="none")
            own = (apart * self.there).sum(-1) / self.there.sum(-1)
        else:
            own = listwise(scores, self.wanted, self.there, first)
        return (own * self.weight).sum() / self.weight.sum()


def _head_arrays(network: torch.nn.Module) -> dict[str, Singles]:
    held = {name: one.detach().numpy().copy() for name, one in network.named_parameters()}
    return {
        "line": held["line"],
        "inner": held["inner.weight"].T.copy(),
        "inner_bias": held["inner.bias"],
        "outer": held["outer"],
    }
