"""Where words that were erased can still be read: the search that a certificate of erasure rests on."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hades.memory.history.names import AUDIT, EDGES, LATEST, STATES, TRACES
from hades.ports.store import RowStore
from hades.text.keywords import sentences_of

_PLACES = {
    STATES: ("topic", "content", "metadata"),
    EDGES: ("description", "metadata"),
    AUDIT: ("why", "detail"),
    LATEST: ("topic",),
    TRACES: ("topic", "metadata"),
}
_SHORTEST = 12  # characters; shorter sentences stand in many texts by chance
_MOST = 50


def find_leftovers(rows: RowStore, texts: Sequence[str]) -> dict[str, list[str]]:
    """Keys of the rows, by collection, that hold a sentence of these texts word for word; all of memory is read."""
    sentences = {sentence for text in texts for sentence in sentences_of(text) if len(sentence) >= _SHORTEST}
    wanted = sorted(sentences, key=lambda sentence: (-len(sentence), sentence))[:_MOST]
    found: dict[str, list[str]] = {}
    for collection, columns in _PLACES.items():
        for batch in rows.scan(collection, columns=columns):
            hit = pa.array([False] * batch.num_rows)
            for column in columns:
                for sentence in wanted:
                    hit = pc.or_(hit, pc.fill_null(pc.match_substring(batch.column(column), sentence), False))
            keys = batch.column("_key").filter(hit).to_pylist()
            if keys:
                found.setdefault(collection, []).extend(keys)
    return found
