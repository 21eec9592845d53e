"""A logged turn told again: why each path was kept, and why a node was not reached."""

from __future__ import annotations

from typing import Any

from hades.errors import HadesError
from hades.ports.view import GraphView
from hades.retrieval.beam import BeamRules
from hades.retrieval.explain import Explanation, Limits, explain_missing
from hades.retrieval.flow import FlowRules
from hades.retrieval.found import Question
from hades.retrieval.metered import MeteredView
from hades.retrieval.narrow import narrow
from hades.retrieval.pipeline import Tools, embedded
from hades.retrieval.recipes import GraphStep, recipe_named
from hades.retrieval.seeds import entry_points, find_seeds
from hades.retrieval.steps import boosts_of
from hades.telemetry.turn import Caps, Turn
from schemas.intervals import Mask
from schemas.plan import HARD_CAPS, Plan, Profile, Reason
from schemas.telemetry import QueryLog, ShownResults


class CannotExplain(HadesError):
    """A turn or a node about which nothing can be said."""


def explained(view: GraphView, tools: Tools, log: QueryLog, missing: str | None = None) -> dict[str, Any]:
    """What a log and the graph together say about a turn. `missing` is the id of a node that was not in the answer.

    The search is run again, so the snapshot must be the one that answered: another one has other numbers and edges.
    """
    if view.info.snapshot != log.snapshot:
        raise CannotExplain(
            f"{log.key} was answered from snapshot {log.snapshot}, now {view.info.snapshot} serves; ask again first"
        )
    return {
        "query_id": log.key,
        "query": log.query,
        "recipe": log.recipe,
        "paths": _kept(view, log),
        "reasons": {str(reason): reason.about for reason in Reason if reason in log.reasons},
        "missing": None if missing is None else {"node": missing, **_why_not(view, tools, log, missing)},
    }


def _kept(view: GraphView, log: QueryLog) -> list[dict[str, Any]]:
    shown = ShownResults.model_validate(log.results)
    names = dict.fromkeys(node for path in shown.paths for node in path.nodes)
    numbers = view.number(list(names))
    facts = dict(zip(names, view.nodes(numbers[numbers >= 0]), strict=False))
    return [
        {
            "rank": path.rank,
            "text": " – ".join(facts[node].name if node in facts else node for node in path.nodes),
            "edges": list(path.edges),
            "why": path.why,
            "score": path.score,
            "reliability": path.reliability,
        }
        for path in shown.paths
    ]


def _why_not(view: GraphView, tools: Tools, log: QueryLog, missing: str) -> dict[str, Any]:
    number = int(view.number([missing])[0])
    if number < 0:
        raise CannotExplain(f"{missing!r} is no node of snapshot {log.snapshot}; ids look like entities/name")
    plan, recipe = Plan.model_validate(log.plan), recipe_named(log.recipe)
    if recipe.step not in (GraphStep.BEAM, GraphStep.FLOW):
        raise CannotExplain(f"recipe {log.recipe} searches no paths; ask again with hirag_pathrag or pathrag")
    room = HARD_CAPS[Profile.OFFLINE]
    metered = MeteredView(view, Turn(Caps(room.docs_max, room.work_max, room.latency_ms), tools.clock))
    shown = ShownResults.model_validate(log.results)
    parts = embedded(metered, log.query, tools, recipe, plan, Mask(shown.as_of, shown.known_at))
    found = find_seeds(metered, parts, plan, recipe.searches)
    limits = _limits(metered, parts[0], tools, plan, recipe.step, narrows=recipe.narrows)
    starts = entry_points(metered, parts[0], found.seeds, plan.retriever.k)
    said: Explanation = explain_missing(metered, parts[0], starts, number, limits)
    return {"code": str(said.code), "sentence": said.sentence, "evidence": said.evidence}


def _limits(
    view: MeteredView, question: Question, tools: Tools, plan: Plan, step: GraphStep, *, narrows: bool
) -> Limits:
    """The caps the turn ran under."""
    graph = plan.graph
    beam = BeamRules(hops=graph.hops, fanout=graph.fanout, beam=graph.beam)
    flow = FlowRules(hops=graph.hops, max_paths=graph.beam, boosts=boosts_of(tools.rules))
    within = narrow(view, question, tools.rules) if narrows else None
    return Limits(beam, flow if step is GraphStep.FLOW else None, within)
