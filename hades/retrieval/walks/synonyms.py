"""Other names of the same thing: restart mass shared with what is `similar_to` an entity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from hades.ports.graph import KINDS, Kind
from hades.retrieval.ranking.relevance import distinct
from schemas.intervals import Mask

if TYPE_CHECKING:
    from hades.ports.store import Direction
    from hades.retrieval.turn.metered_view import MeteredView

_ANY: Final = cast("Direction", "any")
SYNONYM_TYPES = ("similar_to", "coref")


@dataclass(frozen=True)
class SynonymRules:
    """`share`: what all synonyms of an entity together get of its mass; `threshold`: the least weight of a synonym."""

    share: float = 0.1
    threshold: float = 0.5
    fanout: int = 4


def expand_with_synonyms(
    view: MeteredView, mass: dict[int, float], rules: SynonymRules = SynonymRules(), *, mask: Mask = Mask()
) -> dict[int, float]:
    """The mass with a share of each entity's given to its synonyms by weight; the sum stays what it was."""
    nodes = np.array(sorted(mass), np.int64)
    entities = nodes[view.kinds(nodes) == KINDS.index(Kind.ENTITY)] if len(nodes) else nodes
    if not len(entities) or rules.share <= 0.0 or view.turn.expired():
        return mass
    found = view.expand(entities, direction=_ANY, types=SYNONYM_TYPES, fanout=rules.fanout, mask=mask)
    kept = found.weight >= rules.threshold
    row, target, weight = found.row[kept], found.target[kept], found.weight[kept].astype(np.float64)
    if not len(row):
        return mass
    total = np.bincount(row, weight, minlength=len(entities))
    spread = dict(mass)
    for place in distinct(row).tolist():
        spread[int(entities[place])] -= rules.share * mass[int(entities[place])]
    given = rules.share * np.array([mass[int(entities[place])] for place in row.tolist()]) * weight / total[row]
    for node, part in zip(target.tolist(), given.tolist(), strict=True):
        spread[node] = spread.get(node, 0.0) + part
    return spread
