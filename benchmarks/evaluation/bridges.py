"""Paper to repository."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any

import numpy as np

from benchmarks.evaluation.arxiv import ArxivFiles, namers, read_papers, repository_pairs
from benchmarks.evaluation.ladder import no_edges_between
from benchmarks.evaluation.metrics import interval
from benchmarks.evaluation.rankers import Rung
from benchmarks.evaluation.workbench import Workbench, build
from hades.budget import Turn
from hades.evaluation.cases import BadCases, digest
from hades.evaluation.figures import mean_of, percentiles, rounded
from hades.evaluation.rankers import PLAN, Bench, CachingEmbedder, ask, ms_since
from hades.night.context import BuildContext
from hades.ports.store import Direction
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import caps_of
from hades.retrieval.search.near_document import fold_title
from hades.retrieval.walks.best_paths import cheapest_paths
from hades.snapshot.open import open_snapshot
from hades.snapshot.view import GraphView
from schemas.nodes import EntityType, RelationType

ALLOWED = frozenset(
    str(kind) for kind in RelationType
)  # what a bridge may be made of: relations, nothing else


@dataclass(frozen=True)
class Pair:
    """A paper and a repository it names, as nodes; `expected` are the other papers that name it, as
    nodes.
    """

    paper: str
    title: str
    repo: str
    paper_node: int
    repo_node: int
    expected: frozenset[int] = frozenset()
    question: str = ""


@dataclass(frozen=True)
class PathTypes:
    """A path as nodes and the types of its edges."""

    nodes: tuple[int, ...]
    types: tuple[str, ...]


@dataclass(frozen=True)
class PairAnswer:
    """What was found for a pair, best first; `texts` are passages, for ways of answering that give
    no paths.
    """

    ways: tuple[PathTypes, ...]
    ms: float
    texts: tuple[str, ...] = ()
    tokens: int = 0


PairFigures = dict[str, float | None]  # None: nothing to judge
_MEANS = ("recall", "precision", "purity", "coherence", "mean_hops", "expected", "tokens")


def judge(
    view: GraphView, model: str, pair: Pair, answered: PairAnswer, *, hops: int, paths: int
) -> PairFigures:
    """The first `paths` ways against the pair; a way longer than `hops` between the ends does not
    join them.

    `mean_hops` are those of the shortest way that joins the ends, None where none does.
    """
    ways = answered.ways[:paths]
    both = [path for path in ways if {pair.paper_node, pair.repo_node} <= set(path.nodes)]
    apart = [
        abs(path.nodes.index(pair.paper_node) - path.nodes.index(pair.repo_node)) for path in both
    ]
    joining = [(length, path) for length, path in zip(apart, both, strict=True) if length <= hops]
    holding = [pair.repo_node in path.nodes for path in ways]
    is_named = any(pair.repo in text for text in answered.texts[:paths])
    types = list(chain.from_iterable(path.types for path in ways))
    purity = float(np.mean([kind in ALLOWED for kind in types])) if types else None
    expected = None
    if pair.expected and joining:
        expected = any(pair.expected.intersection(path.nodes) for _, path in joining)
    return {
        "mean_hops": min((length for length, _ in joining), default=None),
        "recall": any(holding) or is_named,
        "precision": float(np.mean(holding)) if holding else 0.0,
        "purity": purity,
        "coherence": _coherence(view, model, ways),
        "expected": expected,
        "ms": answered.ms,
        "tokens": answered.tokens,
    }


def summarise_bridges(rows: Sequence[PairFigures], joined: Sequence[bool]) -> dict[str, Any]:
    """The figures of one way of answering; `still_joined` is discovery among the pairs that are
    joined another way.
    """
    is_joined = np.array([row["mean_hops"] is not None for row in rows], np.float64)
    among = is_joined[np.array(joined, np.bool_)]
    times = percentiles([float(row["ms"] or 0.0) for row in rows])
    figures: dict[str, Any] = {
        "discovery": rounded(is_joined.mean()),
        "ci95": [rounded(end) for end in interval(is_joined)],
        "still_joined": rounded(among.mean()) if len(among) else None,
    }
    for name in _MEANS:
        figures[name] = _mean([row[name] for row in rows])
    for name, ms in times.items():
        figures[f"ms_{name}"] = ms
    return figures


def _coherence(view: GraphView, model: str, ways: Sequence[PathTypes]) -> float | None:
    """Mean cosine of neighbours on the ways: whether each step stays near what the last was
    about.
    """
    steps = list(chain.from_iterable(pairwise(path.nodes) for path in ways))
    if not steps:
        return None
    sources, targets = np.array(steps, np.int64).T
    near, has_near = view.vectors(sources, model=model)
    far, has_far = view.vectors(targets, model=model)
    has_both = has_near & has_far
    if not has_both.any():
        return None
    near, far = near[has_both], far[has_both]
    lengths = np.linalg.norm(near, axis=1) * np.linalg.norm(far, axis=1)
    products = np.einsum("ij,ij->i", near, far)
    return float((products / np.maximum(lengths, np.finfo(np.float32).tiny)).mean())


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return mean_of(known) if known else None


# From a paper to the repository it names: are the two joined within L hops, with their own edge
# there and without it? The graph is built with every link. For the second setting the edges between
# the two ends are hidden from the search, pair by pair, so that each repository keeps what other
# papers say of it (leave one out).

PRESENT, WITHHELD = "present", "withheld"
PAIR_KNOWN = "pair known"
QUESTIONS = {"pair": "How is {title} connected to {repo}?", "title": "{title}"}


def evaluate_bridges(
    bench: Workbench,
    files: ArxivFiles,
    *,
    rungs: Sequence[Rung],
    pairs: int | None = None,
    seed: int = 1,
    hops: int = 4,
    paths: int = 6,
    ask: str = "pair",
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Build with every link; ask every rung for every pair, and search between the two known ends
    as well.

    The summary as scripts read it, and the pairs that it is of.

    `ask` is the question: `pair` names both ends, `title` only the paper, so that the repository
    must be guessed.
    """
    titles, naming = read_papers(files.papers), namers(files.code_links)
    built = build(
        bench, lambda ingest: ingest.arxiv(files.papers, files.citations, files.code_links)
    )
    repository_links = repository_pairs(files.code_links, titles, pairs, seed)
    embedder = CachingEmbedder(bench.ingest.embedder)
    with closing(open_snapshot(bench.build_context.home)) as view:
        known = resolve_pairs(view, repository_links, titles, naming)
        if not known:
            raise BadCases(
                f"no pair of {files.code_links} is an edge of the graph; are its papers in "
                f"{files.papers}?"
            )
        known = [
            replace(pair, question=QUESTIONS[ask].format(title=pair.title, repo=pair.repo))
            for pair in known
        ]
        embedder.learn(pair.question for pair in known)
        cached_bench = Bench(view, replace(bench.tools, embedder=embedder))
        judged = _judge_all(cached_bench, bench.build_context, known, rungs, hops=hops, paths=paths)
        snapshot = view.info.snapshot
    joined = [row["mean_hops"] is not None for row in judged[PAIR_KNOWN][WITHHELD]]
    sha256 = digest([files.papers, files.citations, files.code_links])
    sizes = {
        "papers": len(titles),
        "pairs": len(known),
        "unresolved": len(repository_links) - len(known),
    }
    rules = {"seed": seed, "hops": hops, "paths": paths, "ask": ask}
    recipes: dict[str, dict[str, Any]] = {}
    for name, settings in judged.items():
        recipes[name] = {key: summarise_bridges(rows, joined) for key, rows in settings.items()}
    document = {
        "dataset": {**sizes, "still_joined": sum(joined), "sha256": sha256, **rules},
        "build": built,
        "snapshot": snapshot,
        "model": embedder.model.tag,
        "recipes": recipes,
    }
    truth = [
        {
            "paper": pair.paper,
            "repo": pair.repo,
            "expected_bridges": sorted(naming[pair.repo] - {pair.paper}),
        }
        for pair in known
    ]
    return document, truth


