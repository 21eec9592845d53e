"""Why a path was kept or a node not reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from hades.budget import Caps, Turn
from hades.errors import HadesError
from hades.ports.graph import CHUNK, Numbers
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
from schemas.ids import Mask, iso
from schemas.plan import HARD_CAPS, Plan, Profile, Reason
from schemas.telemetry import QueryLog, ShownResults

# Why a path was kept, and why a node was not reached: the same search again, with one limit lifted
# at a time. A limit is the reason when lifting it alone brings the node in. Each rerun has its own
# bounded work, so an explanation never costs more than a few turns.
FURTHEST = 8  # edges from the seeds within which a node counts as connected
WIDEST = 100  # what a lifted fanout or beam may take
MAX_WORK = 2_000_000  # entries looked at to learn whether a node is connected at all


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
    """Everything that can keep a node out. `flow` decides beside the beam where the recipe uses
    it.
    """

    beam: BeamRules
    flow: FlowRules | None = None
    candidate_graph: CandidateGraph | None = None


def explain_missing(
    view: MeteredView,
    question: Question,
    seeds: Sequence[Seed],
    node: int,
    limits: Limits,
) -> Explanation:
    """Why no path of this search contains a node; a chunk is reached when an entity it names is.

    Give a view whose turn has room: each rerun reads nothing but looks at as many edges as the
    search did, or more.
    """
    if not seeds:
        return Explanation(
            Cause.NO_SEEDS,
            "the question has no seed, so nothing was searched",
        )

    targets = _stand_ins(view, node, question)
    path = _find_path(view, question, seeds, limits, targets)
    if path is not None:
        return Explanation(
            Cause.REACHED,
            f"it was reached: {path.why}",
            {"edges": len(path.edges)},
        )

    for lifted in _lift(question, limits):
        path = _find_path(
            view,
            lifted.question,
            seeds,
            lifted.limits,
            targets,
        )
        if path is not None:
            evidence = {
                "edges": len(path.edges),
                "score": path.score,
                "why": path.why,
            }
            return Explanation(lifted.cause, lifted.sentence, evidence)

    return _explain_unconnected(
        view,
        question,
        seeds,
        targets,
        limits,
    )


def _stand_ins(
    view: MeteredView,
    node: int,
    question: Question,
) -> set[int]:
    """The node itself; for a chunk, what it names as well."""
    number = np.array([node], np.int64)
    if view.kinds(number)[0] != CHUNK:
        return {node}

    mentioned = view.expand(
        number,
        direction=OUT,
        types=[MENTIONS],
        mask=question.mask,
    )
    return {node, *mentioned.target.tolist()}


def _find_path(
    view: MeteredView,
    question: Question,
    seeds: Sequence[Seed],
    limits: Limits,
    targets: set[int],
) -> FoundPath | None:
    """A path that the search of the recipe finds to what is wanted: by the beam, and by the flow
    where it is used.
    """
    paths = search_beam(
        view,
        question,
        seeds,
        limits.beam,
        candidate_graph=limits.candidate_graph,
    ).paths
    if limits.flow is not None:
        paths += flow_paths(
            view,
            question,
            seeds,
            limits.flow,
            candidate_graph=limits.candidate_graph,
        ).paths

    return next((path for path in paths if targets & set(path.nodes)), None)


class LiftedLimit(NamedTuple):
    """A search with a limit lifted, and the sentence that holds where that brings the node in."""

    cause: Cause
    sentence: str
    question: Question
    limits: Limits


def _lift(question: Question, limits: Limits) -> Iterator[LiftedLimit]:
    """The same search with one limit lifted, in the order in which the search applies them; at last
    all of them.
    """
    beam = limits.beam
    flow = limits.flow

    if not question.mask.is_open:
        sentence = (
            "every way to it uses an edge that was not true or not known at the moment asked for"
        )
        yield LiftedLimit(
            Cause.MASK,
            sentence,
            replace(question, mask=OPEN),
            limits,
        )

    if limits.candidate_graph is not None:
        sentence = "the topics of the question do not lead to it: it is outside the candidate graph"
        everywhere = replace(limits, candidate_graph=None)
        yield LiftedLimit(
            Cause.CANDIDATES,
            sentence,
            question,
            everywhere,
        )

    if flow is not None:
        sentence = f"the flow that arrives is below the threshold {flow.theta:g}"
        thinner = replace(flow, theta=flow.theta / 100)
        yield LiftedLimit(
            Cause.THRESHOLD,
            sentence,
            question,
            replace(limits, flow=thinner),
        )
        sentence = f"{flow.max_paths} more reliable paths were kept before the one that holds it"
        more_paths = replace(flow, max_paths=WIDEST)
        yield LiftedLimit(
            Cause.PATHS,
            sentence,
            question,
            replace(limits, flow=more_paths),
        )

    sentence = f"{beam.fanout} better neighbours were followed instead (fanout)"
    fanned = replace(
        beam,
        fanout=WIDEST,
        look=WIDEST,
    )
    yield LiftedLimit(
        Cause.FANOUT,
        sentence,
        question,
        replace(limits, beam=fanned),
    )
    sentence = f"{beam.beam} better paths were kept instead (beam)"
    broader = replace(beam, beam=WIDEST)
    yield LiftedLimit(
        Cause.BEAM,
        sentence,
        question,
        replace(limits, beam=broader),
    )
    sentence = f"it is further than {beam.hops} edges from a seed (hops)"
    further = replace(
        beam,
        hops=beam.hops + 1,
        coverage=2.0,
    )
    yield LiftedLimit(
        Cause.HOPS,
        sentence,
        question,
        replace(limits, beam=further),
    )
    sentence = f"fanout {beam.fanout} and beam {beam.beam} together left it out"
    wider = replace(
        beam,
        fanout=WIDEST,
        beam=WIDEST,
        coverage=2.0,
        look=WIDEST,
    )
    yield LiftedLimit(
        Cause.CAPS_TOGETHER,
        sentence,
        question,
        replace(limits, beam=wider),
    )


def _explain_unconnected(
    view: MeteredView,
    question: Question,
    seeds: Sequence[Seed],
    targets: set[int],
    limits: Limits,
) -> Explanation:
    """Told apart by plain breadth: further away, hidden, or not connected."""
    starts = np.unique(np.array([seed.node for seed in seeds], np.int64))
    distance, complete = _distance(view, starts, targets, question.mask)

    if distance is not None:
        hops = limits.beam.hops
        sentence = f"it is {distance} edges from the nearest seed; the search takes {hops}"
        code = Cause.HOPS if distance > hops else Cause.CAPS_TOGETHER
        return Explanation(
            code,
            sentence,
            {"distance": distance, "hops": hops},
        )

    if not question.mask.is_open:
        distance, complete = _distance(view, starts, targets, OPEN)

    if distance is not None:
        sentence = "it is connected only by edges that the moment asked for hides"
        return Explanation(
            Cause.MASK,
            sentence,
            {"distance": distance},
        )

    if not complete:
        sentence = (
            "the work allowed for an explanation ended before the graph did; ask with more work"
        )
        return Explanation(Cause.UNDECIDED, sentence)

    sentence = f"no path of {FURTHEST} edges or fewer joins it to a seed"
    return Explanation(
        Cause.NOT_CONNECTED,
        sentence,
        {"within": FURTHEST},
    )


def _distance(
    view: MeteredView,
    starts: Numbers,
    targets: set[int],
    mask: Mask,
) -> tuple[int | None, bool]:
    """Edges from the nearest start, and whether everything within `FURTHEST` was looked at."""
    ends = np.array(sorted(targets), np.int64)
    if np.isin(starts, ends).any():
        return 0, True

    visited = starts
    frontier = starts
    work_left = MAX_WORK

    for distance in range(1, FURTHEST + 1):
        if not len(frontier):
            return None, True
        if work_left <= 0 or view.turn.expired():
            return None, False

        expansion = view.expand(
            frontier,
            direction=ANY,
            types=PATH_TYPES,
            mask=mask,
            max_work=work_left,
        )
        work_left -= expansion.work
        if np.isin(expansion.target, ends).any():
            return distance, True
        if expansion.capped:
            return None, False

        frontier = np.setdiff1d(expansion.target, visited)
        visited = np.union1d(visited, frontier)

    return None, True


class CannotExplain(HadesError):
    """A turn or a node about which nothing can be said."""


def explained(
    graph: OpenView,
    tools: Tools,
    log: QueryLog,
    missing: str | None = None,
) -> dict[str, Any]:
    """What a log and the graph together say about a turn. `missing` is a node that was looked for,
    by id or by name.

    The search is run again, so the snapshot must be the one that answered: another one has other
    numbers and edges.
    """
    if graph.info.snapshot != log.snapshot:
        raise CannotExplain(
            f"{log.key} was answered from snapshot {log.snapshot}, now {graph.info.snapshot} "
            "serves; ask again first"
        )

    shown = ShownResults.model_validate(log.results)
    questions = [Question(log.query)]
    near = _nodes_of(shown)

    if missing is not None:
        questions.append(Question(missing))
        near.append(missing)

    view = fetch_neighbourhood(
        graph,
        _offline(tools),
        questions,
        near,
    )
    return {
        "query_id": log.key,
        "query": log.query,
        "recipe": log.recipe,
        "snapshot": log.snapshot,
        "at": iso(log.at),
        "paths": _paths_shown(view, shown),
        "reasons": {str(reason): reason.about for reason in Reason if reason in log.reasons},
        "missing": None if missing is None else _why_not(view, tools, log, shown, missing),
    }


def _offline(tools: Tools) -> Turn:
    room = HARD_CAPS[Profile.OFFLINE]
    return Turn(Caps(room.docs_max, room.work_max, room.latency_ms), tools.clock)


def _nodes_of(shown: ShownResults) -> list[str]:
    return list(chain.from_iterable(path.nodes for path in shown.paths))


def _paths_shown(view: GraphView, shown: ShownResults) -> list[dict[str, Any]]:
    ids = list(dict.fromkeys(_nodes_of(shown)))
    numbers = view.number(ids)
    known = [node for node, number in zip(ids, numbers.tolist(), strict=True) if number >= 0]
    facts = view.nodes(numbers[numbers >= 0])

    names = {}
    for node, fact in zip(known, facts, strict=True):
        names[node] = fact.name

    rows = []
    for path in shown.paths:
        row = {}
        for name in ("why", "score", "reliability"):
            row[name] = getattr(path, name)

        text = " – ".join(names.get(node, node) for node in path.nodes)
        rows.append(
            {
                "rank": path.rank,
                "text": text,
                "edges": list(path.edges),
            }
            | row
        )

    return rows


def _why_not(
    view: GraphView,
    tools: Tools,
    log: QueryLog,
    shown: ShownResults,
    missing: str,
) -> dict[str, Any]:
    number = _number(view, log, missing)
    node = view.nodes(np.array([number], np.int64))[0]
    shown_node = {"node": node.id, "name": node.name}

    places = []
    for path in shown.paths:
        if node.id in path.nodes:
            places.append(f"path {path.rank}")

    places += [f"passage {passage.rank}" for passage in shown.passages if passage.id == node.id]
    if places:
        return {
            **shown_node,
            "code": str(Cause.REACHED),
            "sentence": f"it is in the answer: {places[0]}",
            "next": "",
            "evidence": {},
        }

    plan = Plan.model_validate(log.plan)
    recipe = recipe_named(log.recipe)
    if recipe.name == AUTO:
        # Its walk has no hops to speak of: the beam over the same seeds says what is in the way.
        recipe = recipe_named(HIRAG_PATHRAG)

    if not recipe.finds_paths:
        raise CannotExplain(
            f"recipe {log.recipe} searches no paths; ask again with hirag_pathrag or pathrag"
        )

    mask = Mask(shown.as_of, shown.known_at)
    metered = MeteredView(view, _offline(tools), mask=mask)
    parts = embedded(
        metered.turn,
        view.info,
        log.query,
        tools,
        recipe,
        plan,
        mask=mask,
    )
    question = parts[0]
    seed_hits = find_seeds(metered, parts, plan, recipe.searches)
    graph = plan.graph
    limits = Limits(
        BeamRules(
            hops=graph.hops,
            fanout=graph.fanout,
            beam=graph.beam,
        )
    )

    if recipe.name == PATHRAG:
        flow = replace(flow_rules(plan, tools.rules), fanout=None)
        limits = replace(limits, flow=flow)

    if recipe.narrows:
        limits = replace(
            limits,
            candidate_graph=narrow(metered, question, tools.rules),
        )

    starts = entry_points(
        metered,
        question,
        seed_hits.seeds,
        plan.retriever.k,
    )
    explanation = explain_missing(
        metered,
        question,
        starts,
        number,
        limits,
    )
    sentence = explanation.sentence

    if explanation.code is Cause.REACHED:
        sentence = (
            "a path that holds it was found, but better ones filled the "
            f"{plan.final_context} places of the answer"
        )

    start_nodes = np.array([seed.node for seed in starts], np.int64)
    seeds = []
    for facts in view.nodes(start_nodes):
        seeds.append(facts.name or facts.id)

    return {
        **shown_node,
        "code": str(explanation.code),
        "sentence": sentence,
        "next": _next(explanation.code, plan),
        "evidence": {
            **explanation.evidence,
            "seeds": seeds,
        },
    }


def _number(view: GraphView, log: QueryLog, missing: str) -> int:
    """The node of an id; or the one that a name spells."""
    if "/" in missing:
        number = int(view.number([missing])[0])
    else:
        number = -1

    if number >= 0:
        return number

    matches = view.match_names(missing)
    whole = matches.numbers[(matches.ends - matches.starts) == len(missing.strip())]
    if len(whole):
        return int(whole[0])

    near = ", ".join(view.ids(matches.numbers[:3]))
    raise CannotExplain(
        f"{missing!r} is not a node of snapshot {log.snapshot}; give an id such as entities/name, "
        "or a name "
        f"of the graph{f'; it names {near}' if near else ''}"
    )


def _next(code: Cause, plan: Plan) -> str:
    """What to change so that the next turn reaches further."""
    graph = plan.graph
    advice = {
        Cause.REACHED: f"raise final_context (now {plan.final_context}) or ask for more --paths",
        Cause.NO_SEEDS: "name something that the graph knows, in its own words",
        Cause.MASK: "ask with another --as-of or --known-at, or without",
        Cause.CANDIDATES: "ask with --recipe pathrag, which is not held to topics, or raise "
        "hirag_pathrag.cand_cap",
        Cause.THRESHOLD: "ask with --recipe hirag_pathrag, whose beam has no threshold",
        Cause.PATHS: f"raise graph.beam (now {graph.beam})",
        Cause.FANOUT: f"raise graph.fanout (now {graph.fanout})",
        Cause.BEAM: f"raise graph.beam (now {graph.beam})",
        Cause.HOPS: f"raise graph.hops (now {graph.hops})",
        Cause.CAPS_TOGETHER: f"raise graph.fanout (now {graph.fanout}) and graph.beam (now "
        f"{graph.beam})",
        Cause.NOT_CONNECTED: "nothing that is stated joins them; `hades status` says whether edges "
        "are stale",
        Cause.UNDECIDED: "ask a narrower question: the graph around its seeds is too large to "
        "search",
    }
    return advice[code]
