"""The edges of a graph with topics, sorted so that those between two given topics lie side by side.

A search between two topics reads only the blocks of its region, so its cost and its answer depend on nothing else.
That makes the answer reusable: while the digest of a region stays, searching it again would find the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.bridges.score import Floats, Longs

Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Blocks:
    """Both directions of every edge. Block i leads from topic `codes[i] // n_topics` to topic `codes[i] % n_topics`.

    Its entries stand at `starts[i]:starts[i + 1]`, by tail and head; `digests[i]` changes when one of them does.
    """

    n_topics: int
    codes: Longs
    starts: Longs
    tail: Longs
    head: Longs
    edge: Longs
    log: Floats
    digests: Hashes


@dataclass(frozen=True)
class Region:
    """Topics in which paths are looked for, the two that are to be joined first, and the blocks that may be walked.

    `first` and `last` are (n_topics, n_topics) places of entries, equal where there is no block. A path leaves the
    first topic with its first edge and enters the second with its last, so no block leads into the first, out of the
    second, or about within either.
    """

    topics: Longs
    first: Longs
    last: Longs
    digests: Hashes

    def within(self, size: int) -> Region:
        """The same region with only its first topics."""
        cut = slice(size)
        return Region(self.topics[cut], self.first[cut, cut], self.last[cut, cut], self.digests[cut, cut])


def block_edges(tail: Longs, head: Longs, log: Floats, keys: Hashes, topic: Longs, n_topics: int) -> Blocks:
    """Arrange edges, given in the order of their keys; among parallel ones the heaviest stays, then the first.

    Every end has a topic. `keys` are hashes of the edges' keys: with the log they say what an entry is.
    """
    edge = np.arange(len(tail), dtype=np.int64)
    near, far = np.concatenate([tail, head]), np.concatenate([head, tail])
    edge, both = np.concatenate([edge, edge]), np.concatenate([log, log])
    code = topic[near] * n_topics + topic[far]
    order = np.lexsort((edge, -both, far, near, code))
    near, far = near[order], far[order]
    new = np.ones(len(near), np.bool_)
    new[1:] = (near[1:] != near[:-1]) | (far[1:] != far[:-1])
    kept = order[new]
    codes, starts = np.unique(code[kept], return_index=True)
    hashes = _mix(keys[edge[kept]] ^ both[kept].view(np.uint64))
    digests = np.add.reduceat(hashes, starts) if len(starts) else np.empty(0, np.uint64)
    ends = np.append(starts, len(kept)).astype(np.int64)
    return Blocks(n_topics, codes, ends, near[new], far[new], edge[kept], both[kept], digests)


def region_of(blocks: Blocks, topics: Longs) -> Region:
    """The region of these topics."""
    wanted = topics[:, None] * blocks.n_topics + topics[None, :]
    place = np.searchsorted(blocks.codes, wanted)
    there = np.append(blocks.codes, -1)[place] == wanted
    there[:, 0] = there[1, :] = False
    place = np.where(there, place, 0)
    first, last = blocks.starts[place], np.append(blocks.starts, 0)[place + 1]
    digests = np.append(blocks.digests, np.uint64(0))[place]
    return Region(topics, np.where(there, first, 0), np.where(there, last, 0), np.where(there, digests, np.uint64(0)))


def hash_texts(ends: Longs, text: NDArray[np.uint8]) -> Hashes:
    """FNV-1a of each text, where text i is `text[ends[i]:ends[i + 1]]`; the same on every machine."""
    hashes: Hashes = np.full(len(ends) - 1, 0xCBF29CE484222325, np.uint64)
    sizes, begins = np.diff(ends), ends[:-1]
    for place in range(int(sizes.max(initial=0))):
        rows = np.flatnonzero(sizes > place)
        hashes[rows] = (hashes[rows] ^ text[begins[rows] + place]) * np.uint64(0x100000001B3)
    return hashes


def _mix(values: Hashes) -> Hashes:
    """Splitmix64: spreads every bit over all of them, so that sums of mixed values tell sets apart."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
