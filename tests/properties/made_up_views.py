"""Graphs of any shape as views, made in memory with the snapshot's own rows: thousands of them a
minute.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hades.ports.graph import Adjacency, Hits, ViewInfo
from hades.retrieval.core.words import MENTIONS, PATH_TYPES
from hades.snapshot import adjacency as csr
from hades.snapshot.view import GraphView

TYPES = (*PATH_TYPES, MENTIONS)


class MadeUpView(GraphView):
    """Entities numbered from 0 and relations between them; no text, no vectors. Expansion is the
    snapshot's.
    """

    def __init__(
        self, n_nodes: int, tails: Any, heads: Any, weights: Any, types: Any = None
    ) -> None:
        near, far = np.asarray(tails, np.int32), np.asarray(heads, np.int32)
        codes = (
            np.full(len(near), TYPES.index("refers_to"), np.uint8)
            if types is None
            else np.asarray(types, np.uint8)
        )
        strengths = np.asarray(weights, np.float32)
        self.n_nodes = n_nodes
        self._adjacency = csr_pair(near, far, codes, strengths, n_nodes)
        self._n_nodes, self._n_edges = n_nodes, len(near)
        self._bases = np.array([0, n_nodes, n_nodes, n_nodes, n_nodes, n_nodes])
        self._info = ViewInfo("made up", {"entities": n_nodes}, {"relations": len(near)}, {})

    @property
    def type_names(self) -> tuple[str, ...]:
        return TYPES

    def lexical(self, text: str, *, kind: Any, limit: int) -> Hits:
        return Hits(np.empty(0, np.int64), np.empty(0, np.float32))


def csr_pair(near: Any, far: Any, types: Any, weights: Any, n_nodes: int) -> Adjacency:
    """Both directions, read-only as a snapshot's are."""
    pair = (
        csr.build(near, far, types, weights, n_nodes),
        csr.build(far, near, types, weights, n_nodes),
    )
    for rows in pair:
        for part in fields(rows):
            getattr(rows, part.name).setflags(write=False)
    return Adjacency(*pair, None)


@st.composite
def views(draw: st.DrawFn, max_nodes: int = 12, max_edges: int = 30) -> MadeUpView:
    """Any graph: loops, parallel edges, weights 0 and 1, nodes without edges."""
    n_nodes = draw(st.integers(1, max_nodes))
    node = st.integers(0, n_nodes - 1)
    weight = st.sampled_from([0.0, 0.05, 0.25, 0.5, 1.0])
    edges = draw(
        st.lists(st.tuples(node, node, weight, st.integers(0, len(TYPES) - 1)), max_size=max_edges)
    )
    tails, heads, weights, types = ([one[place] for one in edges] for place in range(4))
    return MadeUpView(n_nodes, tails, heads, weights, types)
