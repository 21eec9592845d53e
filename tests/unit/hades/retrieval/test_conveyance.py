"""Conveyance by specification 002's formula, its zeroes, and what each factor is measured from."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hades.budget import TurnStage
from hades.retrieval.core.conveyance import ConveyanceParts, convey, conveyance

UNIT = st.floats(0.0, 1.0)


def test_scorecard_of_the_specification_is_reproduced():
    assert round(conveyance(0.88, 0.90, 0.88, 0.84, 0.89), 4) == 0.6806


@pytest.mark.parametrize("missing", range(3))
def test_nothing_is_conveyed_without_what_where_or_who(missing):
    factors = [0.9, 0.9, 0.9]
    factors[missing] = 0.0
    assert conveyance(*factors, 0.5, 1.0) == 0.0


def test_nothing_is_conveyed_when_it_takes_for_ever():
    assert conveyance(1.0, 1.0, 1.0, math.inf, 1.0) == 0.0


def test_factors_are_measured_from_the_turn():
    stages = [
        TurnStage("seeds", taken=8, repeats=2),
        TurnStage("graph", capped=True),
        TurnStage("pack"),
        TurnStage("rerank"),
    ]
    found = convey(
        ConveyanceParts(
            words=(3, 4),
            cited=(5, 5),
            fitted=(4, 5),
            ms=500.0,
            evidence=(3, 6),
            seeds=(1, 4),
            stages=stages,
        )
    ).model_dump()
    assert (found["W"], found["R"], found["H"], found["T"]) == (0.75, 1.0, 0.8, 0.25)
    assert found["Ctx"] == {"L": 0.75, "I": 0.75, "A": 0.5, "G": 0.25, "value": 0.5625}
    assert found["C"] == pytest.approx(0.75 * 0.8 / 0.25 * 0.5625**1.7)


@given(UNIT, UNIT, UNIT, st.floats(1e-3, 10.0), UNIT)
def test_conveyance_falls_with_time_and_never_below_zero(what, where, who, time, context):
    value = conveyance(what, where, who, time, context)
    assert value >= 0.0
    assert conveyance(what, where, who, time * 2, context) <= value
