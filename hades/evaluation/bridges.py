"""Paper to repository."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hades.build.context import BuildContext
from hades.evaluation.cases import ArxivFiles, BadCases, digest, namers, read_papers, repository_pairs
from hades.evaluation.metrics import interval, mean_of, percentiles, rounded
from hades.evaluation.rankers import PLAN, Bench, CachingEmbedder, Rung, Workbench, ask, build, no_edges_between
from hades.ports.store import Direction
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import caps_of
from hades.retrieval.search.near_document import fold_title
from hades.retrieval.walks.best_paths import cheapest_paths
from hades.snapshot.open import open_snapshot
from hades.snapshot.view import GraphView
from hades.telemetry.turn import Turn
from schemas.nodes import EntityType, RelationType

ALLOWED = frozenset(str(one) for one in RelationType)  # what a bridge may be made of: relations, nothing else


@dataclass(frozen=True)
class Pair:
    """A paper and a repository it names, as nodes; `expected` are the other papers that name it, as nodes."""

    paper: str
    title: str
    repo: str
    paper_node: int
    repo_node: int
    expected: frozenset[int] = frozenset()
    question: str = ""


@dataclass(frozen=True)
class Way:
    """A path as nodes and the types of its edges."""

    nodes: tuple[int, ...]
    types: tuple[str, ...]


@dataclass(frozen=True)
class PairAnswer:
    """What was found for a pair, best first; `texts` are passages, for ways of answering that give no paths."""

    ways: tuple[Way, ...]
    ms: float
    texts: tuple[str, ...] = ()
    tokens: int = 0


PairFigures = dict[str, float | None]  # None: nothing to judge
_MEANS = ("recall", "precision", "purity", "coherence", "mean_hops", "expected", "tokens")


def judge(view: GraphView, model: str, pair: Pair, answered: PairAnswer, *, hops: int, paths: int) -> PairFigures:
    """The first `paths` ways against the pair; a way longer than `hops` between the ends does not join them.

    `mean_hops` are those of the shortest way that joins the ends, None where none does.
    """
    ways = answered.ways[:paths]
    both = [way for way in ways if {pair.paper_node, pair.repo_node} <= set(way.nodes)]
    apart = [abs(way.nodes.index(pair.paper_node) - way.nodes.index(pair.repo_node)) for way in both]
    joining = [(length, way) for length, way in zip(apart, both, strict=True) if length <= hops]
    holding = [pair.repo_node in way.nodes for way in ways]
    named = any(pair.repo in text for text in answered.texts[:paths])
    types = [kind for way in ways for kind in way.types]
    expected = None
    if pair.expected and joining:
        expected = any(pair.expected.intersection(way.nodes) for _, way in joining)
    return {
        "mean_hops": min((length for length, _ in joining), default=None),
        "recall": any(holding) or named,
        "precision": float(np.mean(holding)) if holding else 0.0,
        "purity": float(np.mean([kind in ALLOWED for kind in types])) if types else None,
        "coherence": _coherence(view, model, ways),
        "expected": expected,
        "ms": answered.ms,
        "tokens": answered.tokens,
    }


def summarise_bridges(rows: Sequence[PairFigures], joined: Sequence[bool]) -> dict[str, Any]:
    """The figures of one way of answering; `still_joined` is discovery among the pairs that are joined another way."""
    found = np.array([row["mean_hops"] is not None for row in rows], np.float64)
    among = found[np.array(joined, np.bool_)]
    times = percentiles([float(row["ms"] or 0.0) for row in rows])
    return {
        "discovery": rounded(found.mean()),
        "ci95": [rounded(end) for end in interval(found)],
        "still_joined": rounded(among.mean()) if len(among) else None,
        **{name: _mean([row[name] for row in rows]) for name in _MEANS},
        **{f"ms_{name}": value for name, value in times.items()},
    }


def _coherence(view: GraphView, model: str, ways: Sequence[Way]) -> float | None:
    """Mean cosine of neighbours on the ways: whether each step stays near what the last was about."""
    steps = [step for way in ways for step in zip(way.nodes, way.nodes[1:], strict=False)]
    if not steps:
        return None
    near, have = view.vectors(np.array([one for one, _ in steps], np.int64), model=model)
    far, too = view.vectors(np.array([other for _, other in steps], np.int64), model=model)
    both = have & too
    if not both.any():
        return None
    lengths = np.linalg.norm(near[both], axis=1) * np.linalg.norm(far[both], axis=1)
    cosines = np.einsum("ij,ij->i", near[both], far[both]) / np.maximum(lengths, np.finfo(np.float32).tiny)
    return float(cosines.mean())


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return mean_of(known) if known else None


# From a paper to the repository it names: are the two joined within L hops, with their own edge there and without
# it? The graph is built with every link. For the second setting the edges between the two ends are hidden from the
# search, pair by pair, so that each repository keeps what other papers say of it (leave one out).

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
    """Build with every link; ask every rung for every pair, and search between the two known ends as well.

    The summary as scripts read it, and the pairs that it is of.

    `ask` is the question: `pair` names both ends, `title` only the paper, so that the repository must be guessed.
    """
    titles, naming = read_papers(files.papers), namers(files.code_links)
    built = build(bench, lambda ingest: ingest.arxiv(files.papers, files.citations, files.code_links))
    wanted = repository_pairs(files.code_links, titles, pairs, seed)
    embedder = CachingEmbedder(bench.ingest.embedder)
    with closing(open_snapshot(bench.build_context.home)) as view:
        known = resolve_pairs(view, wanted, titles, naming)
        if not known:
            raise BadCases(f"no pair of {files.code_links} is an edge of the graph; are its papers in {files.papers}?")
        known = [replace(pair, question=QUESTIONS[ask].format(title=pair.title, repo=pair.repo)) for pair in known]
        embedder.learn(pair.question for pair in known)
        asked = Bench(view, replace(bench.tools, embedder=embedder))
        judged = _judge_all(asked, bench.build_context, known, rungs, hops, paths)
        snapshot = view.info.snapshot
    joined = [row["mean_hops"] is not None for row in judged[PAIR_KNOWN][WITHHELD]]
    sha256 = digest([files.papers, files.citations, files.code_links])
    sizes = {"papers": len(titles), "pairs": len(known), "unresolved": len(wanted) - len(known)}
    rules = {"seed": seed, "hops": hops, "paths": paths, "ask": ask}
    document = {
        "dataset": {**sizes, "still_joined": sum(joined), "sha256": sha256, **rules},
        "build": built,
        "snapshot": snapshot,
        "model": embedder.model.tag,
        "recipes": {
            name: {setting: summarise_bridges(rows, joined) for setting, rows in settings.items()}
            for name, settings in judged.items()
        },
    }
    truth = [
        {"paper": one.paper, "repo": one.repo, "expected_bridges": sorted(naming[one.repo] - {one.paper})}
        for one in known
    ]
    return document, truth


def resolve_pairs(
    view: GraphView, wanted: Sequence[tuple[str, str]], titles: Mapping[str, str], naming: Mapping[str, frozenset[str]]
) -> list[Pair]:
    """Pairs whose two ends are nodes joined by `implements`; a repository that no edge reached is left out."""
    found = []
    for paper, repo in wanted:
        numbers = np.unique(view.match_names(repo).numbers)
        facts = zip(numbers.tolist(), view.nodes(numbers), strict=True)
        named = [number for number, one in facts if one.type == EntityType.CODE_SYMBOL and one.name == repo]
        if not named:
            continue
        repo_node = named[0]
        around = _papers_of(view, repo_node)
        node = around.get(fold_title(titles[paper]))
        if node is not None:
            others = {fold_title(titles[one]) for one in naming[repo] - {paper} if one in titles}
            expected = frozenset(around[one] for one in others if one in around) - {node}
            found.append(Pair(paper, titles[paper], repo, node, repo_node, expected))
    return found


def _papers_of(view: GraphView, repo: int) -> dict[str, int]:
    """Nodes of the papers that name a repository, by title."""
    found = view.expand(np.array([repo], np.int64), direction=Direction.IN, types=[RelationType.IMPLEMENTS])
    numbers = np.unique(found.target)
    return {fold_title(one.name): number for number, one in zip(numbers.tolist(), view.nodes(numbers), strict=True)}


def _judge_all(
    whole: Bench, context: BuildContext, pairs: Sequence[Pair], rungs: Sequence[Rung], hops: int, paths: int
) -> dict[str, dict[str, list[PairFigures]]]:
    """Every rung on every pair in both settings, and the search between the two known ends."""
    names = (PAIR_KNOWN, *(rung.name for rung in rungs))
    judged: dict[str, dict[str, list[PairFigures]]] = {name: {PRESENT: [], WITHHELD: []} for name in names}
    view = whole.view
    for place, pair in enumerate(pairs, 1):
        hidden = replace(whole, view=no_edges_between(view, pair.paper_node, pair.repo_node))
        for setting, bench in ((PRESENT, whole), (WITHHELD, hidden)):
            answers = {PAIR_KNOWN: _search(bench, pair, hops, paths)}
            answers |= {rung.name: _ask(rung, bench, pair, hops) for rung in rungs}
            for name, answer in answers.items():
                judged[name][setting].append(judge(view, context.model, pair, answer, hops=hops, paths=paths))
        context.progress("pairs", place, len(pairs))
    return judged


def _search(bench: Bench, pair: Pair, hops: int, paths: int) -> PairAnswer:
    """The cheapest paths between the two ends, which are known here."""
    boosts = {str(kind): boost for kind, boost in bench.tools.rules.path.relation_boost.items()}
    began = time.perf_counter()
    turn = Turn(caps_of(PLAN))
    view = MeteredView(bench.view, turn)
    with turn.stage("graph"):
        found = cheapest_paths(view, pair.paper_node, pair.repo_node, k=paths, max_hops=hops, boosts=boosts)
        ways = tuple(
            Way(path.nodes, tuple(edge.type for edge in view.edges(np.array(path.edges, np.int64)))) for path in found
        )
    return PairAnswer(ways, (time.perf_counter() - began) * 1000)


def _ask(rung: Rung, bench: Bench, pair: Pair, hops: int) -> PairAnswer:
    """The rung's answer to the question of the pair, with as many hops as the pair may be apart."""
    plan = rung.plan()
    graph = plan.graph.model_copy(update={"hops": min(hops, plan.graph.hops * hops)})  # a rung that stays out stays out
    answer, ms = ask(rung.bench(bench), rung.recipe, plan.model_copy(update={"graph": graph}), pair.question)
    ways = tuple(
        Way(
            tuple(bench.view.number([node.id for node in path.nodes]).tolist()), tuple(edge.type for edge in path.edges)
        )
        for path in answer.paths
    )
    return PairAnswer(ways, ms, tuple(passage.text for passage in answer.passages), answer.tokens.prompt)
