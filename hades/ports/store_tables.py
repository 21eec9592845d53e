"""The Arrow schemas of what a store finds: neighbours of nodes, and hits of a search."""

from __future__ import annotations

import pyarrow as pa

NEIGHBOUR_SCHEMA = pa.schema(
    [
        pa.field("node", pa.string(), False),
        pa.field("neighbour", pa.string(), False),
        pa.field("edge", pa.string(), False),
        pa.field("type", pa.string(), False),
        pa.field("weight", pa.float64()),
        pa.field("outbound", pa.bool_(), False),
    ]
)
HIT_SCHEMA = pa.schema([pa.field("_key", pa.string(), False), pa.field("score", pa.float64(), False)])
