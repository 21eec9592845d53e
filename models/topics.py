"""Groups of points: HDBSCAN, Leiden, their consensus, placement of the rest, super-topics; what to
call a group.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from models.arrays import Longs, Singles, blocks_of, unit_rows
from schemas.ids import Span

Vectors: TypeAlias = NDArray[
    np.float32
]  # (n, dim), rows unit length, or zero where there is no vector
Labels: TypeAlias = Longs  # (n,), a group each, -1 for none
Weights: TypeAlias = Singles
Graph: TypeAlias = Any  # (n, n) scipy CSR, symmetric, no diagonal, weights above zero
NONE = -1
DECIMALS = 5  # cosines beyond this are rounding of the arithmetic, which differs between machines
LEIDEN_ITERATIONS = 2
# of the weight of an edge that too few partitions support: enough to keep a lone point attached
DOUBTED = 1e-3
VOTING_ROUNDS = 2  # neighbours, then neighbours of neighbours
VOTING_BLOCK = 8192


def members_matrix(labels: Labels, groups: int) -> Graph:
    """(n, groups) sparse: 1 where a point is in a group."""
    rows = np.flatnonzero(labels != NONE)
    return sparse.csr_matrix(
        (np.ones(len(rows), np.float32), (rows, labels[rows])),
        shape=(len(labels), groups),
    )


def centroids(
    vectors: Vectors,
    labels: Labels,
    groups: int,
) -> Vectors:
    """(groups, dim): the mean direction of each group's vectors; zero for a group without any."""
    return unit_rows(members_matrix(labels, groups).T @ vectors)


def dense_labels(labels: Labels) -> Labels:
    """The same groups numbered 0, 1, ... in the order of their first member; -1 stays."""
    renumbered = np.full(len(labels), NONE, np.int64)
    grouped = labels != NONE
    _, first, inverse = np.unique(
        labels[grouped],
        return_index=True,
        return_inverse=True,
    )
    renumbered[grouped] = np.argsort(np.argsort(first))[inverse]
    return renumbered


def density_labels(
    points: Vectors,
    *,
    min_cluster_size: int,
    min_samples: int,
) -> Labels:
    """A group for each point, -1 for noise, by HDBSCAN; rows in a fixed order give the same labels.

    Cosine is not among its metrics; on unit vectors the Euclidean distance orders pairs as the
    cosine does. Where the hdbscan package has no wheel (Linux on arm64), scikit-learn's
    implementation gives the same groups.
    """
    if len(points) <= max(min_cluster_size, min_samples):
        return np.full(len(points), NONE, np.int64)

    options: dict[str, Any] = {
        "min_cluster_size": min_cluster_size,
        "metric": "euclidean",
    }
    try:
        import hdbscan
    except ImportError:
        from sklearn.cluster import HDBSCAN

        fitted = HDBSCAN(
            min_samples=min_samples + 1,
            copy=True,
            **options,
        )  # it counts the point itself
    else:
        fitted = hdbscan.HDBSCAN(
            min_samples=min_samples,
            core_dist_n_jobs=1,
            approx_min_span_tree=False,
            **options,
        )

    labels: Labels = fitted.fit_predict(points.astype(np.float64)).astype(np.int64)
    return labels


def communities(
    graph: Graph,
    *,
    resolution: float,
    seed: int,
) -> Labels:
    """A community for each point; one without edges is alone. The same seed gives the same labels.

    Leiden (Traag, Waltman and van Eck 2019) on weighted modularity: a higher resolution gives more
    and smaller groups.
    """
    import igraph

    upper = sparse.triu(graph, 1).tocoo()
    ends = np.column_stack([upper.row, upper.col])
    igraph.set_random_number_generator(random.Random(seed))

    try:
        partition = igraph.Graph(n=graph.shape[0], edges=ends.tolist()).community_leiden(
            objective_function="modularity",
            weights=upper.data.tolist(),
            resolution=resolution,
            n_iterations=LEIDEN_ITERATIONS,
        )
    finally:
        igraph.set_random_number_generator(random)

    return dense_labels(np.asarray(partition.membership, np.int64))


