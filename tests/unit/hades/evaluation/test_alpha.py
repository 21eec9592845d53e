"""The exponent of the context factor is found again where answers follow it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hades.evaluation.metrics import estimate_alpha
from schemas.answer import ContextFactor, Conveyance


def _conveyed(context, who=1.0, what=0.5, where=0.8):
    factor = ContextFactor(local=context, intent=context, action=context, ground=context, value=context)
    return Conveyance(what=what, where=where, who=who, time=0.1, context=factor, value=0.0)


@given(st.floats(0.2, 3.0), st.lists(st.floats(0.1, 1.0), min_size=2, max_size=6))
def test_answers_made_with_an_exponent_give_it_back(alpha, contexts):
    one = [_conveyed(context) for context in contexts]
    other = [_conveyed(context / 2) for context in contexts]
    quality = {
        name: [row.what * row.where * row.context.value**alpha for row in rows]
        for name, rows in (("a", one), ("b", other))
    }
    found = estimate_alpha(quality, {"a": one, "b": other})
    assert found["estimate"] == pytest.approx(alpha, abs=1e-3)
    assert found["pairs"] == len(contexts)


def test_only_answers_to_the_same_reader_are_compared():
    found = estimate_alpha({"a": [0.5], "b": [0.9]}, {"a": [_conveyed(0.5)], "b": [_conveyed(0.9, who=0.5)]})
    assert found == {"estimate": None, "pairs": 0, "assumed": 1.7}
