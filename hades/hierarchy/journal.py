"""Who moved: the difference between where entities were and where they are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from hades.hierarchy.material import Material
from hades.hierarchy.shape import Shape
from hades.hierarchy.standing import Standing

Reason = Literal["first placed", "moved by a full build", "moved by a local change", "gone"]


@dataclass(frozen=True)
class Move:
    """One entity, the topic it is in now (None: the entity is gone) and the one it left (None: it is new)."""

    entity: str
    topic: str | None
    left: str | None
    reason: Reason


@dataclass(frozen=True)
class Moving:
    """A topic whose members changed, and the share of its members of both builds that are not in both."""

    cluster: str
    share: float


def moves_between(material: Material, standing: Standing, shape: Shape, mode: str) -> list[Move]:
    """Every entity whose topic is another than before, by key; those that are gone last."""
    moved: Reason = "moved by a full build" if mode == "full" else "moved by a local change"
    moves = []
    for key, held, label in zip(material.keys, material.held, shape.labels.tolist(), strict=True):
        topic = shape.topics[label]
        if held != topic:
            moves.append(Move(key, topic, held, "first placed" if held is None else moved))
    present = set(material.keys)
    moves += [
        Move(key, None, member.topic, "gone") for key, member in sorted(standing.members.items()) if key not in present
    ]
    return moves


def moving_topics(standing: Standing, shape: Shape, moves: list[Move]) -> tuple[Moving, ...]:
    """Topics that gained or lost members, most changed first, then by key; what leans on them is due for renewal."""
    before = Counter(member.topic for member in standing.members.values())
    gained, lost = Counter(move.topic for move in moves), Counter(move.left for move in moves)
    shares = []
    for key, size in zip(shape.topics, shape.sizes().tolist(), strict=True):
        changed = gained[key] + lost[key]
        if changed:
            shares.append(Moving(key, round(changed / max(1, size + lost[key]), 4)))
    gone = set(before) - set(shape.topics)
    shares += [Moving(key, 1.0) for key in gone]
    return tuple(sorted(shares, key=lambda moving: (-moving.share, moving.cluster)))
