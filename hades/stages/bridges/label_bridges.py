"""Labels: `layer_bridge` says of a relation that it joins two topics and is heavy enough to be crossed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hades.ports.store import RowStore
from hades.stages.bridges.bridge_graph import BridgeGraph
from hades.stages.bridges.bridge_rules import BridgeRules
from models.bridges.score import Flags, bridge_labels


@dataclass(frozen=True)
class Labels:
    """Which relations are bridges, which of them are strong (between L2 topics), and which rows say otherwise."""

    bridge: Flags
    strong: Flags
    changed: Flags


def labels_of(graph: BridgeGraph, rules: BridgeRules) -> Labels:
    """The labels the graph should have."""
    tail, head = graph.tail_topic, graph.head_topic
    bridge = bridge_labels(graph.weight, tail, head, graph.never, rules.threshold)
    above = np.append(graph.super_topic, -1)
    strong = bridge_labels(graph.weight, above[tail], above[head], graph.never, rules.threshold)
    return Labels(bridge, bridge & strong, bridge != graph.labelled)


def label_bridges(store: RowStore, graph: BridgeGraph, labels: Labels) -> int:
    """Write the labels that changed; call it inside the stage's transaction, which names `relations`."""
    rows = np.flatnonzero(labels.changed)
    if len(rows):
        keys = graph.edges.take(pa.array(rows))
        store.patch("relations", pa.table({"_key": keys, "layer_bridge": pa.array(labels.bridge[rows])}))
    return len(rows)
