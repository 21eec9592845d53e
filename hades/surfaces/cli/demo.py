"""`hades demo`: the standard library as a graph, built as a nightly does, and asked three questions."""

from __future__ import annotations

import sysconfig
import time
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.panel import Panel
from rich.text import Text

from hades.ingest.sources.workspace import WorkspaceSource
from hades.reports.answer_picture import answer_picture
from hades.settings import load_settings
from hades.stages.build_report import summary_lines
from hades.surfaces.cli.output import Answer
from hades.surfaces.cli.plain_layout import to_text
from hades.surfaces.cli.progress import show_progress
from hades.surfaces.cli.query_views import show_passage
from hades.wiring import open_hades
from schemas.retrieval import Retrieval

PACKAGES = (
    "asyncio", "collections", "concurrent", "email", "html", "http", "importlib", "json", "logging",
    "multiprocessing", "sqlite3", "tomllib", "urllib", "wsgiref", "xmlrpc", "zoneinfo",
)  # fmt: skip
QUESTIONS = (
    "where is the date in an email header parsed?",
    "how is a cookie header parsed?",
    "TypeError: Object of type set is not JSON serializable",
)
PATHS, PASSAGES = 2, 3


def run_demo() -> Answer:
    """Build and ask a graph of its own under HADES_HOME/demo, always in the embedded store."""
    asked = load_settings()
    settings = asked.model_copy(update={"home": asked.home / "demo", "store": "sqlite", "view": "snapshot"})
    began = time.perf_counter()
    with show_progress() as progress, open_hades(settings, progress=progress) as hades:
        report = hades.ingest.source(WorkspaceSource(Path(sysconfig.get_paths()["stdlib"]), PACKAGES)).as_dict()
        night = hades.build()
        answers = [hades.retrieve(question) for question in QUESTIONS]
        counts = {name: rows for name, rows in hades.store.counts().items() if rows}
    picture = settings.home / "reports" / "answer.svg"
    picture.write_text(answer_picture(next((one for one in answers if one.paths), answers[0])), encoding="utf-8")
    document = {
        "home": str(settings.home),
        "picture": str(picture),
        "explorer": f"http://127.0.0.1:{settings.serve_port}/",
        "seconds": round(time.perf_counter() - began, 1),
        "report": report,
        "night": night,
        "counts": counts,
        "snapshot": night["released"]["snapshot"],
        "answers": [answer.model_dump(mode="json") for answer in answers],
    }
    return Answer(
        document, (*_build(document), *(part for answer in answers for part in _ask(answer)), _next(document))
    )


def _build(document: dict[str, Any]) -> tuple[RenderableType, ...]:
    counts, report = document["counts"], document["report"]
    told_counts = ", ".join(
        f"{counts.get(name, 0):,} {name}" for name in ("files", "doc_chunks", "entities", "relations", "clusters")
    )
    phases = ", ".join(f"{phase} {value:.0f} s" for phase, value in report["seconds"].items())
    night = "\n".join(summary_lines(document["night"]))
    return (Text(f"{told_counts}\ningested in {phases}; then one night:\n"), Text(night), Text())


def _ask(answer: Retrieval) -> tuple[RenderableType, ...]:
    """Where the answer stands (path, line, symbol) with its code, then paths that explain it, then what it cost."""
    lines = Text()
    for passage in answer.passages[:PASSAGES]:
        for part in show_passage(passage.model_dump(mode="json")):
            lines.append_text(to_text(part)).append("\n")
    for path in answer.paths[:PATHS]:
        lines.append(f"{path.rank}. {path.text}\n", style="bold")
    budget, spent = answer.plan.budget, answer.telemetry
    cost = f"{spent.reads} of {budget.docs_max} reads, {spent.ms:.0f} of {budget.latency_ms} ms"
    lines.append(f"spent {cost}, {answer.tokens.prompt} prompt tokens", style="dim")
    return (Panel(lines, title=f"{answer.query}  ({answer.recipe})", title_align="left"),)


def _next(document: dict[str, Any]) -> RenderableType:
    home = document["home"]
    return Text(
        f"{document['seconds']:.0f} s in all; report with pictures: {document['night']['report']}\n"
        f"ask your own: HADES_HOME={home} hades query 'how is a cookie parsed?'\n"
        f"picture of one answer: {document['picture']}\n"
        f"explorer: HADES_HOME={home} hades serve --no-token, then open {document['explorer']}"
    )
