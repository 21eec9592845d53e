"""Small fitted things for tests: a model with numbers drawn at random, and graphs that can be checked by hand."""

from __future__ import annotations

import numpy as np

from models.ranker.infer import FORMAT, HEADS, N_EXTRA, VERSION, Graph, RankerModel

STATE = 8


def random_model(tag: str, dimension: int, seed: int = 0, doubt: float = 0.2) -> RankerModel:
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
        "sure.from": np.array([-1.0, 1.0], np.float32),
        "sure.to": np.array([0.1, 0.9], np.float32),
    }
    for name, columns in HEADS.items():
        parts = {
            "mean": np.zeros(len(columns), np.float32),
            "scale": np.ones(len(columns), np.float32),
            "line": drawn(len(columns)),
            "inner": drawn(len(columns), 4),
            "inner_bias": drawn(4),
            "outer": drawn(4),
        }
        arrays |= {f"{name}.{part}": one for part, one in parts.items()}
    signature = {
        "format": FORMAT,
        "features": VERSION,
        "columns": {name: list(columns) for name, columns in HEADS.items()},
        "model": tag,
        "state": STATE,
        "data_hash": f"{seed:064d}",
        "doubt": doubt,
    }
    return RankerModel(signature, arrays)


def ring(n: int, width: int, seed: int = 0) -> Graph:
    """Every node between its two neighbours, with features drawn at random."""
    random = np.random.default_rng(seed)
    targets = np.array([[(node - 1) % n, (node + 1) % n] for node in range(n)], np.int32).ravel()
    return Graph(random.normal(size=(n, width)).astype(np.float32), np.arange(0, 2 * n + 1, 2, dtype=np.int64), targets)