def consensus_labels(
    graph: Graph,
    partitions: Sequence[tuple[Labels, float]],
    *,
    share: float,
    resolution: float,
    seed: int,
) -> Labels:
    """Groups on which the partitions (labels, and how much they count) agree; edges below `share`
    barely count.

    Consensus clustering over a sparse graph (Lancichinetti and Fortunato 2012): an edge keeps the
    share of its weight that equals the share of partitions which put both ends in one group; Leiden
    reads the groups off that graph.
    """
    edges = sparse.triu(graph, 1).tocoo()
    agreed = agreement(edges.row, edges.col, partitions)
    weight = edges.data * np.where(agreed >= share, agreed, 0.0) + edges.data * DOUBTED
    upper = sparse.coo_matrix(
        (weight.astype(np.float32), (edges.row, edges.col)),
        shape=graph.shape,
    )
    return communities(
        (upper + upper.T).tocsr(),
        resolution=resolution,
        seed=seed,
    )


def agreement(
    tails: np.ndarray,
    heads: np.ndarray,
    partitions: Sequence[tuple[Labels, float]],
) -> Weights:
    """For each pair, the share of the partitions that put both in one group; those in which an end
    is noise abstain.
    """
    together = np.zeros(len(tails), np.float32)
    total = np.zeros(len(tails), np.float32)

    for labels, weight in partitions:
        tail_labels = labels[tails]
        right = labels[heads]
        votes = (tail_labels != NONE) & (right != NONE)
        total[votes] += weight
        together[votes & (tail_labels == right)] += weight

    shares: Weights = (together / np.where(total > 0, total, 1)).astype(np.float32)
    return shares


def without_small(
    labels: Labels,
    graph: Graph,
    vectors: Vectors,
    min_size: int,
) -> Labels:
    """Members of groups below `min_size` moved to the group they are joined to most, else to the
    nearest by meaning.

    When every group is small the largest takes all: a corpus of three papers is one topic.
    """
    sizes = np.bincount(labels)
    large = np.flatnonzero(sizes >= min_size)

    if not len(large):
        large = np.array([int(np.argmax(sizes))])
    if len(large) == len(sizes):
        return labels

    place = np.full(len(sizes), NONE, np.int64)
    place[large] = np.arange(len(large))
    merged = place[labels]
    rows = np.flatnonzero(merged == NONE)
    joined = (graph[rows] @ members_matrix(merged, len(large))).toarray()
    nearest = (vectors[rows] @ centroids(vectors, merged, len(large)).T).argmax(axis=1)
    merged[rows] = np.where(
        joined.max(axis=1) > 0,
        joined.argmax(axis=1),
        nearest,
    )
    return dense_labels(merged)


def place(
    graph: Graph,
    vectors: Vectors,
    trust: Weights,
    labels: Labels,
    middles: Vectors,
) -> Labels:
    """Labels in which every point without one has the topic that its neighbours and its vector
    speak for most.

    A point's score for a topic is the share of its neighbours' votes plus `trust` (n,) times the
    cosine to the centroid. A neighbour's vote is divided by its degree: a hub says little. Points
    that have neither a placed neighbour after both rounds nor a vector stay at -1.
    """
    has_vector = np.any(vectors != 0, axis=1)
    votes_of = graph @ sparse.diags((1.0 / np.maximum(np.diff(graph.indptr), 1)).astype(np.float32))
    placed = labels.copy()

    for round_ in range(VOTING_ROUNDS if len(middles) else 0):
        voters = members_matrix(placed, len(middles))
        waiting = np.flatnonzero(placed == NONE)
        for block in blocks_of(len(waiting), VOTING_BLOCK):
            rows = waiting[block]
            votes = (votes_of[rows] @ voters).toarray()
            total = votes.sum(axis=1, keepdims=True)
            score = votes / np.where(total > 0, total, 1) + trust[rows, None] * (
                vectors[rows] @ middles.T
            )
            ready = (total.ravel() > 0) | (has_vector[rows] & (round_ == VOTING_ROUNDS - 1))
            placed[rows[ready]] = score.argmax(axis=1)[ready]

    return placed


def cut_tree(
    points: Vectors,
    weights: np.ndarray,
    limit: float,
) -> Labels:
    """A group for each point by Ward's criterion, as few groups as its tree allows with at most
    `limit` weight in each.

    The tree is cut from the top: a branch that is light enough becomes a group, a heavier one is
    opened.
    """
    n = len(points)
    if n < 2 or weights.sum() <= limit:
        return np.zeros(n, np.int64)

    from scipy.cluster.hierarchy import linkage, to_tree

    labels = np.empty(n, np.int64)
    groups = 0
    branches = [to_tree(linkage(np.round(points.astype(np.float64), 6), method="ward"))]

    while branches:
        branch = branches.pop()
        members = branch.pre_order()
        if len(members) == 1 or weights[members].sum() <= limit:
            labels[members] = groups
            groups += 1
        else:
            branches += [branch.right, branch.left]

    return dense_labels(labels)