def resolve_pairs(
    view: GraphView,
    repository_links: Sequence[tuple[str, str]],
    titles: Mapping[str, str],
    naming: Mapping[str, frozenset[str]],
) -> list[Pair]:
    """Pairs whose two ends are nodes joined by `implements`; a repository that no edge reached is
    left out.
    """
    pairs = []
    for paper, repo in repository_links:
        numbers = np.unique(view.match_names(repo).numbers)
        repo_nodes = [
            number
            for number, facts in zip(numbers.tolist(), view.nodes(numbers), strict=True)
            if facts.type == EntityType.CODE_SYMBOL and facts.name == repo
        ]
        if not repo_nodes:
            continue
        around = _papers_of(view, repo_nodes[0])
        node = around.get(fold_title(titles[paper]))
        if node is None:
            continue
        namers_of_repo = naming[repo] - {paper}
        namer_titles = {fold_title(titles[key]) for key in namers_of_repo if key in titles}
        expected = frozenset(around[title] for title in namer_titles & around.keys()) - {node}
        pairs.append(Pair(paper, titles[paper], repo, node, repo_nodes[0], expected=expected))
    return pairs


def _papers_of(view: GraphView, repo: int) -> dict[str, int]:
    """Nodes of the papers that name a repository, by title."""
    expansion = view.expand(
        np.array([repo], np.int64), direction=Direction.IN, types=[RelationType.IMPLEMENTS]
    )
    numbers = np.unique(expansion.target)
    return {
        fold_title(facts.name): number
        for number, facts in zip(numbers.tolist(), view.nodes(numbers), strict=True)
    }


