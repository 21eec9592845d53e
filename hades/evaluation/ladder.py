"""The rungs of the ladder: every way to answer, and the same ways with one part taken out, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hades.evaluation.ablation import no_bridges, no_hierarchy, no_ranker, no_synonyms, passages_as_ends
from hades.evaluation.rankings import PLAN, Bench, Ranker, recipe_ranker
from hades.ports.view import GraphView
from hades.retrieval.turn.recipes import NAMES_OF_RECIPES, UnknownRecipe
from schemas.plan import Plan, Profile

RANKER = "ranker"  # the part of a snapshot that a learned ranker would be


@dataclass(frozen=True)
class Rung:
    """A recipe, on the graph as it is or on one that lacks a part.

    `stays_out`: a plan without hops keeps it out of the graph. `is_online`: the plan of a user's turn instead of the
    one for evaluation. `has_clauses`: whether parts of the question are searched for too. `is_fitted`: whether the
    fitted ranking of the default recipe serves, or weights by hand.
    """

    name: str
    recipe: str
    about: str
    without: Callable[[GraphView], GraphView] | None = None
    stays_out: bool = False
    is_online: bool = False
    has_clauses: bool = True
    is_fitted: bool = True

    def plan(self) -> Plan:
        """The plan it is asked with."""
        plan = Plan(profile=Profile.ONLINE) if self.is_online else PLAN
        graph = plan.graph.model_copy(update={"hops": 0}) if self.stays_out else plan.graph
        return plan.model_copy(update={"graph": graph, **({} if self.has_clauses else {"q": 1})})

    def bench(self, bench: Bench) -> Bench:
        """What it is asked on."""
        view = bench.view if self.without is None else self.without(bench.view)
        return replace(bench, view=view, is_fitted=self.is_fitted)

    def ranker(self, bench: Bench) -> Ranker:
        """It as a ranker."""
        return recipe_ranker(self.bench(bench), self.recipe, self.plan())


LADDER: tuple[Rung, ...] = (
    Rung("auto", "auto", "the default: every channel, one ranking"),
    Rung("auto/online", "auto", "the plan of a user's turn: 20 candidates, 6 passages, 1 hop", is_online=True),
    Rung("auto/by-hand", "auto", "weights by hand instead of the fitted ranking", is_fitted=False),
    Rung("auto/no-graph", "auto", "its searches and a reranking, without walks", stays_out=True),
    Rung("auto/no-synonyms", "auto", "no similar_to and coref edges", no_synonyms),
    Rung("auto/no-passage-nodes", "auto", "passages take and pass nothing on", passages_as_ends),
    Rung("auto/no-clauses", "auto", "the question is searched for as a whole only", has_clauses=False),
    Rung("vector", "vector", "flat RAG"),
    Rung("graphrag", "graphrag", "GraphRAG-style expansion"),
    Rung("hirag", "hirag", "HiRAG"),
    Rung("pathrag", "pathrag", "PathRAG"),
    Rung("hirag_pathrag", "hirag_pathrag", "HiRAG x PathRAG"),
    Rung("hipporag", "hipporag", "HippoRAG"),
    Rung("hipporag_multihop", "hipporag_multihop", "HippoRAG, walking on"),
    Rung("nexus", "nexus", "Nexus"),
    Rung("hirag_pathrag/no-hierarchy", "hirag_pathrag", "no topics narrow the search", no_hierarchy),
    Rung("pathrag/no-flow", "pathrag", "its seeds and its reranking, without the flow", stays_out=True),
    Rung("hirag_pathrag/no-bridges", "hirag_pathrag", "no paths computed ahead", no_bridges),
    Rung("hirag_pathrag/no-ranker", "hirag_pathrag", "ranked by hand", no_ranker),
    Rung("hipporag/no-ranker", "hipporag", "ranked by hand", no_ranker),
    Rung("hipporag/no-synonyms", "hipporag", "no similar_to and coref edges", no_synonyms),
    Rung("hipporag/no-passage-nodes", "hipporag", "passages take and pass nothing on", passages_as_ends),
)
_BY_NAME = {rung.name: rung for rung in LADDER}


def rungs(names: str | None, default: str) -> list[Rung]:
    """Rungs by their names, separated by commas; `ladder` for all of them."""
    asked = [name.strip() for name in (names or default).split(",") if name.strip()]
    found: dict[str, Rung] = {}
    for name in asked:
        if name == "ladder":
            found |= _BY_NAME
        elif name in _BY_NAME:
            found[name] = _BY_NAME[name]
        elif name in NAMES_OF_RECIPES:
            found[name] = Rung(name, name, "")
        else:
            known = ", ".join(dict.fromkeys(("ladder", *NAMES_OF_RECIPES, *_BY_NAME)))
            raise UnknownRecipe(f"no recipe or rung is called {name!r}; use some of {known}")
    return list(found.values())


def notes(view: GraphView) -> list[str]:
    """What of the ladder this graph cannot show."""
    if view.info.parts.get(RANKER):
        return []
    return [f"snapshot {view.info.snapshot} has no learned ranker: every rung runs with it off"]
