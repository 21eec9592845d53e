"""The bridges stage: label what joins topics, keep the best paths between the hottest pairs of them.

A build after a change looks again at the pairs of the topics that moved most, at those that have no bridges and those
of whose bridges an edge changed. Every other bridge is checked node by node and weight by weight and kept: nothing is
ever stale, though a search might now find a better path. No bridge is kept so for longer than its time to live.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime

from hades.build_state import ledger
from hades.errors import HadesError
from hades.ports.progress import Progress, silent
from hades.ports.store import GraphStore
from hades.stages.bridges.bridge_rules import VERSION, BridgeReport, BridgeRules

__all__ = ["BridgeReport", "BridgeRules", "EdgesNotWeighed", "build_bridges"]


class EdgesNotWeighed(HadesError):
    """Bridges were asked for before there were weights."""


def build_bridges(
    store: GraphStore,
    rules: BridgeRules,
    *,
    inputs: str,
    generation: str,
    as_of: datetime,
    moved: Sequence[str] = (),
    anew: bool = False,
    deadline: Callable[[], bool] | None = None,
    progress: Progress = silent,
) -> BridgeReport:
    """Bring labels and bridges to what the graph says, in one transaction; skipped when `inputs` are as last time.

    `inputs` is a digest of weights and hierarchy, `generation` that of the weights. Bridges of the topics in `moved`,
    the most moved first, come first. `anew` looks at every pair again, as a build from nothing would. When `deadline`
    says that time is over, what was found so far is written, and the next build goes on from there.
    """
    if not generation:
        raise EdgesNotWeighed("no relation was weighed, and bridges are made of weights; run `hades run weigh_edges`")
    digest = ledger.digest_of(inputs, asdict(rules), VERSION)
    last = ledger.complete(store, ledger.BRIDGES)
    if last is not None and last.digest == digest and (last.as_of is None or as_of < last.as_of + rules.ttl):
        return _skip(last)
    from hades.stages.bridges.make_bridges import make_bridges  # compiled kernels

    return make_bridges(
        store,
        rules,
        digest=digest,
        generation=generation,
        as_of=as_of,
        moved=moved,
        anew=anew,
        deadline=deadline or _never,
        progress=progress,
    )


def _skip(last: ledger.StageCompletion) -> BridgeReport:
    """What the last build reported, marked as skipped."""
    return BridgeReport(**{**last.report, "notes": tuple(last.report["notes"]), "skipped": True})


def _never() -> bool:
    return False