def join_single(
    labels: Labels,
    points: Vectors,
    limit: float,
) -> Labels:
    """The groups, where one of a single point joined the nearest group that has room below the
    limit.
    """
    joined = labels.copy()
    for row in np.flatnonzero(np.bincount(labels)[labels] == 1).tolist():
        sizes = np.bincount(joined)
        if sizes[joined[row]] > 1:  # another one joined it
            continue

        middles = members_matrix(joined, len(sizes)).T @ points / np.maximum(sizes, 1)[:, None]
        distance = np.round(np.linalg.norm(middles - points[row], axis=1), DECIMALS)
        has_room = (sizes > 0) & (sizes < limit)
        has_room[joined[row]] = False

        if has_room.any():
            joined[row] = np.argmin(np.where(has_room, distance, np.inf))

    return dense_labels(joined)


def reduce(
    vectors: Vectors,
    graph: Graph,
    *,
    dimension: int,
    steps: int,
) -> Vectors:
    """(n, dimension) unit rows: principal components, each step half a point and half the mean of
    its neighbours.

    Principal components alone leave most points of a text corpus in sparse space. Averaging over
    the neighbour graph (the diffusion of Coifman and Lafon 2006, applied to features as in Wu et
    al. 2019) draws points of one topic together, so the density search finds more topics.
    `benchmarks/bench_hierarchy.py` measures both.
    """
    points = principal_components(vectors, dimension)
    degree = np.asarray(graph.sum(axis=1)).ravel()
    average = sparse.diags((1.0 / np.where(degree > 0, degree, 1)).astype(np.float32)) @ graph
    alone = degree == 0

    for _ in range(steps):
        moved = 0.5 * points + 0.5 * (average @ points)
        moved[alone] = points[alone]
        points = moved.astype(np.float32)

    return unit_rows(points)


def principal_components(vectors: Vectors, dimension: int) -> Vectors:
    """(n, dimension): projections on the directions of most variance; exact, nothing drawn at
    random.
    """
    centred = vectors - vectors.mean(axis=0)
    spread = (centred.T @ centred).astype(np.float64)
    directions = np.linalg.eigh(spread)[1][:, ::-1][:, :dimension]
    projected: Vectors = (centred @ directions.astype(np.float32)).astype(np.float32)
    return projected


def nearest_graph(
    vectors: Vectors,
    k: int,
    rows: np.ndarray | None = None,
    among: np.ndarray | None = None,
) -> Graph:
    """Points joined to their k nearest by cosine: all of them, or some `rows` to the nearest
    `among` others.
    """
    from sklearn.neighbors import NearestNeighbors

    n = len(vectors)
    candidates = np.arange(n) if among is None else among
    k = min(k, len(candidates) - (1 if among is None else 0))

    if k < 1 or (rows is not None and not len(rows)):
        return sparse.csr_matrix((n, n), dtype=np.float32)

    search = NearestNeighbors(
        n_neighbors=k,
        metric="cosine",
        algorithm="brute",
    ).fit(vectors[candidates])
    distance, nearest = search.kneighbors(
        None if rows is None else vectors[rows]
    )  # None: nobody finds themselves
    tails = np.repeat(candidates if rows is None else rows, k)
    return symmetric_graph(
        tails,
        candidates[nearest].ravel(),
        np.round(1.0 - distance.ravel(), DECIMALS),
        n,
    )


def hop_graph(
    edges: Graph,
    points: np.ndarray,
    hub_degree: int,
) -> Graph:
    """The chosen points joined by their edges and by what they share: weight 1/degree for each
    shared neighbour.

    Neighbours of more than `hub_degree` points say nothing about any of them and would join all
    pairs: left out.
    """
    rows = edges[points]
    is_point = np.zeros(edges.shape[0], bool)
    is_point[points] = True
    shared = rows.tocsc()
    degree = np.diff(shared.indptr)
    useful = np.flatnonzero(~is_point & (degree >= 2) & (degree <= hub_degree))
    through = (shared[:, useful] > 0).astype(np.float32)
    joint = (
        rows[:, points]
        + through @ sparse.diags((1.0 / degree[useful]).astype(np.float32)) @ through.T
    )
    return _canonical(joint.tocsr())


