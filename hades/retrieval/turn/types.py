"""What retrieval hands from stage to stage: numbers of the view, nothing materialised."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from schemas.intervals import Mask

EXPLAIN = "explain"  # origin of a path that was looked for because it leads to a passage
OPEN = Mask()


@dataclass(frozen=True)
class Question:
    """A question as the stages see it. `vector` is unit length, None when it could not be embedded.

    `near` are the nodes that it is asked from: where the asker stands, such as the paper that a sentence is written in.
    """

    text: str
    vector: NDArray[np.float32] | None = None
    model: str = ""
    mask: Mask = OPEN
    subqueries: tuple[str, ...] = ()
    near: tuple[int, ...] = ()


@dataclass(frozen=True)
class Seed:
    """A node to start from. `score` is in [0, 1]; `origins` say which search found it, with its score there."""

    node: int
    score: float
    origins: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class FoundPath:
    """A walk through the graph: n nodes, n - 1 edges; `outbound[i]` says whether edge i points from node i to i + 1.

    `score` ranks paths of one answer, `reliability` is the flow that arrives, in [0, 1], `propensity` the chance that
    it stands where it stands.
    """

    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    outbound: tuple[bool, ...]
    score: float
    reliability: float = 0.0
    origin: str = "beam"
    why: str = ""
    propensity: float = 1.0


@dataclass(frozen=True)
class FoundPassage:
    """A chunk worth reading; `tiers` say what each search gave it.

    `explained_by` are the edges of the path that leads to it; where there is none, `no_path` may say why.
    """

    node: int
    score: float
    tiers: dict[str, float] = field(default_factory=dict)
    propensity: float = 1.0
    explained_by: tuple[int, ...] = ()
    no_path: str = ""
