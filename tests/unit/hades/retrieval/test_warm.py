"""Loading compiled walks is no time of a turn: the first question of a process has its paths too."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hades.retrieval.turn import pipeline
from hades.retrieval.turn.recipes import GraphStep
from hades.telemetry import turn
from tests.unit.hades.retrieval.dated_corpus import answering, published

FIRST = """
import time
from hades.telemetry import turn
turn.read_clock = time.process_time
from hades.wiring import open_answers
found = open_answers().retrieve("Ada Holm and Jan Brod", recipe="{recipe}")
print(len(found.paths), [str(reason) for reason in found.reasons])
"""


STAGES = """
import sys
from hades.telemetry.turn import Turn, watched
from hades.wiring import open_answers
known, late = set(), {{}}
def compare(stage):
    new = {{name for name in set(sys.modules) - known if name.split(".")[0] in ("hades", "models", "tokenizers")}}
    late.update({{stage.name: sorted(new)}} if new else {{}})
    known.update(sys.modules)
with watched(compare), open_answers() as answers:
    stage = Turn.stage
    def begin(turn, *given):
        if not turn.stages:
            known.update(sys.modules)
        return stage(turn, *given)
    Turn.stage = begin
    answers.retrieve("Ada Holm and Jan Brod", recipe="{recipe}")
print(late)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    place = tmp_path_factory.mktemp("warm")
    published(place)
    return place


@pytest.mark.parametrize("recipe", ["hirag_pathrag", "pathrag"])
def test_the_first_question_of_a_process_is_answered_with_paths(recipe, home):
    settings = {**os.environ, "HADES_HOME": str(home), "HADES_EMBEDDER": "hashing"}
    program = [sys.executable, "-c", FIRST.format(recipe=recipe)]
    done = subprocess.run(program, cwd=home, env=settings, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[0]) > 0
    assert "timeout" not in done.stdout


def test_what_takes_long_to_load_is_not_held_against_the_turn(home, monkeypatch):
    with answering(home) as answers:
        seconds = [0.0]
        monkeypatch.setattr(turn, "read_clock", lambda: seconds[0])
        latency = answers.plan.budget.latency_ms / 1000
        monkeypatch.setattr(pipeline, "make_ready", lambda step, adjacency: seconds.append(seconds.pop() + latency))
        found = answers.retrieve("Ada Holm and Jan Brod", recipe="hirag_pathrag")
    assert found.paths
    assert "timeout" not in found.reasons
    assert seconds[0] >= latency
    assert found.telemetry.ms < latency * 1000


@pytest.mark.parametrize("step", [GraphStep.FLOW, GraphStep.PAGERANK, GraphStep.BEAM, GraphStep.NOTHING])
def test_where_no_arrays_lie_in_memory_there_is_nothing_to_load(step):
    program = f"import sys; from hades.retrieval.turn.warm_up import make_ready; make_ready({str(step)!r}, None); "
    program += "print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


@pytest.mark.parametrize("recipe", ["auto", "hirag_pathrag"])
def test_a_process_that_asks_once_needs_no_compiler(recipe, home):
    program = FIRST.format(recipe=recipe) + "import sys; print('numba' in sys.modules)"
    settings = {**os.environ, "HADES_HOME": str(home), "HADES_EMBEDDER": "hashing"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=home, env=settings, capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[-1] == "False"


@pytest.mark.parametrize("recipe", ["auto", "pathrag", "hipporag", "nexus", "memory"])
def test_no_stage_of_the_first_question_loads_a_module(recipe, home):
    settings = {**os.environ, "HADES_HOME": str(home), "HADES_EMBEDDER": "hashing"}
    program = [sys.executable, "-c", STAGES.format(recipe=recipe)]
    done = subprocess.run(program, cwd=home, env=settings, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{}"


def test_an_answer_says_how_long_loading_took(home, monkeypatch):
    with answering(home) as answers:
        seconds = [0.0]
        monkeypatch.setattr(turn, "read_clock", lambda: seconds[0])
        monkeypatch.setattr(pipeline, "make_ready", lambda step, adjacency: seconds.append(seconds.pop() + 0.5))
        found = answers.retrieve("Ada Holm and Jan Brod", recipe="hirag_pathrag")
    assert (found.telemetry.loading_ms, found.telemetry.ms) == (500.0, 0.0)


@pytest.mark.parametrize(("own", "later"), [("", "50000"), ("import gc; gc.set_threshold(900)\n", "900")])
def test_from_the_second_question_on_garbage_is_looked_for_seldom_and_not_in_what_is_loaded(own, later, home):
    settings = {**os.environ, "HADES_HOME": str(home), "HADES_EMBEDDER": "hashing"}
    again = "import gc; print('limits', gc.get_freeze_count() > 0, gc.get_threshold()[0])\n"
    program = own + FIRST.format(recipe="auto") + again + FIRST.format(recipe="auto") + again
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=home, env=settings, capture_output=True, text=True, check=True
    )
    told = [line.split() for line in done.stdout.splitlines() if line.startswith("limits")]
    assert told == [["limits", "False", "900" if own else "700"], ["limits", "True", later]]
