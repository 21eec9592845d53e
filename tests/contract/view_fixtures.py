"""One small graph, written through the store port, as every view shows it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hades.ports.graph import KINDS
from hades.ports.store import GraphStore, Mode
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from hades.snapshot.view import GraphView
from hades.stage_ledger import WEIGHTS, record
from hades.stores.arango.client import ArangoEndpoints
from hades.stores.arango.neighbourhood import ArangoView
from hades.stores.arango.store import ArangoStore
from schemas.ids import sha256_text
from schemas.record import canonical_json
from tests.arango_double.server import ArangoDouble
from tests.contract.conftest import (
    PASSWORD,
    REAL_SERVER,
    VIEW_DATABASE,
    provision_empty,
    real_endpoints,
)
from tests.contract.examples import MODEL, day, entity, put
from tests.homes import empty_store

RIVERS = "Résumé 🌊: the river Rhine flows north. The Rhine meets the sea."
CODE = "def flow(x):\n    return x\n"
CITY_ALIASES = ["Cologne", "Colonia Agrippina", "Köln a.Rh.", "쾰른"]

# Relations of the hub, by key. Weight None counts 1.0, 0.0 stays 0.
HUB_EDGES = {
    "r1": ("sea", "refers_to", 0.5),
    "r2": ("north", "derives_from", None),
    "r3": ("city", "refers_to", 0.0),
    "r4": ("hub", "coref", 0.75),
    "r5": ("sea", "similar_to", 0.5),
}


def fill(store: GraphStore) -> None:
    """Write the graph."""
    put(
        store,
        "documents",
        {
            **document("rivers", "corpus-17", "Rivers", RIVERS),
            "domains": ["nature"],
            "created": day(2),
            "metadata": canonical_json({"tags": ["water"], "authors": ["Ada"]}),
        },
        {**document("code", "src/flow.py", "", CODE), "domains": ["Python"]},
    )
    put(
        store,
        "entities",
        entity(
            "hub",
            name="River Rhine",
            embedding=[1.0, 0.0, 0.0],
            embedding_model=MODEL,
            cluster_id="water",
            deg_out=5,
            domains=["geo", "nature"],
        ),
        entity(
            "sea",
            name="North Sea",
            embedding=[0.0, 2.0, 0.0],
            embedding_model=MODEL,
            summary="a salty sea",
        ),
        entity(
            "north",
            name="North",
            embedding=[1.0, 1.0],
            embedding_model="other@1/2",
            domain="geo",
            frequency=3,
        ),
        entity("city", name="Köln", canonical_name="City of Köln", aliases=CITY_ALIASES),
        entity(
            "lonely", name="Rhine", type="person", embedding=[0.0, 0.0, 0.0], embedding_model=MODEL
        ),
    )
    put(
        store,
        "doc_chunks",
        chunk(
            "c1",
            "rivers",
            RIVERS,
            0,
            38,
            title="Rivers",
            headings=["Europe", "Rhine"],
            timestamp=day(3),
        ),
        chunk(
            "c2",
            "rivers",
            RIVERS,
            39,
            63,
            embedding=[0.6, 0.8, 0.0],
            embedding_model=MODEL,
            file_path="src/delta.py",
            symbol="Delta.open",
            start_line=4,
            end_line=9,
        ),
    )
    put(
        store,
        "clusters",
        cluster("water", 1, [0.0, 0.0, 1.0], name="Water", summary="rivers and seas"),
        cluster("nature", 2, [0.0, 0.6, 0.8], summary="all of nature"),
    )
    put(
        store,
        "files",
        {
            "_key": "f1",
            "path": "src/flow.py",
            "document": "documents/code",
            "sha256": sha256_text(CODE),
        },
    )
    put(
        store,
        "funcs",
        {
            "_key": "g1",
            "name": "flow",
            "qualified_name": "flow.flow",
            "kind": "function",
            "path": "src/flow.py",
            "document": "documents/code",
            "span": [0, 12],
            "docstring": "lets rivers run",
        },
    )
    put_edges(store)
    put_bridges(store)


def put_bridges(store: GraphStore) -> None:
    """Three topics of one entity each and bridges between them; all but the first three rows are
    stale.
    """
    topics = {"b0": "valley", "b1": "coast", "b2": "towns"}
    put(
        store,
        "entities",
        *(entity(key, name=f"x{key}", cluster_id=topic) for key, topic in topics.items()),
    )
    put(store, "entities", entity("b3", name="xb3", cluster_id="nowhere"))
    params = {"algo": "toy", "min_cluster_size": 5, "min_samples": 3, "seed": 42}
    put(
        store,
        "clusters",
        *({"_key": key, "level": 1, "cluster_params": params} for key in topics.values()),
    )
    put(
        store,
        "relations",
        joined("k1", "entities/b1", "entities/b0", "cites", weight=0.5),
        joined("k2", "entities/b1", "entities/b2", "refers_to", weight=0.25),
        joined("k3", "entities/b2", "entities/b0", "refers_to", weight=0.75, valid_until=day(9)),
    )
    record(store, WEIGHTS, "d", "w7")
    far = ("towns", "valley")
    put(
        store,
        "bridge_cache",
        bridge("direct", ("coast", "valley"), "b1 b0", {"k1": 0.5}, 0.3),
        bridge("round", ("coast", "towns"), "b1 b2", {"k2": 0.25}, 0.2, pinned=True),
        bridge("long", far, "b2 b1 b0", {"k2": 0.25, "k1": 0.5}, 0.3),
        bridge("old", far, "b2 b1 b0", {"k2": 0.25, "k1": 0.5}, 0.9, generation="w6"),
        bridge("gone", far, "b2 b0", {"k9": 0.75}, 0.9),
        bridge("lighter", far, "b2 b1 b0", {"k2": 0.25, "k1": 0.4}, 0.9),
        bridge("ended", far, "b2 b0", {"k3": 0.75}, 0.9),
        bridge("homeless", ("nowhere", "valley"), "b1 b0", {"k1": 0.5}, 0.9),
        {**bridge("untold", far, "b2 b1 b0", {"k2": 0.25, "k1": 0.5}, 0.9), "provenance": "{}"},
    )


def bridge(
    key: str,
    topics: tuple[str, str],
    nodes: str,
    weights: dict[str, float],
    weight: float,
    **fields: object,
) -> dict[str, object]:
    """A row of `bridge_cache` over entities and relations named by key."""
    steps = [{"id": f"relations/{edge}", "weight": was} for edge, was in weights.items()]
    return {
        "_key": key,
        "from_cluster": topics[0],
        "to_cluster": topics[1],
        "weight": weight,
        "cost": 2.0 * weight,
        "nodes": [f"entities/{node}" for node in nodes.split()],
        "edges": [step["id"] for step in steps],
        "provenance": canonical_json({"edges": steps}),
        "generation": "w7",
        "created": day(1),
        **fields,
    }


def put_edges(store: GraphStore) -> None:
    """Edges of every collection, one with both intervals."""
    relations = [
        {
            "_key": key,
            "_from": "entities/hub",
            "_to": f"entities/{target}",
            "type": kind,
            "weight": weight,
        }
        for key, (target, kind, weight) in HUB_EDGES.items()
    ]
    relations[0] |= {
        "provenance": {"doc": "documents/rivers", "span": [14, 37]},
        "label": "flows",
        "valid_from": day(2),
        "valid_until": day(5),
        "recorded_at": day(3),
        "retracted_at": day(9),
    }
    put(store, "relations", *relations)
    put(store, "mentions", joined("m1", "doc_chunks/c1", "entities/hub", "mentions", weight=0.25))
    put(
        store,
        "cluster_edges",
        joined("p1", "entities/hub", "clusters/water", "PART_OF"),
        joined("p2", "clusters/water", "clusters/nature", "SUBTOPIC_OF", weight=0.5),
    )
    put(store, "references", joined("n1", "doc_chunks/c1", "doc_chunks/c2", "next"))
    put(store, "contains", joined("t1", "files/f1", "funcs/g1", "contains"))
    put(store, "imports", joined("i1", "funcs/g1", "funcs/g1", "calls"))
    put(store, "chunk_code_edges", joined("d1", "doc_chunks/c1", "funcs/g1", "describes"))


def document(key: str, origin: str, title: str, text: str) -> dict[str, object]:
    """A row of `documents`."""
    return {
        "_key": key,
        "origin": origin,
        "source": "documents",
        "title": title,
        "text": text,
        "sha256": sha256_text(text),
    }


def chunk(
    key: str, of: str, text: str, start: int, end: int, **fields: object
) -> dict[str, object]:
    """A row of `doc_chunks` cut from a text."""
    cut = text[start:end]
    return {
        "_key": key,
        "document": f"documents/{of}",
        "text": cut,
        "span": [start, end],
        "chunk_index": start,
        "token_count": len(cut.split()),
        "sha256": sha256_text(cut),
        **fields,
    }


def cluster(key: str, level: int, centroid: list[float], **fields: object) -> dict[str, object]:
    """A row of `clusters`."""
    params = {"algo": "toy", "min_cluster_size": 5, "min_samples": 3, "seed": 42}
    return {
        "_key": key,
        "level": level,
        "centroid": centroid,
        "embedding_model": MODEL,
        "cluster_params": params,
        **fields,
    }


def joined(key: str, source: str, target: str, kind: str, **fields: object) -> dict[str, object]:
    """A row of any edge collection."""
    return {"_key": key, "_from": source, "_to": target, "type": kind, **fields}


def arango_store(double: ArangoDouble) -> ArangoStore:
    """An empty store, on the server of the environment or on the double."""
    endpoints = (
        real_endpoints(VIEW_DATABASE)
        if REAL_SERVER
        else ArangoEndpoints(url=double.url, database=VIEW_DATABASE, user="root", password=PASSWORD)
    )
    store = ArangoStore(endpoints, mode=Mode.ADMIN, fail_on_warning=True, wait_for_view=True)
    provision_empty(store, double)
    return store


def everything(store: ArangoStore) -> GraphView:
    """All rows of a server as a turn fetches them."""
    ids = [
        f"{kind}/{row['_key']}"
        for kind in KINDS
        for batch in store.scan(kind)
        for row in batch.to_pylist()
    ]
    return ArangoView(store).around([], [], "", ids).view


@pytest.fixture(params=["snapshot", "arango"], scope="module")
def view(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, double: ArangoDouble
) -> Iterator[GraphView]:
    """The graph through each view; nothing here writes, so one serves the whole file."""
    if request.param == "snapshot":
        home = tmp_path_factory.mktemp("home")
        store: GraphStore = empty_store(home / "graph.db")
        fill(store)
        publish(store, home)
        yield open_snapshot(home)
    else:
        live = store = arango_store(double)
        fill(store)
        yield everything(live)
    store.close()
