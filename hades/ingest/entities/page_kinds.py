"""What kind of thing each document says that its title names: by the qualifier of the title, else by its opening."""

from __future__ import annotations

import numpy as np

from hades.ingest.entities.corpus import Corpus, Document
from hades.ingest.entities.kinds import kind_of_page, kind_of_qualifier
from hades.ingest.readings.kept_answers import KeptAnswers, Signatures, sign_texts
from hades.text.arrays import Longs
from schemas.nodes import NameType
from schemas.source_kinds import SourceKind


def page_kinds(corpus: Corpus, kept: KeptAnswers | None = None) -> list[NameType | None]:
    """The kind of each document's title; None for papers, which are of one kind, and where nothing is said."""
    asked = [place for place, one in enumerate(corpus.documents) if one.title and one.source != SourceKind.ARXIV]
    chunk = corpus.opening_chunks()[np.array(asked, dtype=np.int64)]

    def read(places: list[int]) -> list[str]:
        texts = (corpus.texts[chunk[place]] if chunk[place] >= 0 else "" for place in places)
        said = (_read_kind(corpus.documents[asked[place]], text) for place, text in zip(places, texts, strict=True))
        return [str(kind) if kind else "" for kind in said]

    answers = (
        kept.answer("page-kinds", __name__, _sign(corpus, asked, chunk), read) if kept else read([*range(len(asked))])
    )
    found: list[NameType | None] = [None] * len(corpus.documents)
    for place, answer in zip(asked, answers, strict=True):
        found[place] = NameType(answer) if answer else None
    return found


def _sign(corpus: Corpus, documents: list[int], chunk: Longs) -> Signatures:
    """The signature of the title and of the first chunk of each document."""
    titles = sign_texts(corpus.documents[place].title for place in documents)
    held = np.flatnonzero(chunk >= 0)
    texts = Signatures(*(np.zeros(len(chunk), dtype=np.uint64) for _ in range(2)))
    signed = corpus.signatures().take(chunk[held])
    texts.high[held], texts.low[held] = signed.high, signed.low
    return titles.join(texts)


def _read_kind(document: Document, opening: str) -> NameType | None:
    kind = kind_of_qualifier(document.qualifier) if document.qualifier else None
    return kind or kind_of_page(document.bare, opening)
