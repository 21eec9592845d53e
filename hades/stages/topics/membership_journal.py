"""Who moved: the difference between where entities were and where they are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from hades.stages.topics.previous_hierarchy import PreviousHierarchy
from hades.stages.topics.topic_inputs import Material
from hades.stages.topics.topic_report import Moving
from hades.stages.topics.tree_shape import Shape
from schemas.hierarchy import LOST

Reason = Literal["first placed", "moved by a full build", "moved by a local change"]


@dataclass(frozen=True)
class Move:
    """One entity, the topic it is in now and the one it left (None: it had none)."""

    entity: str
    topic: str
    left: str | None
    reason: Reason


def moves_between(material: Material, shape: Shape, mode: str) -> list[Move]:
    """Every entity whose topic is another than before, by key."""
    moved: Reason = "moved by a full build" if mode == "full" else "moved by a local change"
    moves = []
    for key, held, label in zip(material.keys, material.held, shape.labels.tolist(), strict=True):
        topic = shape.topics[label]
        if held != topic:
            moves.append(Move(key, topic, held, "first placed" if held is None else moved))
    return moves


def gone_by_topic(material: Material, standing: PreviousHierarchy) -> Counter[str]:
    """How many members of each standing topic are no longer there, by what its size was and what ingestion took out."""
    still = Counter(held for held in material.held if held is not None)
    rows = {key: standing.clusters[key] for key in standing.topics}
    before = {key: row["size"] + row["metadata"].get(LOST, 0) for key, row in rows.items()}
    return Counter({key: size - still[key] for key, size in before.items() if size > still[key]})


def moving_topics(shape: Shape, moves: list[Move], gone: Counter[str]) -> tuple[Moving, ...]:
    """Topics that gained or lost members, most changed first, then by key; what leans on them is due for renewal."""
    gained = Counter(move.topic for move in moves)
    lost = gone + Counter(move.left for move in moves if move.left)
    sizes = dict(zip(shape.topics, shape.sizes().tolist(), strict=True))
    shares = [
        Moving(key, round((gained[key] + lost[key]) / (sizes.get(key, 0) + lost[key]), 4))
        for key in gained.keys() | lost.keys()
    ]
    return tuple(sorted(shares, key=lambda moving: (-moving.share, moving.cluster)))
