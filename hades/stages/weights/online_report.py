"""What judged answers taught, for people, for the ledger and for the run that is logged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

_DECIMALS = 6
_NOTHING_JUDGED = "nobody has judged an answer yet"


@dataclass(frozen=True)
class Move:
    """How far one edge was moved: the offset of its logit, and its weight before and after."""

    edge: str
    learned: float
    before: float
    after: float


@dataclass(frozen=True)
class HeldOut:
    """Judged questions that taught nothing, and how often their choices were ordered right, without and with learning.

    The interval of the difference is at 95%; None where there are too few to say.
    """

    questions: int = 0
    before: float = 0.0
    after: float = 0.0
    difference: float = 0.0
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class LearningReport:
    """Counts, the test on held-out questions and what followed from it.

    `moved` counts edges whose weight is another for it, by collection; none when it was not `kept`.
    """

    judged: str = ""
    turns: int = 0
    pairs: int = 0
    moved: Mapping[str, int] = field(default_factory=dict)
    held_out: HeldOut = field(default_factory=HeldOut)
    kept: bool = False
    why: str = _NOTHING_JUDGED
    largest: Sequence[Move] = ()

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON and always the same: six decimals."""
        body = asdict(self)
        body["held_out"] = {name: _round(value) for name, value in body["held_out"].items()}
        body["largest"] = [{name: _round(value) for name, value in move.items()} for move in body["largest"]]
        return body


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


def _round(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, _DECIMALS) + 0.0
    return [_round(one) for one in value] if isinstance(value, tuple | list) else value
