"""Which names a change touches: those that follow from something else than last time, and all linked with them."""

from __future__ import annotations

import numpy as np

from hades.ingest.entities.corpus import Corpus
from hades.ingest.entities.reading import Reading
from hades.ingest.increment.former_derivation import FormerArrays, NameLinks
from hades.ingest.readings.signatures import Signatures, sign_numbers
from hades.text.arrays import Hashes, Longs, distinct


def sign_names(corpus: Corpus, reading: Reading, stated: tuple[Longs, Longs]) -> Signatures:
    """The signature of all that each name follows from, so far as it is its own.

    That is why it is known, which of its words are common, the chunks that mention it and where, and the documents that
    state it: `stated` are documents and names. The signature of a chunk covers its text, that of a document its chunks.
    """
    names, size = reading.names, len(reading.names)
    common = names.words_where(reading.common.__contains__)
    place = np.arange(len(common)) - np.repeat(names.offsets[:-1], np.diff(names.offsets))
    bits = common.astype(np.uint64) << np.minimum(place, 63).astype(np.uint64)
    ordinary = np.bitwise_or.reduceat(bits, names.offsets[:-1]) if size else bits
    own = (
        sign_numbers(names.identity).mix(names.origin.astype(np.int64)).mix(names.texts.astype(np.int64)).mix(ordinary)
    )
    said = corpus.chunk_signatures.take(reading.chunk.astype(np.int64)).mix(reading.start).mix(reading.end)
    told = np.array(reading.definitions, dtype=np.int64).reshape(-1, 3)
    document = np.concatenate([stated[0], told[:, 0], told[:, 0]])
    name = np.concatenate([stated[1], told[:, 1], told[:, 2]])
    kind = np.repeat(np.arange(2), [len(stated[0]), 2 * len(told)])
    return own.join(said.add_up(reading.name.astype(np.int64), size)).join(
        corpus.document_signatures.take(document).mix(kind).add_up(name, size)
    )


def find_touched(former: FormerArrays, identity: Hashes, signed: Signatures, links: NameLinks) -> Hashes:
    """Identities of the names, also of former ones, that must be looked at again."""
    seeds = [former.always, *_changed_names(former, identity, signed)]
    before = former.links()
    codes = before.codes(), links.codes()
    for one, code, others in ((before, codes[0], codes[1]), (links, codes[1], codes[0])):
        moved = ~np.isin(code, others)
        seeds += [one.one[moved], one.other[moved]]
    return close(distinct(np.concatenate(seeds)), before, links)


def close(seeds: Hashes, *links: NameLinks) -> Hashes:
    """The names and all that are linked with them over any number of links."""
    one = np.concatenate([part.one for part in links])
    other = np.concatenate([part.other for part in links])
    while True:
        here, there = np.isin(one, seeds), np.isin(other, seeds)
        reached = np.concatenate([one[there & ~here], other[here & ~there]])
        if not len(reached):
            return seeds
        left = here == there
        one, other = one[left & ~here], other[left & ~here]
        seeds = distinct(np.concatenate([seeds, reached]))


def _changed_names(former: FormerArrays, identity: Hashes, signed: Signatures) -> tuple[Hashes, Hashes]:
    """Names that are new or follow from something else, and names that are no more."""
    if not len(former.name):
        return identity, former.name
    place = np.minimum(np.searchsorted(former.name, identity), len(former.name) - 1)
    same = (former.name[place] == identity) & former.signatures().take(place).equal(signed)
    return identity[~same], former.name[~np.isin(former.name, identity)]
