"""The readings of all chunks of a corpus: those that are kept, and those of new texts, of many in worker processes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hades.ingest.entities.corpus import Corpus
from hades.ingest.readings.kept_readings import Digests, KeptReadings, Segment
from hades.ingest.readings.text_readings import (
    TextReadings,
    join_readings,
    read_bytes,
    read_texts,
    take_texts,
    unpack_readings,
)
from hades.ingest.workers.arrow_bytes import from_bytes, to_bytes
from hades.ingest.workers.worker_pool import WorkerPool
from hades.text.arrays import Longs

SEGMENT_CHARS = 1 << 20
SMALL_CHARS = 16 << 20  # a child takes a second to start: less than this is read here


@dataclass(frozen=True)
class _Range:
    """Chunks [first, last), the segment that held them until now, and the new texts among them."""

    begin: str
    first: int
    last: int
    held: Segment | None
    new: tuple[int, ...]


def read_chunks(corpus: Corpus, pool: WorkerPool, kept: KeptReadings | None = None) -> TextReadings:
    """The reading of every chunk in the order of the corpus; the same with and without what is kept."""
    digests = corpus.digests
    ranges = list(_find_ranges(corpus, digests, kept.load() if kept else []))
    segments = [_build(one, digests, fresh) for one, fresh in _read_new(corpus, ranges, pool)]
    pool.end_idle_children()  # what follows needs memory more than a quick start
    if kept is not None:
        kept.keep(segments)
    return join_readings([one.readings for one in segments]) if segments else read_texts(())


def _find_ranges(corpus: Corpus, digests: Digests, held: Sequence[Segment]) -> Iterator[_Range]:
    """The corpus in ranges of whole documents: where segments were, and cut where new texts made one too long."""
    keys = corpus.documents.keys
    starts = [bisect_left(keys, one.begin) for one in held[1:]]
    cuts = [0, *np.searchsorted(corpus.document_of, starts).tolist(), len(corpus.texts)]
    lengths = np.cumsum([0, *map(len, corpus.texts)])
    for place in range(len(cuts) - 1):
        first, last = cuts[place], cuts[place + 1]
        segment = held[place] if held else None
        begin = segment.begin if segment else ""
        if segment and np.array_equal(digests[first:last], segment.digests):
            yield _Range(begin, first, last, segment, ())
            continue
        known = set(segment.digests.tolist()) if segment else set()
        for begin_chunk, end_chunk in _cut(corpus, lengths, first, last):
            begin = begin if begin_chunk == first else keys[corpus.document_of[begin_chunk]]
            rows = range(begin_chunk, end_chunk)
            new = tuple(row for row in rows if digests[row] not in known)
            yield _Range(begin, begin_chunk, end_chunk, segment, new)


def _cut(corpus: Corpus, lengths: Longs, first: int, last: int) -> list[tuple[int, int]]:
    """[first, last) as one range or, where it is more than twice as long as a segment, as ranges of whole documents."""
    if lengths[last] - lengths[first] <= 2 * SEGMENT_CHARS:
        return [(first, last)] if last > first else []
    cuts = [first]
    openings = np.flatnonzero(np.diff(corpus.document_of[first:last])) + first + 1
    for chunk in openings.tolist():
        if lengths[chunk] - lengths[cuts[-1]] >= SEGMENT_CHARS:
            cuts.append(chunk)
    return list(zip(cuts, [*cuts[1:], last], strict=True))


def _read_new(
    corpus: Corpus, ranges: Sequence[_Range], pool: WorkerPool
) -> Iterator[tuple[_Range, TextReadings | None]]:
    """Each range with the readings of its new texts, None where it has none."""

    def send() -> Iterator[tuple[int, tuple[object, ...]]]:
        for one in ranges:
            texts = [corpus.texts[row] for row in one.new]
            if texts:
                yield sum(map(len, texts)), (to_bytes(pa.table({"text": pa.array(texts, pa.string())})),)

    answers = pool.map_large(read_bytes, send(), SMALL_CHARS)
    for one in ranges:
        yield one, unpack_readings(from_bytes(next(answers))) if one.new else None


def _build(one: _Range, digests: Digests, fresh: TextReadings | None) -> Segment:
    """The segment of a range from what was held and what is new."""
    wanted = digests[one.first : one.last]
    if one.held is None or len(one.new) == len(wanted):
        assert fresh is not None
        return Segment(one.begin, wanted, fresh)
    if np.array_equal(wanted, one.held.digests):
        return one.held
    parts = [one.held.readings, *([fresh] if fresh is not None else [])]
    known = [*one.held.digests.tolist(), *digests[list(one.new)].tolist()]
    place = {digest: row for row, digest in enumerate(known)}
    rows = np.array([place[digest] for digest in wanted.tolist()], dtype=np.int64)
    return Segment(one.begin, wanted, take_texts(join_readings(parts), rows))
