"""The whole night in one call, for a notebook or a script: the same stages, contracts and release as the flow."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from hades.ingest.door import Ingest
from hades.ingest.phases import Phase
from hades.nightly.gate import check_boundaries
from hades.nightly.publishing import release
from hades.nightly.site import Mode, Site
from hades.nightly.stages import bridge, build_topics, weigh

AFTER_INGEST = ("nodes", "chunks", "embeddings", "edges")


def build(site: Site, ingest: Ingest, as_of: datetime, *, mode: Mode = "auto", keep: int = 7) -> dict[str, Any]:
    """Read what is known again, embed, derive, group, weigh, bridge, publish; what each stage said and took."""
    report: dict[str, Any] = {"as_of": as_of.isoformat(), "contracts": [], "seconds": {}}

    def stage(name: str, work: Callable[[], Any]) -> None:
        began = time.perf_counter()
        report[name] = work()
        report["seconds"][name] = round(time.perf_counter() - began, 3)

    def gate(*boundaries: str) -> None:
        began = time.perf_counter()
        report["contracts"].append(check_boundaries(site, boundaries).require().as_dict())
        spent = report["seconds"].get("contracts", 0.0) + time.perf_counter() - began
        report["seconds"]["contracts"] = round(spent, 3)

    stage("sources", lambda: {"sources": ingest.again(None, (Phase.NODES, Phase.CHUNKS))})
    stage("embeddings", lambda: ingest.nothing([Phase.EMBEDDINGS]).as_dict())
    stage("edges", lambda: ingest.nothing([Phase.EDGES]).as_dict())
    gate(*AFTER_INGEST)
    stage("topics", lambda: build_topics(site, as_of, mode))
    gate("hierarchy")
    stage("weights", lambda: weigh(site, as_of))
    gate("weights")
    stage("bridges", lambda: bridge(site, as_of))
    gate("bridges")
    stage("released", lambda: release(site, as_of, keep).as_dict())
    return report
