"""A child that is stopped when it takes too much, and replaced."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hades.errors import HadesError
from hades.ingest.sources.confined import ConfinedPool, ParserStopped, in_order

PARSE = "hades.ingest.parsers.python:parse"


def test_answers_come_back_and_a_stopped_child_is_replaced() -> None:
    slow = "x = f'''" + "{a}\n" * 60_000 + "'''"
    with ConfinedPool(PARSE) as child:
        assert child.call("x = 1", "a.py", "python", "a", cpu_seconds=5).module == "a"
        with pytest.raises(ParserStopped, match=r"more than 0\.2 s"):
            child.call(slow, "a.py", "python", "a", cpu_seconds=0.2)
        assert child.call("y = 1", "b.py", "python", "b", cpu_seconds=5).module == "b"


def test_memory_is_bounded() -> None:
    with ConfinedPool("builtins:bytearray") as child:
        assert child.call(10, cpu_seconds=5) == bytearray(10)
        with pytest.raises(ParserStopped, match="MiB of memory"):
            child.call(2 << 30, cpu_seconds=5)


def test_a_crash_is_contained() -> None:
    with ConfinedPool("os:abort") as child, pytest.raises(ParserStopped, match="crashed"):
        child.call(cpu_seconds=5)


def test_what_a_parser_prints_is_not_taken_for_an_answer() -> None:
    with ConfinedPool("builtins:print") as child:
        assert child.call("noise" * 1000, cpu_seconds=5) is None


def test_a_child_that_cannot_start_says_so_once() -> None:
    with (
        ConfinedPool("hades.ingest.sources.no_such_module:f") as child,
        pytest.raises(HadesError, match="did not start"),
    ):
        child.call(cpu_seconds=5)


def test_a_child_loads_no_schema() -> None:
    code = (
        f"import sys, {PARSE.partition(':')[0]}, hades.ingest.formats.registry; print(*sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert not {"pydantic", "pyarrow", "numpy", "schemas"} & set(loaded)


def test_several_children_answer_in_the_order_of_the_questions() -> None:
    with ConfinedPool("builtins:abs", 2) as pool:
        assert list(
            in_order(lambda number: pool.call(number, cpu_seconds=5), range(-30, 0), 3)
        ) == list(range(30, 0, -1))
