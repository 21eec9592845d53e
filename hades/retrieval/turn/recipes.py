"""The ways to answer, by name. A retrieval experiment is a new recipe here, not a new flag."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hades.errors import HadesError
from hades.retrieval.channels.search_names import LEXICAL, SEARCHES, VECTOR


class GraphStep(StrEnum):
    """What a recipe does in the graph once it has its seeds."""

    NOTHING = "nothing"
    NEIGHBOURHOOD = "neighbourhood"
    TOPICS = "topics"
    FLOW = "flow"
    BEAM = "beam"
    PAGERANK = "pagerank"
    MULTI_HOP = "multi_hop"
    FUSION = "fusion"
    RECOLLECTION = "recollection"
    EVERY_CHANNEL = "every_channel"


@dataclass(frozen=True)
class Recipe:
    """One way to answer: which searches give the seeds, whether topics narrow, what is done in the graph.

    A baseline is not reranked: it shows what its search alone is worth.
    """

    name: str
    about: str
    searches: tuple[str, ...] = SEARCHES
    narrows: bool = False
    step: GraphStep = GraphStep.NOTHING
    reranks: bool = True

    @property
    def needs_vector(self) -> bool:
        """Whether the question is worth embedding."""
        return VECTOR in self.searches or self.narrows

    @property
    def starts_itself(self) -> bool:
        """Whether the step chooses where it starts, so that no seeds are sought before it."""
        return self.step is GraphStep.EVERY_CHANNEL

    @property
    def finds_paths(self) -> bool:
        """Whether an answer without paths needs a reason."""
        return self.step in (GraphStep.FLOW, GraphStep.BEAM, GraphStep.EVERY_CHANNEL)


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("auto", "every channel, one ranking, and the paths that explain it", step=GraphStep.EVERY_CHANNEL),
        Recipe("vector", "passages by cosine, as a baseline", (VECTOR,), reranks=False),
        Recipe("lexical", "passages by BM25, as a baseline", (LEXICAL,), reranks=False),
        Recipe("graphrag", "what surrounds the seeds, as a baseline", step=GraphStep.NEIGHBOURHOOD),
        Recipe("hirag", "members of the nearest topics and what they lead to", narrows=True, step=GraphStep.TOPICS),
        Recipe("pathrag", "paths between seeds by the flow that arrives", step=GraphStep.FLOW),
        Recipe("hirag_pathrag", "a beam of paths inside the nearest topics", narrows=True, step=GraphStep.BEAM),
        Recipe("hipporag", "passages by personalized PageRank", step=GraphStep.PAGERANK),
        Recipe("hipporag_multihop", "the same, with restart that decays hop by hop", step=GraphStep.MULTI_HOP),
        Recipe("nexus", "vector, graph and feedback tiers, fused", step=GraphStep.FUSION),
        Recipe("memory", "what was said, in its order and at its time", step=GraphStep.RECOLLECTION),
    )
}
AUTO = "auto"
DEFAULT = AUTO
NAMES_OF_RECIPES: tuple[str, ...] = tuple(RECIPES)
MODES: tuple[str, ...] = ("execution", "planning", "brainstorming")  # of nexus
PASSAGE, SYMBOL, FILE = LEVELS = ("passage", "symbol", "file")  # what a ranking is about


class UnknownRecipe(HadesError):
    """A recipe that there is not."""


def recipe_named(name: str) -> Recipe:
    """The recipe, or an error that names those there are."""
    if name not in RECIPES:
        raise UnknownRecipe(f"no recipe is called {name!r}; use one of {', '.join(NAMES_OF_RECIPES)}")
    return RECIPES[name]
