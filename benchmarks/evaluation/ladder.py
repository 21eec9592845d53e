"""Recipes, and the same without one of their parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, cast

import numpy as np

from benchmarks.evaluation.rankers import RANKER, Rung
from hades.evaluation.rankers import PLAN
from hades.ports.graph import KINDS, Adjacency, BridgePath, Csr, Flags, Kind, Numbers
from hades.ports.store import Direction
from hades.retrieval.core.types import NAMES_OF_RECIPES, UnknownRecipe
from hades.snapshot.view import GraphView
from schemas.plan import Plan, Profile

Hides = Callable[[Numbers, Csr], Flags]  # (near ends, rows) -> which entries are hidden
SYNONYMS = ("similar_to", "coref")


class _Changed:
    """Another view, but for the answers that are given."""

    def __init__(self, view: GraphView, **answers: Any) -> None:
        self._view = view
        self.__dict__.update(answers)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)


def no_ranker(view: GraphView) -> GraphView:
    """Without the learned ranker: the shipped weights rank."""
    info = replace(view.info, parts={**view.info.parts, RANKER: ""})
    return cast(GraphView, _Changed(view, info=info, fitted=lambda: None))


def no_bridges(view: GraphView) -> GraphView:
    """Without paths computed ahead; a question searches for all of them."""
    return cast(GraphView, _Changed(view, bridges=lambda starts, ends=None, *, limit: []))


def no_hierarchy(view: GraphView) -> GraphView:
    """As before the hierarchy was built: no topic, no node in one, and so no bridge between two."""
    info = view.info
    parts = {**info.parts, "hierarchy": "", "bridges": ""}
    nodes, models = {**info.nodes, Kind.CLUSTER: 0}, {**info.models, Kind.CLUSTER: ()}
    hidden = replace(info, nodes=nodes, models=models, parts=parts)
    changed = _Changed(
        no_bridges(view),
        info=hidden,
        clusters_of=lambda numbers: np.full(len(numbers), -1, np.int64),
    )
    return cast(GraphView, changed)


def no_synonyms(view: GraphView) -> GraphView:
    """Without the edges that say that two names are alike."""
    codes = np.array([view.type_names.index(name) for name in SYNONYMS], np.uint8)
    return _with_fewer_edges(view, lambda near, rows: np.isin(rows.type, codes))


def passages_as_ends(view: GraphView) -> GraphView:
    """Passages take what the names in them have, and pass nothing on: a walk goes from name to name
    only.
    """
    return _with_fewer_edges(view, lambda near, rows: view.kinds(near) == KINDS.index(Kind.CHUNK))


def no_edges_between(view: GraphView, first: int, second: int) -> GraphView:
    """Without any edge that joins these two nodes, whatever its type and direction."""
    expansion = view.expand(np.array([first], np.int64), direction=Direction.ANY)
    hidden = np.unique(expansion.edge[expansion.target == second])
    return _with_fewer_edges(view, lambda near, rows: np.isin(rows.edge, hidden))


def _with_fewer_edges(view: GraphView, hides: Hides) -> GraphView:
    """Some edges taken out of the adjacency, so that no walk, no search and no bridge can use
    them.
    """
    whole = view.adjacency()
    fewer = Adjacency(_fewer(whole.out, hides), _fewer(whole.into, hides), whole.validity)
    edges_left = cache(lambda: frozenset(fewer.out.edge.tolist()))

    def bridges(starts: Numbers, ends: Numbers | None = None, *, limit: int) -> list[BridgePath]:
        return [
            path
            for path in view.bridges(starts, ends, limit=limit)
            if edges_left().issuperset(path.edges)
        ]

    return cast(GraphView, _Changed(view.with_adjacency(fewer), bridges=bridges))


def _fewer(rows: Csr, hides: Hides) -> Csr:
    near = np.repeat(np.arange(len(rows.starts) - 1), np.diff(rows.starts))
    is_shown = ~hides(near, rows)
    starts = np.concatenate([[0], np.cumsum(is_shown)])[rows.starts].astype(np.int64)
    return Csr(
        starts,
        rows.target[is_shown],
        rows.edge[is_shown],
        rows.type[is_shown],
        rows.weight[is_shown],
    )


ONLINE = Plan(profile=Profile.ONLINE)  # of a user's turn: 20 candidates, 6 passages, 1 hop
STAYS_OUT = PLAN.model_copy(update={"graph": PLAN.graph.model_copy(update={"hops": 0})})
WHOLE_QUESTION = PLAN.model_copy(update={"q": 1})  # searched for as a whole only
# A recipe with all its parts, then the same without one of them.
LADDER = (
    Rung("auto", "auto"),
    Rung("auto/online", "auto", ONLINE),
    Rung("auto/no-graph", "auto", STAYS_OUT),
    Rung("auto/no-synonyms", "auto", without=no_synonyms),
    Rung("auto/no-passage-nodes", "auto", without=passages_as_ends),
    Rung("auto/no-clauses", "auto", WHOLE_QUESTION),
    Rung("auto/no-ranker", "auto", without=no_ranker),
    Rung("vector", "vector"),
    Rung("graphrag", "graphrag"),
    Rung("hirag", "hirag"),
    Rung("pathrag", "pathrag"),
    Rung("hirag_pathrag", "hirag_pathrag"),
    Rung("hipporag", "hipporag"),
    Rung("hipporag_multihop", "hipporag_multihop"),
    Rung("nexus", "nexus"),
    Rung("hirag_pathrag/no-hierarchy", "hirag_pathrag", without=no_hierarchy),
    Rung("pathrag/no-flow", "pathrag", STAYS_OUT),
    Rung("hirag_pathrag/no-bridges", "hirag_pathrag", without=no_bridges),
    Rung("hipporag/no-synonyms", "hipporag", without=no_synonyms),
    Rung("hipporag/no-passage-nodes", "hipporag", without=passages_as_ends),
)
_BY_NAME = {rung.name: rung for rung in LADDER}


def rungs(names: str | None, default: str) -> list[Rung]:
    """Rungs by their names, separated by commas; `ladder` for all of them."""
    rung_names = [name.strip() for name in (names or default).split(",") if name.strip()]
    chosen: dict[str, Rung] = {}
    for name in rung_names:
        if name == "ladder":
            chosen |= _BY_NAME
        elif name in _BY_NAME:
            chosen[name] = _BY_NAME[name]
        elif name in NAMES_OF_RECIPES:
            chosen[name] = Rung(name, name)
        else:
            known = ", ".join(dict.fromkeys(("ladder", *NAMES_OF_RECIPES, *_BY_NAME)))
            raise UnknownRecipe(f"no recipe or rung is called {name!r}; use some of {known}")
    return list(chosen.values())
