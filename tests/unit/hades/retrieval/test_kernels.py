"""Kernels give the same numbers, interpreted and as machine code; a process that asks once loads no compiler."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hades.ports.graph import ALWAYS, Adjacency, Csr, Validity
from hades.retrieval.turn.recipes import GraphStep
from hades.retrieval.walks import compile_kernel, kept_machine_code, pagerank, push
from hades.retrieval.walks.flow_kernel import BOTH_WAYS, INWARDS, OUTWARDS, spread
from hades.retrieval.walks.joined_rows import push_joined
from hades.retrieval.walks.kept_machine_code import _folders
from hades.retrieval.walks.pagerank import personalized_pagerank
from schemas.intervals import Mask
from tests.patience import examples
from tests.unit.hades.retrieval.dated_corpus import published

TWO = """
import dataclasses
import sys
from hades.wiring import open_answers
answers = open_answers()
answers.tools = dataclasses.replace(answers.tools, clock=lambda: 0.0)
for _ in range(2):
    found = answers.retrieve("Ada Holm and Jan Brod", recipe="auto").model_dump(mode="json")
    print("numba" in sys.modules, found["paths"], found["passages"], found["telemetry"]["work"], found["reasons"])
"""


def graph_of(seed: int, nodes: int, edges: int, *, is_dated: bool) -> Adjacency:
    """A random graph with rows as a snapshot has them: heaviest first, read-only."""
    chance = np.random.default_rng(seed)
    source, target = chance.integers(0, nodes, (2, edges))
    weight = chance.choice(np.array([0.0, 0.25, 0.5, 1.0], np.float32), edges)
    kind = chance.integers(0, 3, edges).astype(np.uint8)

    def rows(near: Any, far: Any) -> Csr:
        order = np.lexsort((np.arange(edges), -weight, near))
        starts = np.searchsorted(near[order], np.arange(nodes + 1)).astype(np.int64)
        arrays = (starts, far[order].astype(np.int32), order.astype(np.int32), kind[order], weight[order])
        return Csr(*map(read_only, arrays))

    bounds = [chance.integers(0, 10, edges), chance.integers(5, 20, edges)] * 2
    validity = Validity(*(read_only(bound.astype(np.int64)) for bound in bounds)) if is_dated else None
    return Adjacency(rows(source, target), rows(target, source), validity)


def read_only(array: Any) -> Any:
    """The array as a snapshot gives it: machine code is kept by the types of its arrays."""
    array.setflags(write=False)
    return array


def both_ways(run: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """What a function gives interpreted, and as machine code."""
    wanted = compile_kernel.threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(compile_kernel, "_wanted", wanted)
        interpreted = run()
        wanted.set()
        return interpreted, run()


def same(first: Any, second: Any) -> bool:
    """Whether two records are equal, arrays element by element."""
    pairs = zip(dataclasses.astuple(first), dataclasses.astuple(second), strict=True)
    return all(np.array_equal(one, other) for one, other in pairs)


@pytest.mark.parametrize("is_dated", [False, True])
@settings(max_examples=examples(15), deadline=None)
@given(seed=st.integers(0, 10**6), nodes=st.integers(2, 40), work=st.sampled_from([1, 30, 10**6]))
def test_pagerank_is_the_same_interpreted_and_compiled(is_dated: bool, seed: int, nodes: int, work: int) -> None:
    graph = graph_of(seed, nodes, 4 * nodes, is_dated=is_dated)
    restart, weights = np.arange(min(3, nodes)), np.array([0.5, 0.3, 0.2])[: min(3, nodes)]
    patch = pytest.MonkeyPatch()
    first, second = both_ways(lambda: personalized_pagerank(graph, restart, weights, max_work=work, mask=Mask()), patch)
    assert same(first, second)


class Weighed:
    """As much of a view as a walk asks for."""

    type_names = ("cites", "extends", "PART_OF")

    def __init__(self, graph: Adjacency) -> None:
        self.graph = graph

    def adjacency(self) -> Adjacency:
        return self.graph


@settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 10**6),
    nodes=st.integers(2, 40),
    work=st.sampled_from([1, 10, 30, 100, 300, 10**6]),
    epsilon=st.sampled_from([1e-1, 1e-2, 1e-3, 1e-6]),
    relaxed=st.sampled_from([None, 1e-2]),
    edges=st.sampled_from([1, 4, 12]),  # of a node: some have none, and some stop in the middle of a long row
)
def test_pagerank_is_the_same_over_joined_rows(
    seed: int, nodes: int, work: int, epsilon: float, relaxed: float | None, edges: int
) -> None:
    graph: Any = Weighed(graph_of(seed, nodes, edges * nodes, is_dated=False))
    restart, weights = np.arange(min(3, nodes)), np.array([0.5, 0.3, 0.2])[: min(3, nodes)]
    factors = {"extends": 0.3, "PART_OF": 0.0}
    used: list[bool] = []

    def push(*given: Any, **more: Any) -> Any:
        found = push_joined(*given, **more)
        used.append(found is not None)
        return found

    patch = pytest.MonkeyPatch()
    patch.setattr(pagerank, "push_joined", push)
    first, second = both_ways(
        lambda: personalized_pagerank(
            graph, restart, weights, epsilon=epsilon, relaxed_epsilon=relaxed, max_work=work, factors=factors
        ),
        patch,
    )
    patch.undo()
    assert same(first, second)
    assert len(used) == 1  # machine code joins, the interpreter does not
    assert used[0] or work < 10**6


@pytest.mark.parametrize("ways", [BOTH_WAYS, OUTWARDS, INWARDS])
@settings(max_examples=examples(15), deadline=None)
@given(
    seed=st.integers(0, 10**6),
    nodes=st.integers(3, 40),
    work=st.sampled_from([5, 10**6]),
    moment=st.sampled_from([int(ALWAYS), 7]),
    splits=st.booleans(),
)
def test_flow_is_the_same_interpreted_and_compiled(
    ways: int, seed: int, nodes: int, work: int, moment: int, splits: bool
) -> None:
    graph = graph_of(seed, nodes, 5 * nodes, is_dated=True)
    sources, targets = np.array([0, 1]), np.array([0, 1, nodes - 1])
    first, second = both_ways(
        lambda: spread(
            graph, sources, np.array([1.0, 0.5]), targets, gains=np.array([1.0, 0.5, 0.0]), ways=ways, within=None,
            moments=(moment, int(ALWAYS)), alpha=0.8, theta=0.001, max_hops=3, splits=splits, max_work=work,
            slice_work=10**6,
        ),
        pytest.MonkeyPatch(),
    )  # fmt: skip
    assert same(first, second)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    place = tmp_path_factory.mktemp("kernels")
    published(place)
    return place


def test_the_first_question_loads_no_compiler_and_the_second_answers_the_same_with_it(home):
    environment = {**os.environ, "HADES_HOME": str(home), "HADES_EMBEDDER": "hashing"}
    program = [sys.executable, "-c", TWO]
    done = subprocess.run(program, cwd=home, env=environment, capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert (first.split()[0], second.split()[0]) == ("False", "True")
    assert first.split(maxsplit=1)[1] == second.split(maxsplit=1)[1]
    assert "timeout" not in first


def test_a_service_walks_by_machine_code_from_its_first_question(home):
    program = (
        "import sys; from hades.retrieval.walks.compile_kernel import want_machine_code; want_machine_code()\n" + TWO
    )
    environment = {**os.environ, "HADES_HOME": str(home), "HADES_EMBEDDER": "hashing"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=home, env=environment, capture_output=True, text=True, check=True
    )
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["True", "True"]


def test_steps_without_a_walk_leave_the_first_question_to_those_that_walk():
    program = "from hades.retrieval.turn import warm_up; from tests.unit.hades.retrieval.test_kernels import graph_of\n"
    program += "graph = graph_of(1, 5, 9, is_dated=False)\n"
    program += f"warm_up.make_ready(warm_up.GraphStep({str(GraphStep.BEAM)!r}), graph)\n"
    program += f"warm_up.make_ready(warm_up.GraphStep({str(GraphStep.FLOW)!r}), graph)\n"
    program += "from hades.retrieval.walks.compile_kernel import is_interpreted; print(is_interpreted())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"]


@pytest.mark.parametrize(("nodes", "is_loaded"), [(50, "False"), (5_000, "True")])
def test_a_second_search_of_a_graph_that_is_not_small_loads_machine_code_whatever_its_step(nodes, is_loaded):
    program = "from hades.retrieval.turn import warm_up; from tests.unit.hades.retrieval.test_kernels import graph_of\n"
    program += f"graph = graph_of(1, {nodes}, 9, is_dated=False); step = warm_up.GraphStep({str(GraphStep.BEAM)!r})\n"
    program += "import sys; loaded = set(sys.modules); assert 'numba' not in loaded\n"
    program += "warm_up.make_ready(step, graph); first = warm_up.is_interpreted(); warm_up.make_ready(step, graph)\n"
    program += "print(first, not warm_up.is_interpreted())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", is_loaded]


@pytest.fixture(scope="module")
def kept_in(tmp_path_factory):
    """A folder with the machine code of the push, and nothing else to read any from."""
    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_machine_code, "_folders", lambda function: (folder / "missing", folder))
        (folder / "missing").write_text("a file, so that no folder can be made here")
        push.write_code(graph_of(1, 3, 4, is_dated=False))
        yield folder


@pytest.mark.parametrize("is_dated", [False, True])
@settings(max_examples=examples(20), deadline=None)
@given(seed=st.integers(0, 10_000), max_work=st.sampled_from([0, 1, 40, 100_000]), known_at=st.sampled_from([None, 7]))
def test_kept_machine_code_pushes_as_the_interpreter_does(kept_in, is_dated, seed, max_work, known_at):
    graph = graph_of(seed, 60, 240, is_dated=is_dated)
    moments = (ALWAYS, ALWAYS if known_at is None else known_at)
    restart, weights = np.array([3, 17, 40]), np.array([0.5, 0.3, 0.2])
    kernel = push._push
    found = []
    for call in (kernel.interpret, kept_machine_code.read_code(kernel._function)):
        with push.Walk(graph, restart, weights, factors=np.array([1.0, 0.0, 2.0]), moments=moments) as walk:
            arguments = walk.arguments(1e-4, 0.5, max_work)
            found.append((call(*arguments), [array.tobytes() for array in arguments if isinstance(array, np.ndarray)]))
    assert found[0] == found[1]


def test_a_process_that_asks_once_pushes_by_kept_machine_code_over_a_graph_that_is_not_small(kept_in):
    program = "import pathlib, sys; from hades.retrieval.turn import warm_up; from hades.retrieval.walks import push\n"
    program += "from hades.retrieval.walks import kept_machine_code\n"
    program += "from tests.unit.hades.retrieval.test_kernels import graph_of\n"
    program += f"kept_machine_code._folders = lambda function: (pathlib.Path({str(kept_in)!r}),)\n"
    program += f"step = warm_up.GraphStep({str(GraphStep.PAGERANK)!r}); loaded = lambda: push._push._kept is not None\n"
    program += "warm_up.make_ready(step, graph_of(1, int(sys.argv[1]), 9, is_dated=False))\n"
    program += "print(loaded(), 'numba' in sys.modules, 'llvmlite' in sys.modules)"
    for nodes, expected in ((50, "False False False"), (5_000, "True False True")):
        done = subprocess.run([sys.executable, "-c", program, str(nodes)], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == expected


def test_kept_machine_code_that_is_damaged_or_of_another_text_is_not_loaded(kept_in, tmp_path, monkeypatch):
    (path,) = kept_in.glob("*.machine-code")
    function = push._push._function
    assert kept_machine_code.read_code(function) is not None
    monkeypatch.setattr(kept_machine_code, "_folders", lambda function: (tmp_path,))
    assert kept_machine_code.read_code(function) is None
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    (tmp_path / path.name).write_bytes(content)
    assert kept_machine_code.read_code(function) is None
    (tmp_path / path.name).rename(tmp_path / f"{function.__name__}-0123456789abcdef.machine-code")
    assert kept_machine_code.read_code(function) is None


def test_kept_machine_code_leaves_arguments_of_other_types_to_the_interpreter(kept_in):
    graph = graph_of(1, 60, 240, is_dated=False)
    with push.Walk(graph, np.array([3]), np.ones(1), factors=np.ones(3)) as walk:
        arguments = list(walk.arguments(1e-4, 0.5, 100))
        call = kept_machine_code.read_code(push._push._function)
        arguments[1] = arguments[1].astype(np.int64)
        assert call(*arguments) is None
        assert call(*walk.arguments(1e-4, 0.5, 100)) is False


def test_a_user_without_a_folder_reads_machine_code_beside_the_module_alone(monkeypatch):
    function = push._push._function
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    (beside,) = _folders(function)
    assert beside.parent.name == "walks"
