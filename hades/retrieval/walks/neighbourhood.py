"""What surrounds a node; subgraph; compare; explain a passage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from hades.budget import Caps, Turn
from hades.errors import HadesError
from hades.ports.graph import CHUNK, KINDS, EdgeFacts, Kind, NodeFacts, Passage
from hades.ports.store import Direction, GraphStore, scan_rows
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import EXPLAIN, FoundPassage, FoundPath, Question, Seed
from hades.retrieval.core.words import ANY, DESCRIBES, MENTIONS, OUT, PATH_TYPES, short_title
from hades.retrieval.walks.flow import JOINED, Continuations, FlowRules, spread_flow
from hades.snapshot.remote import OpenView, RemoteView
from hades.snapshot.view import GraphView
from schemas.ids import Mask, iso
from schemas.plan import Reason

_FANOUT = 32
_DECAY = 0.5  # what is left of a weight after each hop
_MAX_NODES = 2000


def neighbourhood(
    view: MeteredView,
    question: Question,
    seeds: Sequence[Seed],
    *,
    limit: int,
    hops: int = 2,
) -> tuple[FoundPassage, ...]:
    """The baseline of path search (GraphRAG): chunks within `hops` steps of the seeds over
    relations and mentions.

    A chunk gets, over every edge that reaches it, the edge's weight times what its near end holds.
    """
    masses_by_node = {seed.node: seed.score for seed in sorted(seeds, key=lambda seed: seed.node)}
    total = dict(masses_by_node)

    for _ in range(hops):
        if not masses_by_node or view.turn.expired():
            break

        nodes = np.array(
            sorted(
                masses_by_node,
                key=lambda node: (-masses_by_node[node], node),
            ),
            np.int64,
        )
        if len(nodes) > _MAX_NODES:
            view.turn.trimmed(Reason.CAP_EXCEEDED)
            nodes = nodes[:_MAX_NODES]

        expansion = view.expand(
            nodes,
            direction=ANY,
            types=(*PATH_TYPES, MENTIONS),
            fanout=_FANOUT,
            mask=question.mask,
        )
        masses = np.array([masses_by_node[node] for node in nodes.tolist()], np.float64)
        reached, place = np.unique(expansion.target, return_inverse=True)
        passed_on = np.bincount(
            place,
            masses[expansion.row] * expansion.weight * _DECAY,
            len(reached),
        )
        masses_by_node = dict(zip(reached.tolist(), passed_on.tolist(), strict=True))

        for node, weight in masses_by_node.items():
            total[node] = total.get(node, 0.0) + weight

    numbers = np.array(sorted(total), np.int64)
    if len(numbers):
        chunks = numbers[view.kinds(numbers) == CHUNK]
    else:
        chunks = numbers

    best = sorted(chunks.tolist(), key=lambda node: (-total[node], node))[:limit]
    return tuple(
        FoundPassage(
            node,
            total[node],
            {"graph": total[node]},
        )
        for node in best
    )


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
    """Everything the graph says about one node: facts, degrees, its topic, its text where it has
    one.
    """
    number = _numbers(view, [identifier])
    facts = view.nodes(number)[0]
    kind = KINDS[int(view.kinds(number)[0])]
    topic = view.clusters_of(number)
    degree_out = int(view.degree(number, direction=Direction.OUT)[0])
    degree_in = int(view.degree(number, direction=Direction.IN)[0])
    shown = as_json(facts)
    shown["degree"] = {"out": degree_out, "in": degree_in}
    shown["topic"] = view.ids(topic)[0] if topic[0] >= 0 else None
    shown["snapshot"] = view.info.snapshot

    if kind in _WITH_TEXT:
        passage = view.passages(number)[0]
        shown |= {
            "text": passage.text,
            "title": passage.title,
            "headings": list(passage.headings),
        }

    return shown


def subgraph(
    view: GraphView,
    identifiers: Sequence[str],
    reach: Reach,
    mask: Mask = Mask(),
) -> dict[str, Any]:
    """The nodes and edges within reach, heaviest first; `capped` says that there was more."""
    turn = Turn(Caps(reach.nodes + reach.edges, MAX_WORK, MAX_MS))
    metered = MeteredView(view, turn, mask=mask)
    start = _numbers(view, identifiers)
    depth = dict.fromkeys(start.tolist(), 0)
    handles: dict[int, None] = {}
    frontier = start
    capped = False

    for hop in range(1, reach.hops + 1):
        if not len(frontier) or turn.expired():
            break

        expansion = metered.expand(
            frontier,
            direction=reach.direction,
            types=reach.types,
            fanout=reach.fanout,
            mask=mask,
        )
        capped = capped or expansion.capped

        fresh: list[int] = []
        for target, edge in zip(expansion.target.tolist(), expansion.edge.tolist(), strict=True):
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
    nodes_shown = [
        as_json(facts) | {"depth": hop} for facts, hop in zip(nodes, depth.values(), strict=False)
    ]
    spent = {
        "reads": turn.reads_spent,
        "work": turn.work_spent,
        "ms": round(turn.ms, 3),
    }
    return {
        "snapshot": view.info.snapshot,
        "nodes": nodes_shown,
        "edges": [as_json(edge) for edge in edges],
        "capped": capped or turn.expired() or len(nodes) < len(depth),
        "spent": spent,
    }


def topics_shown(
    store: GraphStore,
    view: OpenView,
    limit: int,
) -> dict[str, Any]:
    """Super-topics and topics that the view has, largest first; a remote graph is the store
    itself.
    """
    rows = list(scan_rows(store, "clusters", columns=_TOPIC_COLUMNS))
    if not isinstance(view, RemoteView):
        numbers = view.number([f"clusters/{row['_key']}" for row in rows]).tolist()
        rows = [row for row, number in zip(rows, numbers, strict=True) if number >= 0]

    topics = []
    for row in rows:
        topics.append(
            {
                "id": f"clusters/{row.pop('_key')}",
                **row,
                "parent": f"clusters/{row['parent']}" if row["parent"] else None,
            }
        )

    topics.sort(key=lambda topic: (-topic["level"], -topic["size"], topic["id"]))
    return {
        "snapshot": view.info.snapshot,
        "topics": topics[:limit],
        "total": len(topics),
    }


_NODE = ("id", "kind", "name", "type", "summary", "document", "span", "domain")
_EDGE = ("type", "label", "weight", "snippet", "document", "span")
_INTERVALS = ("valid_from", "valid_until", "recorded_at", "retracted_at")


def as_json(facts: NodeFacts | EdgeFacts) -> dict[str, Any]:
    """A node as callers see it; an edge with where it was read and both its intervals."""
    span = None if facts.span is None else list(facts.span)
    if isinstance(facts, NodeFacts):
        shown = {name: getattr(facts, name) for name in _NODE}
        return shown | {"kind": str(facts.kind), "span": span}

    shown = {
        "id": facts.id,
        "from": facts.source,
        "to": facts.target,
    }
    shown |= {name: getattr(facts, name) for name in _EDGE}
    shown["span"] = span

    for name in _INTERVALS:
        moment = getattr(facts, name)
        shown[name] = None if moment is None else iso(moment)

    return shown


def _numbers(
    view: GraphView,
    identifiers: Sequence[str],
) -> np.ndarray[Any, np.dtype[np.int64]]:
    distinct = list(dict.fromkeys(identifiers))
    numbers = view.number(distinct)
    for identifier, number in zip(distinct, numbers.tolist(), strict=True):
        if number < 0:
            raise UnknownNode(
                f"{identifier!r} is not a node of snapshot {view.info.snapshot}; give an id such "
                "as entities/name"
            )

    return numbers


# The path that explains each of the first passages: from what the question names to what the
# passage is about. Flow runs from the entities that the question names (of the best passage where
# it names none) to the entities of the ranked passages, over relations only, at most `hops` edges,
# and is pruned where it runs thin (`flow.py`). The most reliable path with an edge that the passage
# states explains it. Where no such path is among the first few, the most reliable one that touches
# it is shown, and the passage says that it states none. A passage of code states what the function
# or class that it holds is part of. A path may explain several passages; it is returned once, with
# the rank of the best of them. Paths that join what the question names stand before these and take
# their room first.
NAMES = 24  # entities of a passage that a path may end in
# what the entity of its title, or the function that it holds, counts against one it mentions
TITLE_VOICE = 10.0
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


@dataclass(frozen=True)
class PassageEnds:
    """Where a path to a passage may end: the entities that it names, with what a path counts that
    touches them, and the functions or classes that it holds.
    """

    weights: dict[int, float] = field(default_factory=dict)
    functions: set[int] = field(default_factory=set)


class OfferedPaths(NamedTuple):
    """The paths that a passage states an edge of or holds a function of, and the others that touch
    it.
    """

    stated: list[FoundPath]
    touching: list[FoundPath]


def explain_passages(
    view: MeteredView,
    question: Question,
    sources: Sequence[Seed],
    passages: Sequence[FoundPassage],
    read_passages: Sequence[Passage],
    rules: FlowRules,
    most_starts: int | None = None,
    joining: Sequence[FoundPath] = (),
    least: int = 0,
) -> tuple[tuple[FoundPath, ...], list[FoundPassage]]:
    """The most reliable path to each of the passages that were read, best first. `read_passages`
    are the texts of the first. The paths in `joining` come before them; `least` asks for more paths
    of the same flow, where there are any.

    With the passages, each with the edges of the path that leads to it, or with the reason why none
    does.
    """
    first = passages[: len(read_passages)]
    ends = _passage_ends(view, question, first, read_passages)
    starts = _starts(sources, ends)[:most_starts]
    targets = sorted(set().union(*(passage_ends.weights for passage_ends in ends)))

    if rules.hops == 1:
        hops = "one edge"
    else:
        hops = f"at most {rules.hops} edges"

    not_read = BEHIND.format(first=len(first))
    further = [replace(passage, no_path=not_read) for passage in passages[len(read_passages) :]]
    if view.turn.expired():
        return (), [*(replace(passage, no_path=NO_TIME) for passage in first), *further]

    flow_paths: list[FoundPath] = []
    nowhere = NO_START
    if starts and targets:
        flow_paths = spread_flow(
            view,
            question,
            starts,
            rules,
            np.array(targets, np.int64),
        )
        nowhere = NO_WAY.format(hops=hops)

    offers = _offer_paths(view, flow_paths, ends, read_passages)
    room = Continuations(rules.fanout)
    paths = {frozenset(path.edges): path for path in joining if room.admit(path)}

    marked: list[FoundPassage] = []
    for rank, (passage, passage_ends, offered) in enumerate(
        zip(first, ends, offers, strict=True), 1
    ):
        joined = [path for path in offered.stated if frozenset(path.edges) in paths]
        choices = (*joined, *offered.stated, *offered.touching)
        best = next((path for path in choices if room.admit(path)), None)

        if best is None:
            reason = nowhere if passage_ends.weights else NO_NAME
            if choices:
                view.turn.trimmed(Reason.CAP_EXCEEDED)
                reason = NO_ROOM

            marked.append(replace(passage, no_path=reason))
            continue

        is_stated = best in offered.stated
        if is_stated:
            verb = "leads to"
        else:
            verb = "touches what is named in"

        why = f"{verb} passage {rank}; {best.why}"
        explanation = replace(
            best,
            score=passage.score,
            origin=EXPLAIN,
            why=why,
        )
        edges = frozenset(best.edges)
        shown = paths.setdefault(edges, explanation)

        if shown.joins_named and shown.origin != EXPLAIN:
            paths[edges] = replace(
                shown,
                origin=EXPLAIN,
                why=f"{JOINED}; {why}",
            )

        if is_stated:
            marked.append(replace(passage, explained_by=shown.edges))
        else:
            marked.append(replace(passage, no_path=NOT_STATED.format(hops=hops)))

    for path in flow_paths:
        if len(paths) < least and room.admit(path):
            paths.setdefault(frozenset(path.edges), path)

    return tuple(paths.values()), [*marked, *further]


def _passage_ends(
    view: MeteredView,
    question: Question,
    passages: Sequence[FoundPassage],
    read_passages: Sequence[Passage],
) -> list[PassageEnds]:
    """The ends of each passage.

    The module of a piece of code says nothing of it: every other piece of the file names it too.
    """
    if not passages:
        return []

    nodes = np.array([passage.node for passage in passages], np.int64)
    types = []
    for name in (MENTIONS, DESCRIBES):
        if name in view.type_names:
            types.append(name)

    expansion = view.expand(
        nodes,
        direction=OUT,
        types=types,
        fanout=NAMES,
        mask=question.mask,
    )
    if DESCRIBES in types:
        describes = view.type_names.index(DESCRIBES)
    else:
        describes = None

    matches = view.match_whole([short_title(passage.title) for passage in read_passages])
    title_entities = [set(numbers.tolist()) for numbers in matches]

    modules = []
    for passage in read_passages:
        modules.append(_module_entities(view, passage))

    ends = [PassageEnds() for _ in passages]
    columns = (expansion.row, expansion.target, expansion.weight, expansion.type)
    for row, target, weight, kind in zip(*(column.tolist() for column in columns), strict=True):
        if kind == describes:
            ends[row].functions.add(target)
        elif target in modules[row]:
            continue

        is_subject = kind == describes or target in title_entities[row]
        ends[row].weights[target] = (TITLE_VOICE if is_subject else 1.0) * min(1.0, weight)

    return ends


def _module_entities(view: MeteredView, passage: Passage) -> set[int]:
    """The entities that are called as the module of a piece of code, whole or without its first
    folders.
    """
    if not (passage.path and passage.lines):
        return set()

    name = passage.path.rpartition(".")[0].replace("/", ".")
    matches = view.match_names(name)
    return {
        node
        for node, end in zip(matches.numbers.tolist(), matches.ends.tolist(), strict=True)
        if end == len(name)
    }


def _starts(sources: Sequence[Seed], ends: Sequence[PassageEnds]) -> list[Seed]:
    """What the question names, then what the first passages are about: a second step starts where
    the first ended.

    Each function or class that a passage holds is a start: what joins it to another passage
    explains it.
    """
    starts = {seed.node: seed for seed in sources}
    for place, passage_ends in enumerate(ends):
        weights = passage_ends.weights
        nodes: Iterable[int] = passage_ends.functions
        if not nodes and place < NEXT_STEPS:
            subjects = [node for node, weight in weights.items() if weight > 1.0]
            nodes = subjects or list(weights)[:1]

        for node in nodes:
            starts.setdefault(node, Seed(node, NEXT_VOICE, {"passage": weights[node]}))

    return list(starts.values())


def _offer_paths(
    view: MeteredView,
    paths: Sequence[FoundPath],
    ends: Sequence[PassageEnds],
    read_passages: Sequence[Passage],
) -> list[OfferedPaths]:
    """The paths of each passage; some of their edges are read to learn which documents state
    them.
    """
    ranked = [_rank_paths(paths, passage_ends.weights) for passage_ends in ends]

    edges: dict[int, None] = {}
    for path in chain.from_iterable(ranked):
        edges |= dict.fromkeys(path.edges)

    handles = list(edges)[: view.turn.reads_left // READS_SHARE]
    if handles:
        facts = view.edges(np.array(handles, np.int64))
    else:
        facts = []

    stated_in = {}
    for handle, fact in zip(handles, facts, strict=False):
        stated_in[handle] = fact.document_id

    offers = [OfferedPaths([], []) for _ in ranked]
    for passage, passage_ends, near_paths, offered in zip(
        read_passages,
        ends,
        ranked,
        offers,
        strict=True,
    ):
        if not passage.document_id:
            continue

        for path in near_paths:
            is_stated = any(stated_in.get(edge) == passage.document_id for edge in path.edges)
            if is_stated or not passage_ends.functions.isdisjoint(path.nodes):
                offered.stated.append(path)
            else:
                offered.touching.append(path)

    return offers


def _rank_paths(
    paths: Sequence[FoundPath],
    entity_weights: Mapping[int, float],
) -> list[FoundPath]:
    """The few paths with the most flow that touch what the passage is about, in their end, their
    start or between.

    The score of a path is its flow by the weight of where it starts.
    """
    flows: list[tuple[float, FoundPath]] = []
    for path in paths:
        weight = max(entity_weights.get(node, 0.0) for node in path.nodes)
        if path.score * weight > 0.0:
            flows.append((path.score * weight, path))

    flows.sort(key=lambda pair: -pair[0])
    return [path for _, path in flows[:LOOKED_AT]]
