"""Super-topics: topics joined bottom-up by Ward's criterion, cut so that none holds more than it may."""

from __future__ import annotations

import numpy as np

from models.hierarchy.arrays import Labels, Vectors, dense_labels


def supertopics(centroids: Vectors, *, max_fanout: int) -> Labels:
    """A group for each topic, as few groups as the tree allows with at most `max_fanout` topics in each.

    The tree is cut from the top: a branch that is small enough becomes a group, a larger one is opened.
    """
    n = len(centroids)
    if n <= max_fanout:
        return np.zeros(n, np.int64)
    from scipy.cluster.hierarchy import linkage

    tree = linkage(np.round(centroids.astype(np.float64), 6), method="ward")
    labels = np.empty(n, np.int64)
    groups = 0
    open_branches = [2 * n - 2]
    while open_branches:
        branch = open_branches.pop()
        members = _leaves(tree, branch, n)
        if len(members) <= max_fanout:
            labels[members] = groups
            groups += 1
        else:
            open_branches += [int(tree[branch - n, 1]), int(tree[branch - n, 0])]
    return dense_labels(labels)


def _leaves(tree: np.ndarray, branch: int, n: int) -> list[int]:
    found, todo = [], [branch]
    while todo:
        node = todo.pop()
        if node < n:
            found.append(node)
        else:
            todo += [int(tree[node - n, 0]), int(tree[node - n, 1])]
    return found
