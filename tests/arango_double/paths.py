"""SHORTEST_PATH, K_SHORTEST_PATHS, K_PATHS and ALL_SHORTEST_PATHS."""

import heapq
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.arango_double import syntax
from tests.arango_double.evaluate import Compiler
from tests.arango_double.graph_access import GraphAccess, depth_range, vertex_reader, weigher
from tests.arango_double.indexes import Document
from tests.arango_double.options import PATH_OPTIONS, read_options
from tests.arango_double.syntax import Statement
from tests.arango_double.usage import used_names, used_parts
from tests.arango_double.values import Row, normal

Stage = Callable[[Iterator[Row], Row], Iterator[Row]]


class _Path(NamedTuple):
    weight: float
    vertices: tuple[str, ...]
    edges: tuple[Document, ...]


def paths_stage(compiler: Compiler, node: syntax.Paths, following: list[Statement]) -> Stage:
    """Rows for every path (or, for SHORTEST_PATH, for every vertex on the path)."""
    context = compiler.context
    options = read_options(context, node.kind, node.options, PATH_OPTIONS)
    low, high = depth_range(context, node.depth)
    access = GraphAccess(compiler, node.subject, node.direction, {})
    start = vertex_reader(compiler, node.start, node.kind)
    target = vertex_reader(compiler, node.target, node.kind)
    shows_vertex = node.variables[0] in used_names(following)
    parts = used_parts(node.variables[0], following)
    weighted = node.kind in ("SHORTEST_PATH", "K_SHORTEST_PATHS")
    weigh = (weigher(options) if weighted else None) or (lambda edge: 1)

    def find(first: str, last: str) -> Iterator[_Path]:
        if node.kind == "K_PATHS":
            return _by_length(compiler, access, first, last, low, high)
        found = _cheapest(compiler, access, first, last, weigh)
        return _only_shortest(found) if node.kind == "ALL_SHORTEST_PATHS" else found

    def stage(rows: Iterator[Row], base: Row) -> Iterator[Row]:
        for row in rows:
            first, last = start(row), target(row)
            if first is None or last is None:
                continue
            if node.kind == "SHORTEST_PATH":
                path = next(find(first, last), None)
                if path is not None:
                    yield from _along(node, access if shows_vertex else None, row, path)
                continue
            for path in find(first, last):
                yield {**row, node.variables[0]: _shown(node.kind, access, path, parts)}

    return stage


def _along(node: syntax.Paths, access: GraphAccess | None, row: Row, path: _Path) -> Iterator[Row]:
    edges: list[Document | None] = [None, *path.edges]
    for vertex, edge in zip(path.vertices, edges, strict=True):
        made = {**row, node.variables[0]: access.vertex(vertex) if access is not None else None}
        if len(node.variables) > 1:
            made[node.variables[1]] = edge
        yield made


def _shown(kind: str, access: GraphAccess, path: _Path, parts: frozenset[str]) -> Row:
    shown: Row = {}
    if "vertices" in parts:
        shown["vertices"] = [access.vertex(vertex) for vertex in path.vertices]
    if "edges" in parts:
        shown["edges"] = list(path.edges)
    if kind == "K_SHORTEST_PATHS":
        shown["weight"] = normal(path.weight)
    return shown


def _cheapest(
    compiler: Compiler, access: GraphAccess, first: str, last: str, weigh: Callable[[Document], float]
) -> Iterator[_Path]:
    """Loopless paths by increasing weight: best first, guided by the exact distance to the target."""
    distance = _distances(compiler, access, last, weigh)
    if first not in distance:
        return
    count = 0
    heap: list[tuple[float, int, _Path]] = [(distance[first], count, _Path(0, (first,), ()))]
    while heap:
        compiler.context.check()
        _, _, path = heapq.heappop(heap)
        if path.vertices[-1] == last:
            yield path
            continue
        for edge, vertex in access.neighbours(path.vertices[-1]):
            if vertex in path.vertices or vertex not in distance:
                continue
            count += 1
            longer = _Path(path.weight + weigh(edge), (*path.vertices, vertex), (*path.edges, edge))
            heapq.heappush(heap, (longer.weight + distance[vertex], count, longer))


def _distances(
    compiler: Compiler, access: GraphAccess, last: str, weigh: Callable[[Document], float]
) -> dict[str, float]:
    """Cost from every vertex that can reach `last`, by Dijkstra against the direction of the edges."""
    done: dict[str, float] = {}
    heap: list[tuple[float, str]] = [(0, last)]
    while heap:
        compiler.context.check()
        cost, vertex = heapq.heappop(heap)
        if vertex in done:
            continue
        done[vertex] = cost
        for edge, before in access.neighbours(vertex, backwards=True):
            if before not in done:
                heapq.heappush(heap, (cost + weigh(edge), before))
    return done


def _only_shortest(paths: Iterator[_Path]) -> Iterator[_Path]:
    best: float | None = None
    for path in paths:
        best = path.weight if best is None else best
        if path.weight > best:
            return
        yield path


def _by_length(compiler: Compiler, access: GraphAccess, first: str, last: str, low: int, high: int) -> Iterator[_Path]:
    """Loopless paths of low..high edges, shorter ones first."""
    level = [_Path(0, (first,), ())]
    for length in range(high + 1):
        longer: list[_Path] = []
        for path in level:
            compiler.context.check()
            if path.vertices[-1] == last:
                if length >= low:
                    yield path
                continue
            for edge, vertex in access.neighbours(path.vertices[-1]):
                if length < high and vertex not in path.vertices:
                    longer.append(_Path(0, (*path.vertices, vertex), (*path.edges, edge)))
        level = longer
