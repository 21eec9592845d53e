"""What kind of thing each document says that its title names: by the qualifier of the title, else by its opening."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hades.ingest.entities.corpus import Corpus
from hades.ingest.entities.documents import Document
from hades.ingest.entities.kinds import kind_of_page, kind_of_qualifier
from schemas.nodes import NameType
from schemas.source_kinds import SourceKind


def page_kinds(corpus: Corpus, documents: Sequence[int]) -> dict[int, NameType | None]:
    """The kind of the title of each of these documents; none for papers, which are of one kind."""
    rows = [
        one for one in documents if corpus.documents[one].title and corpus.documents[one].source != SourceKind.ARXIV
    ]
    chunks = corpus.opening_chunks()[np.array(rows, dtype=np.int64)].tolist()
    return {
        row: _read_kind(corpus.documents[row], corpus.texts[chunk] if chunk >= 0 else "")
        for row, chunk in zip(rows, chunks, strict=True)
    }


def _read_kind(document: Document, opening: str) -> NameType | None:
    kind = kind_of_qualifier(document.qualifier) if document.qualifier else None
    return kind or kind_of_page(document.bare, opening)
