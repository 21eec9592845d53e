"""Why a path was kept or a node not reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np

from hades.errors import HadesError
from hades.ports.graph import KINDS, Kind, Numbers
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import (
    AUTO,
    HIRAG_PATHRAG,
    OPEN,
    PATHRAG,
    CandidateGraph,
    FoundPath,
    Question,
    Seed,
    recipe_named,
)
from hades.retrieval.core.words import ANY, MENTIONS, OUT, PATH_TYPES
from hades.retrieval.pipeline import Tools, embedded, fetch_neighbourhood
from hades.retrieval.recipes import flow_rules
from hades.retrieval.search.seeds import entry_points, find_seeds, narrow
from hades.retrieval.walks.beam import BeamRules, search_beam
from hades.retrieval.walks.flow import FlowRules, flow_paths
from hades.snapshot.remote import OpenView
from hades.snapshot.view import GraphView
from hades.telemetry.turn import Caps, Turn
from schemas.ids import Mask, iso
from schemas.plan import HARD_CAPS, Plan, Profile, Reason
from schemas.telemetry import QueryLog, ShownResults

# Why a path was kept, and why a node was not reached: the same search again, with one limit lifted at a time. A
# limit is the reason when lifting it alone brings the node in. Each rerun has its own bounded work, so an
# explanation never costs more than a few turns.
FURTHEST = 8  # edges from the seeds within which a node counts as connected
WIDEST = 100  # what a lifted fanout or beam may take
MAX_WORK = 2_000_000  # entries looked at to tell whether a node is connected at all


class Cause(StrEnum):
    """Why a node is not in an answer. A closed list."""

    REACHED = "reached"
    NO_SEEDS = "no_seeds"
    MASK = "mask"
    THRESHOLD = "threshold"
    CANDIDATES = "cap_candidates"
    FANOUT = "cap_fanout"
    BEAM = "cap_beam"
    PATHS = "cap_paths"
    HOPS = "cap_hops"
    CAPS_TOGETHER = "caps_together"
    NOT_CONNECTED = "not_connected"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Explanation:
    """The cause, a sentence for a person, and the figures behind it."""

    code: Cause
    sentence: str
    evidence: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Limits:
    """Everything that can keep a node out. `flow` decides beside the beam where the recipe uses it."""

    beam: BeamRules
    flow: FlowRules | None = None
    within: CandidateGraph | None = None


def explain_missing(
    view: MeteredView, question: Question, seeds: Sequence[Seed], node: int, limits: Limits
) -> Explanation:
    """Why no path of this search contains a node; a chunk is reached when an entity it names is.

    Give a view whose turn has room: each rerun reads nothing but looks at as many edges as the search did, or more.
    """
    if not seeds:
        return Explanation(Cause.NO_SEEDS, "the question has no seed, so nothing was searched")
    wanted = _stand_ins(view, node, question)
    if path := _find_path(view, question, seeds, limits, wanted):
        return Explanation(Cause.REACHED, f"it was reached: {path.why}", {"edges": len(path.edges)})
    for cause, sentence, asked, lifted in _lift(question, limits):
        if path := _find_path(view, asked, seeds, lifted, wanted):
            return Explanation(cause, sentence, {"edges": len(path.edges), "score": path.score, "why": path.why})
    return _explain_unconnected(view, question, seeds, wanted, limits)


def _stand_ins(view: MeteredView, node: int, question: Question) -> set[int]:
    """The node itself; for a chunk, what it names as well."""
    number = np.array([node], np.int64)
    wanted = {node}
    if KINDS[int(view.kinds(number)[0])] is Kind.CHUNK:
        wanted |= set(view.expand(number, direction=OUT, types=[MENTIONS], mask=question.mask).target.tolist())
    return wanted


def _find_path(
    view: MeteredView, question: Question, seeds: Sequence[Seed], limits: Limits, wanted: set[int]
) -> FoundPath | None:
    """A path that the search of the recipe finds to what is wanted: by the beam, and by the flow where it is used."""
    found = search_beam(view, question, seeds, limits.beam, within=limits.within).paths
    if limits.flow is not None:
        found += flow_paths(view, question, seeds, limits.flow, within=limits.within).paths
    return next((path for path in found if wanted & set(path.nodes)), None)


def _lift(question: Question, limits: Limits) -> Iterator[tuple[Cause, str, Question, Limits]]:
    """The same search with one limit lifted, in the order in which the search applies them; at last all of them.

    Each with the sentence that holds where lifting it brings the node in.
    """
    beam, flow = limits.beam, limits.flow
    if not question.mask.is_open:
        hidden = "every way to it uses an edge that was not true or not known at the moment asked for"
        yield Cause.MASK, hidden, replace(question, mask=OPEN), limits
    if limits.within is not None:
        outside = "the topics of the question do not lead to it: it is outside the candidate graph"
        yield Cause.CANDIDATES, outside, question, replace(limits, within=None)
    if flow is not None:
        thin = f"the flow that arrives is below the threshold {flow.theta:g}"
        yield Cause.THRESHOLD, thin, question, replace(limits, flow=replace(flow, theta=flow.theta / 100))
        behind = f"{flow.max_paths} more reliable paths were kept before the one that holds it"
        yield Cause.PATHS, behind, question, replace(limits, flow=replace(flow, max_paths=WIDEST))
    followed = f"{beam.fanout} better neighbours were followed instead (fanout)"
    yield Cause.FANOUT, followed, question, replace(limits, beam=replace(beam, fanout=WIDEST, look=WIDEST))
    kept = f"{beam.beam} better paths were kept instead (beam)"
    yield Cause.BEAM, kept, question, replace(limits, beam=replace(beam, beam=WIDEST))
    far = f"it is further than {beam.hops} edges from a seed (hops)"
    yield Cause.HOPS, far, question, replace(limits, beam=replace(beam, hops=beam.hops + 1, coverage=2.0))
    wider = replace(beam, fanout=WIDEST, beam=WIDEST, coverage=2.0, look=WIDEST)
    together = f"fanout {beam.fanout} and beam {beam.beam} together left it out"
    yield Cause.CAPS_TOGETHER, together, question, replace(limits, beam=wider)


def _explain_unconnected(
    view: MeteredView, question: Question, seeds: Sequence[Seed], wanted: set[int], limits: Limits
) -> Explanation:
    """Told apart by plain breadth: further away, hidden, or not connected."""
    starts = np.unique(np.array([seed.node for seed in seeds], np.int64))
    distance, complete = _distance(view, starts, wanted, question.mask)
    if distance is not None:
        hops = limits.beam.hops
        said = f"it is {distance} edges from the nearest seed; the search takes {hops}"
        code = Cause.HOPS if distance > hops else Cause.CAPS_TOGETHER
        return Explanation(code, said, {"distance": distance, "hops": hops})
    if not question.mask.is_open:
        distance, complete = _distance(view, starts, wanted, OPEN)
    if distance is not None:
        said = "it is connected only by edges that the moment asked for hides"
        return Explanation(Cause.MASK, said, {"distance": distance})
    if not complete:
        said = "the work allowed for an explanation ended before the graph did; ask with more work"
        return Explanation(Cause.UNDECIDED, said)
    said = f"no path of {FURTHEST} edges or fewer joins it to a seed"
    return Explanation(Cause.NOT_CONNECTED, said, {"within": FURTHEST})


def _distance(view: MeteredView, starts: Numbers, wanted: set[int], mask: Mask) -> tuple[int | None, bool]:
    """Edges from the nearest start, and whether everything within `FURTHEST` was looked at."""
    ends = np.array(sorted(wanted), np.int64)
    if np.isin(starts, ends).any():
        return 0, True
    seen, frontier = starts, starts
    left = MAX_WORK
    for distance in range(1, FURTHEST + 1):
        if not len(frontier):
            return None, True
        if left <= 0 or view.turn.expired():
            return None, False
        found = view.expand(frontier, direction=ANY, types=PATH_TYPES, mask=mask, max_work=left)
        left -= found.work
        if np.isin(found.target, ends).any():
            return distance, True
        if found.capped:
            return None, False
        frontier = np.setdiff1d(found.target, seen)
        seen = np.union1d(seen, frontier)
    return None, True


class CannotExplain(HadesError):
    """A turn or a node about which nothing can be said."""


def explained(graph: OpenView, tools: Tools, log: QueryLog, missing: str | None = None) -> dict[str, Any]:
    """What a log and the graph together say about a turn. `missing` is a node that was looked for, by id or by name.

    The search is run again, so the snapshot must be the one that answered: another one has other numbers and edges.
    """
    if graph.info.snapshot != log.snapshot:
        raise CannotExplain(
            f"{log.key} was answered from snapshot {log.snapshot}, now {graph.info.snapshot} serves; ask again first"
        )
    shown = ShownResults.model_validate(log.results)
    named = [missing] if missing is not None else []
    known = [node for path in shown.paths for node in path.nodes]
    view = fetch_neighbourhood(graph, _offline(tools), [*map(Question, (log.query, *named))], [*known, *named])
    return {
        "query_id": log.key,
        "query": log.query,
        "recipe": log.recipe,
        "snapshot": log.snapshot,
        "at": iso(log.at),
        "paths": _keep(view, shown),
        "reasons": {str(reason): reason.about for reason in Reason if reason in log.reasons},
        "missing": None if missing is None else _why_not(view, tools, log, shown, missing),
    }


def _offline(tools: Tools) -> Turn:
    room = HARD_CAPS[Profile.OFFLINE]
    return Turn(Caps(room.docs_max, room.work_max, room.latency_ms), tools.clock)


def _keep(view: GraphView, shown: ShownResults) -> list[dict[str, Any]]:
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


def _why_not(view: GraphView, tools: Tools, log: QueryLog, shown: ShownResults, missing: str) -> dict[str, Any]:
    number = _number(view, log, missing)
    node = view.nodes(np.array([number], np.int64))[0]
    named = {"node": node.id, "name": node.name}
    places = [f"path {one.rank}" for one in shown.paths if node.id in one.nodes]
    places += [f"passage {one.rank}" for one in shown.passages if one.id == node.id]
    if places:
        return {**named, "code": str(Cause.REACHED), "sentence": f"it is in the answer: {places[0]}", "next": "",
                "evidence": {}}  # fmt: skip
    plan, recipe = Plan.model_validate(log.plan), recipe_named(log.recipe)
    if recipe.name == AUTO:  # its walk has no hops to tell of: the beam over the same seeds says what is in the way
        recipe = recipe_named(HIRAG_PATHRAG)
    if not recipe.finds_paths:
        raise CannotExplain(f"recipe {log.recipe} searches no paths; ask again with hirag_pathrag or pathrag")
    metered = MeteredView(view, _offline(tools))
    parts = embedded(metered.turn, view.info, log.query, tools, recipe, plan, Mask(shown.as_of, shown.known_at))
    found = find_seeds(metered, parts, plan, recipe.searches)
    limits = Limits(
        BeamRules(hops=plan.graph.hops, fanout=plan.graph.fanout, beam=plan.graph.beam),
        replace(flow_rules(plan, tools.rules), fanout=None) if recipe.name == PATHRAG else None,
        narrow(metered, parts[0], tools.rules) if recipe.narrows else None,
    )
    starts = entry_points(metered, parts[0], found.seeds, plan.retriever.k)
    said = explain_missing(metered, parts[0], starts, number, limits)
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
