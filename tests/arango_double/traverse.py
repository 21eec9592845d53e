"""Graph traversals: depth first, breadth first and by cost, with uniqueness, PRUNE and depth bounds."""

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.arango_double import syntax
from tests.arango_double.errors import aql_error
from tests.arango_double.evaluate import Compiler, Evaluator
from tests.arango_double.graph_access import GraphAccess, depth_range, vertex_reader, weigher
from tests.arango_double.indexes import Document
from tests.arango_double.options import TRAVERSAL_OPTIONS, read_options
from tests.arango_double.paths import paths_stage
from tests.arango_double.syntax import Node, Statement
from tests.arango_double.usage import used_names, used_parts
from tests.arango_double.values import Row, Value, normal, truthy

__all__ = ["paths_stage", "traversal_stage"]

Stage = Callable[[Iterator[Row], Row], Iterator[Row]]


@dataclass(slots=True, eq=False)
class _Step:
    """The end of a path; `parent` leads back to the start."""

    vertex: str
    edge: Document | None
    parent: "_Step | None"
    depth: int
    weight: float

    def chain(self) -> "list[_Step]":
        steps: list[_Step] = []
        step: _Step | None = self
        while step is not None:
            steps.append(step)
            step = step.parent
        return steps[::-1]


@dataclass(frozen=True, slots=True)
class _Plan:
    names: frozenset[str]
    parts: frozenset[str]
    low: int
    high: int
    order: str
    unique_vertices: str
    unique_edges: str
    weigh: Callable[[Document], float] | None


def traversal_stage(compiler: Compiler, node: syntax.Traversal, following: list[Statement]) -> Stage:
    """One row per visited path end, in the order the options ask for."""
    context = compiler.context
    options = read_options(context, "TRAVERSAL", node.options, TRAVERSAL_OPTIONS)
    plan = _plan(compiler, node, options, following)
    access = GraphAccess(compiler, node.subject, node.direction, options)
    start = vertex_reader(compiler, node.start, "traversal")
    prune = compiler.compile(node.prune) if node.prune is not None else None

    def stage(rows: Iterator[Row], base: Row) -> Iterator[Row]:
        for row in rows:
            first = start(row)
            if first is not None:
                yield from _visit(compiler, node, plan, access, prune, row, first)

    return stage


def _plan(compiler: Compiler, node: syntax.Traversal, options: dict[str, Value], following: list[Statement]) -> _Plan:
    low, high = depth_range(compiler.context, node.depth)
    order = options.get("order") or ("bfs" if options.get("bfs") else "dfs")
    vertices = options.get("uniqueVertices", "none")
    edges = options.get("uniqueEdges", "path")
    if vertices == "global" and order == "dfs":
        aql_error(10, "uniqueVertices: 'global' is only supported, with mode: bfs | weighted", "planning")
    if edges == "global":
        aql_error(10, "uniqueEdges: 'global' is not supported, use 'path' or 'none' instead", "planning")
    readers: list[Node] = [*following, *([node.prune] if node.prune is not None else [])]
    parts = used_parts(node.variables[2], readers) if len(node.variables) > 2 else frozenset()
    weigh = weigher(options) if order == "weighted" else None
    return _Plan(frozenset(used_names(readers)), parts, low, high, order, vertices, edges, weigh)


def _visit(
    compiler: Compiler,
    node: syntax.Traversal,
    plan: _Plan,
    access: GraphAccess,
    prune: Evaluator | None,
    row: Row,
    first: str,
) -> Iterator[Row]:
    context = compiler.context
    frontier = _FRONTIERS[plan.order]()
    frontier.push([_Step(first, None, None, 0, 0)])
    visited: set[str] = set()
    while (step := frontier.pop()) is not None:
        context.check()
        if plan.unique_vertices == "global":
            if step.vertex in visited:
                continue
            visited.add(step.vertex)
        made: Row | None = None
        pruned = False
        if prune is not None:
            made = _row(node, plan, access, row, step)
            condition = prune(made)
            pruned = truthy(condition)
            if node.prune_variable is not None:
                made[node.prune_variable] = condition
        if step.depth >= plan.low:
            yield made if made is not None else _row(node, plan, access, row, step)
        if step.depth < plan.high and not pruned:
            frontier.push(list(_expand(plan, access, step)))


def _expand(plan: _Plan, access: GraphAccess, step: _Step) -> Iterator[_Step]:
    for edge, target in access.neighbours(step.vertex):
        if not access.allows(target) or _repeats(plan, step, edge, target):
            continue
        cost = plan.weigh(edge) if plan.weigh is not None else 1
        yield _Step(target, edge, step, step.depth + 1, step.weight + cost)


def _repeats(plan: _Plan, step: _Step, edge: Document, target: str) -> bool:
    ancestor: _Step | None = step
    while ancestor is not None:
        if plan.unique_vertices == "path" and ancestor.vertex == target:
            return True
        if plan.unique_edges == "path" and ancestor.edge is not None and ancestor.edge["_id"] == edge["_id"]:
            return True
        ancestor = ancestor.parent
    return False


def _row(node: syntax.Traversal, plan: _Plan, access: GraphAccess, row: Row, step: _Step) -> Row:
    """The row for one visited vertex; what no one reads is not loaded, so it cannot warn about dangling edges."""
    made = {**row, node.variables[0]: access.vertex(step.vertex) if node.variables[0] in plan.names else None}
    if len(node.variables) > 1:
        made[node.variables[1]] = step.edge
    if len(node.variables) > 2:
        made[node.variables[2]] = _path(plan, access, step.chain()) if plan.parts else None
    return made


def _path(plan: _Plan, access: GraphAccess, chain: list[_Step]) -> Row:
    path: Row = {}
    if "vertices" in plan.parts:
        path["vertices"] = [access.vertex(item.vertex) for item in chain]
    if "edges" in plan.parts:
        path["edges"] = [item.edge for item in chain if item.edge is not None]
    if plan.order == "weighted" and "weights" in plan.parts:
        path["weights"] = [normal(item.weight) for item in chain]
    return path


class _Stack:
    """Depth first."""

    def __init__(self) -> None:
        self._steps: list[_Step] = []

    def push(self, steps: list[_Step]) -> None:
        self._steps.extend(reversed(steps))

    def pop(self) -> _Step | None:
        return self._steps.pop() if self._steps else None


class _Queue:
    """Breadth first."""

    def __init__(self) -> None:
        self._steps: deque[_Step] = deque()

    def push(self, steps: list[_Step]) -> None:
        self._steps.extend(steps)

    def pop(self) -> _Step | None:
        return self._steps.popleft() if self._steps else None


class _Heap:
    """Cheapest path first."""

    def __init__(self) -> None:
        self._steps: list[tuple[float, int, _Step]] = []
        self._count = 0

    def push(self, steps: list[_Step]) -> None:
        for step in steps:
            self._count += 1
            heapq.heappush(self._steps, (step.weight, self._count, step))

    def pop(self) -> _Step | None:
        return heapq.heappop(self._steps)[2] if self._steps else None


_FRONTIERS: dict[str, type[_Stack] | type[_Queue] | type[_Heap]] = {"dfs": _Stack, "bfs": _Queue, "weighted": _Heap}
