"""Question, Seed, path and passage candidates; recipe names; plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from hades.budget import Caps
from hades.errors import HadesError, explain_problems
from hades.ports.graph import Flags, Hits, Numbers
from hades.retrieval.core.metered_view import MeteredView
from schemas.ids import Mask
from schemas.plan import CAPPED, HARD_CAPS, Plan, Profile, Reason

GRAPH = "graph"
RANK_OFFSET = 60
# From a question to the few hundred nodes worth searching: down the topics, widest first, hubs
# demoted (HiRAG).
SUPER_TOPIC, TOPIC = 2, 1

# What retrieval hands from stage to stage: numbers of the view, nothing materialised.


@dataclass(frozen=True)
class Seed:
    """A node to start from. `score` is in [0, 1]; `origins` say which search found it, with its
    score there.
    """

    node: int
    score: float
    origins: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class FoundPath:
    """A walk through the graph: n nodes, n - 1 edges; `outbound[i]` says whether edge i points from
    node i to i + 1.

    `score` ranks paths of one answer, `reliability` is the mean flow on its edges, in [0, 1], and
    `shares` what each edge takes of the flow at its tail, where flow found it; `propensity` is the
    chance that it stands where it stands. `joins_named`: both ends are named by the question.
    """

    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    outbound: tuple[bool, ...]
    score: float
    reliability: float = 0.0
    shares: tuple[float, ...] = ()
    origin: str = "beam"
    why: str = ""
    propensity: float = 1.0
    joins_named: bool = False


@dataclass(frozen=True)
class FoundPassage:
    """A chunk worth reading; `tiers` say what each search gave it.

    `explained_by` are the edges of the path that leads to it; where there is none, `no_path` may
    say why.
    """

    node: int
    score: float
    tiers: dict[str, float] = field(default_factory=dict)
    propensity: float = 1.0
    explained_by: tuple[int, ...] = ()
    no_path: str = ""


@dataclass(frozen=True)
class StepResult:
    """What a step found, best first. `passages` replace the seeds'; `is_ranked` when it has read
    and judged them.

    `sources` are what the question names, where paths that explain passages start; `seeds` are
    where a step started that chooses that itself.
    """

    paths: tuple[FoundPath, ...] = ()
    passages: Sequence[FoundPassage] | None = None
    is_ranked: bool = False
    coverage: float = 0.0
    candidates: int = 0
    repeats: int = 0
    bridges: int = 0
    why: str = ""
    sources: Sequence[Seed] = ()
    seeds: tuple[Seed, ...] = ()


@dataclass(frozen=True)
class SeedHits:
    """The seeds, at most k; and passages worth a closer look, at most m, best first."""

    seeds: tuple[Seed, ...]
    passages: tuple[FoundPassage, ...]


@dataclass(frozen=True)
class NarrowedTopic:
    """A topic that was kept on the way down, and its cosine with the question."""

    node: int
    level: int
    similarity: float


@dataclass(frozen=True)
class CandidateGraph:
    """Where paths are searched: nodes by `hscore`, best first, then by number; and the topics that
    led there.
    """

    nodes: Numbers
    hscore: NDArray[np.float32]
    topics: tuple[NarrowedTopic, ...] = ()

    def shown(self, limit: int) -> tuple[NarrowedTopic, ...]:
        """The topics that say most about where the search went: those entered, then the best above
        them.
        """
        entered = [topic for topic in self.topics if topic.level == TOPIC][:limit]
        above = [topic for topic in self.topics if topic.level != TOPIC][: limit - len(entered)]
        return (*above, *entered)

    def holds(self, numbers: Numbers) -> Flags:
        """Which of these nodes are candidates."""
        return np.isin(numbers, self.nodes)


@dataclass
class RankFusion:
    """Candidates by number: the fused score, and what each search gave."""

    scores: dict[int, float] = field(default_factory=dict)
    origins: dict[int, dict[str, float]] = field(default_factory=dict)

    def add(self, search: str, hits: Hits, weight: float) -> None:
        """Take in one ranking; a node keeps its best score of a search."""
        scores = self.scores
        ranking = zip(hits.numbers.tolist(), hits.scores.tolist(), strict=True)

        for offset, (number, score) in enumerate(ranking, RANK_OFFSET + 1):
            scores[number] = scores.get(number, 0.0) + weight / offset
            origins = self.origins.setdefault(number, {})
            origins[search] = max(score, origins.get(search, 0.0))

    def ranked(self, view: MeteredView, limit: int) -> list[int]:
        """The best `limit`, then by key; only the keys of what may be among them are looked up."""
        scores = sorted(self.scores.values(), reverse=True)
        bar = scores[min(limit, len(scores)) - 1] if scores else 0.0
        numbers = [number for number, score in self.scores.items() if score >= bar]
        keys = dict(zip(numbers, view.ids(np.array(numbers, np.int64)), strict=True))
        return sorted(
            numbers,
            key=lambda number: (-self.scores[number], keys[number]),
        )[:limit]

    def strengths(self) -> dict[int, float]:
        """Scores in [0, 1]: that of the search where one search found everything, else the share of
        the best.
        """
        best = max(self.scores.values(), default=1.0)
        searches = set().union(*self.origins.values())

        if len(searches) > 1:
            return {number: score / best for number, score in self.scores.items()}

        native = {}
        for number, node_origins in self.origins.items():
            native[number] = max(node_origins.values())

        highest = max([1.0, *native.values()])
        return {number: max(0.0, score / highest) for number, score in native.items()}


def blend(
    view: MeteredView,
    first: Sequence[FoundPassage],
    second: Sequence[FoundPassage],
    limit: int,
) -> list[FoundPassage]:
    """Two rankings of passages as one, by reciprocal rank; the second counts half."""
    if not second:
        return list(first[:limit])

    fused = RankFusion()
    tiers: dict[int, dict[str, float]] = {}
    for name, ranking, weight in (("", first, 1.0), (GRAPH, second, 0.5)):
        numbers = np.array([passage.node for passage in ranking], np.int64)
        scores = np.array([passage.score for passage in ranking], np.float32)
        fused.add(name, Hits(numbers, scores), weight)

        for passage in ranking:
            tiers[passage.node] = {
                **tiers.get(passage.node, {}),
                **passage.tiers,
            }

    best = max(fused.scores.values())
    return [
        FoundPassage(
            number,
            fused.scores[number] / best,
            tiers[number],
        )
        for number in fused.ranked(view, limit)
    ]


def rank_by_worth(
    nodes: Sequence[int],
    worth: NDArray[np.float64],
    tiers: Callable[[int], dict[str, float]],
) -> list[FoundPassage]:
    """The passages best first, their scores falling from 1; `tiers` gives those of a row."""
    scores = 2.0 / (1.0 + np.exp(worth.max() - worth))
    order = np.argsort(-worth, kind="stable").tolist()
    return [
        FoundPassage(
            nodes[row],
            float(scores[row]),
            tiers(row),
        )
        for row in order
    ]


EXPLAIN = "explain"  # origin of a path that was looked for because it leads to a passage
OPEN = Mask()


@dataclass(frozen=True)
class Question:
    """A question as the stages see it. `vector` is unit length, None when it could not be embedded.

    `tokens` are the states of its tokens, (n, dimension), rows unit length; None where the embedder
    does not give them.

    `near` are the nodes that it is asked from: where the asker stands, such as the paper that a
    sentence is written in.
    """

    text: str
    vector: NDArray[np.float32] | None = None
    model: str = ""
    mask: Mask = OPEN
    near: tuple[int, ...] = ()
    tokens: NDArray[np.float32] | None = None


# The searches that give seeds.
VECTOR, LEXICAL, NAMES = "vector", "lexical", "names"
SEARCHES: tuple[str, ...] = (VECTOR, LEXICAL, NAMES)


@dataclass(frozen=True)
class Recipe:
    """One way to answer: which searches give the seeds, whether topics narrow; its step in the
    graph has its name.

    A retrieval experiment is a new recipe, not a new flag. A baseline is not reranked: it shows
    what its search alone is worth. `starts_itself`: the step chooses where it starts, so no seeds
    are sought before it. `finds_paths`: an answer without paths needs a reason.
    """

    name: str
    about: str
    searches: tuple[str, ...] = SEARCHES
    narrows: bool = False
    reranks: bool = True
    finds_paths: bool = False
    starts_itself: bool = False


AUTO, PATHRAG, HIRAG_PATHRAG, NEXUS = "auto", "pathrag", "hirag_pathrag", "nexus"
RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            AUTO,
            "every channel, one ranking, and the paths that explain it",
            finds_paths=True,
            starts_itself=True,
        ),
        Recipe(
            "vector",
            "passages by cosine, as a baseline",
            (VECTOR,),
            reranks=False,
        ),
        Recipe(
            "lexical",
            "passages by BM25, as a baseline",
            (LEXICAL,),
            reranks=False,
        ),
        Recipe("graphrag", "what surrounds the seeds, as a baseline"),
        Recipe(
            "hirag",
            "members of the nearest topics and what they lead to",
            narrows=True,
        ),
        Recipe(
            PATHRAG,
            "paths between seeds by the flow that arrives",
            finds_paths=True,
        ),
        Recipe(
            HIRAG_PATHRAG,
            "a beam of paths inside the nearest topics",
            narrows=True,
            finds_paths=True,
        ),
        Recipe("hipporag", "passages by personalized PageRank"),
        Recipe("hipporag_multihop", "the same, with restart that decays hop by hop"),
        Recipe(NEXUS, "vector, graph and feedback tiers, fused"),
        Recipe("memory", "what was said, in its order and at its time"),
    )
}
DEFAULT = AUTO
NAMES_OF_RECIPES: tuple[str, ...] = tuple(RECIPES)
MODES: tuple[str, ...] = ("execution", "planning", "brainstorming")  # of nexus
PASSAGE, SYMBOL, FILE = LEVELS = ("passage", "symbol", "file")  # what a ranking is about


class UnknownRecipe(HadesError):
    """A recipe that there is not."""


def recipe_named(name: str) -> Recipe:
    """The recipe, or an error that names those there are."""
    if name not in RECIPES:
        raise UnknownRecipe(
            f"no recipe is called {name!r}; use one of {', '.join(NAMES_OF_RECIPES)}"
        )

    return RECIPES[name]


# Keys of a plan that a recipe has no use for. Recipes that find paths use all of them.
_NO_WALKS = ("retriever.k", "retriever.mmr", "graph.hops", "graph.fanout", "graph.beam")
_UNUSED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((VECTOR, LEXICAL, "memory"), _NO_WALKS),
    "graphrag": ("graph.fanout", "graph.beam"),
    "hirag": ("graph.hops", "graph.fanout", "graph.beam"),
    **dict.fromkeys(
        ("hipporag", "hipporag_multihop", NEXUS),
        ("graph.hops", "graph.fanout"),
    ),
}


def unused_keys(plan: Plan, recipe: Recipe) -> tuple[str, ...]:
    """The keys that a plan sets to another value than its profile does and that the recipe does not
    use.
    """
    usual = Plan(profile=plan.profile)

    keys = []
    for key in _UNUSED.get(recipe.name, ()):
        if attrgetter(key)(plan) != attrgetter(key)(usual):
            keys.append(key)

    # Without hops no recipe walks.
    return tuple(key for key in keys if key != "graph.hops" or plan.graph.hops)


# From what a caller asks for to a plan that may run: clamped with a reason, or refused with the
# place.
_STAGES = ("retriever", "graph", "reranker")


class PlanError(HadesError):
    """A plan that means nothing: an unknown key, a text where a number belongs, a cap below its
    smallest value.
    """


def clamp(raw: Mapping[str, Any], profile: Profile | None = None) -> Plan:
    """The plan, lowered to the hard caps of its profile; `plan_clamped` is among its reasons when
    it was, `stages_shortened` when its stages would take longer than the turn.

    `profile` wins over the one the plan names, so a caller can be held to its own caps. What is not
    a matter of caps (an unknown key, no seeds at all) is refused.
    """
    fields = {}
    for name, part in raw.items():
        fields[name] = dict(part) if isinstance(part, Mapping) else part

    if profile is not None:
        fields["profile"] = profile

    profile_name = fields.get("profile", Profile.ONLINE)
    if profile_name not in list(Profile):
        raise PlanError(f"no profile is called {profile_name!r}; use one of {', '.join(Profile)}")

    allowed = Profile(str(profile_name))
    reasons = [*fields.get("reasons", ())]
    if _lower(fields, HARD_CAPS[allowed]):
        reasons.append(Reason.PLAN_CLAMPED)
    if _fit_stages(fields, Plan(profile=allowed)):
        reasons.append(Reason.STAGES_SHORTENED)
    if reasons:
        fields["reasons"] = tuple(dict.fromkeys(reasons))

    try:
        return Plan.model_validate(fields)
    except ValidationError as error:
        raise PlanError(explain_problems(error.errors(), "the plan")) from None


def caps_of(plan: Plan) -> Caps:
    """What the turn's account is opened with."""
    return Caps(
        plan.budget.docs_max,
        plan.budget.work_max,
        plan.budget.latency_ms,
    )


