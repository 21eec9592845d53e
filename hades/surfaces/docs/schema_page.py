"""The catalogue as a page: collections, columns, edge definitions, indexes, graphs and views."""

from __future__ import annotations

from hades.settings.tree import DATABASE
from hades.surfaces.docs.markdown import NOTICE, code, page, table
from schemas.catalogue import ANALYZER, COLLECTIONS, GRAPHS, NAME_ANALYZER, Collection, graph_of
from schemas.columns import Column
from schemas.edges import ENDPOINTS, NEVER_BRIDGES, SYMMETRIC


def schema_page() -> str:
    """`docs/reference/schema.md`."""
    lines = [
        NOTICE,
        "# Schema",
        "",
        "Every collection is declared once, in `schemas/catalogue.py`; both stores provision themselves from it.",
        f"In ArangoDB the database is `{DATABASE}` by default, and text is analysed by `{ANALYZER}`.",
        "",
        "## Collections",
        "",
        *table(
            ("collection", "kind", "holds"),
            ((f"[{c.name}](#{c.name})", "edges" if c.edge else "documents", c.about) for c in COLLECTIONS),
        ),
        "",
        "## Graphs and edge definitions",
        "",
        *table(("edges", "graph", "from", "to", "type", "weight", "cost"), map(_edge_row, _edges())),
        "",
        *table(("graph", "edge collections"), ((code(g.name), ", ".join(map(code, g.edges))) for g in GRAPHS)),
        "",
        "## Relation types",
        "",
        "Which entities a relation of `relations` may join, tail to head.",
        "",
        *_relation_table(),
        "",
        "## Views",
        "",
        *table(
            ("view", "fields", "analyzer"),
            (
                (code(c.view), ", ".join(map(code, fields)), code(analyzer))
                for c in COLLECTIONS
                for fields, analyzer in (((*c.text_fields, *c.described_in), ANALYZER), (c.name_fields, NAME_ANALYZER))
                if c.view and fields
            ),
        ),
    ]
    for collection in COLLECTIONS:
        lines += _collection(collection)
    return page(lines)


def _edges() -> list[Collection]:
    return [collection for collection in COLLECTIONS if collection.edge]


def _edge_row(collection: Collection) -> tuple[str, ...]:
    shape = collection.edge
    assert shape is not None
    return (
        code(collection.name),
        code(graph_of(collection.name).name),
        ", ".join(map(code, shape.sources)),
        ", ".join(map(code, shape.targets)),
        code(shape.type_field),
        code(shape.weight_field),
        code(shape.cost_field or ""),
    )


def _relation_table() -> list[str]:
    rows = []
    for relation, (sources, targets) in ENDPOINTS.items():
        notes = [
            note
            for note, holds in (("symmetric", relation in SYMMETRIC), ("never a bridge", relation in NEVER_BRIDGES))
            if holds
        ]
        rows.append((code(relation), ", ".join(sorted(sources)), ", ".join(sorted(targets)), ", ".join(notes)))
    return table(("type", "from", "to", "note"), rows)


def _collection(collection: Collection) -> list[str]:
    lines = ["", f"## {collection.name}", "", f"{collection.about[0].upper()}{collection.about[1:]}.", ""]
    lines += table(
        ("column", "type", "null", "default", "meaning"), (_column_row(column) for column in collection.columns)
    )
    if collection.indexes:
        lines += [
            "",
            "Indexes: "
            + "; ".join(
                ", ".join(map(code, index.fields)) + (" (sparse)" if index.sparse else "")
                for index in collection.indexes
            )
            + ".",
        ]
    return lines


def _column_row(column: Column) -> tuple[str, ...]:
    kind = "vector of float32" if column.is_vector else "JSON object" if column.is_json else str(column.type)
    bounds = [
        f"{sign} {bound:g}" for sign, bound in ((">=", column.minimum), ("<=", column.maximum)) if bound is not None
    ]
    meaning = [column.description, f"one of {', '.join(column.choices)}" if column.choices else "", ", ".join(bounds)]
    default = "" if column.default is None else str(column.default) or '""'
    return (
        code(column.name),
        kind,
        "yes" if column.nullable else "",
        code(default),
        "; ".join(part for part in meaning if part),
    )
