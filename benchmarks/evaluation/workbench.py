"""Building the graph that an evaluation asks."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from hades.evaluation.rankers import MOMENT
from hades.ingest.ingest import Ingest
from hades.ingest.manifest import IngestReport
from hades.night.bridges.stage import bridge
from hades.night.context import BuildContext
from hades.night.topics.stage import build_topics
from hades.night.weights.stage import weigh
from hades.retrieval.pipeline import Tools
from hades.snapshot.publish import publish


@dataclass(frozen=True)
class Workbench:
    """A home of its own, opened: where the graph of an evaluation is built and asked."""

    build_context: BuildContext
    ingest: Ingest
    tools: Tools


def build(bench: Workbench, read: Callable[[Ingest], IngestReport]) -> dict[str, float]:
    """Bring the home to what the files say, and publish; seconds, peak memory, and how many texts
    were embedded.
    """
    began = time.perf_counter()
    report = read(bench.ingest)
    build_topics(bench.build_context, MOMENT)
    weigh(bench.build_context, MOMENT)
    bridge(bench.build_context, MOMENT)
    publish(bench.build_context.store, bench.build_context.home)
    seconds = round(time.perf_counter() - began, 2)
    return {"seconds": seconds, "peak_mb": peak_mb(), "embedded": report.embedded}


def peak_mb() -> float:
    """The most memory this process has held so far."""
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)
