"""What surrounds a node; subgraph; compare; explain a passage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hades.errors import HadesError
from hades.ports.graph import CHUNK, KINDS, EdgeFacts, Kind, NodeFacts, Passage
from hades.ports.store import Direction, GraphStore, scan_rows
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import EXPLAIN, FoundPassage, FoundPath, Question, Seed
from hades.retrieval.core.words import ANY, DESCRIBES, MENTIONS, OUT, PATH_TYPES, short_title
from hades.retrieval.walks.flow import Continuations, FlowRules, spread_flow
from hades.snapshot.remote import OpenView, RemoteView
from hades.snapshot.view import GraphView
from hades.telemetry.turn import Caps, Turn
from schemas.ids import Mask, iso
from schemas.plan import Reason

_FANOUT = 32
_DECAY = 0.5  # what is left of a weight after each hop
_MAX_NODES = 2000


def neighbourhood(
    view: MeteredView, question: Question, seeds: Sequence[Seed], *, limit: int, hops: int = 2
) -> tuple[FoundPassage, ...]:
    """The baseline of path search (GraphRAG): chunks within `hops` steps of the seeds over relations and mentions.

    A chunk gets, over every edge that reaches it, the edge's weight times what its near end holds.
    """
    held = {seed.node: seed.score for seed in sorted(seeds, key=lambda seed: seed.node)}
    total = dict(held)
    for _ in range(hops):
        if not held or view.turn.expired():
            break
        nodes = np.array(sorted(held, key=lambda node: (-held[node], node)), np.int64)
        if len(nodes) > _MAX_NODES:
            view.turn.trimmed(Reason.CAP_EXCEEDED)
            nodes = nodes[:_MAX_NODES]
        found = view.expand(nodes, direction=ANY, types=(*PATH_TYPES, MENTIONS), fanout=_FANOUT, mask=question.mask)
        masses = np.array([held[node] for node in nodes.tolist()], np.float64)
        reached, place = np.unique(found.target, return_inverse=True)
        passed = np.bincount(place, masses[found.row] * found.weight * _DECAY, len(reached))
        held = dict(zip(reached.tolist(), passed.tolist(), strict=True))
        for node, weight in held.items():
            total[node] = total.get(node, 0.0) + weight
    numbers = np.array(sorted(total), np.int64)
    chunks = numbers[view.kinds(numbers) == CHUNK] if len(numbers) else numbers
    best = sorted(chunks.tolist(), key=lambda node: (-total[node], node))[:limit]
    return tuple(FoundPassage(node, total[node], {"graph": total[node]}) for node in best)


MAX_WORK = 200_000
MAX_MS = 2000
_TOPIC_COLUMNS = ["_key", "level", "name", "parent", "summary", "size", "drift"]
_WITH_TEXT = frozenset({Kind.CHUNK, Kind.FUNC, Kind.FILE})


class UnknownNode(HadesError):
    """An id that the graph does not have."""

    http_status = 404


@dataclass(frozen=True)
class Reach:
    """The limits of a walk: hops, edges followed from each node, nodes and edges in the result."""

    hops: int = 1
    fanout: int = 16
    nodes: int = 100
    edges: int = 400
    direction: Direction = Direction.ANY
    types: tuple[str, ...] | None = None


def node_shown(view: GraphView, identifier: str) -> dict[str, Any]:
    """Everything the graph says about one node: facts, degrees, its topic, its text where it has one."""
    number = _numbers(view, [identifier])
    facts = view.nodes(number)[0]
    kind = KINDS[int(view.kinds(number)[0])]
    topic = int(view.clusters_of(number)[0])
    shown = {
        **as_json(facts),
        "degree": {
            "out": int(view.degree(number, direction=Direction.OUT)[0]),
            "in": int(view.degree(number, direction=Direction.IN)[0]),
        },
        "topic": view.ids(np.array([topic], np.int64))[0] if topic >= 0 else None,
        "snapshot": view.info.snapshot,
    }
    if kind in _WITH_TEXT:
        passage = view.passages(number)[0]
        shown |= {"text": passage.text, "title": passage.title, "headings": list(passage.headings)}
    return shown


def subgraph(view: GraphView, identifiers: Sequence[str], reach: Reach, mask: Mask = Mask()) -> dict[str, Any]:
    """The nodes and edges within reach, heaviest first; `capped` says that there was more."""
    turn = Turn(Caps(reach.nodes + reach.edges, MAX_WORK, MAX_MS))
    metered = MeteredView(view, turn)
    start = _numbers(view, identifiers)
    depth = dict.fromkeys(start.tolist(), 0)
    handles: dict[int, None] = {}
    frontier, capped = start, False
    for hop in range(1, reach.hops + 1):
        if not len(frontier) or turn.expired():
            break
        found = metered.expand(frontier, direction=reach.direction, types=reach.types, fanout=reach.fanout, mask=mask)
        capped = capped or found.capped
        fresh: list[int] = []
        for target, edge in zip(found.target.tolist(), found.edge.tolist(), strict=True):
            if target not in depth and len(depth) < reach.nodes:
                depth[target] = hop
                fresh.append(target)
            if target in depth and len(handles) < reach.edges:
                handles[edge] = None
            else:
                capped = True
        frontier = np.array(fresh, np.int64)
    nodes = metered.nodes(np.array(list(depth), np.int64))
    edges = metered.edges(np.array(list(handles), np.int64))
    return {
        "snapshot": view.info.snapshot,
        "nodes": [{**as_json(facts), "depth": hop} for facts, hop in zip(nodes, depth.values(), strict=False)],
        "edges": [as_json(edge) for edge in edges],
        "capped": capped or turn.expired() or len(nodes) < len(depth),
        "spent": {"reads": turn.reads_spent, "work": turn.work_spent, "ms": round(turn.ms, 3)},
    }


def topics_shown(store: GraphStore, view: OpenView, limit: int) -> dict[str, Any]:
    """Super-topics and topics that the view has, largest first; a remote graph is the store itself."""
    rows = list(scan_rows(store, "clusters", columns=_TOPIC_COLUMNS))
    if not isinstance(view, RemoteView):
        numbers = view.number([f"clusters/{row['_key']}" for row in rows]).tolist()
        rows = [row for row, number in zip(rows, numbers, strict=True) if number >= 0]
    topics = [
        {"id": f"clusters/{row.pop('_key')}", **row, "parent": f"clusters/{row['parent']}" if row["parent"] else None}
        for row in rows
    ]
    topics.sort(key=lambda topic: (-topic["level"], -topic["size"], topic["id"]))
    return {"snapshot": view.info.snapshot, "topics": topics[:limit], "total": len(topics)}


_NODE = ("id", "kind", "name", "type", "summary", "document", "span", "domain")
_EDGE = ("type", "label", "weight", "snippet", "document", "span")
_INTERVALS = ("valid_from", "valid_until", "recorded_at", "retracted_at")


def as_json(facts: NodeFacts | EdgeFacts) -> dict[str, Any]:
    """A node as callers see it; an edge with where it was read and both its intervals."""
    if isinstance(facts, NodeFacts):
        shown = {name: getattr(facts, name) for name in _NODE}
        return shown | {"kind": str(facts.kind), "span": None if facts.span is None else list(facts.span)}
    shown = {"id": facts.id, "from": facts.source, "to": facts.target}
    shown |= {name: getattr(facts, name) for name in _EDGE}
    moments = {name: getattr(facts, name) for name in _INTERVALS}
    shown["span"] = None if facts.span is None else list(facts.span)
    return shown | {name: None if one is None else iso(one) for name, one in moments.items()}


def _numbers(view: GraphView, identifiers: Sequence[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
    asked = list(dict.fromkeys(identifiers))
    numbers = view.number(asked)
    for identifier, number in zip(asked, numbers.tolist(), strict=True):
        if number < 0:
            raise UnknownNode(
                f"{identifier!r} is not a node of snapshot {view.info.snapshot}; give an id such as entities/name"
            )
    return numbers


# The path that explains each of the first passages: from what the question names to what the passage is about. Flow
# runs from the entities that the question names (of the best passage where it names none) to the entities of the
# ranked passages, over relations only, at most `hops` edges, and is pruned where it runs thin (`flow.py`). The most
# reliable path with an edge that the passage states explains it. Where no such path is among the first few, the most
# reliable one that touches it is shown, and the passage says that it states none. A passage of code states what the
# function or class that it holds is part of. A path may explain several passages; it is returned once, with the rank of
# the best of them.
NAMES = 24  # entities of a passage that a path may end in
TITLE_VOICE = 10.0  # what the entity of its title, or the function that it holds, counts against one it mentions
NEXT_STEPS = 3  # first passages whose own entities a path may also start from
NEXT_VOICE = 0.3  # what such a path counts against one from what the question names
LOOKED_AT = 8  # paths of a passage whose edges are read, to find one that the passage states
READS_SHARE = 4  # at most one read in this many of those left is spent on that
BEHIND = "paths were looked for to the first {first} passages only"
NO_NAME = "the passage names no entity of the graph"
NO_START = "the question names no entity of the graph, and neither do the first passages"
NO_TIME = "no time was left to look for a path"
NO_WAY = "no path of {hops} leads from what the question names to the passage"
NOT_STATED = "paths of {hops} touch what the passage names, but it states no edge of them"
NO_ROOM = "the paths that lead to it go beyond the plan's graph.fanout"


def explain_passages(
    view: MeteredView,
    question: Question,
    sources: Sequence[Seed],
    passages: Sequence[FoundPassage],
    read: Sequence[Passage],
    rules: FlowRules,
    most_starts: int | None = None,
) -> tuple[tuple[FoundPath, ...], list[FoundPassage]]:
    """The most reliable path to each of the passages that were read, best first; `read` are the texts of the first.

    With the passages, each with the edges of the path that leads to it, or with the reason why none does.
    """
    first, behind = passages[: len(read)], passages[len(read) :]
    ends, held = _ends(view, question, first, read)
    starts = _starts(sources, ends, held)[:most_starts]
    targets = sorted({node for own in ends for node in own})
    hops = "one edge" if rules.hops == 1 else f"at most {rules.hops} edges"
    nowhere = NO_WAY.format(hops=hops) if starts and targets else NO_START
    further = [replace(one, no_path=BEHIND.format(first=len(first))) for one in behind]
    if view.turn.expired():
        return (), [*(replace(one, no_path=NO_TIME) for one in first), *further]
    found = spread_flow(view, question, starts, rules, np.array(targets, np.int64)) if starts and targets else []
    offered = _offer_paths(view, found, ends, held, read)
    room = Continuations(rules.fanout)
    paths: dict[frozenset[int], FoundPath] = {}
    marked: list[FoundPassage] = []
    for rank, (passage, own, (stated, touching)) in enumerate(zip(first, ends, offered, strict=True), 1):
        best = next((path for path in (*stated, *touching) if room.admit(path)), None)
        if best is None:
            if stated or touching:
                view.turn.trimmed(Reason.CAP_EXCEEDED)
            reason = NO_ROOM if stated or touching else nowhere if own else NO_NAME
            marked.append(replace(passage, no_path=reason))
            continue
        key, says = frozenset(best.edges), "leads to" if best in stated else "touches what is named in"
        told = replace(best, score=passage.score, origin=EXPLAIN, why=f"{says} passage {rank}; {best.why}")
        edges = paths.setdefault(key, told).edges
        leads = {"explained_by": edges} if best in stated else {"no_path": NOT_STATED.format(hops=hops)}
        marked.append(replace(passage, **leads))
    return tuple(paths.values()), [*marked, *further]


def _ends(
    view: MeteredView, question: Question, passages: Sequence[FoundPassage], read: Sequence[Passage]
) -> tuple[list[dict[int, float]], list[set[int]]]:
    """For each passage the entities that it names, with what a path counts that touches them; and what code it holds.

    The module of a piece of code says nothing of it: every other piece of the file names it too.
    """
    nodes = np.array([one.node for one in passages], np.int64)
    ends: list[dict[int, float]] = [{} for _ in passages]
    held: list[set[int]] = [set() for _ in passages]
    if not len(nodes):
        return ends, held
    types = [name for name in (MENTIONS, DESCRIBES) if name in view.type_names]
    found = view.expand(nodes, direction=OUT, types=types, fanout=NAMES, mask=question.mask)
    holds = view.type_names.index(DESCRIBES) if DESCRIBES in types else None
    titled = [set(found.tolist()) for found in view.match_whole([short_title(one.title) for one in read])]
    modules = [_module_entities(view, one) for one in read]
    columns = (found.row, found.target, found.weight, found.type)
    for row, target, weight, kind in zip(*(column.tolist() for column in columns), strict=True):
        if kind == holds:
            held[row].add(target)
        elif target in modules[row]:
            continue
        voice = TITLE_VOICE if kind == holds or target in titled[row] else 1.0
        ends[row][target] = voice * min(1.0, weight)
    return ends, held


def _module_entities(view: MeteredView, passage: Passage) -> set[int]:
    """The entities that are called as the module of a piece of code, whole or without its first folders."""
    if not (passage.path and passage.lines):
        return set()
    name = passage.path.rpartition(".")[0].replace("/", ".")
    found = view.match_names(name)
    return {node for node, end in zip(found.numbers.tolist(), found.ends.tolist(), strict=True) if end == len(name)}


def _starts(sources: Sequence[Seed], ends: Sequence[Mapping[int, float]], held: Sequence[set[int]]) -> list[Seed]:
    """What the question names, then what the first passages are about: a second step starts where the first ended.

    Each function or class that a passage holds is a start: what joins it to another passage explains it.
    """
    starts = {seed.node: seed for seed in sources}
    for place, (own, functions) in enumerate(zip(ends, held, strict=True)):
        about = [node for node, voice in own.items() if voice > 1.0] or list(own)[:1]
        for node in functions or (about if place < NEXT_STEPS else ()):
            starts.setdefault(node, Seed(node, NEXT_VOICE, {"passage": own[node]}))
    return list(starts.values())


def _offer_paths(
    view: MeteredView,
    found: Sequence[FoundPath],
    ends: Sequence[Mapping[int, float]],
    held: Sequence[set[int]],
    read: Sequence[Passage],
) -> list[tuple[list[FoundPath], list[FoundPath]]]:
    """For each passage the paths that it states an edge of or holds a function of, and the others that touch it."""
    ranked = [_rank_paths(found, own) for own in ends]
    edges = dict.fromkeys(edge for paths in ranked for path in paths for edge in path.edges)
    handles = np.array(list(edges)[: view.turn.reads_left // READS_SHARE], np.int64)
    facts = view.edges(handles) if len(handles) else []
    stated_in = {handle: one.document_id for handle, one in zip(handles.tolist(), facts, strict=False)}
    offered: list[tuple[list[FoundPath], list[FoundPath]]] = [([], []) for _ in ranked]
    for place, (passage, paths) in enumerate(zip(read, ranked, strict=True)):
        for path in paths if passage.document_id else ():
            says = any(stated_in.get(edge) == passage.document_id for edge in path.edges)
            offered[place][0 if says or not held[place].isdisjoint(path.nodes) else 1].append(path)
    return offered


def _rank_paths(found: Sequence[FoundPath], own: Mapping[int, float]) -> list[FoundPath]:
    """The few paths with the most flow that touch what the passage is about, in their end, their start or between.

    The score of a path is its flow by the weight of where it starts.
    """
    flows = [(path.score * max(own.get(node, 0.0) for node in path.nodes), path) for path in found]
    best = sorted((-flow, place) for place, (flow, _) in enumerate(flows) if flow > 0.0)[:LOOKED_AT]
    return [flows[place][1] for _, place in best]
