"""What each stage of the night did, in one sentence made from its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hades.stages.weights.online_report import tell as describe_learning

Report = Mapping[str, Any]


def describe_sources(report: Report) -> str:
    """New and changed documents of each source."""
    counts = [f"{one['documents']['new']} new, {one['documents']['changed']} changed" for one in report["sources"]]
    return "; ".join(counts) or "no source is known"


def describe_embeddings(report: Report) -> str:
    """How many chunks were embedded."""
    return f"{report['embedded']:,} chunks embedded"


def describe_edges(report: Report) -> str:
    """How many rows of each derived collection changed."""
    changed = {kind: sum(change.values()) for kind, change in report["derived"].items()}
    return ", ".join(f"{count:,} {kind}" for kind, count in changed.items() if count) or "nothing changed"


def describe_topics(report: Report) -> str:
    """How topics were built and how many members moved."""
    return f"{report['mode']}: {report['why']}; {report['topics']:,} topics, {report['moved']:,} moved"


def describe_weights(report: Report) -> str:
    """How many weights changed, and what feedback taught."""
    weighed = f"{sum(report['changed'].values()):,} weights changed, bias {report['bias']:.3f}"
    return "; ".join(filter(None, (str(report["why"]) or weighed, describe_learning(report["learned"]))))


def describe_bridges(report: Report) -> str:
    """How many bridges there are and how many pairs were searched."""
    return f"{report['bridges']:,} bridges, {report['pairs_searched']:,} pairs searched"


def describe_ranker(report: Report) -> str:
    """Whether a ranker was trained, and why not."""
    return str(report["why"])


def describe_release(report: Report) -> str:
    """Which snapshot serves."""
    return f"{report['snapshot']} serves, weights version {report['weights_version']}"
