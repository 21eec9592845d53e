"""Which frames each contract's rules read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from hades.errors import HadesError
from hades.ports.store import GraphStore
from hades.stages.contracts.bridges import bridge_frames
from hades.stages.contracts.chunks import chunk_frames
from hades.stages.contracts.columns import Frames
from hades.stages.contracts.edges import edge_frames
from hades.stages.contracts.embeddings import vector_frames
from hades.stages.contracts.hierarchy import hierarchy_frames
from hades.stages.contracts.nodes import node_frames
from hades.stages.contracts.snapshot import snapshot_frames
from hades.stages.contracts.source import Marks, Source
from hades.stages.contracts.weights import weight_frames

_BY_CONTRACT: Mapping[str, Callable[[Source], Frames]] = {
    "nodes": node_frames,
    "chunks": chunk_frames,
    "embeddings": vector_frames,
    "edges": edge_frames,
    "hierarchy": hierarchy_frames,
    "weights": weight_frames,
}


def frames_of(
    store: GraphStore, contract: str, *, snapshot: Path | None, generation: str | None, known: Marks | None = None
) -> Frames:
    """The frames of a contract, read from the store now; without rows that are `known` to hold."""
    if contract == "snapshot":
        if snapshot is None:
            raise HadesError("checking a snapshot needs its folder; give `snapshot=`")
        return snapshot_frames(store, snapshot)
    with store.reading() as rows:
        source = Source(rows, known or {})
        return bridge_frames(source, generation) if contract == "bridges" else _BY_CONTRACT[contract](source)
