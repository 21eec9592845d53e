"""A graph of its own for an evaluation: read, derive, group, weigh, bridge, publish; with what that took."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hades.evaluation.rankings import MOMENT
from hades.ingest.ingest_api import Ingest
from hades.ingest.report import IngestReport
from hades.ports.text import Embedder, Tokenizer
from hades.settings.hipporag import HippoSettings
from hades.settings.hirag import HiragPathrag
from hades.snapshot.publish import publish
from hades.stages.build_context import BuildContext
from hades.stages.stage_calls import bridge, build_topics, weigh


@dataclass(frozen=True)
class Workbench:
    """A home of its own, opened: where the graph of an evaluation is built and asked.

    `rules` and `walk` are the sections `hirag_pathrag` and `hipporag` of the settings, which its questions follow.
    """

    build_context: BuildContext
    ingest: Ingest
    embedder: Embedder
    tokenizer: Tokenizer
    rules: HiragPathrag = field(default_factory=HiragPathrag)
    walk: HippoSettings = field(default_factory=HippoSettings)


def build(bench: Workbench, read: Callable[[Ingest], IngestReport]) -> dict[str, float]:
    """Bring the home to what the files say, and publish; seconds, peak memory, and how many texts were embedded."""
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
