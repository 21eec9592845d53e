"""The learned ranker as a part of a snapshot: its numbers, and the state of every node of this very graph."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from hades.ports.graph import KINDS, Kind, RankerState
from hades.ports.view import GraphView
from hades.snapshot.arrays import Folder
from hades.snapshot.view import RANKER
from models.ranker.dataset import Graph, undirected
from models.ranker.features import node_features
from models.ranker.infer import BadModel, RankerModel, node_states, pack


def graph_of(view: GraphView, model: str) -> Graph:
    """Every node of a view with what the network sees of it, and all edges both ways."""
    adjacency = view.adjacency()
    if adjacency is None:
        raise BadModel("the view keeps no adjacency in memory")
    numbers = np.arange(sum(view.info.nodes.values()), dtype=np.int64)
    vectors, _ = view.vectors(numbers, model=model)
    kinds = view.kinds(numbers)
    levels = np.zeros(len(numbers), np.uint8)
    topics = numbers[kinds == KINDS.index(Kind.CLUSTER)]
    levels[topics] = [int(fact.type[1:]) if fact.type[1:].isdigit() else 0 for fact in view.nodes(topics)]
    out, into = adjacency.out, adjacency.into
    features = node_features(vectors, kinds, levels, np.diff(out.starts), np.diff(into.starts))
    starts, targets = undirected(out.starts, out.target, into.starts, into.target)
    return Graph(features, starts, targets)


def with_ranker(view: GraphView, model: RankerModel) -> GraphView:
    """The view as it would be with this ranker published in it; nothing is written."""
    return cast(GraphView, _WithRanker(view, model))


def write_ranker(folder: Folder, view: GraphView, model: RankerModel) -> None:
    """Add the arrays of a ranker to a snapshot that is being written; `view` is what was written of it."""
    graph = graph_of(view, str(model.signature["model"]))
    width = model.arrays["first.own"].shape[0]
    if graph.features.shape[1] != width:
        raise BadModel(
            f"it was fitted to vectors of {model.signature['model']}, of which this graph has none of that length"
        )
    signature, numbers = pack(model)
    folder.whole(RANKER[0], np.frombuffer(signature, np.uint8))
    folder.whole(RANKER[1], numbers)
    folder.whole(RANKER[2], node_states(model, graph.features, graph.starts, graph.targets))


class _WithRanker:
    """Another view, with a ranker of its own."""

    def __init__(self, view: GraphView, model: RankerModel) -> None:
        graph = graph_of(view, str(model.signature["model"]))
        signature, numbers = pack(model)
        states = node_states(model, graph.features, graph.starts, graph.targets)
        self._view, self._fitted = view, RankerState(np.frombuffer(signature, np.uint8), numbers, states)
        self.info = replace(view.info, parts={**view.info.parts, "ranker": "unpublished"})

    def fitted(self) -> RankerState:
        """See `GraphView.fitted`."""
        return self._fitted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)
