"""Topics as dense regions: HDBSCAN over unit vectors. The one door to the hdbscan library.

Cosine is not among its metrics; on unit vectors the Euclidean distance orders pairs as the cosine does.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from models.hierarchy.arrays import NONE, Labels, Vectors


def density_labels(
    points: Vectors, *, min_cluster_size: int, min_samples: int, selection: Literal["eom", "leaf"] = "eom"
) -> Labels:
    """A group for each point, -1 for noise. Rows in a fixed order give the same labels: there is no seed.

    `selection` takes the groups that last longest while the density threshold falls, or the smallest ones.
    """
    if len(points) <= max(min_cluster_size, min_samples):
        return np.full(len(points), NONE, np.int64)
    import hdbscan

    fitted = hdbscan.HDBSCAN(
        min_cluster_size=min_cluster_size,
        min_samples=min_samples,
        metric="euclidean",
        core_dist_n_jobs=1,  # processes would cost more than they bring, and memory with each
        approx_min_span_tree=False,
        cluster_selection_method=selection,
    )
    labels: Labels = fitted.fit_predict(points.astype(np.float64)).astype(np.int64)
    return labels