def _judge_all(
    whole: Bench,
    context: BuildContext,
    pairs: Sequence[Pair],
    rungs: Sequence[Rung],
    *,
    hops: int,
    paths: int,
) -> dict[str, dict[str, list[PairFigures]]]:
    """Every rung on every pair in both settings, and the search between the two known ends."""
    names = (PAIR_KNOWN, *(rung.name for rung in rungs))
    judged: dict[str, dict[str, list[PairFigures]]] = {
        name: {PRESENT: [], WITHHELD: []} for name in names
    }
    view = whole.view
    for place, pair in enumerate(pairs, 1):
        hidden = replace(whole, view=no_edges_between(view, pair.paper_node, pair.repo_node))
        for setting, bench in ((PRESENT, whole), (WITHHELD, hidden)):
            answers = {PAIR_KNOWN: _search(bench, pair, hops, paths)}
            answers |= {rung.name: _ask(rung, bench, pair, hops) for rung in rungs}
            for name, answer in answers.items():
                judged[name][setting].append(
                    judge(view, context.model, pair, answer, hops=hops, paths=paths)
                )
        context.progress("pairs", place, len(pairs))
    return judged


def _search(bench: Bench, pair: Pair, hops: int, paths: int) -> PairAnswer:
    """The cheapest paths between the two ends, which are known here."""
    boosts = {str(kind): boost for kind, boost in bench.tools.rules.path.relation_boost.items()}
    began = time.perf_counter()
    turn = Turn(caps_of(PLAN))
    view = MeteredView(bench.view, turn)
    with turn.stage("graph"):
        cheapest = cheapest_paths(
            view, pair.paper_node, pair.repo_node, k=paths, max_hops=hops, boosts=boosts
        )
        ways = []
        for path in cheapest:
            edges = view.edges(np.array(path.edges, np.int64))
            ways.append(PathTypes(path.nodes, tuple(edge.type for edge in edges)))
    return PairAnswer(tuple(ways), ms_since(began))


def _ask(rung: Rung, bench: Bench, pair: Pair, hops: int) -> PairAnswer:
    """The rung's answer to the question of the pair, with as many hops as the pair may be apart."""
    plan = rung.plan
    graph = plan.graph.model_copy(
        update={"hops": min(hops, plan.graph.hops * hops)}
    )  # a rung that stays out stays out
    answer, ms = ask(
        rung.bench(bench), rung.recipe, plan.model_copy(update={"graph": graph}), pair.question
    )
    ways = []
    for path in answer.paths:
        nodes = bench.view.number([node.id for node in path.nodes])
        ways.append(PathTypes(tuple(nodes.tolist()), tuple(edge.type for edge in path.edges)))
    texts = tuple(passage.text for passage in answer.passages)
    return PairAnswer(tuple(ways), ms, texts, answer.tokens.prompt)