def _lower(fields: dict[str, Any], caps: Any) -> bool:
    """Bring every number above its cap down to it, in place; whether any was."""
    lowered = False
    for *sections, last in CAPPED:
        part = fields
        for step in sections:
            part = part.get(step, {}) if isinstance(part, dict) else {}

        value = part.get(last) if isinstance(part, dict) else None
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue

        cap = getattr(caps, last)
        if value > cap:
            part[last] = cap
            lowered = True

    return lowered


def _fit_stages(fields: dict[str, Any], plan: Plan) -> bool:
    """Shrink the stages' timeouts in proportion until they fit the turn, in place; whether they had
    to be.
    """
    budget = fields.get("budget", {})
    latency = plan.budget.latency_ms

    if isinstance(budget, dict):
        latency = budget.get("latency_ms", latency)

    stages = {name: fields.get(name, {}) for name in _STAGES}
    if not all(isinstance(stage, dict) for stage in stages.values()):
        return False

    times = {
        name: stage.get("timeout_ms", getattr(plan, name).timeout_ms)
        for name, stage in stages.items()
    }
    if not all(isinstance(time, int) for time in (latency, *times.values())):
        return False

    total = sum(times.values())
    if min(times.values()) < 1 or total <= latency or latency < len(_STAGES):
        return False

    for name, stage in stages.items():
        share = (latency - len(_STAGES)) * times[name] // total
        fields[name] = {**stage, "timeout_ms": 1 + share}

    return True
