"""Small fitted things for tests: a model with numbers drawn at random, and graphs that can be
checked by hand.
"""

from __future__ import annotations

import numpy as np

from models.ranker.infer import COLUMNS, FORMAT, N_EXTRA, SIGNALS, Graph, RankerModel

STATE = 8


def random_model(tag: str, dimension: int, seed: int = 0) -> RankerModel:
    """A model that ranks by nothing sensible, but always the same."""
    random = np.random.default_rng(seed)

    def drawn(*shape: int) -> np.ndarray:
        return random.normal(0.0, 0.3, shape).astype(np.float32)

    wide = dimension + N_EXTRA
    arrays = {
        "tower": drawn(dimension, STATE),
        "first.own": drawn(wide, 6),
        "first.neighbours": drawn(wide, 6),
        "first.bias": drawn(6),
        "second.own": drawn(6, STATE),
        "second.neighbours": drawn(6, STATE),
        "second.bias": drawn(STATE),
        "line": 10.0 * drawn(len(COLUMNS)),
        "abstain": drawn(len(SIGNALS)),
    }
    signature = {
        "format": FORMAT,
        "columns": list(COLUMNS),
        "model": tag,
        "state": STATE,
        "data_hash": f"{seed:064d}",
    }
    return RankerModel(signature, arrays)


def ring(n: int, width: int, seed: int = 0) -> Graph:
    """Every node between its two neighbours, with features drawn at random."""
    random = np.random.default_rng(seed)
    targets = np.array([[(node - 1) % n, (node + 1) % n] for node in range(n)], np.int32).ravel()
    return Graph(
        random.normal(size=(n, width)).astype(np.float32),
        np.arange(0, 2 * n + 1, 2, dtype=np.int64),
        targets,
    )
