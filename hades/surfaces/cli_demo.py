"""`hades demo`: provision, write a small graph of real content, read it back three ways."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from hades.ports.store import GraphStore, Mode, StorePath
from hades.settings import load_settings
from hades.surfaces.demo_graph import DemoGraph, module_id, standard_library_graph
from hades.surfaces.output import Answer
from hades.wiring import open_store
from schemas.edges import Relation
from schemas.ids import split_id
from schemas.nodes import Document, Entity
from schemas.record import to_table

QUESTION = "encode and decode JSON text"
START, END = "http.server", "enum"
FANOUT, PATHS, MAX_HOPS = 6, 3, 4


def run_demo() -> Answer:
    """Build and read a graph of its own under HADES_HOME/demo, always in the embedded store."""
    asked = load_settings()
    settings = asked.model_copy(update={"home": asked.home / "demo", "store": "sqlite", "view": "snapshot"})
    graph = standard_library_graph()
    with closing(open_store(settings, Mode.ADMIN)) as store:
        store.provision()
    started = time.perf_counter()
    with closing(open_store(settings, Mode.READ_WRITE)) as store:
        written = _write(store, graph)
    seconds = time.perf_counter() - started
    with closing(open_store(settings, Mode.READ_ONLY)) as store:
        found = _search(store)
        near = _neighbours(store)
        paths = [_path(store, path) for path in _cheapest(store)]
    document = {
        "home": str(settings.home),
        "written": written,
        "search": {"text": QUESTION, "hits": found},
        "neighbours": {"of": START, "nodes": near},
        "paths": {"from": START, "to": END, "found": paths},
    }
    return Answer(document, _view(document, seconds))


def _write(store: GraphStore, graph: DemoGraph) -> dict[str, int]:
    tables = {
        "documents": to_table(Document, graph.documents),
        "entities": to_table(Entity, graph.entities),
        "relations": to_table(Relation, graph.relations),
    }
    with store.transaction(list(tables)) as rows:
        return {name: rows.upsert(name, table).rows for name, table in tables.items()}


def _search(store: GraphStore) -> list[dict[str, Any]]:
    hits = store.search("entities", QUESTION, limit=4).to_pylist()
    known = store.get("entities", [hit["_key"] for hit in hits], columns=["name", "summary"]).to_pylist()
    by_key = {row["_key"]: row for row in known}
    return [
        {"name": by_key[hit["_key"]]["name"], "summary": by_key[hit["_key"]]["summary"], "score": hit["score"]}
        for hit in hits
    ]


def _neighbours(store: GraphStore) -> list[dict[str, Any]]:
    rows = store.neighbours([module_id(START)], fanout=FANOUT).to_pylist()
    names = _names(store, [row["neighbour"] for row in rows])
    return [{"name": names[row["neighbour"]], "type": row["type"], "weight": row["weight"]} for row in rows]


def _cheapest(store: GraphStore) -> list[StorePath]:
    return store.cheapest_paths(module_id(START), module_id(END), k=PATHS, max_hops=MAX_HOPS)


def _path(store: GraphStore, path: StorePath) -> dict[str, Any]:
    """A path in words: each step with the line of source that states it."""
    names = _names(store, list(path.nodes))
    edges = {row["_key"]: row for row in store.get("relations", list(path.edges)).to_pylist()}
    text = names[path.nodes[0]]
    for node, key in zip(path.nodes[1:], path.edges, strict=True):
        edge = edges[key]
        text += f' --[{edge["label"]}; snippet: "{_snippet(store, edge["provenance"])}"]--> {names[node]}'
    return {"cost": path.cost, "nodes": [names[node] for node in path.nodes], "text": text}


def _snippet(store: GraphStore, provenance: dict[str, Any]) -> str:
    document = store.get("documents", [split_id(provenance["doc"])[1]], columns=["text"])
    start, end = provenance["span"]
    return " ".join(str(document.column("text")[0].as_py())[start:end].split())


def _names(store: GraphStore, ids: list[str]) -> dict[str, str]:
    keys = [split_id(identifier)[1] for identifier in ids]
    rows = store.get("entities", keys, columns=["name"]).to_pylist()
    return {f"entities/{row['_key']}": row["name"] for row in rows}


def _view(document: dict[str, Any], seconds: float) -> tuple[Text | Table | Tree, ...]:
    written = ", ".join(f"{rows:,} {name}" for name, rows in document["written"].items())
    hits = Table(title=f'search: "{QUESTION}"', title_justify="left", box=None, pad_edge=False)
    for column in ("module", "score", "summary"):
        hits.add_column(column, max_width=80, no_wrap=column != "summary")
    for hit in document["search"]["hits"]:
        hits.add_row(hit["name"], f"{hit['score']:.2f}", hit["summary"])
    near = Tree(f"what {START} refers to, heaviest first")
    for node in document["neighbours"]["nodes"]:
        near.add(Text(f"{node['name']}  {node['type']} {node['weight']:.2f}"))
    ways = Tree(f"cheapest ways from {START} to {END}")
    for path in document["paths"]["found"]:
        ways.add(Text(f"{path['cost']:.2f}  {path['text']}"))
    home = document["home"]
    return (
        Text(f"wrote {written} in {seconds:.2f} s, in one transaction"),
        Text(),
        hits,
        Text(),
        near,
        Text(),
        ways,
        Text(f"\nthe graph stays in {home}; look at it with: HADES_HOME={home} hades status"),
    )
