"""A small store with all that a nightly build leaves behind, made by hand from the formulas; and
ways to damage it.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from hades import stage_ledger
from hades.ingest.phases import ingest
from hades.ingest.sources.material import Link, Material
from hades.ingest.sources.workspace import WorkspaceSource
from hades.snapshot.publish import publish
from hades.stores import row_checks as store_rows
from hades.stores.sqlite import session
from hades.stores.sqlite.store import SqliteStore
from schemas.edges import NEVER_BRIDGES
from schemas.ids import edge_key
from schemas.nodes import RelationType
from schemas.record import canonical_json
from schemas.sources import SourceKind
from tests.contract.examples import everything, put
from tests.unit.hades.ingest.corpora import PEOPLE, Listed, new_context

AS_OF = datetime(2026, 3, 1, tzinfo=UTC)
GENERATION = "weights-of-tonight"
COEFFICIENTS = {"sim": 2.0, "type_prior": 1.0, "evidence": 0.5, "freshness": 0.25, "bias": -1.0}
PRIOR, BOOST, TAU = 0.5, 0.9, 365.0
CODE = {
    "pkg/__init__.py": "",
    "pkg/engine.py": '"""The engine."""\n\n\ndef turn(wheel):\n    """Turn a wheel once."""\n    '
    "return wheel\n",
    "pkg/mill.py": '"""The mill."""\nfrom pkg.engine import turn\n\n\ndef grind():\n    return '
    "turn(1)\n",
}


def build(folder: Path) -> SqliteStore:
    """Ingest people, two papers and a workspace; group, weigh and bridge what came of it;
    publish.
    """
    context = new_context(folder)
    store = context.store
    assert isinstance(store, SqliteStore)
    ingest(context, Listed(PEOPLE))
    ingest(
        context,
        Listed(
            [_paper("2001.1", "Engines", "2001.2"), _paper("2001.2", "Mills")],
            kind=SourceKind.ARXIV,
        ),
    )
    for path, text in CODE.items():
        (folder / "code" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "code" / path).write_text(text)
    ingest(context, WorkspaceSource(folder / "code"))
    group(store)
    weigh(store)
    bridge(store)
    publish(store, folder)
    return store


def _paper(identifier: str, title: str, *cited: str) -> Material:
    abstract = f"We study {title.lower()} driven by the Analytical Engine."
    return Material(
        origin=identifier,
        source=SourceKind.ARXIV,
        title=title,
        text=f"{title}\n\n{abstract}",
        created=datetime(2020, 1, 1, tzinfo=UTC),
        paper={
            "id": identifier,
            "title": title,
            "abstract": abstract,
            "authors": (),
            "categories": (),
            "date": None,
        }
        | {"metadata": {}},
        links=tuple(Link(RelationType.CITES, one) for one in cited),
    )


def group(store: SqliteStore) -> None:
    """Two topics under one super-topic; entities take turns."""
    keys = [row["_key"] for row in everything(store, "entities")]
    of = {key: f"t{place % 2}" for place, key in enumerate(keys)}
    params = {"algo": "by hand", "min_cluster_size": 5, "min_samples": 3, "seed": 42}
    sizes = {name: sum(topic == name for topic in of.values()) for name in ("t0", "t1")}
    vector = {"centroid": [1.0, 0.0], "embedding_model": "toy@1/2", "cluster_params": params}
    put(
        store,
        "clusters",
        *(
            {"_key": name, "level": 1, "size": size, "parent": "s0", **vector}
            for name, size in sizes.items()
        ),
    )
    put(store, "clusters", {"_key": "s0", "level": 2, "size": len(keys), **vector})
    upward = [(f"entities/{key}", "PART_OF", f"clusters/{topic}") for key, topic in of.items()]
    upward += [(f"clusters/{name}", "SUBTOPIC_OF", "clusters/s0") for name in sizes]
    put(
        store,
        "cluster_edges",
        *(
            {"_key": edge_key(a, kind, b), "_from": a, "_to": b, "type": kind}
            for a, kind, b in upward
        ),
    )
    patch(store, "entities", *({"_key": key, "cluster_id": topic} for key, topic in of.items()))


def weigh(store: SqliteStore) -> None:
    """weight = sigmoid(bias + a sim + b prior + g evidence + d freshness); cost = -ln(weight *
    boost).
    """
    config = {
        "type_prior": PRIOR,
        "tau_days": TAU,
        "relation_boost": BOOST,
        "coefficients": canonical_json(COEFFICIENTS),
    }
    put(
        store,
        "weight_config",
        *({"_key": str(kind), "relation_type": str(kind), **config} for kind in RelationType),
    )
    changes = []
    for place, row in enumerate(everything(store, "relations")):
        parts = {"sim": (place % 10) / 10, "type_prior": PRIOR, "evidence": 0.25, "freshness": 0.5}
        logit = COEFFICIENTS["bias"] + sum(
            COEFFICIENTS[name] * value for name, value in parts.items()
        )
        weight = 1 / (1 + math.exp(-logit))
        changes.append(
            {
                "_key": row["_key"],
                "weight": weight,
                "weight_components": parts,
                "cost": -math.log(weight * BOOST),
            }
        )
    patch(store, "relations", *changes)
    patch(
        store,
        "mentions",
        *({"_key": row["_key"], "weight": 0.5} for row in everything(store, "mentions")),
    )
    stage_ledger.record(store, stage_ledger.WEIGHTS, "digest", GENERATION, AS_OF)


def bridge(store: SqliteStore) -> None:
    """Label what crosses from one topic to the other, and keep two of these as bridges of one
    edge.
    """
    topic = {f"entities/{row['_key']}": row["cluster_id"] for row in everything(store, "entities")}
    never = {str(kind) for kind in NEVER_BRIDGES}
    crossing = [
        row
        for row in everything(store, "relations")
        if topic[row["_from"]] != topic[row["_to"]] and row["type"] not in never
    ]
    patch(store, "relations", *({"_key": row["_key"], "layer_bridge": True} for row in crossing))
    put(
        store,
        "bridge_cache",
        *(_bridge(f"b{place}", row, topic) for place, row in enumerate(crossing[:2])),
    )


def _bridge(key: str, edge: dict[str, Any], topic: dict[str, str]) -> dict[str, Any]:
    ends = sorted((edge["_from"], edge["_to"]), key=lambda end: topic[end])
    return {
        "_key": key,
        "from_cluster": topic[ends[0]],
        "to_cluster": topic[ends[1]],
        "nodes": ends,
        "edges": [f"relations/{edge['_key']}"],
        "weight": edge["weight"] * BOOST,
        "cost": edge["cost"],
        "generation": GENERATION,
        "created": AS_OF,
    }


def patch(store: SqliteStore, collection: str, *changes: dict[str, Any]) -> None:
    """Change columns of rows as a build would."""
    declared = store_rows.require(collection)
    schema = pa.schema([pa.field(name, declared.schema.field(name).type) for name in changes[0]])
    store.patch(collection, pa.Table.from_pylist(list(changes), schema=schema))


def force(store: SqliteStore, collection: str, key: str, **changes: Any) -> str:
    """Change a row behind the store's own checks, as a bug or a damaged disk would; the key."""
    row = store.get(collection, [key]).to_pylist()[0]
    write_unchecked(store, collection, {**row, **changes})
    return key


def write_unchecked(store: SqliteStore, collection: str, *rows: dict[str, Any]) -> None:
    """Put rows, in the order of their keys, into the file without asking whether they may be
    there.
    """
    declared = store_rows.require(collection)
    schema = pa.schema([pa.field(field.name, field.type) for field in declared.schema])
    with store._writing() as connection:
        session._upsert_rows(connection, declared, pa.Table.from_pylist(list(rows), schema=schema))


def first(store: SqliteStore, collection: str, **wanted: Any) -> dict[str, Any]:
    """The first row with these values."""
    return next(
        row
        for row in everything(store, collection)
        if all(row[name] == value for name, value in wanted.items())
    )
