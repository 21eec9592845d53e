"""What documents state as names: a document that the last derivation read alike keeps what it stated.

One row a document: the texts that it states, why each is a name, and which kinds of statements it makes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.entities.corpus import Corpus
from hades.ingest.entities.documents import Document
from hades.ingest.entities.names import Origin
from hades.ingest.entities.reading import Reading
from hades.ingest.increment.reuse_rows import FormerRows, reuse_rows
from hades.text.arrays import Longs, distinct

PARTED, TRIPLES = 1, 2  # bits of `kinds`: names that have parts (symbols and repositories), triples
_SCHEMA = pa.schema(
    [("text", pa.list_(pa.string())), ("origin", pa.list_(pa.int32())), ("bare", pa.int64()), ("kinds", pa.uint8())]
)


class Statements:
    """Every text that a document states as a name, in order of documents; one text perhaps twice."""

    def __init__(self, kept: FormerRows) -> None:
        self.kept = kept
        texts, origins, bare, kinds = (kept.table.column(name).combine_chunks() for name in _SCHEMA.names)
        counts: Longs = pc.list_value_length(texts).to_numpy().astype(np.int64)
        self.text: list[str] = texts.flatten().to_pylist()
        self.document: Longs = np.repeat(np.arange(len(counts)), counts)
        self._origin: list[int] = origins.flatten().to_pylist()
        self._kinds = kinds.to_numpy()
        self._bare: Longs = np.where(bare.to_numpy() >= 0, np.cumsum(counts) - counts + bare.to_numpy(), -1)

    @cached_property
    def why(self) -> Mapping[str, int]:
        """Why each different text is a name."""
        why = dict.fromkeys(self.text, 0)
        for text, origin in zip(self.text, self._origin, strict=True):
            why[text] |= origin
        return why

    def documents_with(self, kind: int) -> list[int]:
        """The documents that make statements of this kind."""
        rows: list[int] = np.flatnonzero(self._kinds & kind).tolist()
        return rows

    def names(self, reading: Reading) -> tuple[tuple[Longs, Longs], Longs]:
        """Documents and the rows of the names that they state, each pair once; and the name of each title.

        A title is taken without its qualifier; -1 for none.
        """
        size = max(1, len(reading.names))
        row = np.fromiter(map(reading.row_of.__getitem__, self.text), dtype=np.int64, count=len(self.text))
        codes = distinct((self.document * size + row)[row >= 0])
        return (codes // size, codes % size), np.append(row, -1)[self._bare]


def read_statements(corpus: Corpus, former: FormerRows | None = None) -> Statements:
    """Every text that documents state as a name, and why; documents that are as they were are not parsed."""

    def build(rows: Longs) -> pa.Table:
        corpus.documents.parse(rows)
        return _tabulate([corpus.documents[row] for row in rows.tolist()])

    return Statements(reuse_rows(former, corpus.rows, build))


def _tabulate(documents: Sequence[Document]) -> pa.Table:
    said = [_state(one) for one in documents]
    columns = [
        [[text for text, _ in one] for one in said],
        [[origin for _, origin in one] for one in said],
        [-1 if not one.bare else int(one.bare != one.title) for one in documents],
        [_find_kinds(one) for one in documents],
    ]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=_SCHEMA)


def _find_kinds(document: Document) -> int:
    facts = document.facts
    return (PARTED if facts.symbols or facts.repositories else 0) | (TRIPLES if facts.triples else 0)


def _state(document: Document) -> list[tuple[str, int]]:
    """The names that a document states, with the reason; its title first, then the title without its qualifier."""
    title, facts = Origin.TITLE, document.facts
    said = [(document.title, title)]
    if document.bare != document.title:
        said.append((document.bare, title))
    if facts:
        said += [(name, Origin.GIVEN) for name, _ in facts.names]
        said += [(name, Origin.GIVEN) for name in facts.repositories]
        said += [(end, Origin.PHRASE) for subject, _, target in facts.triples for end in (subject, target)]
        said += [(name, Origin.SYMBOL) for symbol in facts.symbols for name in symbol]
    return [one for one in said if one[0]]
