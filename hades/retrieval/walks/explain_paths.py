"""The path that explains each of the first passages: from what the question names to what the passage is about.

Flow runs from the entities that the question names (of the best passage where it names none) to the entities of the
ranked passages, over relations only, at most `hops` edges, and is pruned where it runs thin (`flow.py`). The most
reliable path with an edge that the passage states explains it; where no such path is among the first few, the most
reliable one that touches it does. A passage of code is about the function or class that it holds. A path may explain
several passages; it is returned once, with the rank of the best of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hades.ports.graph import Passage
from hades.retrieval.ranking.relevance import DESCRIBES, MENTIONS, OUT
from hades.retrieval.ranking.word_overlap import short_title
from hades.retrieval.turn.types import EXPLAIN, FoundPassage, FoundPath, Question, Seed
from hades.retrieval.walks.flow import FlowRules, spread_flow

if TYPE_CHECKING:
    from hades.retrieval.turn.metered_view import MeteredView

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


@dataclass(frozen=True)
class PassagePaths:
    """Paths in the order of the passages that they explain; for each passage its path, or why it has none."""

    paths: tuple[FoundPath, ...] = ()
    path_of: tuple[int | None, ...] = ()
    missing: tuple[str, ...] = ()

    def mark(self, passages: Sequence[FoundPassage]) -> list[FoundPassage]:
        """The passages with the path that leads to each, or with the reason why none does."""
        marked = list(passages)
        for place, (number, reason) in enumerate(zip(self.path_of, self.missing, strict=True)):
            edges = () if number is None else self.paths[number].edges
            marked[place] = replace(marked[place], explained_by=edges, no_path=reason)
        looked = len(self.path_of)
        return [*marked[:looked], *(replace(one, no_path=BEHIND.format(first=looked)) for one in marked[looked:])]


def explain_passages(
    view: MeteredView,
    question: Question,
    sources: Sequence[Seed],
    passages: Sequence[FoundPassage],
    read: Sequence[Passage],
    rules: FlowRules,
) -> PassagePaths:
    """For each of the passages, best first, the most reliable path to it; `read` are their texts."""
    ends, held = _ends(view, question, passages, read)
    starts = _starts(sources, ends, held)
    targets = sorted({node for own in ends for node in own})
    if view.turn.expired():
        return PassagePaths((), (None,) * len(passages), (NO_TIME,) * len(passages))
    if not starts or not targets:
        return PassagePaths((), (None,) * len(passages), tuple(NO_START if own else NO_NAME for own in ends))
    found = spread_flow(view, question, starts, np.array(targets, np.int64), rules)
    best_paths = _choose_paths(view, found, ends, read)
    hops = "one edge" if rules.hops == 1 else f"at most {rules.hops} edges"
    chosen: dict[frozenset[int], int] = {}
    paths: list[FoundPath] = []
    path_of: list[int | None] = []
    missing: list[str] = []
    for rank, (passage, own, best) in enumerate(zip(passages, ends, best_paths, strict=True), 1):
        if best is None:
            path_of.append(None)
            missing.append(NO_WAY.format(hops=hops) if own else NO_NAME)
            continue
        key = frozenset(best.edges)
        if key not in chosen:
            chosen[key] = len(paths)
            paths.append(replace(best, score=passage.score, origin=EXPLAIN, why=f"leads to passage {rank}; {best.why}"))
        path_of.append(chosen[key])
        missing.append("")
    return PassagePaths(tuple(paths), tuple(path_of), tuple(missing))


def _ends(
    view: MeteredView, question: Question, passages: Sequence[FoundPassage], read: Sequence[Passage]
) -> tuple[list[dict[int, float]], list[set[int]]]:
    """For each passage the entities that it names, with what a path counts that touches them; and what code it holds.

    The module of a piece of code says nothing of it: every other piece of the file names it too.
    """
    nodes = np.array([one.node for one in passages[: len(read)]], np.int64)
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
    for own, functions in zip(ends[:NEXT_STEPS], held, strict=False):
        for node in functions or [node for node, voice in own.items() if voice > 1.0] or list(own)[:1]:
            starts.setdefault(node, Seed(node, NEXT_VOICE, {"passage": own[node]}))
    for own, functions in zip(ends, held, strict=True):
        for node in functions:
            starts.setdefault(node, Seed(node, NEXT_VOICE, {"passage": own[node]}))
    return list(starts.values())


def _choose_paths(
    view: MeteredView, found: Sequence[FoundPath], ends: Sequence[Mapping[int, float]], read: Sequence[Passage]
) -> list[FoundPath | None]:
    """For each passage the best path that it states an edge of, else the best one that touches it; None without one."""
    ranked = [_rank_paths(found, own) for own in ends]
    edges = dict.fromkeys(edge for paths in ranked for path in paths for edge in path.edges)
    handles = np.array(list(edges)[: view.turn.reads_left // READS_SHARE], np.int64)
    facts = view.edges(handles) if len(handles) else []
    stated_in = {handle: one.document_id for handle, one in zip(handles.tolist(), facts, strict=False)}
    chosen: list[FoundPath | None] = []
    for place, paths in enumerate(ranked):
        document = read[place].document_id if place < len(read) else ""
        stated = (path for path in paths if any(stated_in.get(edge) == document for edge in path.edges))
        chosen.append(next(stated, paths[0] if paths else None) if document else None)
    return chosen


def _rank_paths(found: Sequence[FoundPath], own: Mapping[int, float]) -> list[FoundPath]:
    """The few paths with the most flow that touch what the passage is about, in their end, their start or between.

    The score of a path is its flow by the weight of where it starts.
    """
    flows = [(path.score * max(own.get(node, 0.0) for node in path.nodes), path) for path in found]
    best = sorted((-flow, place) for place, (flow, _) in enumerate(flows) if flow > 0.0)[:LOOKED_AT]
    return [flows[place][1] for _, place in best]
