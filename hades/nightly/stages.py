"""The stages after ingestion, one call each: every one skips itself when nothing it works from has changed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from hades.builds import ledger
from hades.builds.bridges import BridgeRules, build_bridges
from hades.hierarchy.build import build_hierarchy
from hades.hierarchy.rules import HierarchyRules
from hades.learning.rules import WeightRules
from hades.learning.weights import weigh_relations
from hades.nightly.site import Mode, Site, derivation, generation_of


def build_topics(
    site: Site, as_of: datetime, mode: Mode = "auto", rules: HierarchyRules | None = None
) -> dict[str, Any]:
    """Topics and super-topics over all entities."""
    report = build_hierarchy(
        site.store,
        rules or HierarchyRules(),
        model=site.model,
        inputs=derivation(site),
        as_of=as_of,
        mode=mode,
        language_model=site.language_model,
        progress=site.progress,
    )
    return report.as_dict()


def weigh(site: Site, as_of: datetime, rules: WeightRules | None = None) -> dict[str, Any]:
    """Weight and cost of every relation, weight of every mention."""
    report = weigh_relations(
        site.store,
        rules or WeightRules(boosts=site.boosts),
        model=site.model,
        inputs=derivation(site),
        as_of=as_of,
        progress=site.progress,
    )
    return report.as_dict()


def bridge(
    site: Site, as_of: datetime, deadline: Callable[[], bool] = lambda: False, rules: BridgeRules | None = None
) -> dict[str, Any]:
    """Edges between topics marked, and the hot paths between them computed ahead."""
    hierarchy = ledger.completed(site.store, ledger.HIERARCHY)
    report = build_bridges(
        site.store,
        rules or BridgeRules(boosts={str(kind): boost for kind, boost in site.boosts.items()}),
        inputs=ledger.digest_of(generation_of(site, ledger.HIERARCHY), generation_of(site, ledger.WEIGHTS)),
        generation=generation_of(site, ledger.WEIGHTS),
        as_of=as_of,
        moved=[one["cluster"] for one in (hierarchy.report["moving"] if hierarchy else ())],
        anew=hierarchy is not None and hierarchy.report["mode"] == "full",
        deadline=deadline,
        progress=site.progress,
    )
    return report.as_dict()
