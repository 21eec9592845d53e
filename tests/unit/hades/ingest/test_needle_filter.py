"""Texts that hold a needle are proposed, wherever in the column they stand."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hades.ingest.forget import NeedleFilter

words = st.text(alphabet="abé ", max_size=40)


@given(
    texts=st.lists(st.none() | words, max_size=20),
    needles=st.lists(st.text(alphabet="abé ", min_size=7, max_size=20), min_size=1, max_size=4),
    inside=st.lists(st.tuples(st.integers(0, 19), st.integers(0, 3), st.integers(0, 40)), max_size=6),
    cut=st.integers(0, 3),
)
def test_no_text_that_holds_a_needle_is_left_out(
    texts: list[str | None], needles: list[str], inside: list[tuple[int, int, int]], cut: int
) -> None:
    for row, number, place in inside:
        if row < len(texts) and number < len(needles):
            told = texts[row] or ""
            texts[row] = told[:place] + needles[number] + told[place:]
    proposed = NeedleFilter(needles).propose(pa.array(["before", *texts], pa.string()).slice(1 + cut)).tolist()
    holding = [row for row, text in enumerate(texts[cut:]) if text and any(one in text for one in needles)]
    assert set(holding) <= set(proposed)
    assert proposed == sorted(set(proposed))


def test_texts_without_a_word_of_a_needle_are_not_proposed() -> None:
    texts = pa.array([f"The committee met in town number {row}." for row in range(100)] + ["hid the vermilion ledger"])
    assert NeedleFilter(["the vermilion ledger", "entities/xy"]).propose(texts).tolist() == [100]
    assert NeedleFilter([]).propose(texts).tolist() == []


def test_a_needle_too_short_to_go_by_proposes_every_text() -> None:
    assert NeedleFilter(["ab"]).propose(pa.array(["x", None, "cab"])).tolist() == [0, 1, 2]