def symmetric_graph(
    sources: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray,
    n: int,
) -> Graph:
    """Edges as an undirected graph; of parallel ones the heaviest counts, loops do not."""
    order = np.lexsort((weights, targets, sources))
    tails = sources[order]
    heads = targets[order]
    values = weights[order].astype(np.float32)
    heaviest = np.append(
        (tails[1:] != tails[:-1]) | (heads[1:] != heads[:-1]),
        np.ones(min(1, len(tails)), bool),
    )
    is_edge = heaviest & (tails != heads) & (values > 0)
    directed = sparse.csr_matrix(
        (values[is_edge], (tails[is_edge], heads[is_edge])),
        shape=(n, n),
    )
    return _canonical(directed.maximum(directed.T).tocsr())


def _canonical(graph: Graph) -> Graph:
    graph.setdiag(0)
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph


_WORD = re.compile(r"\w+", re.UNICODE)
_TERM = r"(?u)\b[^\W\d_]\w+\b"
_FINISHED = re.compile(r"(?:[!?]|(?<!\b[A-Z])\.)[\"\u201d\u2019')\]]*$")
MIN_SENTENCE, MAX_SENTENCE = 40, 320


def term_counts(names: Sequence[str]) -> tuple[Any, Sequence[str]]:
    """(names, terms) sparse counts of words and word pairs, and these in alphabetical order; there
    may be none.

    Stop words and numbers are left out.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(
        ngram_range=(1, 2),
        stop_words="english",
        token_pattern=_TERM,
    )

    try:
        counts = counter.fit_transform(names)
    except ValueError:  # no name has a word
        return sparse.csr_matrix((len(names), 0)), ()

    return counts, counter.get_feature_names_out().tolist()


def characteristic_terms(
    counts: Any,
    terms: Sequence[str],
    labels: Labels,
    groups: int,
    limit: int,
) -> list[dict[str, float]]:
    """For each group the terms that mark it, heaviest first, equal ones in alphabetical order.

    Class-based TF-IDF (Grootendorst 2022): frequency in the group times log(1 + mean group length /
    frequency overall).
    """
    by_group = (members_matrix(labels, groups).T @ counts).tocsr()
    overall = np.asarray(by_group.sum(axis=0)).ravel()
    weigh = np.log1p(overall.sum() / max(1, groups) / np.maximum(overall, 1))

    terms_by_group = []
    for group in range(groups):
        row = by_group[group]
        scores = np.round(row.data * weigh[row.indices], 4)
        best = np.lexsort((row.indices, -scores))[:limit]
        terms_by_group.append({terms[row.indices[place]]: float(scores[place]) for place in best})

    return terms_by_group


def topic_name(terms: Mapping[str, float]) -> str:
    """The three heaviest terms that do not repeat each other, joined by commas; empty when there
    are none.
    """
    chosen: list[str] = []
    for term in terms:
        words = set(term.split())
        if not any(words & set(chosen_term.split()) for chosen_term in chosen):
            chosen.append(term)

    return ", ".join(chosen[:3])


def best_sentence(
    text: str,
    spans: Sequence[Span],
    terms: Mapping[str, float],
) -> Span | None:
    """Of the sentences of a text, the one that says most of the topic's terms for its length.

    It is quoted whole. One of more than `MAX_SENTENCE` characters is quoted only where no other
    ends like a sentence. Headings and very short sentences are quoted only where there is nothing
    else, and are cut after a word. No sentences give None.
    """
    if not spans:
        return None

    long_enough = [span for span in spans if span[1] - span[0] >= MIN_SENTENCE]
    # It ends like a sentence: with a full stop that is not that of an initial, and opens with a
    # word.
    finished = [
        span
        for span in long_enough
        if _FINISHED.search(text[slice(*span)]) and not text[span[0]].islower()
    ]
    short = [span for span in finished if span[1] - span[0] <= MAX_SENTENCE]

    if finished and not short:
        return min(finished, key=lambda span: (span[1] - span[0], span[0]))

    candidates = (
        short or long_enough or [max(spans, key=lambda span: (span[1] - span[0], -span[0]))]
    )
    best = max(candidates, key=lambda span: (_score(text[slice(*span)], terms), -span[0]))
    return best if short else _cut(text, best)


def _score(sentence: str, terms: Mapping[str, float]) -> float:
    words = [word.lower() for word in _WORD.findall(sentence)]
    pairs = set()
    for first, second in pairwise(words):
        pairs.add(f"{first} {second}")

    weight = sum(weight for term, weight in terms.items() if term in pairs or term in words)
    return round(weight / math.sqrt(10 + len(words)), 9)


def _cut(text: str, span: Span) -> Span:
    start, end = span
    if end - start <= MAX_SENTENCE:
        return span

    cut = text.rfind(
        " ",
        start + MIN_SENTENCE,
        start + MAX_SENTENCE,
    )
    return start, cut if cut > 0 else start + MAX_SENTENCE
