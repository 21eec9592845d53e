"""`coref` edges: from the entity of a short form to the one entity that documents mean by it.

Within a document a short form is resolved at once (`short_forms.py`): where a text names Gene Hackman, its Hackman is a
mention of Gene Hackman. Another document may say Hackman alone, which stays an entity of its own. Where documents that
tell agree on one referent, an edge joins the two: Hackman to Gene Hackman, Lothair II to Lothair II (king). The edge is
a supposition with the weight of one; the mentions of the short form stay its own. An acronym that all texts explain the
same way needs no edge: it is folded into the name that it stands for (`aliases.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hades.ingest.entities.linking import LinkedCorpus
from hades.ingest.entities.senses import Sense
from hades.ingest.entities.tables import RelationRows
from hades.text.arrays import Longs, distinct
from hades.text.letters import fold
from hades.text.word_lists import GIVEN_NAMES
from schemas.graph_types import EntityType, RelationType


def link_short_forms(linked: LinkedCorpus, plain: Longs, sense_of: Callable[[int], Sense]) -> RelationRows:
    """Short form to referent, with the sentence in which the first document says so.

    `plain` is the entity that the name of each mention stands for where its document does not tell (-1: none);
    `sense_of` gives the sense of an entity. A short form with several referents in the corpus has no edge: it tells too
    little.
    """
    size, n_documents = max(1, linked.n_entities), max(1, len(linked.corpus.documents))
    held = np.flatnonzero((plain >= 0) & (plain != linked.entity))
    codes, first, row = np.unique(plain[held] * size + linked.entity[held], return_index=True, return_inverse=True)
    told = distinct(row * n_documents + linked.reading.document[held]) // n_documents
    documents = np.bincount(told, minlength=len(codes))
    short, full = codes // size, codes % size
    alone = np.flatnonzero(np.bincount(short, minlength=size)[short] == 1)
    kept = np.array(
        [one for one in alone.tolist() if _stands_for(sense_of(int(short[one])), sense_of(int(full[one])))],
        dtype=np.int64,
    )
    document, begin, end = linked.sentence_span(held[first[kept]])
    return RelationRows(RelationType.COREF, short[kept], full[kept], document, begin, end, documents[kept])


def _stands_for(short: Sense, full: Sense) -> bool:
    """Whether a name is the other without its qualifier, or the family name of a person.

    Other words inside a longer name, such as Germany in West Germany, and given names mean something else as often.
    """
    words, letters = fold(full.stem).split(), fold(short.name)
    if full.qualifier and fold(full.stem) == letters:
        return True
    is_person = full.type == EntityType.PERSON or (len(words) > 1 and words[0] in GIVEN_NAMES)
    return is_person and letters.split()[-1] == words[-1]
