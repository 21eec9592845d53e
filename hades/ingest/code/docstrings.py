"""Summaries of code symbols: the first sentence of their documentation, which says more than a text that names them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from hades.ingest.entities.summaries import MAX_CHARS
from hades.ingest.stated_edges import find_symbol
from hades.text.sentences import first_sentence


def with_docstrings(
    entities: pa.Table, funcs: pa.Table, symbols: Mapping[str, str], paths: Mapping[str, str]
) -> pa.Table:
    """The entities, those of documented symbols with a summary from their documentation.

    `funcs` have qualified_name, document and docstring; `symbols` are entity ids by name, `paths` those of documents.
    """
    said: dict[str, str] = {}
    columns = (funcs.column(name).to_pylist() for name in ("qualified_name", "document", "docstring"))
    for name, document, docstring in zip(*columns, strict=True):
        entity = find_symbol(symbols, name, paths.get(document.partition("/")[2], "")) if docstring else None
        if entity and (summary := summarise_docstring(docstring)):
            said.setdefault(entity.partition("/")[2], summary)
    if not said:
        return entities
    kept = zip(entities.column("_key").to_pylist(), entities.column("summary").to_pylist(), strict=True)
    place = entities.schema.get_field_index("summary")
    return entities.set_column(place, "summary", pa.array([said.get(key, own) for key, own in kept], pa.string()))


def summarise_docstring(docstring: str) -> str:
    """The first sentence of the first paragraph, on one line; empty when it is longer than a summary may be."""
    paragraph = " ".join(docstring.strip().partition("\n\n")[0].split())
    said = first_sentence(paragraph) if ". " in paragraph else paragraph
    return said if len(said) <= MAX_CHARS else ""
