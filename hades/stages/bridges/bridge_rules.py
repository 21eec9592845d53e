"""How bridges are chosen, and what a build of them reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

from hades.settings.hirag import DEFAULT_BOOSTS, PathSettings

VERSION = 3  # raise it with any change of what is found: the next build searches again


@dataclass(frozen=True)
class BridgeRules:
    """Everything that decides which bridges there are; a change of any rebuilds them.

    Every topic has bridges to its `topic_pairs` strongest neighbours, whether it moved or not.
    `pair_work` and `work` are budgets in edges looked at, for one pair of topics and for all. `refreshed_topics` is how
    many of the topics that moved most have all their pairs looked at again in a build that keeps the others.
    """

    threshold: float = 0.5
    max_hops: int = 5
    paths_per_pair: int = 3
    near_pairs: int = 512
    far_pairs: int = 256
    topic_pairs: int = 8
    refreshed_topics: int = 16
    seen_pairs: int = 256
    seen_days: int = 30
    middles: int = 8
    length_penalty: float = 0.3
    eps: float = 1e-6
    boosts: dict[str, float] = field(default_factory=lambda: {str(kind): one for kind, one in DEFAULT_BOOSTS.items()})
    pair_work: int = 200_000
    work: int = 150_000_000
    ttl_days: int = 30

    @property
    def ttl(self) -> timedelta:
        """How long a bridge may be used after the build that found or checked it, and kept without a new search."""
        return timedelta(days=self.ttl_days)


def bridge_rules_of(path: PathSettings) -> BridgeRules:
    """The rules that follow from the section `hirag_pathrag.path` of the settings."""
    return BridgeRules(
        max_hops=path.max_hops,
        length_penalty=path.length_penalty,
        eps=path.eps,
        boosts={str(kind): boost for kind, boost in path.relation_boost.items()},
    )


@dataclass(frozen=True)
class BridgeReport:
    """What the bridges stage did. `pairs_left` were not searched for want of work or time; see `stopped`."""

    skipped: bool = False
    labelled: int = 0
    strong: int = 0
    labels_changed: int = 0
    pairs: int = 0
    pairs_searched: int = 0
    pairs_reused: int = 0
    pairs_left: int = 0
    bridges: int = 0
    by_length: dict[str, int] = field(default_factory=dict)
    pinned: int = 0
    removed: int = 0
    work: int = 0
    stopped: str = ""
    notes: tuple[str, ...] = ()
    generation: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The report as the ledger keeps it."""
        return asdict(self)
