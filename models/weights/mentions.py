"""What it means that a passage names an entity: how often, whether its title does, and what kind of name it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.weights.components import Longs, Reals


@dataclass(frozen=True)
class MentionRules:
    """How mentions are weighed.

    `title_counts`: the title says what the whole passage is about, so it stands for several mentions.
    `half`: this number of mentions weighs one half of what endless ones would.
    `term_share`: a plain repeated term weighs this much of a name; it is in many passages and tells less about each.
    """

    title_counts: float = 3.0
    half: float = 1.0
    term_share: float = 0.2


def weigh_mentions(count: Longs, in_title: NDArray[np.bool_], is_term: NDArray[np.bool_], rules: MentionRules) -> Reals:
    """(n,) float32 in [0, 1]: said / (said + half), for terms a share of it.

    `count` includes the title's mention, where there is one. One mention of a name weighs .5, three .75, an endless
    repetition 1: saturating, like the term frequency of BM25.
    """
    said = count + np.where(in_title, rules.title_counts - 1.0, 0.0)
    weight: Reals = (said / (said + rules.half) * np.where(is_term, rules.term_share, 1.0)).astype(np.float32)
    return weight
