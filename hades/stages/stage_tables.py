"""What each stage of the night did, as rows and a caption for the Prefect UI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Report = Mapping[str, Any]
Table = tuple[list[dict[str, Any]], str]


def table_of(stage: str, report: Report) -> Table:
    """Rows and caption for one stage's report."""
    return _TABLES[stage](report)


def _sources(report: Report) -> Table:
    rows = [
        {"source": one["source"], "path": one["path"], "note": one.get("note", ""), **one["documents"]}
        for one in report["sources"]
    ]
    return rows, "documents read from each source"


def _embeddings(report: Report) -> Table:
    return [{"embedded": report["embedded"]}], "chunks embedded"


def _edges(report: Report) -> Table:
    rows = [{"collection": name, **change} for name, change in report["derived"].items()]
    return rows, "rows that were added, changed and removed"


def _topics(report: Report) -> Table:
    return list(report["biggest"]), f"the largest topics; {report['mode']}: {report['why']}"


def _weights(report: Report) -> Table:
    rows = [{"type": kind, **figures} for kind, figures in report["types"].items()]
    return rows, report["why"] or f"weights by relation type; bias {report['bias']:.3f}"


def _bridges(report: Report) -> Table:
    names = ("labelled", "pairs", "pairs_searched", "pairs_reused", "bridges", "work")
    return [{name: report[name] for name in names}], report["stopped"] or "paths between topics, computed ahead"


def _ranker(report: Report) -> Table:
    rows = [
        {"part": part, "passed": verdict["is_better"], "reason": verdict["reason"]}
        for part, verdict in report.get("verdicts", {}).items()
    ]
    return rows, report["why"]


def _release(report: Report) -> Table:
    return [dict(report)], "the snapshot that serves now"


_TABLES: Mapping[str, Callable[[Report], Table]] = {
    "sources": _sources,
    "embeddings": _embeddings,
    "edges": _edges,
    "topics": _topics,
    "weights": _weights,
    "bridges": _bridges,
    "ranker": _ranker,
    "released": _release,
}
