"""`hades demo`: the standard library as a graph, published, and asked by words, by meaning and along its edges."""

from __future__ import annotations

import sysconfig
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from hades.ingest.sources.workspace import WorkspaceSource
from hades.ports.store import Direction
from hades.ports.view import GraphView, Hits, Kind
from hades.settings import load_settings
from hades.surfaces.cli_ingest import shown_progress
from hades.surfaces.output import Answer
from hades.wiring import open_hades

if TYPE_CHECKING:
    from hades.api import Hades

PACKAGES = (
    "asyncio", "collections", "concurrent", "email", "html", "http", "importlib", "json", "logging",
    "multiprocessing", "sqlite3", "tomllib", "urllib", "wsgiref", "xmlrpc", "zoneinfo",
)  # fmt: skip
BY_WORDS = "parse the date in an email header"
BY_MEANING = "how can I run slow code without freezing the event loop?"
START = "asyncio.base_events.BaseEventLoop.run_in_executor"
LIMIT, FANOUT = 4, 8


def run_demo() -> Answer:
    """Build, publish and ask a graph of its own under HADES_HOME/demo, always in the embedded store."""
    asked = load_settings()
    settings = asked.model_copy(update={"home": asked.home / "demo", "store": "sqlite", "view": "snapshot"})
    began = time.perf_counter()
    with shown_progress() as progress, open_hades(settings, progress=progress) as hades:
        report = hades.ingest.source(WorkspaceSource(Path(sysconfig.get_paths()["stdlib"]), PACKAGES))
        published = hades.publish()
        counts = {name: rows for name, rows in hades.store.counts().items() if rows}
        document = {
            "home": str(settings.home),
            "report": report.as_dict(),
            "counts": counts,
            "snapshot": published.snapshot,
            **_ask(hades),
        }
    return Answer(document, _view(document, time.perf_counter() - began))


def _ask(hades: Hades) -> dict[str, Any]:
    view = hades.view()
    vector = hades.embedder.embed([BY_MEANING])[0]
    nearest = view.nearest(vector, kind=Kind.CHUNK, model=hades.embedder.model.tag, limit=LIMIT)
    found = {
        "by_words": {"text": BY_WORDS, "hits": _hits(view, view.lexical(BY_WORDS, kind=Kind.CHUNK, limit=LIMIT))},
        "by_meaning": {"text": BY_MEANING, "hits": _hits(view, nearest)},
        "along_edges": {"of": START, "edges": _edges(view)},
    }
    view.close()
    return found


def _hits(view: GraphView, hits: Hits) -> list[dict[str, Any]]:
    return [
        {
            "document": passage.document,
            "span": list(passage.span),
            "text": " ".join(passage.text.split())[:160],
            "score": round(float(score), 4),
        }
        for passage, score in zip(view.passages(hits.numbers), hits.scores, strict=True)
    ]


def _edges(view: GraphView) -> list[dict[str, Any]]:
    """What the class refers to, each with the place that says so."""
    start = view.match_names(START).numbers[:1]
    expansion = view.expand(start, direction=Direction.OUT, types=["refers_to", "extends"], fanout=FANOUT)
    names = view.nodes(expansion.target)
    return [
        {"to": node.name, "type": edge.type, "label": edge.label, "document": edge.document, "span": edge.span}
        for node, edge in zip(names, view.edges(expansion.edge), strict=True)
    ]


def _view(document: dict[str, Any], seconds: float) -> tuple[Text | Table | Tree, ...]:
    counts, report = document["counts"], document["report"]
    told = ", ".join(f"{counts.get(name, 0):,} {name}" for name in ("files", "doc_chunks", "entities", "relations"))
    phases = ", ".join(f"{phase} {value:.0f} s" for phase, value in report["seconds"].items())
    edges = Tree(f"what {START} refers to, with the place that says so")
    for edge in document["along_edges"]["edges"]:
        edges.add(Text(f"--[{edge['label'] or edge['type']}]--> {edge['to']}   {edge['document']}{edge['span'] or ''}"))
    home = document["home"]
    return (
        Text(f"{told}\nembedded {report['embedded']:,} chunks this time; {phases}; {seconds:.0f} s in all"),
        Text(),
        _table("by words", document["by_words"]),
        Text(),
        _table("by meaning", document["by_meaning"]),
        Text(),
        edges,
        Text(f"\nsnapshot {document['snapshot']}; look at the graph with: HADES_HOME={home} hades status"),
    )


def _table(title: str, answer: dict[str, Any]) -> Table:
    table = Table(title=f'{title}: "{answer["text"]}"', title_justify="left", box=None, pad_edge=False)
    for column in ("score", "document", "text"):
        table.add_column(column, max_width=90, no_wrap=column != "text")
    for hit in answer["hits"]:
        table.add_row(f"{hit['score']:.2f}", f"{hit['document']} {hit['span']}", hit["text"])
    return table
