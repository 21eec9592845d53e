"""A logged turn told again: why each path was kept, and why a node was not reached."""

from __future__ import annotations

from typing import Any

import numpy as np

from hades.errors import HadesError
from hades.ports.view import GraphView
from hades.retrieval.answer.explain_search import Cause, Explanation, Limits, explain_missing
from hades.retrieval.channels.narrow_topics import narrow
from hades.retrieval.channels.seeds import entry_points, find_seeds
from hades.retrieval.turn.graph_steps import boosts_of
from hades.retrieval.turn.metered_view import MeteredView
from hades.retrieval.turn.pipeline import Tools, embedded
from hades.retrieval.turn.recipes import AUTO, GraphStep, recipe_named
from hades.retrieval.turn.types import Question
from hades.retrieval.walks.beam import BeamRules
from hades.retrieval.walks.flow import FlowRules
from hades.telemetry.turn import Caps, Turn
from schemas.intervals import Mask, iso
from schemas.plan import HARD_CAPS, Plan, Profile, Reason
from schemas.telemetry import QueryLog, ShownResults


class CannotExplain(HadesError):
    """A turn or a node about which nothing can be said."""


def explained(view: GraphView, tools: Tools, log: QueryLog, missing: str | None = None) -> dict[str, Any]:
    """What a log and the graph together say about a turn. `missing` is a node that was looked for, by id or by name.

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
        "snapshot": log.snapshot,
        "at": iso(log.at),
        "paths": _keep(view, log),
        "reasons": {str(reason): reason.about for reason in Reason if reason in log.reasons},
        "missing": None if missing is None else _why_not(view, tools, log, missing),
    }


def _keep(view: GraphView, log: QueryLog) -> list[dict[str, Any]]:
    shown = ShownResults.model_validate(log.results)
    names = dict.fromkeys(node for path in shown.paths for node in path.nodes)
    numbers = view.number(list(names))
    known = [name for name, number in zip(names, numbers.tolist(), strict=True) if number >= 0]
    facts = dict(zip(known, view.nodes(numbers[numbers >= 0]), strict=True))
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
    number = _number(view, log, missing)
    node = view.nodes(np.array([number], np.int64))[0]
    named = {"node": node.id, "name": node.name}
    shown = ShownResults.model_validate(log.results)
    if (place := _show_as(node.id, shown)) is not None:
        return {**named, "code": str(Cause.REACHED), "sentence": f"it is in the answer: {place}", "next": "",
                "evidence": {}}  # fmt: skip
    plan, recipe = Plan.model_validate(log.plan), recipe_named(log.recipe)
    if recipe.name == AUTO:  # its walk has no hops to tell of: the beam over the same seeds says what is in the way
        recipe = recipe_named("hirag_pathrag")
    if recipe.step not in (GraphStep.BEAM, GraphStep.FLOW):
        raise CannotExplain(f"recipe {log.recipe} searches no paths; ask again with hirag_pathrag or pathrag")
    room = HARD_CAPS[Profile.OFFLINE]
    metered = MeteredView(view, Turn(Caps(room.docs_max, room.work_max, room.latency_ms), tools.clock))
    parts = embedded(metered, log.query, tools, recipe, plan, Mask(shown.as_of, shown.known_at))
    found = find_seeds(metered, parts, plan, recipe.searches)
    limits = _limits(metered, parts[0], tools, plan, recipe.step, narrows=recipe.narrows)
    starts = entry_points(metered, parts[0], found.seeds, plan.retriever.k)
    said: Explanation = explain_missing(metered, parts[0], starts, number, limits)
    sentence = said.sentence
    if said.code is Cause.REACHED:
        sentence = (
            f"a path that holds it was found, but better ones filled the {plan.final_context} places of the answer"
        )
    seeds = [fact.name or fact.id for fact in view.nodes(np.array([seed.node for seed in starts], np.int64))]
    return {**named, "code": str(said.code), "sentence": sentence, "next": _next(said.code, plan),
            "evidence": {**said.evidence, "seeds": seeds}}  # fmt: skip


def _number(view: GraphView, log: QueryLog, missing: str) -> int:
    """The node of an id; or the one that a name spells."""
    number = int(view.number([missing])[0]) if "/" in missing else -1
    if number >= 0:
        return number
    named = view.match_names(missing)
    whole = named.numbers[(named.ends - named.starts) == len(missing.strip())]
    if len(whole):
        return int(whole[0])
    near = ", ".join(view.ids(named.numbers[:3]))
    raise CannotExplain(
        f"{missing!r} is not a node of snapshot {log.snapshot}; give an id such as entities/name, or a name "
        f"of the graph{f'; it names {near}' if near else ''}"
    )


def _show_as(node: str, shown: ShownResults) -> str | None:
    """Where an answer shows a node; None where it does not."""
    for path in shown.paths:
        if node in path.nodes:
            return f"path {path.rank}"
    return next((f"passage {one.rank}" for one in shown.passages if one.id == node), None)


def _next(code: Cause, plan: Plan) -> str:
    """What to change so that the next turn reaches further."""
    graph = plan.graph
    advice = {
        Cause.REACHED: f"raise final_context (now {plan.final_context}) or ask for more --paths",
        Cause.NO_SEEDS: "name something that the graph knows, in its own words",
        Cause.MASK: "ask with another --as-of or --known-at, or without",
        Cause.CANDIDATES: "ask with --recipe pathrag, which is not held to topics, or raise hirag_pathrag.cand_cap",
        Cause.THRESHOLD: "ask with --recipe hirag_pathrag, whose beam has no threshold",
        Cause.PATHS: f"raise graph.beam (now {graph.beam})",
        Cause.FANOUT: f"raise graph.fanout (now {graph.fanout})",
        Cause.BEAM: f"raise graph.beam (now {graph.beam})",
        Cause.HOPS: f"raise graph.hops (now {graph.hops})",
        Cause.CAPS_TOGETHER: f"raise graph.fanout (now {graph.fanout}) and graph.beam (now {graph.beam})",
        Cause.NOT_CONNECTED: "nothing that is stated joins them; `hades status` says whether edges are stale",
        Cause.UNDECIDED: "ask a narrower question: the graph around its seeds is too large to search",
    }
    return advice[code]


def _limits(
    view: MeteredView, question: Question, tools: Tools, plan: Plan, step: GraphStep, *, narrows: bool
) -> Limits:
    """The caps the turn ran under."""
    graph = plan.graph
    beam = BeamRules(hops=graph.hops, fanout=graph.fanout, beam=graph.beam)
    flow = FlowRules(hops=graph.hops, max_paths=graph.beam, boosts=boosts_of(tools.rules))
    within = narrow(view, question, tools.rules) if narrows else None
    return Limits(beam, flow if step is GraphStep.FLOW else None, within)
